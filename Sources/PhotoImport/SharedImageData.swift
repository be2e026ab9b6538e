import PhotoImaging

/// Whether two files have the same image data behind metadata that may differ: a program changed the date of one. Short
/// pieces from all over the smaller file are looked for in the other, as far from its beginning or its end. Of pictures
/// taken one after the other only headers and maker notes are the same.
func shareImageData(_ one: some ByteSource, _ other: some ByteSource) -> Bool {
    let size = min(one.byteCount, other.byteCount)
    let count = Int(min(size / pieces, pieceBytesMax))
    guard count >= pieceBytesMin else { return false }
    var (told, same) = (0, 0)
    for piece in 1..<pieces {
        let offset = size / pieces * piece
        let fromEnd = size - offset
        guard let bytes = read(one, at: offset, count),
            let last = read(one, at: one.byteCount - fromEnd, count)
        else { return false }
        // Padding is the same everywhere.
        guard Set(bytes).count > 2, Set(last).count > 2 else { continue }
        told += 1
        if bytes == read(other, at: offset, count)
            || last == read(other, at: other.byteCount - fromEnd, count)
        {
            same += 1
        }
    }
    return told > 0 && same * 4 >= told * 3
}

private let pieces: UInt64 = 16
private let pieceBytesMax: UInt64 = 256
private let pieceBytesMin = 8

private func read(_ source: some ByteSource, at offset: UInt64, _ count: Int) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: count)
    let done = unsafe bytes.withUnsafeMutableBytes { unsafe source.read(at: offset, into: $0) }
    return done == count ? bytes : nil
}
