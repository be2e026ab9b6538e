/// Decompresses a Brotli stream (RFC 7932) of a picture's metadata, up to a limit.
///
/// Bytes after an error, or beyond the limit, are left out.
struct Brotli {
    private enum Damage: Error {
        case ended, invalid
    }

    private var input: BitReader
    private let limit: Int
    private var output: [UInt8] = []
    private var windowBytes = 0
    /// Symbols of codes, and entries of context maps, that the rest of the stream may define.
    private var definitionsLeft = Brotli.definitionsMax
    /// The last four distances, the newest last.
    private var distances = [16, 15, 11, 4]

    /// Some 80 bytes may define 18,000 and decompress to one byte. A meta-block has at most 300,000, and one of them
    /// holds all metadata that are read.
    private static let definitionsMax = 1 << 21

    /// The stream's contents as far as they can be decompressed; nil if there are none.
    static func unpack(_ input: ByteView, limit: Int = ReadLimits.viewBytesMax) -> [UInt8]? {
        var stream = Brotli(input, limit: limit)
        do throws(Damage) { try stream.run() } catch {}
        return stream.output.isEmpty ? nil : stream.output
    }

    private init(_ input: ByteView, limit: Int) {
        self.input = BitReader(input)
        self.limit = limit
    }

    // MARK: Bits

    /// The next `count` (at most 24) bits, the lowest first.
    private mutating func take(_ count: Int) throws(Damage) -> Int {
        guard let value = input.take(count) else { throw .ended }
        return value
    }

    private mutating func flag() throws(Damage) -> Bool { try take(1) == 1 }

    /// A number of block types or of codes, 1 to 256.
    private mutating func quantity() throws(Damage) -> Int {
        guard try flag() else { return 1 }
        let extra = try take(3)
        return try 1 + (1 << extra) + take(extra)
    }

    private mutating func symbol(_ code: BrotliCode) throws(Damage) -> Int {
        if let only = code.only { return only }
        guard let symbol = input.symbol(code.huffman) else { throw .invalid }
        return symbol
    }

    // MARK: Codes

    private mutating func noteDefinitions(_ count: Int) throws(Damage) {
        definitionsLeft -= count
        guard definitionsLeft >= 0 else { throw .invalid }
    }

    private mutating func code(symbols count: Int) throws(Damage) -> BrotliCode {
        try noteDefinitions(count)
        let skipped = try take(2)
        return skipped == 1 ? try simpleCode(count) : try complexCode(count, skipped)
    }

    /// Section 3.4: up to four symbols are named.
    private mutating func simpleCode(_ count: Int) throws(Damage) -> BrotliCode {
        let width = Int.bitWidth - (count - 1).leadingZeroBitCount
        let used = try take(2) + 1
        var named: [Int] = []
        for _ in 0..<used {
            let symbol = try take(width)
            guard symbol < count, !named.contains(symbol) else { throw .invalid }
            named.append(symbol)
        }
        if used == 1 { return BrotliCode(only: named[0]) }
        var shape: [UInt8] = used == 2 ? [1, 1] : [1, 2, 2]
        if used == 4 { shape = try flag() ? [1, 2, 3, 3] : [2, 2, 2, 2] }
        var lengths = [UInt8](repeating: 0, count: count)
        for (symbol, length) in zip(named, shape) { lengths[symbol] = length }
        return try huffman(lengths)
    }

    /// Section 3.5: the lengths of all symbols are compressed.
    private mutating func complexCode(_ count: Int, _ skipped: Int) throws(Damage) -> BrotliCode {
        var sizes = [UInt8](repeating: 0, count: 18)
        var (space, used) = (32, 0)
        for symbol in Brotli.sizeOrder[skipped...] where space > 0 {
            let size = try codeSize()
            sizes[symbol] = size
            if size > 0 {
                space -= 32 >> Int(size)
                used += 1
            }
        }
        guard space == 0 || used == 1 else { throw .invalid }
        if used == 1, let only = sizes.firstIndex(where: { $0 > 0 }) {
            return try huffman(lengths(count, BrotliCode(only: only)))
        }
        return try huffman(lengths(count, huffman(sizes)))
    }

    private func huffman(_ lengths: [UInt8]) throws(Damage) -> BrotliCode {
        guard let code = BrotliCode(lengths) else { throw .invalid }
        return code
    }

    /// One of the six sizes of codes, by the fixed code of section 3.5.
    private mutating func codeSize() throws(Damage) -> UInt8 {
        switch try take(2) {
        case 0: return 0
        case 1: return 4
        case 2: return 3
        default: break
        }
        guard try flag() else { return 2 }
        return try flag() ? 5 : 1
    }

    private mutating func lengths(_ count: Int, _ code: BrotliCode) throws(Damage) -> [UInt8] {
        var lengths: [UInt8] = []
        lengths.reserveCapacity(count)
        var (previous, space): (UInt8, Int) = (8, 32_768)
        var (repeated, isZeros) = (0, false)
        while lengths.count < count, space > 0 {
            let symbol = try symbol(code)
            guard symbol >= 16 else {
                repeated = 0
                lengths.append(UInt8(symbol))
                if symbol > 0 {
                    previous = UInt8(symbol)
                    space -= 32_768 >> symbol
                }
                continue
            }
            let extra = symbol == 16 ? 2 : 3
            if isZeros != (symbol == 17) { repeated = 0 }
            isZeros = symbol == 17
            // A second repetition of the same kind multiplies the first.
            let base = repeated > 0 ? (repeated - 2) << extra : 0
            let times = try base + take(extra) + 3 - repeated
            repeated += times
            guard times <= count - lengths.count else { throw .invalid }
            lengths += [UInt8](repeating: isZeros ? 0 : previous, count: times)
            if !isZeros { space -= times * (32_768 >> Int(previous)) }
        }
        guard space == 0 else { throw .invalid }
        return lengths + [UInt8](repeating: 0, count: count - lengths.count)
    }

    private static let sizeOrder = [1, 2, 3, 4, 0, 5, 17, 6, 16, 7, 8, 9, 10, 11, 12, 13, 14, 15]

    // MARK: Blocks

    /// The block types of literals, of commands or of distances (section 6).
    private struct Blocks {
        var count = 1
        var types = BrotliCode(only: 0)
        var lengths = BrotliCode(only: 0)
        var type = 0
        var previous = 1
        var left = 1 << 24
    }

    private mutating func blocks() throws(Damage) -> Blocks {
        var blocks = Blocks()
        blocks.count = try quantity()
        guard blocks.count > 1 else { return blocks }
        blocks.types = try code(symbols: blocks.count + 2)
        blocks.lengths = try code(symbols: Brotli.blockBits.count)
        blocks.left = try length(try symbol(blocks.lengths), Brotli.blockBits, from: 1)
        return blocks
    }

    /// Counts one symbol; switches to the next block at the end of one.
    private mutating func count(_ blocks: inout Blocks) throws(Damage) {
        if blocks.left == 0 {
            guard blocks.count > 1 else { throw .invalid }
            let symbol = try symbol(blocks.types)
            let next = symbol == 0 ? blocks.previous : symbol == 1 ? blocks.type + 1 : symbol - 2
            (blocks.previous, blocks.type) = (blocks.type, next == blocks.count ? 0 : next)
            guard blocks.type < blocks.count else { throw .invalid }
            blocks.left = try length(try self.symbol(blocks.lengths), Brotli.blockBits, from: 1)
        }
        blocks.left -= 1
    }

    /// A length whose code is `number` of a table that begins at `first`; each code has a number of extra bits.
    private mutating func length(_ number: Int, _ extraBits: [Int], from first: Int) throws(Damage) -> Int {
        let base = extraBits[..<number].reduce(first) { $0 + 1 << $1 }
        return try base + take(extraBits[number])
    }

    private static let blockBits = [
        2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 7, 8, 9, 10, 11, 12, 13, 24,
    ]
    private static let insertBits = [
        0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9, 10, 12, 14, 24,
    ]
    private static let copyBits = [
        0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9, 10, 24,
    ]

    /// The code of each context of each block type (section 7.3), and the number of codes.
    private mutating func contextMap(_ size: Int) throws(Damage) -> (map: [UInt8], codes: Int) {
        let codes = try quantity()
        guard codes > 1 else { return ([UInt8](repeating: 0, count: size), 1) }
        try noteDefinitions(size)
        let runsMax = try flag() ? take(4) + 1 : 0
        let code = try code(symbols: codes + runsMax)
        var map: [UInt8] = []
        while map.count < size {
            let symbol = try symbol(code)
            guard symbol > 0, symbol <= runsMax else {
                map.append(UInt8(symbol == 0 ? 0 : symbol - runsMax))
                continue
            }
            let zeros = try 1 << symbol + take(symbol)
            guard zeros <= size - map.count else { throw .invalid }
            map += [UInt8](repeating: 0, count: zeros)
        }
        if try flag() {
            // The numbers are positions in a list, whose members move to the front when they are named.
            var list = Array(UInt8.min...UInt8.max)
            for index in map.indices {
                let value = list.remove(at: Int(map[index]))
                list.insert(value, at: 0)
                map[index] = value
            }
        }
        return (map, codes)
    }

    // MARK: Meta-blocks

    private mutating func run() throws(Damage) {
        windowBytes = try (1 << windowBits()) - 16
        var isLast = false
        while !isLast, output.count < limit {
            isLast = try flag()
            if isLast, try flag() { return }
            let nibbles = try take(2)
            if nibbles == 3 {
                try skipMetadata()
                continue
            }
            let length = try take(4 * (nibbles + 4)) + 1
            if !isLast, try flag() {
                guard input.copy(length, to: &output, limit: limit) else { throw .ended }
            } else {
                try metaBlock(output.count + length)
            }
        }
    }

    private mutating func windowBits() throws(Damage) -> Int {
        guard try flag() else { return 16 }
        let high = try take(3)
        if high > 0 { return 17 + high }
        let low = try take(3)
        guard low != 1 else { throw .invalid }
        return low == 0 ? 17 : 8 + low
    }

    private mutating func skipMetadata() throws(Damage) {
        guard try !flag() else { throw .invalid }
        let bytes = try take(2)
        let length = bytes == 0 ? 0 : try take(8 * bytes) + 1
        guard input.skip(length) else { throw .ended }
    }

    /// The codes of a meta-block (section 9.2).
    private struct Header {
        var literals: Blocks
        var commands: Blocks
        var distances: Blocks
        var postfixBits = 0
        var directCount = 0
        var modes: [BrotliContext] = []
        var literalMap: [UInt8] = []
        var distanceMap: [UInt8] = []
        var literalCodes: [BrotliCode] = []
        var commandCodes: [BrotliCode] = []
        var distanceCodes: [BrotliCode] = []
    }

    private mutating func header() throws(Damage) -> Header {
        var header = Header(literals: try blocks(), commands: try blocks(), distances: try blocks())
        header.postfixBits = try take(2)
        header.directCount = try take(4) << header.postfixBits
        for _ in 0..<header.literals.count {
            header.modes.append(BrotliContext(rawValue: try take(2)) ?? .low6)
        }
        let literals = try contextMap(64 * header.literals.count)
        let distances = try contextMap(4 * header.distances.count)
        (header.literalMap, header.distanceMap) = (literals.map, distances.map)
        for _ in 0..<literals.codes { header.literalCodes.append(try code(symbols: 256)) }
        for _ in 0..<header.commands.count { header.commandCodes.append(try code(symbols: 704)) }
        let distanceSymbols = 16 + header.directCount + 48 << header.postfixBits
        for _ in 0..<distances.codes { header.distanceCodes.append(try code(symbols: distanceSymbols)) }
        return header
    }

    private mutating func metaBlock(_ end: Int) throws(Damage) {
        var header = try header()
        while output.count < end, output.count < limit {
            try count(&header.commands)
            let command = try symbol(header.commandCodes[header.commands.type])
            let (insertBase, copyBase) = Brotli.commandCells[command >> 6]
            let inserted = try length(insertBase + command >> 3 & 7, Brotli.insertBits, from: 0)
            let copied = try length(copyBase + command & 7, Brotli.copyBits, from: 2)
            guard inserted <= end - output.count else { throw .invalid }
            try insert(inserted, &header)
            guard output.count < end, output.count < limit else { return }
            // The first cells of commands repeat the last distance.
            let number = command < 128 ? 0 : try distanceSymbol(copied, &header)
            try copy(copied, from: try distance(number, header), isRepeated: number == 0, end)
        }
    }

    /// The first insert code and the first copy code of each 64 commands (section 5).
    private static let commandCells = [
        (0, 0), (0, 8), (0, 0), (0, 8), (8, 0), (8, 8), (0, 16), (16, 0), (8, 16), (16, 8), (16, 16),
    ]

    private mutating func insert(_ count: Int, _ header: inout Header) throws(Damage) {
        for _ in 0..<min(count, limit - output.count) {
            try self.count(&header.literals)
            let type = header.literals.type
            let context = header.modes[type].number(
                last: output.last ?? 0, beforeLast: output.count > 1 ? output[output.count - 2] : 0)
            let code = header.literalCodes[Int(header.literalMap[64 * type + context])]
            output.append(UInt8(try symbol(code)))
        }
    }

    private mutating func distanceSymbol(_ copied: Int, _ header: inout Header) throws(Damage) -> Int {
        try count(&header.distances)
        let context = 4 * header.distances.type + min(copied, 5) - 2
        return try symbol(header.distanceCodes[Int(header.distanceMap[context])])
    }

    /// Section 4.
    private mutating func distance(_ number: Int, _ header: Header) throws(Damage) -> Int {
        switch number {
        case 0...3: return distances[3 - number]
        case 4...15:
            let near = (number - 4) % 6
            return distances[number < 10 ? 3 : 2] + (near & 1 == 0 ? -1 : 1) * (near / 2 + 1)
        case ..<(16 + header.directCount): return number - 15
        default: break
        }
        let rest = number - 16 - header.directCount
        let bits = 1 + rest >> (header.postfixBits + 1)
        let high = rest >> header.postfixBits
        let offset = (2 + high & 1) << bits - 4
        let low = rest & ((1 << header.postfixBits) - 1)
        return try (offset + take(bits)) << header.postfixBits + low + header.directCount + 1
    }

    private mutating func copy(
        _ length: Int, from distance: Int, isRepeated: Bool, _ end: Int
    ) throws(Damage) {
        guard distance > 0 else { throw .invalid }
        let farthest = min(windowBytes, output.count)
        guard distance <= farthest else {
            guard let words = BrotliWords.standard,
                let word = words.word(length: length, number: distance - farthest - 1),
                word.count <= end - output.count
            else { throw .invalid }
            output += word
            return
        }
        guard length <= end - output.count else { throw .invalid }
        if !isRepeated {
            distances.removeFirst()
            distances.append(distance)
        }
        for _ in 0..<min(length, limit - output.count) { output.append(output[output.count - distance]) }
    }
}

/// A prefix code (section 3); one of a single symbol takes no bits.
private struct BrotliCode {
    /// The single symbol.
    let only: Int?
    let huffman: HuffmanCode

    init(only: Int) {
        self.only = only
        huffman = .empty
    }

    /// Nil if there are more codes than fit, or none.
    init?(_ lengths: [UInt8]) {
        guard let code = HuffmanCode(lengths), !code.symbols.isEmpty else { return nil }
        only = nil
        huffman = code
    }
}
