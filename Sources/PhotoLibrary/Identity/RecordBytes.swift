/// Puts the little-endian numbers and counted texts of an identity record together.
struct RecordWriter {
    private(set) var bytes: [UInt8] = []

    mutating func number<T: FixedWidthInteger>(_ value: T) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    /// A length of 4 bytes, then the text.
    mutating func text(_ text: [UInt8]) {
        number(UInt32(text.count))
        bytes.append(contentsOf: text)
    }
}

/// Takes them apart again. What is authentic was written by some version of this program, but is checked all the
/// same: past the end everything is nil.
struct RecordReader {
    private let bytes: UnsafeRawBufferPointer
    private var place = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    mutating func number<T: FixedWidthInteger>(_ type: T.Type = T.self) -> T? {
        guard bytes.count - place >= MemoryLayout<T>.size else { return nil }
        defer { place += MemoryLayout<T>.size }
        return T(littleEndian: bytes.loadUnaligned(fromByteOffset: place, as: T.self))
    }

    mutating func text() -> [UInt8]? {
        guard let count = number(UInt32.self), bytes.count - place >= Int(count) else { return nil }
        defer { place += Int(count) }
        return Array(bytes[place..<place + Int(count)])
    }

    /// As many values as a number of 4 bytes says.
    mutating func list<R>(_ read: (inout RecordReader) -> R?) -> [R]? {
        guard let count = number(UInt32.self) else { return nil }
        var values: [R] = []
        for _ in 0..<count {
            guard let value = read(&self) else { return nil }
            values.append(value)
        }
        return values
    }
}
