import Encodings

/// Returns a PNG with text right behind its header: readers of thumbnails stop at the first chunk of another kind (PNG
/// 1.2, section 4.2.3.1: keyword, NUL, Latin-1 text). Returns nil if the bytes do not begin as a PNG does.
///
/// - Parameter texts: keyword and value, both of ASCII.
package func png(_ bytes: [UInt8], with texts: [(keyword: String, value: String)]) -> [UInt8]? {
    // Eight bytes of signature; the header chunk's length, type, 13 bytes and checksum.
    let headerEnd = 8 + 4 + 4 + 13 + 4
    guard bytes.count > headerEnd, bytes.starts(with: pngBeginning) else { return nil }
    var result = Array(bytes[..<headerEnd])
    for text in texts {
        result += pngChunk("tEXt", Array(text.keyword.utf8) + [0] + Array(text.value.utf8))
    }
    return result + bytes[headerEnd...]
}

private let pngBeginning: [UInt8] =
    [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13] + Array("IHDR".utf8)
