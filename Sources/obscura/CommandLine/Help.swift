/// The text of `obscura COMMAND --help`.
func helpText(_ command: Command) -> String {
    var parts = [
        wrapped("usage: obscura \(command.synopsis)", hanging: 4),
        wrapped(command.summary.prefix(1).uppercased() + command.summary.dropFirst() + "."),
        paragraphs(command.details),
        columns(command.options.map { ($0.shown, $0.summary) }),
    ]
    let sizes = command.operands.map(\.kind) + command.options.compactMap { $0.value?.kind }
    if sizes.contains(.size) { parts.append("SIZE takes K, M, G or T (powers of 1024).") }
    parts.append("More in obscura(1).")
    return parts.joined(separator: "\n\n")
}

/// The text of `obscura --help`.
func helpText() -> String {
    let rows = Command.all.map { (([$0.name] + $0.shownOperands).joined(separator: " "), $0.summary) }
    return [
        "usage: obscura COMMAND ... | COMMAND --help | --help | --version",
        wrapped(
            """
            An encrypted photo filesystem: a vault holds spaces, each password opens one, and mounting shows its \
            photos by day and by album.
            """),
        columns(rows),
        wrapped(
            """
            Passwords come from the first of these that is given: --password-fd N, --password-file F, \
            --password-command CMD, --password-stdin; else they are asked for on the terminal.
            """),
    ].joined(separator: "\n\n")
}

/// No line of help is longer, in characters: a terminal's usual width.
let helpColumnsMax = 79

/// The widest left column. A longer entry has a line of its own.
private let leftColumnsMax = 26

private func columns(_ rows: [(String, String)]) -> String {
    let width = rows.map(\.0.count).filter { $0 <= leftColumnsMax }.max() ?? 0
    let indent = String(repeating: " ", count: width + 4)
    return rows.map { left, right in
        let text = wrapped(indent + right, hanging: width + 4).dropFirst(width + 4)
        let head = "  " + left
        return left.count > width
            ? "\(head)\n\(indent)\(text)" : head + indent.dropFirst(head.count) + text
    }.joined(separator: "\n")
}

private func paragraphs(_ text: String) -> String {
    text.split(separator: "\n").map { wrapped(String($0)) }.joined(separator: "\n")
}

/// The text in lines of at most `helpColumnsMax` characters, broken between words only.
///
/// - Parameter hanging: spaces before each line but the first.
func wrapped(_ text: String, hanging: Int = 0) -> String {
    var lines: [String] = []
    var line = String(text.prefix { $0 == " " })
    var isEmpty = true
    for word in text.split(separator: " ") {
        if !isEmpty, line.count + 1 + word.count > helpColumnsMax {
            lines.append(line)
            (line, isEmpty) = (String(repeating: " ", count: hanging), true)
        }
        line += (isEmpty ? "" : " ") + word
        isEmpty = false
    }
    return (lines + [line]).joined(separator: "\n")
}
