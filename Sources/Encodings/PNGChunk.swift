/// The four bytes of a number, the highest first.
package func bigEndian(_ number: UInt32) -> [UInt8] {
    unsafe withUnsafeBytes(of: number.bigEndian) { unsafe Array($0) }
}

/// A chunk of a PNG: its length, type of four letters, body and checksum (PNG 1.2, section 3.2).
package func pngChunk(_ type: String, _ body: [UInt8]) -> [UInt8] {
    let checked = Array(type.utf8) + body
    return bigEndian(UInt32(body.count)) + checked + bigEndian(crc32(checked))
}

/// The checksum of PNG's chunks (PNG 1.2, section 3.4), also ISO 3309's, bit by bit, because the input is some thousand
/// bytes.
package func crc32(_ bytes: [UInt8]) -> UInt32 {
    var crc = UInt32.max
    for byte in bytes {
        crc ^= UInt32(byte)
        for _ in 0..<8 { crc = crc >> 1 ^ (crc & 1 == 0 ? 0 : 0xEDB8_8320) }
    }
    return ~crc
}
