import Encodings

/// The ranges of a file whose SHA-256, after its size in eight bytes (most significant first), is its sample: all of a
/// small file, else 256 KiB from the beginning, the middle and the end.
package func sampleRanges(_ size: UInt64) -> [Range<UInt64>] {
    let piece: UInt64 = 256 << 10
    if size <= 3 * piece { return [0..<size] }
    let middle = (size - piece) / 2
    return [0..<piece, middle..<middle + piece, size - piece..<size]
}

/// A file that a device asks about before it sends it.
package struct KnownQuery: Equatable, Sendable {
    package var name: [UInt8]
    package var size: UInt64
    package var modified: UInt64?
    package var sample: [UInt8]

    /// Files in one request.
    package static let countMax = 200

    /// A line each: `SIZE MODIFIED SAMPLE NAME`, the sample in hexadecimal digits, the name percent-encoded, `-` for an
    /// unknown time. Nil if one line is not so, and for too many.
    package static func parse(_ body: [UInt8]) -> [KnownQuery]? {
        var queries: [KnownQuery] = []
        for line in body.split(separator: UInt8(ascii: "\n")) {
            let fields = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
            guard fields.count == 4, queries.count < countMax, let size = decimal(fields[0]),
                let sample = hexBytes(fields[2], count: PacketLimits.digestBytes),
                let name = percentDecoded(fields[3])
            else { return nil }
            let modified = decimal(fields[1])
            guard modified != nil || fields[1].elementsEqual([UInt8(ascii: "-")]) else { return nil }
            queries.append(
                KnownQuery(name: photoName(name), size: size, modified: modified, sample: sample))
        }
        return queries
    }
}
