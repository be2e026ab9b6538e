/// Writes the fields of a packet, numbers with their least byte first.
struct PacketWriter {
    private(set) var bytes: [UInt8] = []

    mutating func add(_ number: some FixedWidthInteger) {
        unsafe withUnsafeBytes(of: number.littleEndian) { unsafe bytes.append(contentsOf: $0) }
    }

    /// A number that may be missing.
    mutating func add(optional number: UInt64?) {
        add(UInt8(number == nil ? 0 : 1))
        if let number { add(number) }
    }

    /// Bytes with their count before them.
    mutating func add(counted field: some Collection<UInt8>) {
        add(UInt32(field.count))
        bytes.append(contentsOf: field)
    }

    mutating func add(path: [[UInt8]]) {
        add(UInt8(path.count))
        for name in path { add(counted: name) }
    }
}

/// Reads the fields of a packet. Every read returns nil past the end and for a count above its bound.
@safe struct PacketReader {
    private let bytes: UnsafeRawBufferPointer
    private var position = 0

    init(_ bytes: UnsafeRawBufferPointer) { unsafe self.bytes = unsafe bytes }

    /// Whether all was read.
    var isAtEnd: Bool { unsafe position == bytes.count }

    mutating func number<T: FixedWidthInteger>(_ type: T.Type = T.self) -> T? {
        guard unsafe bytes.count - position >= MemoryLayout<T>.size else { return nil }
        defer { position += MemoryLayout<T>.size }
        return unsafe T(littleEndian: bytes.loadUnaligned(fromByteOffset: position, as: T.self))
    }

    /// A number that may be missing. Nil if the field is invalid.
    mutating func optionalNumber() -> UInt64?? {
        switch number(UInt8.self) {
        case 0: return .some(nil)
        case 1: return number(UInt64.self).map { .some($0) } ?? nil
        default: return nil
        }
    }

    mutating func counted(max: Int) -> [UInt8]? {
        guard let count = number(UInt32.self), Int(count) <= max, unsafe bytes.count - position >= Int(count)
        else {
            return nil
        }
        defer { position += Int(count) }
        return unsafe Array(UnsafeRawBufferPointer(rebasing: bytes[position..<position + Int(count)]))
    }

    /// A digest or a secret; empty if there is none.
    mutating func fixed(_ count: Int) -> [UInt8]? {
        guard let field = counted(max: count), field.isEmpty || field.count == count else { return nil }
        return field
    }

    /// Names that can stand in a directory.
    mutating func path() -> [[UInt8]]? {
        guard let count = number(UInt8.self), Int(count) <= PacketLimits.depth else { return nil }
        var path: [[UInt8]] = []
        for _ in 0..<count {
            guard let name = counted(max: PacketLimits.nameBytes), isFileName(name) else { return nil }
            path.append(name)
        }
        return path
    }
}

/// Whether these bytes can name a file: 1 to 255 of them, no slash and no NUL, neither `.` nor `..`.
package func isFileName(_ name: [UInt8]) -> Bool {
    (1...PacketLimits.nameBytes).contains(name.count) && !name.contains(0)
        && !name.contains(UInt8(ascii: "/"))
        && name != [UInt8(ascii: ".")] && name != [UInt8(ascii: "."), UInt8(ascii: ".")]
}
