import Foundation

/// A file manager's entry in `~/.cache/thumbnails` for the file with that URI: a PNG in chunks, its pixels aside.
///
/// - Parameters:
///   - hasURI: whether it says which.
///   - packed: as Qt writes long texts: zTXt, here of one stored block (RFC 1951, 3.2.4).
///   - padding: bytes of a chunk in front of the text, as a colour profile is.
public func cacheEntry(_ uri: String, hasURI: Bool = true, packed: Bool = false, padding: Int = 0) -> [UInt8]
{
    let value = Array(uri.utf8)
    var bytes: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
    bytes += pngChunk("IHDR", [0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0])
    if padding > 0 { bytes += pngChunk("iCCP", [UInt8](repeating: 7, count: padding)) }
    bytes += pngChunk("tEXt", Array("Software\0GNOME::ThumbnailFactory".utf8))
    if !hasURI {
        bytes += pngChunk("tEXt", Array("Thumb::Mimetype\0video/mp4".utf8))
    } else if packed {
        let count = value.count
        let length = [UInt8(count & 255), UInt8(count >> 8)]
        let block = [0x78, 0x01, 0x01] + length + length.map { ~$0 } + value + [0, 0, 0, 0]
        bytes += pngChunk("zTXt", Array("Thumb::URI\0".utf8) + [0] + block)
    } else {
        bytes += pngChunk("tEXt", Array("Thumb::URI\0".utf8) + value)
    }
    bytes += pngChunk("tEXt", Array("Thumb::MTime\01500000000".utf8))
    return bytes + pngChunk("IDAT", [1, 2, 3]) + pngChunk("IEND", [])
}

/// Without its checksum, which nobody looks at.
private func pngChunk(_ type: String, _ body: [UInt8]) -> [UInt8] {
    let length = stride(from: 24, through: 0, by: -8).map { UInt8(body.count >> $0 & 255) }
    return length + Array(type.utf8) + body + [0, 0, 0, 0]
}
