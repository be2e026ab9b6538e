import CQRencode
import Encodings
import Glibc

/// A QR code of a text (ISO/IEC 18004), by libqrencode.
package struct QRCode {
    /// Modules of a side, without the quiet zone.
    let side: Int
    private let modules: [Bool]

    /// Light modules around the code. The standard asks for four.
    private static let quietZone = 4

    /// Nil if the text is too long, or without memory.
    package init?(_ text: String) {
        guard let code = QRcode_encodeString8bit(text, 0, QR_ECLEVEL_M) else { return nil }
        defer { QRcode_free(code) }
        side = Int(code.pointee.width)
        guard let data = code.pointee.data, side > 0 else { return nil }
        // The lowest bit of a module says if it is dark.
        modules = (0..<side * side).map { data[$0] & 1 == 1 }
    }

    /// Modules outside of the code are light.
    private func isDark(_ x: Int, _ y: Int) -> Bool {
        (0..<side).contains(x) && (0..<side).contains(y) && modules[y * side + x]
    }

    /// For a terminal: two rows of modules in a line, black on white whatever the terminal's colours are.
    package var terminalText: String {
        let margin = Self.quietZone / 2
        var lines: [String] = []
        for y in stride(from: -margin, to: side + margin, by: 2) {
            var line = "\u{1B}[30;107m"
            for x in -margin..<side + margin {
                switch (isDark(x, y), isDark(x, y + 1)) {
                case (true, true): line += "█"
                case (true, false): line += "▀"
                case (false, true): line += "▄"
                case (false, false): line += " "
                }
            }
            lines.append(line + "\u{1B}[0m")
        }
        return lines.joined(separator: "\n")
    }

    /// A PNG picture (ISO/IEC 15948) of one bit a pixel, `scale` pixels a module.
    package func png(scale: Int) -> [UInt8] {
        let total = (side + 2 * Self.quietZone) * scale
        var rows: [UInt8] = []
        for y in 0..<total {
            // No filter.
            rows.append(0)
            for start in stride(from: 0, to: total, by: 8) {
                var byte: UInt8 = 0
                for x in start..<start + 8 {
                    let module = (x / scale - Self.quietZone, y / scale - Self.quietZone)
                    byte = byte << 1 | (isDark(module.0, module.1) ? 0 : 1)
                }
                rows.append(byte)
            }
        }
        var header: [UInt8] = []
        header += bigEndian(UInt32(total)) + bigEndian(UInt32(total))
        header += [1, 0, 0, 0, 0]
        return [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + pngChunk("IHDR", header)
            + pngChunk("IDAT", zlibStored(rows)) + pngChunk("IEND", [])
    }
}

/// A zlib stream (RFC 1950) of blocks that are not compressed.
private func zlibStored(_ bytes: [UInt8]) -> [UInt8] {
    var result: [UInt8] = [0x78, 0x01]
    let blockBytesMax = 65_535
    for start in stride(from: 0, to: max(bytes.count, 1), by: blockBytesMax) {
        let block = bytes[start..<min(start + blockBytesMax, bytes.count)]
        let count = UInt16(block.count)
        result.append(start + blockBytesMax >= bytes.count ? 1 : 0)
        for half in [count, ~count] { result += [UInt8(half & 0xFF), UInt8(half >> 8)] }
        result += block
    }
    var (low, high): (UInt32, UInt32) = (1, 0)
    for byte in bytes {
        low = (low + UInt32(byte)) % 65_521
        high = (high + low) % 65_521
    }
    return result + bigEndian(high << 16 | low)
}
