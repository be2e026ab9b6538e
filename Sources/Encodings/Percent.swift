/// Marks that need no escape in any part of a URI, as letters and digits (RFC 3986, section 2.3).
package let unreservedMarks = Array("-._~".utf8)

/// Encodes all bytes but letters, digits and `unescaped` as `%XX` (RFC 3986).
package func percentEncoded(
    _ bytes: some Collection<UInt8>, unescaped: [UInt8] = unreservedMarks
) -> [UInt8] {
    var encoded: [UInt8] = []
    encoded.reserveCapacity(bytes.count)
    for byte in bytes {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            encoded.append(byte)
        case _ where unescaped.contains(byte): encoded.append(byte)
        default: encoded += [UInt8(ascii: "%"), upperDigits[Int(byte >> 4)], upperDigits[Int(byte & 15)]]
        }
    }
    return encoded
}

/// Decodes `%XX`. Nil if a percent sign is not followed by two hexadecimal digits.
package func percentDecoded(_ text: some Sequence<UInt8>) -> [UInt8]? {
    let (bytes, isValid) = decoded(text)
    return isValid ? bytes : nil
}

/// As `percentDecoded`, but a percent sign without two digits stays one.
package func percentDecodedLeniently(_ text: some Sequence<UInt8>) -> [UInt8] { decoded(text).bytes }

private func decoded(_ text: some Sequence<UInt8>) -> (bytes: [UInt8], isValid: Bool) {
    var rest = Array(text)[...]
    var bytes: [UInt8] = []
    bytes.reserveCapacity(rest.count)
    var isValid = true
    while let byte = rest.popFirst() {
        if byte == UInt8(ascii: "%") {
            if let high = rest.first.flatMap(hexValue), let low = rest.dropFirst().first.flatMap(hexValue) {
                bytes.append(high << 4 | low)
                rest = rest.dropFirst(2)
                continue
            }
            isValid = false
        }
        bytes.append(byte)
    }
    return (bytes, isValid)
}
