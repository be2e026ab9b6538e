/// `NAME (2).jpg`: the name with a number before its extension, the stem cut to fit `bytesMax`.
package func numberedName(_ name: [UInt8], _ number: Int, bytesMax: Int = nameBytesMax) -> [UInt8] {
    suffixedName(name, Array(" (\(number))".utf8), bytesMax: bytesMax)
}

/// The name with a suffix before its extension, the stem cut to fit `bytesMax`.
package func suffixedName(_ name: [UInt8], _ suffix: [UInt8], bytesMax: Int) -> [UInt8] {
    var dot = name.lastIndex(of: UInt8(ascii: ".")) ?? name.count
    // A name that begins with its only dot, or whose extension exceeds `extensionBytesMax`, has no extension.
    if dot == 0 || name.count - dot > extensionBytesMax { dot = name.count }
    let tail = suffix + name[dot...]
    var stem = Array(name[..<dot])
    if stem.count + tail.count > bytesMax {
        var end = bytesMax - tail.count
        // Not within a UTF-8 sequence: continuation bytes are 10xxxxxx.
        while end > 0 && stem[end] & 0xC0 == 0x80 { end -= 1 }
        stem = Array(stem[..<end])
    }
    return stem + tail
}

/// The name, or a free numbered form of it: the lowest, if few are taken. It must fit `bytesMax` too.
package func firstFreeName<E: Error>(
    _ name: [UInt8], bytesMax: Int = nameBytesMax, isFree: ([UInt8]) throws(E) -> Bool
) throws(E) -> [UInt8] {
    if name.count <= bytesMax, try isFree(name) { return name }
    func candidate(_ number: Int) -> [UInt8] { numberedName(name, number, bytesMax: bytesMax) }
    // One by one, then in doubling steps, then by bisection: fast even for a large camera roll.
    var (taken, free) = (1, 2)
    while try !isFree(candidate(free)) { (taken, free) = (free, free < 32 ? free + 1 : free * 2) }
    while free - taken > 1 {
        let middle = (taken + free) / 2
        if try isFree(candidate(middle)) { free = middle } else { taken = middle }
    }
    return candidate(free)
}

private let extensionBytesMax = 16
