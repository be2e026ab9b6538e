/// A JSON value (RFC 8259). Every `--json` prints one object on one line.
package enum JSON {
    case null
    case bool(Bool)
    case number(UInt64)
    case text(String)
    case list([JSON])
    /// An object: members are written in this order, so that the output of a command is always shaped alike.
    case members([Member])

    /// A member of an object.
    package struct Member {
        package var name: String
        package var value: JSON
    }

    /// An object with these members.
    package static func object(_ members: [(String, JSON)]) -> JSON {
        .members(members.map { Member(name: $0.0, value: $0.1) })
    }

    /// A number that is not negative.
    package static func count(_ count: Int) -> JSON { .number(UInt64(max(0, count))) }

    /// A text, or null.
    package static func optional(_ text: String?) -> JSON { text.map { .text($0) } ?? .null }

    /// A path, which need not be UTF-8, as JSON must be: a byte that is not becomes `\xNN`, and a backslash `\\`, so
    /// that different paths stay different. JSON's own escapes come on top.
    package static func path(_ bytes: [UInt8]) -> JSON { .text(escapedPath(bytes)) }

    /// The value on one line.
    package var line: String {
        switch self {
        case .null: "null"
        case .bool(let value): value ? "true" : "false"
        case .number(let value): "\(value)"
        case .text(let text): quoted(text)
        case .list(let values): "[" + values.map(\.line).joined(separator: ", ") + "]"
        case .members(let members):
            "{" + members.map { "\(quoted($0.name)): \($0.value.line)" }.joined(separator: ", ") + "}"
        }
    }
}

/// A text as a JSON string. Control characters are escaped: a path must not move the cursor of a terminal.
private func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
        switch scalar {
        case "\"", "\\": result += "\\" + String(scalar)
        case _ where isControlCode(scalar):
            result += "\\u" + hexText([0, UInt8(scalar.value)])
        default: result.unicodeScalars.append(scalar)
        }
    }
    return result + "\""
}

private func escapedPath(_ bytes: [UInt8]) -> String {
    var result = ""
    var index = 0
    var iterator = bytes.makeIterator()
    var parser = Unicode.UTF8.ForwardParser()
    while true {
        switch parser.parseScalar(from: &iterator) {
        case .emptyInput: return result
        case .valid(let encoded):
            let scalar = Unicode.UTF8.decode(encoded)
            result += scalar == "\\" ? "\\\\" : String(scalar)
            index += encoded.count
        case .error(let length):
            for byte in bytes[index..<index + length] {
                result += "\\x" + hexText([byte])
            }
            index += length
        }
    }
}
