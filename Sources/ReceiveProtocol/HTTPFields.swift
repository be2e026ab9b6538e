import Encodings

// Fields of HTTP that libmicrohttpd leaves to us. All of them come from strangers.

/// Nil unless there are exactly `count` bytes in hexadecimal digits.
package func hexBytes(_ text: some Collection<UInt8>, count: Int) -> [UInt8]? {
    let digits = text.compactMap(hexValue)
    guard digits.count == text.count, digits.count == 2 * count else { return nil }
    return (0..<count).map { digits[2 * $0] << 4 | digits[2 * $0 + 1] }
}

/// A number of ASCII digits only, below 2^62.
package func decimal(_ text: some Collection<UInt8>) -> UInt64? {
    guard (1...19).contains(text.count) else { return nil }
    var result: UInt64 = 0
    for digit in text {
        guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
        result = result * 10 + UInt64(digit - UInt8(ascii: "0"))
        if result >= 1 << 62 { return nil }
    }
    return result
}

/// `Content-Range: bytes FIRST-LAST/TOTAL` (RFC 9110, 14.4) of a request. An unknown total (`*`) is not taken: nothing
/// would say which piece is the last.
package struct ContentRange: Equatable, Sendable {
    package var first: UInt64
    package var last: UInt64
    package var total: UInt64

    /// Nil for anything else, and for a range that is empty or ends behind the total.
    package init?(_ text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: " "), maxSplits: 1)
        guard parts.count == 2, parts[0].elementsEqual("bytes".utf8) else { return nil }
        let halves = parts[1].split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard halves.count == 2 else { return nil }
        let ends = halves[0].split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard ends.count == 2, let first = decimal(ends[0]), let last = decimal(ends[1]), first <= last else {
            return nil
        }
        guard let total = decimal(halves[1]), last < total else { return nil }
        (self.first, self.last, self.total) = (first, last, total)
    }

    package var length: UInt64 { last - first + 1 }
}

/// Whether the headers of a request say in one way only where its body ends and where it belongs.
///
/// False if a name is no token (RFC 9110, 5.6.2): a space before the colon hides a header from libmicrohttpd (RFC 9112,
/// 5.1). False also if a header of the body is there twice with different values (RFC 9112, 6.3), of which
/// libmicrohttpd would take the first.
package func areUnambiguous(_ headers: [(name: String, value: String)]) -> Bool {
    var values: [String: String] = [:]
    for (name, value) in headers {
        guard !name.isEmpty, name.utf8.allSatisfy(isTokenByte) else { return false }
        let name = name.lowercased()
        guard bodyHeaders.contains(name) else { continue }
        if let other = values.updateValue(value, forKey: name), other != value { return false }
    }
    return true
}

private let bodyHeaders = ["content-length", "content-range", "transfer-encoding"]

private func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
}

/// The SHA-256 of a `Content-Digest` or `Repr-Digest` (RFC 9530): `sha-256=:BASE64:`, alone or among others. Nil if
/// there is none.
package func sha256Digest(_ text: String) -> [UInt8]? {
    for part in text.utf8.split(separator: UInt8(ascii: ",")) {
        let part = part.drop { $0 == UInt8(ascii: " ") }
        guard part.starts(with: "sha-256=:".utf8), part.last == UInt8(ascii: ":") else { continue }
        let digest = base64Decoded(part.dropFirst(9).dropLast())
        if let digest, digest.count == PacketLimits.digestBytes { return digest }
    }
    return nil
}

/// RFC 4648, with its padding. Nil for anything else.
func base64Decoded(_ text: some Collection<UInt8>) -> [UInt8]? {
    let text = Array(text)
    guard text.count % 4 == 0, text.count <= 1024 else { return nil }
    let padding = text.reversed().prefix { $0 == UInt8(ascii: "=") }.count
    guard padding <= 2 else { return nil }
    var result: [UInt8] = []
    var (bits, count): (UInt32, Int) = (0, 0)
    for digit in text.dropLast(padding) {
        let value: UInt8
        switch digit {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = digit - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): value = digit - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0") + 52
        case UInt8(ascii: "+"): value = 62
        case UInt8(ascii: "/"): value = 63
        default: return nil
        }
        bits = bits << 6 | UInt32(value)
        count += 6
        if count >= 8 {
            count -= 8
            result.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
        }
    }
    return result
}

/// The value of a cookie in a `Cookie` header (RFC 6265). Nil if it is not there.
package func cookie(_ name: String, in header: String) -> [UInt8]? {
    for part in header.utf8.split(separator: UInt8(ascii: ";")) {
        let part = part.drop { $0 == UInt8(ascii: " ") }
        if part.starts(with: name.utf8), part.dropFirst(name.utf8.count).first == UInt8(ascii: "=") {
            return Array(part.dropFirst(name.utf8.count + 1))
        }
    }
    return nil
}

/// `user:password` of an `Authorization: Basic` header (RFC 7617). Nil for anything else.
package func basicCredentials(_ header: String) -> [UInt8]? {
    let bytes = Array(header.utf8)
    guard bytes.count > 6, String(decoding: bytes.prefix(6), as: UTF8.self).lowercased() == "basic " else {
        return nil
    }
    return base64Decoded(bytes.dropFirst(6).drop { $0 == UInt8(ascii: " ") })
}

/// Compares in a time that does not depend on where the bytes differ. Lengths are public.
package func isEqualInConstantTime(_ a: [UInt8], _ b: [UInt8]) -> Bool {
    guard a.count == b.count else { return false }
    var difference: UInt8 = 0
    for index in a.indices { difference |= a[index] ^ b[index] }
    return difference == 0
}
