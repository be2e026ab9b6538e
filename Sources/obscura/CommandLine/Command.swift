/// A command: a row with its words, its operands, its options, its text and its function. The parser, the help, the
/// manual's synopsis and the completions of shells follow from it. A new command is a row here, its name in `all`, and
/// its function.
struct Command: Hashable, Sendable {
    /// As typed: one word or two.
    let name: String
    /// Each must be given, unless `tail` says otherwise.
    let operands: [Operand]
    let tail: Tail
    /// In the order of --help, which is the last of all.
    let options: [Option]
    /// The option that must be given; nil for most commands.
    let needs: Option?
    /// One line for --help.
    let summary: String
    /// Paragraphs for the command's own --help, one to a line.
    let details: String
    /// Words of other programs that mean this command.
    let alsoTyped: [String]
    /// Runs it, and returns the exit status.
    let run: @Sendable (Arguments) throws(Failure) -> Int32

    struct Operand: Sendable {
        /// As in a usage line, such as `VAULT`.
        let shown: String
        let kind: WordKind

        init(_ shown: String, _ kind: WordKind) { (self.shown, self.kind) = (shown, kind) }

        static let vault = Operand("VAULT", .vault)
        static let vaultToMake = Operand("VAULT", .directory)
        static let mount = Operand("DIR", .mount)
        static let directory = Operand("DIR", .directory)
        static let file = Operand("F", .file)
        static let size = Operand("SIZE", .size)
    }

    /// The words that may follow the first operands.
    enum Tail: Sendable, Equatable {
        case none
        /// The last operand may be left out.
        case optional
        /// More operands, as a usage line shows them.
        case repeated(String)
        /// The words of another command.
        case command
    }

    init(
        _ name: String, _ operands: [Operand], _ tail: Tail = .none, options: [Option], needs: Option? = nil,
        summary: String, details: String, alsoTyped: [String],
        status run: @escaping @Sendable (Arguments) throws(Failure) -> Int32
    ) {
        (self.name, self.operands, self.tail) = (name, operands, tail)
        (self.options, self.needs) = (options + [.help], needs)
        (self.summary, self.details, self.alsoTyped, self.run) = (summary, details, alsoTyped, run)
    }

    init(
        _ name: String, _ operands: [Operand], _ tail: Tail = .none, options: [Option] = [],
        needs: Option? = nil,
        summary: String, details: String, alsoTyped: [String],
        _ run: @escaping @Sendable (Arguments) throws(Failure) -> Void
    ) {
        self.init(
            name, operands, tail, options: options, needs: needs, summary: summary, details: details,
            alsoTyped: alsoTyped
        ) { (arguments) throws(Failure) in
            try run(arguments)
            return ExitStatus.done.rawValue
        }
    }

    static func == (a: Command, b: Command) -> Bool { a.name == b.name }

    func hash(into hasher: inout Hasher) { hasher.combine(name) }

    /// The words of its name.
    var words: [String] { name.split(separator: " ").map(String.init) }

    /// Its options without those that many commands share, in the order of --help.
    var ownOptions: [Option] {
        let shared = Option.passwordOptions + [.help] + (self == Command.create ? [] : Option.createOptions)
        return options.filter { !shared.contains($0) }
    }

    /// Its operands as a usage line shows them.
    var shownOperands: [String] { operands.map { tail == .optional ? "[\($0.shown)]" : $0.shown } }

    /// `mount VAULT DIR [-o OPT,...] [-f] [--create ...]`: with its own options.
    var synopsis: String {
        let own = ownOptions.map { option in
            if option == Option.create { return "[--create ...]" }
            return option == needs ? option.shown : "[\(option.shown)]"
        }
        let more =
            switch tail {
            case .none, .optional: [String]()
            case .repeated(let text): [text]
            case .command: ["[-- COMMAND...]"]
            }
        return ([name] + shownOperands + more + own).joined(separator: " ")
    }
}
