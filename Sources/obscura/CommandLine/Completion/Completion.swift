/// A shell that completes words of the command line.
enum Shell: String, CaseIterable {
    case bash, zsh, fish

    static var names: [String] { allCases.map(\.rawValue) }

    /// A script that teaches the shell all commands and options, made from their tables.
    var completion: String {
        switch self {
        case .bash: bashCompletion()
        case .zsh: zshCompletion()
        case .fish: fishCompletion()
        }
    }
}

/// `completion SHELL`: prints the script for a shell.
func runCompletion(_ arguments: Arguments) throws(Failure) {
    guard let shell = Shell(rawValue: arguments.operands[0]) else {
        throw Failure(
            .usage, arguments.operands[0], "no such shell here: \(Shell.names.joined(separator: ", "))")
    }
    say(String(shell.completion.dropLast()))
}

extension Command {
    /// The first words of commands, each once, and the line of help; nil for a word that needs another.
    static var firstWords: [(word: String, summary: String?)] {
        var found: [(word: String, summary: String?)] = []
        for command in all where !found.contains(where: { $0.word == command.words[0] }) {
            found.append((command.words[0], command.words.count == 1 ? command.summary : nil))
        }
        return found
    }

    /// The second words of the commands that begin with this one.
    static func secondWords(of first: String) -> [(word: String, summary: String)] {
        all.filter { $0.words.count == 2 && $0.words[0] == first }.map { ($0.words[1], $0.summary) }
    }
}

extension WordKind {
    /// Sizes that a shell proposes before anything is typed.
    static let sizes = "1G 2G 4G 8G 16G 32G 64G 128G"
}

extension MountOption {
    /// The words that its value can be; empty if it can be any.
    var values: [String] {
        guard form != nil, let shown else { return [] }
        return shown.dropFirst(name.count + 1).split(separator: "|").map(String.init).filter { word in
            word.allSatisfy(\.isLowercase)
        }
    }
}
