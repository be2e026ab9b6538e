/// Reads bits of compressed metadata, the lowest of each byte first (RFC 1951, 3.1.1; RFC 7932, 1.5.1).
struct BitReader {
    let input: ByteView
    /// Offset of the first byte of which no bit was read.
    private(set) var position: Int
    private var bits: UInt64 = 0
    private var bitCount = 0

    init(_ input: ByteView, from position: Int = 0) {
        (self.input, self.position) = (input, position)
    }

    /// The next `count` (at most 24) bits; nil at the end.
    mutating func take(_ count: Int) -> Int? {
        while bitCount < count {
            guard position < input.count else { return nil }
            bits |= UInt64(input[position]) << UInt64(bitCount)
            position += 1
            bitCount += 8
        }
        let value = Int(bits & ((1 << UInt64(count)) - 1))
        bits >>= UInt64(count)
        bitCount -= count
        return value
    }

    /// The next symbol of a code; nil at the end, and for bits that are no symbol.
    mutating func symbol(_ code: HuffmanCode) -> Int? {
        var (value, first, index) = (0, 0, 0)
        for length in 1...HuffmanCode.bitsMax {
            guard let bit = take(1) else { return nil }
            value |= bit
            let count = Int(code.counts[length])
            if value - count < first { return Int(code.symbols[index + value - first]) }
            index += count
            first = (first + count) << 1
            value <<= 1
        }
        return nil
    }

    /// Drops the rest of a byte, and appends the next `count` bytes to `output`. Returns false if there are fewer, or
    /// if `output` would have more than `limit`: then bytes are missing.
    mutating func copy(_ count: Int, to output: inout [UInt8], limit: Int) -> Bool {
        align()
        let room = min(count, input.count - position, limit - output.count)
        for index in position..<position + room { output.append(input[index]) }
        position += room
        return room == count
    }

    /// Drops the rest of a byte and `count` bytes. Returns false if there are fewer.
    mutating func skip(_ count: Int) -> Bool {
        align()
        guard count <= input.count - position else { return false }
        position += count
        return true
    }

    private mutating func align() {
        position -= bitCount / 8
        (bits, bitCount) = (0, 0)
    }
}
