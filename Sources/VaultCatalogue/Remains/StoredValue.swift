/// A value of a row as it is stored in a page (sqlite.org/fileformat2.html, *Record Format*).
enum StoredValue: Equatable {
    case null
    case integer(Int64)
    /// Bytes that are no text.
    case blob([UInt8])
    case text([UInt8])
}

/// Reads the numbers of a page, which are big-endian, and the rows that they describe. Past the end all is nil.
struct StoredBytes {
    private let bytes: ArraySlice<UInt8>
    private(set) var place: Int

    init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
        place = bytes.startIndex
    }

    mutating func number(_ count: Int) -> Int64? {
        guard count <= bytes.endIndex - place else { return nil }
        var value: Int64 = count > 0 && bytes[place] & 0x80 != 0 ? -1 : 0
        for byte in bytes[place..<place + count] { value = value << 8 | Int64(byte) }
        place += count
        return value
    }

    /// A number of one to nine bytes.
    mutating func variable() -> Int64? {
        var value: UInt64 = 0
        for count in 1...9 {
            guard place < bytes.endIndex else { return nil }
            let byte = bytes[place]
            place += 1
            if count == 9 { return Int64(bitPattern: value << 8 | UInt64(byte)) }
            value = value << 7 | UInt64(byte & 0x7F)
            if byte & 0x80 == 0 { break }
        }
        return Int64(bitPattern: value)
    }

    mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
        guard count >= 0, count <= bytes.endIndex - place else { return nil }
        defer { place += count }
        return bytes[place..<place + count]
    }

    /// The values of a row; nil where the bytes are none.
    static func row(_ payload: ArraySlice<UInt8>) -> [StoredValue]? {
        var header = StoredBytes(payload)
        guard let length = header.variable(), length > 0, length <= payload.count else { return nil }
        let end = payload.startIndex + Int(length)
        var body = StoredBytes(payload[end...])
        var values: [StoredValue] = []
        while header.place < end {
            guard let type = header.variable(), let value = body.value(type) else { return nil }
            values.append(value)
        }
        return header.place == end ? values : nil
    }

    /// A value of a serial type. The tables have no floating-point numbers.
    private mutating func value(_ type: Int64) -> StoredValue? {
        switch type {
        case 0: return .null
        case 1...4: return number(Int(type)).map { .integer($0) }
        case 5: return number(6).map { .integer($0) }
        case 6: return number(8).map { .integer($0) }
        case 8, 9: return .integer(type - 8)
        case 12...:
            guard let bytes = take(Int(clamping: (type - 12) / 2)) else { return nil }
            return type % 2 == 0 ? .blob(Array(bytes)) : .text(Array(bytes))
        default: return nil
        }
    }
}
