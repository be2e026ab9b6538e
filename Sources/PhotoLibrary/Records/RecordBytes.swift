/// Encodes the little-endian numbers and length-prefixed texts of an identity record.
struct RecordWriter {
    package private(set) var bytes: [UInt8] = []

    package mutating func number<T: FixedWidthInteger>(_ value: T) {
        unsafe withUnsafeBytes(of: value.littleEndian) { unsafe bytes.append(contentsOf: $0) }
    }

    /// A length of 4 bytes, then the text.
    package mutating func text(_ text: [UInt8]) {
        number(UInt32(text.count))
        bytes.append(contentsOf: text)
    }
}

/// Decodes an identity record. Authentic bytes were written by some version of this program, but they are checked all
/// the same: every read past the end returns nil.
@safe struct RecordReader {
    private let bytes: UnsafeRawBufferPointer
    private var place = 0

    package init(_ bytes: UnsafeRawBufferPointer) { unsafe self.bytes = unsafe bytes }

    package mutating func number<T: FixedWidthInteger>(_ type: T.Type = T.self) -> T? {
        guard unsafe bytes.count - place >= MemoryLayout<T>.size else { return nil }
        defer { place += MemoryLayout<T>.size }
        return unsafe T(littleEndian: bytes.loadUnaligned(fromByteOffset: place, as: T.self))
    }

    package mutating func text() -> [UInt8]? {
        guard let count = number(UInt32.self), unsafe bytes.count - place >= Int(count) else { return nil }
        defer { place += Int(count) }
        return unsafe Array(bytes[place..<place + Int(count)])
    }

    /// Reads a count of 4 bytes, then that many values.
    package mutating func list<R>(_ read: (inout RecordReader) -> R?) -> [R]? {
        guard let count = number(UInt32.self) else { return nil }
        var values: [R] = []
        for _ in 0..<count {
            guard let value = read(&self) else { return nil }
            values.append(value)
        }
        return values
    }
}
