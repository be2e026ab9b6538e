/// The reader of each kind of untrusted bytes, by the name that `scripts/fuzz` takes.
let fuzzTargets: [String: @Sendable (UnsafeRawBufferPointer) -> Void] = [
    "header": { fuzzHeader($0) },
    "structure": { fuzzStructure($0) },
    "catalogue": { fuzzCatalogue($0) },
    "receive": { fuzzReceive($0) },
    "records": { fuzzRecords($0) },
    "words": { fuzzWords($0) },
    "takeout": { fuzzTakeout($0) },
    "towns": { fuzzTowns($0) },
    "texts": { fuzzTexts($0) },
    "metadata": { fuzzMetadata($0) },
    "boxes": { fuzzBoxes($0) },
    "brotli": { fuzzBrotli($0) },
    "directory": { fuzzDirectory($0) },
    "numbers": { fuzzNumbers($0) },
]

/// Takes an input apart. Past its end all is zero.
struct Input {
    private var rest: Slice<UnsafeRawBufferPointer>

    init(_ bytes: UnsafeRawBufferPointer) { rest = bytes[...] }

    var isEmpty: Bool { rest.isEmpty }

    mutating func number<T: FixedWidthInteger>(_ type: T.Type = T.self) -> T {
        let bytes = take(MemoryLayout<T>.size)
        return bytes.reversed().reduce(0) { $0 << 8 | T(truncatingIfNeeded: $1) }
    }

    mutating func take(_ count: Int) -> [UInt8] {
        let taken = Array(rest.prefix(count))
        rest = rest.dropFirst(count)
        return taken + [UInt8](repeating: 0, count: count - taken.count)
    }

    /// The remaining bytes.
    mutating func takeAll() -> [UInt8] {
        defer { rest = rest.suffix(0) }
        return Array(rest)
    }

    /// Changes bytes as the rest of the input says: an offset of two bytes, a count of one, and that many bytes.
    mutating func patch(_ bytes: inout [UInt8]) {
        while !isEmpty {
            let offset = Int(number(UInt16.self))
            for (index, byte) in take(Int(number(UInt8.self))).enumerated() where offset + index < bytes.count
            {
                bytes[offset + index] = byte
            }
        }
    }
}
