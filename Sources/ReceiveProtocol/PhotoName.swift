import Encodings

/// A name for a photo that a client calls so: never empty, at most 255 bytes, nothing that leads elsewhere, and no
/// program's working file.
///
/// Photos are kept under any name, so names are corrected, not refused: only the last component counts,
/// control characters become `_`, dots at the beginning and spaces at both ends go, and a long stem is cut before its
/// extension.
package func photoName(_ name: [UInt8]) -> [UInt8] {
    let slash = name.lastIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }
    var last = Array(slash.map { name[($0 + 1)...] } ?? name[...])
    // In UTF-8, so that the name is a text in every listing.
    last = Array(String(decoding: last, as: UTF8.self).utf8)
    last = withoutControls(last)
    last = Array(last.drop { $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "~") })
    while last.last == UInt8(ascii: " ") || last.last == UInt8(ascii: "~") { last.removeLast() }
    if last.isEmpty { return Array("Photo".utf8) }
    return cut(last)
}

/// As one line of any listing: control characters become `_`.
private func withoutControls(_ name: [UInt8]) -> [UInt8] {
    name.map { $0 < 0x20 || $0 == 0x7F ? UInt8(ascii: "_") : $0 }
}

/// Extensions are at most this long, with their dot.
private let extensionBytesMax = 16

private func cut(_ name: [UInt8]) -> [UInt8] {
    guard name.count > PacketLimits.nameBytes else { return name }
    var dot = name.lastIndex(of: UInt8(ascii: ".")) ?? name.count
    if name.count - dot > extensionBytesMax { dot = name.count }
    var end = PacketLimits.nameBytes - (name.count - dot)
    // Not within a UTF-8 sequence: continuation bytes are 10xxxxxx.
    while end > 0 && name[end] & 0xC0 == 0x80 { end -= 1 }
    return Array(name[..<end]) + Array(name[dot...])
}

/// The path of a URL below a prefix: nil if one of the names leads elsewhere or holds a NUL, if there are too many, or
/// if it does not begin so. Names with other control characters, and names that are too long, are corrected as those of
/// photos.
package func pathNames(_ url: String, below prefix: String) -> [[UInt8]]? {
    let bytes = Array(url.utf8)
    guard bytes.starts(with: prefix.utf8) else { return nil }
    var names: [[UInt8]] = []
    for part in bytes.dropFirst(prefix.utf8.count).split(separator: UInt8(ascii: "/")) {
        guard let sent = percentDecoded(part), !sent.contains(0), names.count < PacketLimits.depth else {
            return nil
        }
        let name = cut(withoutControls(sent))
        guard isFileName(name) else { return nil }
        names.append(name)
    }
    return names
}
