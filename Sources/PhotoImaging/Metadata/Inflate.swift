/// Decompresses a zlib stream (RFC 1950 and 1951) of a picture's metadata, up to a limit.
///
/// Checksums are not compared: a wrong date is no worse for having been right once. Bytes after an error, or beyond the
/// limit, are left out.
struct Inflate {
    private var input: BitReader
    private var output: [UInt8] = []
    private let limit: Int

    /// The stream's contents as far as they can be decompressed; nil if it does not begin like a zlib stream.
    static func unpack(_ input: ByteView, limit: Int = ReadLimits.viewBytesMax) -> [UInt8]? {
        guard input.count > 2, input[0] & 0x0F == 8, input[1] & 0x20 == 0,
            (Int(input[0]) << 8 | Int(input[1])) % 31 == 0
        else { return nil }
        var inflate = Inflate(input, limit: limit)
        while inflate.block() {}
        return inflate.output
    }

    private init(_ input: ByteView, limit: Int) {
        self.input = BitReader(input, from: 2)
        self.limit = limit
    }

    private mutating func take(_ count: Int) -> Int? { input.take(count) }

    private mutating func symbol(_ code: HuffmanCode) -> Int? { input.symbol(code) }

    /// Decompresses one block. Returns false if it was the last or the stream cannot be read further.
    private mutating func block() -> Bool {
        guard let last = take(1), let kind = take(2) else { return false }
        let done: Bool
        switch kind {
        case 0: done = stored()
        case 1: done = coded(.fixedLiterals, .fixedDistances)
        case 2: done = dynamic()
        default: done = false
        }
        return done && last == 0
    }

    private mutating func stored() -> Bool {
        guard input.skip(0), let length = take(16), let complement = take(16), complement == length ^ 0xFFFF
        else { return false }
        return input.copy(length, to: &output, limit: limit)
    }

    private mutating func dynamic() -> Bool {
        guard let literalCount = take(5), let distanceCount = take(5), let lengthCount = take(4) else {
            return false
        }
        var lengths = [UInt8](repeating: 0, count: 19)
        for index in 0..<lengthCount + 4 {
            guard let length = take(3) else { return false }
            lengths[Inflate.lengthOrder[index]] = UInt8(length)
        }
        let total = literalCount + 257 + distanceCount + 1
        guard let code = HuffmanCode(lengths), let all = codeLengths(code, total) else { return false }
        guard let literals = HuffmanCode(Array(all[..<(literalCount + 257)])),
            let distances = HuffmanCode(Array(all[(literalCount + 257)...]))
        else { return false }
        return coded(literals, distances)
    }

    private mutating func codeLengths(_ code: HuffmanCode, _ total: Int) -> [UInt8]? {
        var result: [UInt8] = []
        result.reserveCapacity(total)
        while result.count < total {
            guard let symbol = symbol(code) else { return nil }
            var repeated: UInt8 = 0
            var times = 1
            switch symbol {
            case 0..<16: repeated = UInt8(symbol)
            case 16:
                guard let last = result.last, let more = take(2) else { return nil }
                repeated = last
                times = more + 3
            case 17:
                guard let more = take(3) else { return nil }
                times = more + 3
            default:
                guard let more = take(7) else { return nil }
                times = more + 11
            }
            guard result.count + times <= total else { return nil }
            for _ in 0..<times { result.append(repeated) }
        }
        return result
    }

    private mutating func coded(_ literals: HuffmanCode, _ distances: HuffmanCode) -> Bool {
        while output.count < limit {
            guard let symbol = symbol(literals) else { return false }
            if symbol < 256 {
                output.append(UInt8(symbol))
                continue
            }
            if symbol == 256 { return true }
            guard symbol - 257 < Inflate.lengthBase.count,
                let lengthMore = take(Inflate.lengthBits[symbol - 257]),
                let distanceSymbol = self.symbol(distances), distanceSymbol < Inflate.distanceBase.count,
                let distanceMore = take(Inflate.distanceBits[distanceSymbol])
            else { return false }
            let length = min(Inflate.lengthBase[symbol - 257] + lengthMore, limit - output.count)
            let distance = Inflate.distanceBase[distanceSymbol] + distanceMore
            guard distance <= output.count else { return false }
            for _ in 0..<length { output.append(output[output.count - distance]) }
        }
        return false
    }

    private static let lengthOrder = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]
    private static let lengthBase = [
        3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163,
        195,
        227, 258,
    ]
    private static let lengthBits = [
        0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0,
    ]
    private static let distanceBase = [
        1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073,
        4097, 6145, 8193, 12289, 16385, 24577,
    ]
    private static let distanceBits = [
        0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13,
    ]
}

/// A canonical Huffman code (RFC 1951, 3.2.2; also Brotli's): the number of codes of each length, and their symbols in
/// order.
struct HuffmanCode {
    /// The longest code.
    static let bitsMax = 15
    private(set) var counts = [UInt16](repeating: 0, count: 16)
    private(set) var symbols: [UInt16]

    /// Nil if there are more codes than fit.
    init?(_ lengths: [UInt8]) {
        for length in lengths { counts[Int(length)] += 1 }
        counts[0] = 0
        var left = 1
        var offsets = [Int](repeating: 0, count: 17)
        for length in 1...HuffmanCode.bitsMax {
            left = left << 1 - Int(counts[length])
            guard left >= 0 else { return nil }
            offsets[length + 1] = offsets[length] + Int(counts[length])
        }
        symbols = [UInt16](repeating: 0, count: offsets[16])
        for (symbol, length) in lengths.enumerated() where length != 0 {
            symbols[offsets[Int(length)]] = UInt16(symbol)
            offsets[Int(length)] += 1
        }
    }

    /// A code without symbols.
    static let empty = HuffmanCode(trusted: [])

    private init(trusted lengths: [UInt8]) {
        guard let code = HuffmanCode(lengths) else { preconditionFailure("a fixed code is complete") }
        self = code
    }

    static let fixedLiterals = HuffmanCode(
        trusted: (0..<288).map { $0 < 144 ? 8 : $0 < 256 ? 9 : $0 < 280 ? 7 : 8 })
    static let fixedDistances = HuffmanCode(trusted: [UInt8](repeating: 5, count: 30))
}
