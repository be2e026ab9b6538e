import Glibc

/// Bytes lent for the length of one closure. Reading outside them gives 0, as if NULs followed them, so a scanner needs
/// no check of its own before it looks ahead.
struct ByteView {
    private let base: UnsafeRawPointer
    let count: Int

    init(_ base: UnsafeRawPointer, count: Int) {
        precondition(count >= 0)
        self.base = base
        self.count = count
    }

    subscript(index: Int) -> UInt8 {
        @inline(__always) get {
            guard index >= 0, index < count else { return 0 }
            return base.load(fromByteOffset: index, as: UInt8.self)
        }
    }

    /// The part of `range` that exists.
    func slice(_ range: Range<Int>) -> ByteView {
        let lower = min(max(range.lowerBound, 0), count)
        let upper = min(max(range.upperBound, lower), count)
        return ByteView(base + lower, count: upper - lower)
    }

    /// The index of the first `byte` at or after `index` and before `end`.
    func firstIndex(of byte: UInt8, from index: Int, end: Int) -> Int? {
        let end = min(end, count)
        guard index >= 0, index < end else { return nil }
        guard let found = memchr(base + index, Int32(byte), end - index) else { return nil }
        return UnsafeRawPointer(found) - base
    }

    /// Whether the bytes at `index` are `text`.
    @inline(__always) func matches(_ text: StaticString, at index: Int) -> Bool {
        let length = text.utf8CodeUnitCount
        guard index >= 0, index <= count, length <= count - index else { return false }
        return memcmp(base + index, text.utf8Start, length) == 0
    }

    /// Whether the bytes at `index` are `text`, ignoring ASCII case.
    func matchesIgnoringCase(_ text: StaticString, at index: Int) -> Bool {
        let length = text.utf8CodeUnitCount
        guard index >= 0, index <= count, length <= count - index else { return false }
        for position in 0..<length
        where ASCII.lowercase(self[index + position]) != ASCII.lowercase(text.utf8Start[position]) {
            return false
        }
        return true
    }

    /// A copy.
    var array: [UInt8] {
        [UInt8](UnsafeRawBufferPointer(start: base, count: count))
    }

    /// The text before the first NUL, without blanks at its ends; invalid UTF-8 is repaired.
    var trimmedText: String {
        var end = firstIndex(of: 0, from: 0, end: count) ?? count
        var start = 0
        while end > start, self[end - 1] <= 0x20 { end -= 1 }
        while start < end, self[start] <= 0x20 { start += 1 }
        let text = UnsafeRawBufferPointer(start: base + start, count: end - start)
        return String(decoding: text, as: UTF8.self)
    }
}

/// Characters of the ASCII table, as bytes.
enum ASCII {
    @inline(__always) static func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }

    @inline(__always) static func isLetter(_ byte: UInt8) -> Bool {
        (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7A
    }

    @inline(__always) static func isSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || (byte >= 0x09 && byte <= 0x0D)
    }

    @inline(__always) static func lowercase(_ byte: UInt8) -> UInt8 {
        byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte
    }
}
