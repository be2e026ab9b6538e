/// An option of commands: a row with its name, its value and its text. The parser, the help, the manual and the
/// completions of shells follow from it. A new option is a row here, its name in the rows of its commands (`Command`),
/// and its use.
struct Option: Hashable, Sendable {
    /// Without dashes. One letter, or a word.
    let name: String
    /// Nil for an option without a value.
    let value: Value?
    /// One line for --help.
    let summary: String
    /// The text of the manual, in mdoc(7); nil if the summary serves.
    let manual: String?
    /// Words of other programs that mean this option, with their dashes.
    let alsoTyped: [String]

    struct Value: Sendable {
        /// As in a usage line, such as `SIZE` or `link|copy|none`.
        let shown: String
        let kind: WordKind
    }

    init(
        _ name: String, _ shown: String? = nil, _ kind: WordKind = .text, summary: String,
        manual: String? = nil, alsoTyped: [String] = []
    ) {
        self.name = name
        value = shown.map { Value(shown: $0, kind: kind) }
        (self.summary, self.manual, self.alsoTyped) = (summary, manual, alsoTyped)
    }

    static func == (a: Option, b: Option) -> Bool { a.name == b.name }

    func hash(into hasher: inout Hasher) { hasher.combine(name) }

    /// As typed: one dash before a single letter, two before a word.
    var spelling: String { (name.utf8.count == 1 ? "-" : "--") + name }

    /// As in a list of options: `--size SIZE`.
    var shown: String { value.map { "\(spelling) \($0.shown)" } ?? spelling }
}

/// The kind of an operand or of an option's value, by which a shell completes it.
enum WordKind: Sendable, Hashable {
    case text
    case words([String])
    case size
    case vault
    /// A directory that is a mounted space.
    case mount
    case vaultOrMount
    case directory
    case file
    case mountOptions
}
