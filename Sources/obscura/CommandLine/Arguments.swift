/// A parsed command line: the command, its operands and the given options.
struct Arguments: Equatable {
    var command: Command
    var operands: [String] = []
    /// Values in the order given; empty strings for an option without a value.
    private var values: [Option: [String]] = [:]

    init(_ command: Command) { self.command = command }

    func has(_ option: Option) -> Bool { values[option] != nil }

    /// The last value given, as with most programs.
    subscript(_ option: Option) -> String? { values[option]?.last }

    /// Every value given for an option that may be repeated.
    func all(_ option: Option) -> [String] { values[option] ?? [] }

    /// The same options with another operand.
    func replacing(operand: String) -> Arguments {
        var copy = self
        copy.operands = [operand]
        return copy
    }

    fileprivate mutating func add(_ option: Option, _ value: String) {
        values[option, default: []].append(value)
    }
}

/// The action that a command line requests.
enum Invocation: Equatable {
    case run(Arguments)
    /// Nothing was given: show how the program is used, as an error.
    case usage
    case help(Command?)
    case version
}

/// Parses the words after the program's name.
///
/// Options and operands may be mixed; `--` ends the options. Values follow as `--name value`, `--name=value`,
/// `-o value` or `-ovalue`; letters may share a dash (`-fo ro`).
func parseArguments(_ words: [String]) throws(Failure) -> Invocation {
    guard let first = words.first else { return .usage }
    if helpWords.contains(first) { return .help(nil) }
    if ["--version", "-V", "version"].contains(first) { return .version }
    if first == "help" {
        guard words.count > 1, words[1] != "help", !helpWords.contains(words[1]),
            !Command.isFirstOfTwoWords(words[1]) || words.count > 2
        else {
            return .help(nil)
        }
        return .help(try parseCommand(Array(words.dropFirst()), after: "obscura help").0)
    }
    if Command.isFirstOfTwoWords(first), let second = words.dropFirst().first, helpWords.contains(second) {
        return .help(nil)
    }
    if first.hasPrefix("-") {
        let name = first.prefix { $0 != "=" }
        if let command = Command.all.first(where: { $0.options.contains { $0.spelling == name } }) {
            throw Failure(
                .usage, first,
                "options come after a command: obscura \(command.name) \(name) (obscura --help lists all)")
        }
        let nearest = nearestWord(to: first, among: ["--help", "--version"]) ?? "--help"
        throw Failure(.usage, first, "unknown option here: the nearest is \(nearest)")
    }
    let (command, rest) = try parseCommand(words)
    var parser = OptionParser(command: command, words: rest)
    return try parser.parse()
}

private let helpWords: Set<String> = ["--help", "-h"]

/// The command at the beginning of `words`, and the words after it. `start`: the words that were typed before these.
private func parseCommand(
    _ words: [String], after start: String = "obscura"
) throws(Failure) -> (Command, ArraySlice<String>) {
    if let command = Command.all.first(where: { $0.name == words[0] }) { return (command, words[1...]) }
    if words[0].isEmpty { throw Failure(.usage, "command", "is empty: obscura --help lists all commands") }
    // Commands of two words share their first.
    let seconds = Command.all.map(\.name).filter { $0.hasPrefix(words[0] + " ") }
    if !seconds.isEmpty {
        let choices = seconds.map { String($0.dropFirst(words[0].utf8.count + 1)) }
        guard words.count > 1 else {
            throw Failure(.usage, words[0], "\(choices.joined(separator: " or "))? see obscura --help")
        }
        if let command = Command.all.first(where: { $0.name == words[0] + " " + words[1] }) {
            return (command, words[2...])
        }
        let nearest = nearestWord(to: words[1], among: choices) ?? choices[0]
        throw Failure(
            .usage, "\(words[0]) \(words[1])", "unknown command: the nearest is \(words[0]) \(nearest)")
    }
    throw Failure(.usage, words[0], "unknown command: \(Command.suggestion(for: words[0], after: start))")
}

extension Command {
    /// Whether `word` begins a command but needs another word: `space`.
    fileprivate static func isFirstOfTwoWords(_ word: String) -> Bool {
        all.contains { $0.words.count > 1 && $0.words[0] == word }
    }

    /// The commands that other programs call by this word, or by one that is near; else the nearest by its letters.
    fileprivate static func suggestion(for word: String, after start: String) -> String {
        func calledSo(_ other: String) -> [Command] { all.filter { $0.alsoTyped.contains(other) } }
        var meant = calledSo(word.lowercased())
        if meant.isEmpty {
            let own = all.map { $0.words[0] } + ["help", "version"]
            let near = wordNear(to: word, among: own + all.flatMap(\.alsoTyped))
            meant = near.map { own.contains($0) ? [] : calledSo($0) } ?? []
            if meant.isEmpty {
                let nearest = near ?? nearestWord(to: word, among: own) ?? "help"
                return "the nearest is \(nearest) (obscura --help lists them)"
            }
        }
        return "did you mean \(meant.map { "\(start) \($0.name)" }.joined(separator: " or "))?"
    }
}

private struct OptionParser {
    let command: Command
    let words: ArraySlice<String>
    private var next: Int
    private var result: Arguments
    private var asksForHelp = false

    init(command: Command, words: ArraySlice<String>) {
        self.command = command
        self.words = words
        next = words.startIndex
        result = Arguments(command)
    }

    mutating func parse() throws(Failure) -> Invocation {
        while let word = take() {
            if word == "--" {
                while let operand = take() { result.operands.append(operand) }
            } else if word.hasPrefix("--") {
                try parseLong(word)
            } else if word.hasPrefix("-"), word != "-" {
                try parseShort(word)
            } else {
                result.operands.append(word)
            }
            if asksForHelp { return .help(command) }
        }
        try checkOperands()
        return .run(result)
    }

    private mutating func take() -> String? {
        guard next < words.endIndex else { return nil }
        defer { next += 1 }
        return words[next]
    }

    private mutating func parseLong(_ word: String) throws(Failure) {
        let name = String(word.dropFirst(2).prefix { $0 != "=" })
        let value = name.count + 2 == word.count ? nil : String(word.dropFirst(name.count + 3))
        guard name.utf8.count > 1, let option = command.options.first(where: { $0.name == name }) else {
            throw unknown("--" + name)
        }
        try add(option, inlineValue: value)
    }

    private mutating func parseShort(_ word: String) throws(Failure) {
        var letters = word.dropFirst()
        while let letter = letters.first {
            letters = letters.dropFirst()
            let name = letter == "h" ? Option.help.name : String(letter)
            guard let option = command.options.first(where: { $0.name == name }) else {
                throw unknown("-" + String(letter))
            }
            if option.value == nil {
                try add(option, inlineValue: nil)
            } else {
                try add(option, inlineValue: letters.isEmpty ? nil : String(letters))
                return
            }
        }
    }

    private mutating func add(_ option: Option, inlineValue: String?) throws(Failure) {
        if option == .help { asksForHelp = true }
        guard option.value != nil else {
            if inlineValue != nil { throw Failure(.usage, option.spelling, "takes no value") }
            result.add(option, "")
            return
        }
        guard let value = inlineValue ?? take() else {
            throw Failure(.usage, option.spelling, "needs a value: \(option.shown)")
        }
        result.add(option, value)
    }

    private func unknown(_ spelling: String) -> Failure {
        let meant = command.options.first { $0.alsoTyped.contains(spelling) }
        let nearest =
            meant?.spelling ?? nearestWord(to: spelling, among: command.options.map(\.spelling))
            ?? Option.help.spelling
        return Failure(.usage, spelling, "unknown option of \(command.name): the nearest is \(nearest)")
    }

    private func checkOperands() throws(Failure) {
        let expected = command.operands
        let given = result.operands
        if given.count > expected.count, [.none, .optional].contains(command.tail) {
            throw Failure(.usage, given[expected.count], "one word too many: obscura \(command.synopsis)")
        }
        if given.count < expected.count, command.tail != .optional {
            throw Failure(
                .usage, command.name,
                "\(expected[given.count].shown) is missing: obscura \(command.synopsis)")
        }
        let own = command.tail == .command ? given.prefix(expected.count) : given[...]
        if let index = own.firstIndex(of: "") {
            let name = expected[min(index, expected.count - 1)].shown
            throw Failure(.usage, command.name, "\(name) is empty: name one")
        }
    }
}
