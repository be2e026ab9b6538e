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
    case help(Command?)
    case version
}

/// Parses the words after the program's name.
///
/// Options and operands may be mixed; `--` ends the options. Values follow as `--name value`, `--name=value`,
/// `-o value` or `-ovalue`; letters may share a dash (`-fo ro`).
func parseArguments(_ words: [String]) throws(Failure) -> Invocation {
    guard let first = words.first else {
        throw Failure(.usage, "command", "none given: obscura --help lists them")
    }
    if first == "--help" { return .help(nil) }
    if first == "--version" { return .version }
    if first == "help" {
        guard words.count > 1, words[1] != "--help", words[1] != "help",
            !Command.isFirstOfTwoWords(words[1]) || words.count > 2
        else {
            return .help(nil)
        }
        return .help(try parseCommand(Array(words.dropFirst())).0)
    }
    if Command.isFirstOfTwoWords(first), words.dropFirst().first == "--help" { return .help(nil) }
    if first.hasPrefix("-") {
        let nearest = nearestWord(to: first, among: ["--help", "--version"]) ?? "--help"
        throw Failure(.usage, first, "unknown option here: the nearest is \(nearest)")
    }
    let (command, rest) = try parseCommand(words)
    var parser = OptionParser(command: command, words: rest)
    return try parser.parse()
}

private func parseCommand(_ words: [String]) throws(Failure) -> (Command, ArraySlice<String>) {
    if let command = Command(rawValue: words[0]) { return (command, words[1...]) }
    // Commands of two words share their first.
    let seconds = Command.allCases.map(\.rawValue).filter { $0.hasPrefix(words[0] + " ") }
    if !seconds.isEmpty {
        let choices = seconds.map { String($0.dropFirst(words[0].utf8.count + 1)) }
        guard words.count > 1 else {
            throw Failure(.usage, words[0], "\(choices.joined(separator: " or "))? see obscura --help")
        }
        if let command = Command(rawValue: words[0] + " " + words[1]) { return (command, words[2...]) }
        let nearest = nearestWord(to: words[1], among: choices) ?? choices[0]
        throw Failure(
            .usage, "\(words[0]) \(words[1])", "unknown command: the nearest is \(words[0]) \(nearest)")
    }
    let firstWords = Command.allCases.map { String($0.rawValue.prefix { $0 != " " }) }
    let nearest = nearestWord(to: words[0], among: firstWords) ?? "info"
    throw Failure(.usage, words[0], "unknown command: the nearest is \(nearest) (obscura --help lists them)")
}

extension Command {
    /// Whether `word` begins a command but needs another word: `space`.
    fileprivate static func isFirstOfTwoWords(_ word: String) -> Bool {
        allCases.contains { $0.rawValue.hasPrefix(word + " ") }
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
        guard name.utf8.count > 1, let option = Option(rawValue: name), command.options.contains(option)
        else {
            throw unknown("--" + name)
        }
        try add(option, inlineValue: value)
    }

    private mutating func parseShort(_ word: String) throws(Failure) {
        var letters = word.dropFirst()
        while let letter = letters.first {
            letters = letters.dropFirst()
            guard let option = Option(rawValue: String(letter)), command.options.contains(option) else {
                throw unknown("-" + String(letter))
            }
            if option.placeholder == nil {
                try add(option, inlineValue: nil)
            } else {
                try add(option, inlineValue: letters.isEmpty ? nil : String(letters))
                return
            }
        }
    }

    private mutating func add(_ option: Option, inlineValue: String?) throws(Failure) {
        if option == .help { asksForHelp = true }
        guard let placeholder = option.placeholder else {
            if inlineValue != nil { throw Failure(.usage, option.spelling, "takes no value") }
            result.add(option, "")
            return
        }
        guard let value = inlineValue ?? take() else {
            throw Failure(.usage, option.spelling, "needs a value: \(option.spelling) \(placeholder)")
        }
        result.add(option, value)
    }

    private func unknown(_ spelling: String) -> Failure {
        let nearest =
            nearestWord(to: spelling, among: command.options.map(\.spelling)) ?? Option.help.spelling
        return Failure(
            .usage, spelling, "unknown option of \(command.rawValue): the nearest is \(nearest)")
    }

    private func checkOperands() throws(Failure) {
        let expected = command.operands
        let given = result.operands
        if given.count > expected.count, !command.takesMore, !command.takesCommand {
            throw Failure(.usage, given[expected.count], "one word too many: obscura \(command.synopsis)")
        }
        if given.count < expected.count, !command.mayTakeNone {
            throw Failure(
                .usage, command.rawValue, "\(expected[given.count]) is missing: obscura \(command.synopsis)")
        }
        let own = command.takesCommand ? given.prefix(expected.count) : given[...]
        if let index = own.firstIndex(of: "") {
            let name = expected[min(index, expected.count - 1)]
            throw Failure(.usage, command.rawValue, "\(name) is empty: name one")
        }
    }
}
