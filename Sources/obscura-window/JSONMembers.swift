/// The value of a member of the object that `obscura --json` prints on one line: a string without its escapes, anything
/// else as it is written. Nil if there is none, or it is null.
///
/// Quotation marks in strings are escaped, so that no string looks like a member.
func jsonMember(_ name: String, of line: Substring) -> String? {
    guard let start = line.firstRange(of: "\"\(name)\": ")?.upperBound else { return nil }
    var rest = line[start...].unicodeScalars
    guard rest.first == "\"" else {
        let word = String(rest.prefix { !",]}".unicodeScalars.contains($0) })
        return word == "null" ? nil : word
    }
    rest.removeFirst()
    let escapes: [Unicode.Scalar: Unicode.Scalar] = ["n": "\n", "t": "\t", "r": "\r"]
    var text = String.UnicodeScalarView()
    while let scalar = rest.popFirst(), scalar != "\"" {
        let escape = scalar == "\\" ? rest.popFirst() : nil
        if escape == "u" {
            text.append(UInt32(String(rest.prefix(4)), radix: 16).flatMap { Unicode.Scalar($0) } ?? "?")
            rest = rest.dropFirst(4)
        } else {
            text.append(escape.map { escapes[$0] ?? $0 } ?? scalar)
        }
    }
    return String(text)
}

/// A member that is a path: a backslash is doubled there. Nil if the path is not UTF-8.
func jsonPath(_ name: String, of line: Substring) -> String? {
    let parts = jsonMember(name, of: line)?.split(separator: "\\\\", omittingEmptySubsequences: false)
    return parts.flatMap { $0.contains { $0.contains("\\") } ? nil : $0.joined(separator: "\\") }
}
