/// A JSON value that was read (RFC 8259).
///
/// The reader is strict and bounded: sidecars come from outside, perhaps from somebody else's archive.
package enum JSONValue: Equatable {
    case null
    case bool(Bool)
    case number(Double)
    case text(String)
    case list([JSONValue])
    /// Of two members with one name the last counts.
    case object([String: JSONValue])

    /// Maximum length of a text that is read. Google's longest sidecars have some 100 KiB.
    package static let bytesMax = 1 << 20
    /// Maximum depth of lists and objects within each other.
    package static let depthMax = 32

    /// The value that the bytes spell; nil if they are no JSON, too long, or too deep. A byte order mark is skipped.
    package init?(_ bytes: [UInt8]) {
        guard bytes.count <= Self.bytesMax else { return nil }
        var parser = JSONParser(bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(bytes.dropFirst(3)) : bytes)
        guard let value = parser.document() else { return nil }
        self = value
    }

    /// The member of an object; nil if there is none.
    package subscript(name: String) -> JSONValue? {
        if case .object(let members) = self { members[name] } else { nil }
    }

    package var text: String? { if case .text(let text) = self { text } else { nil } }
    package var number: Double? { if case .number(let number) = self { number } else { nil } }
    package var isTrue: Bool { self == .bool(true) }
    var isObject: Bool { if case .object = self { true } else { false } }
}

/// A recursive descent over the grammar of RFC 8259.
private struct JSONParser {
    private let bytes: [UInt8]
    private var index = 0
    private var depth = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    mutating func document() -> JSONValue? {
        guard let value = value() else { return nil }
        skipSpace()
        return index == bytes.count ? value : nil
    }

    private var next: UInt8? { index < bytes.count ? bytes[index] : nil }

    private mutating func skipSpace() {
        while let byte = next, [0x20, 0x09, 0x0A, 0x0D].contains(byte) { index += 1 }
    }

    /// Steps over a byte if it is the next one.
    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard next == UInt8(ascii: character) else { return false }
        index += 1
        return true
    }

    private mutating func take(word: StaticString) -> Bool {
        let isNext = word.withUTF8Buffer { unsafe bytes[index...].starts(with: $0) }
        if isNext { index += word.utf8CodeUnitCount }
        return isNext
    }

    private mutating func value() -> JSONValue? {
        skipSpace()
        switch next {
        case UInt8(ascii: "{"): return nested { $0.object() }
        case UInt8(ascii: "["): return nested { $0.list() }
        case UInt8(ascii: "\""): return text().map { .text($0) }
        case UInt8(ascii: "t"): return take(word: "true") ? .bool(true) : nil
        case UInt8(ascii: "f"): return take(word: "false") ? .bool(false) : nil
        case UInt8(ascii: "n"): return take(word: "null") ? .null : nil
        default: return number()
        }
    }

    private mutating func nested(_ body: (inout Self) -> JSONValue?) -> JSONValue? {
        guard depth < JSONValue.depthMax else { return nil }
        depth += 1
        index += 1
        defer { depth -= 1 }
        return body(&self)
    }

    private mutating func object() -> JSONValue? {
        var members: [String: JSONValue] = [:]
        skipSpace()
        if take("}") { return .object(members) }
        while true {
            skipSpace()
            guard next == UInt8(ascii: "\""), let name = text() else { return nil }
            skipSpace()
            guard take(":"), let value = value() else { return nil }
            members[name] = value
            skipSpace()
            if take("}") { return .object(members) }
            guard take(",") else { return nil }
        }
    }

    private mutating func list() -> JSONValue? {
        var values: [JSONValue] = []
        skipSpace()
        if take("]") { return .list(values) }
        while true {
            guard let value = value() else { return nil }
            values.append(value)
            skipSpace()
            if take("]") { return .list(values) }
            guard take(",") else { return nil }
        }
    }

    private mutating func digits() -> Int {
        let start = index
        while let byte = next, (0x30...0x39).contains(byte) { index += 1 }
        return index - start
    }

    private mutating func number() -> JSONValue? {
        let start = index
        _ = take("-")
        let isZero = next == UInt8(ascii: "0")
        let whole = digits()
        guard whole > 0, !isZero || whole == 1 else { return nil }
        if take(".") { guard digits() > 0 else { return nil } }
        if take("e") || take("E") {
            _ = take("+") || take("-")
            guard digits() > 0 else { return nil }
        }
        guard let value = Double(String(decoding: bytes[start..<index], as: UTF8.self)), value.isFinite else {
            return nil
        }
        return .number(value)
    }

    /// A string, from its first quote to behind its last.
    private mutating func text() -> String? {
        index += 1
        var result: [UInt8] = []
        while let byte = next {
            index += 1
            switch byte {
            case UInt8(ascii: "\""): return String(validating: result, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let scalar = escape() else { return nil }
                result += Array(String(scalar).utf8)
            case 0..<0x20: return nil
            default: result.append(byte)
            }
        }
        return nil
    }

    private mutating func escape() -> Unicode.Scalar? {
        guard let byte = next else { return nil }
        index += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): return unicode()
        default: return nil
        }
    }

    /// Four hexadecimal digits, or two such escapes that are a surrogate pair. Half a pair becomes U+FFFD.
    private mutating func unicode() -> Unicode.Scalar? {
        guard let unit = unit() else { return nil }
        if let scalar = Unicode.Scalar(unit) { return scalar }
        let before = index
        if unit < 0xDC00, take("\\"), take("u"), let low = self.unit(), (0xDC00..<0xE000).contains(low) {
            return Unicode.Scalar(0x10000 + (UInt32(unit) - 0xD800) << 10 + UInt32(low) - 0xDC00)
        }
        index = before
        return "\u{FFFD}"
    }

    private mutating func unit() -> UInt16? {
        guard index + 4 <= bytes.count else { return nil }
        let digits = bytes[index..<index + 4]
        guard digits.allSatisfy({ Unicode.Scalar($0).properties.isASCIIHexDigit }) else { return nil }
        index += 4
        return UInt16(String(decoding: digits, as: UTF8.self), radix: 16)
    }
}
