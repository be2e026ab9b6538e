/// Two numbers that differ in few bits: their places in a list, and in how many.
package struct NearPair: Equatable, Sendable {
    package var first: UInt32
    package var second: UInt32
    package var distance: UInt8

    package init(_ first: UInt32, _ second: UInt32, distance: UInt8) {
        (self.first, self.second, self.distance) = (first, second, distance)
    }
}

/// Finds the pairs among many 64-bit numbers that differ in at most `distanceMax` bits.
///
/// Of nine blocks of bits, numbers that differ in six agree in three at least. So the numbers are sorted into buckets
/// by each choice of three blocks, block by block, and only those of one bucket are compared: for a million random
/// numbers 20 million comparisons instead of 500 billion. Seven differences leave three blocks of nine alone in 96 of
/// 100 pairs; the others are not found.
@safe package struct NearPairs {
    /// Bits in which the numbers of a pair differ at most.
    package static let distanceMax = 7

    private static let blockCount = 9

    /// The lowest bit of a block.
    @inline(__always)
    private static func shift(_ block: Int) -> UInt64 { UInt64(block * 7) }

    /// The bits of a block.
    @inline(__always)
    private static func width(_ block: Int) -> UInt64 { block < 8 ? 7 : 8 }
    /// Blocks in which the numbers of a bucket agree.
    private static let depth = 3
    /// So few numbers are compared without sorting them further.
    private static let smallCount = 10
    /// In a large bucket each number is compared with so many that follow it. Bounds the time for hashes that agree in
    /// most blocks, as those of forged vaults may.
    private static let comparedMax = 256
    private static let countersPerLevel = 1 << 8 + 1

    private let scratch: [UnsafeMutableBufferPointer<UInt64>]
    private let counters: UnsafeMutableBufferPointer<UInt32>
    private let sorted: UnsafeBufferPointer<UInt64>
    private let pairsMax: Int
    private var pairs: [NearPair] = []
    /// The first place of each value of the highest 16 bits, and the end.
    private let places: [UInt32]

    /// The pairs among these numbers, each once, in no order.
    ///
    /// - Parameters:
    ///   - sorted: the numbers, ascending, each once. At most 2³² of them.
    ///   - limit: the most pairs; further ones are left out.
    package static func find(among sorted: [UInt64], limit: Int) -> [NearPair] {
        unsafe sorted.withUnsafeBufferPointer { numbers in
            var search = unsafe NearPairs(numbers, limit)
            defer { search.free() }
            unsafe search.search(numbers, at: 0, level: 0, from: 0, agreeing: 0)
            return search.pairs
        }
    }

    private init(_ numbers: UnsafeBufferPointer<UInt64>, _ limit: Int) {
        unsafe (sorted, pairsMax) = unsafe (numbers, limit)
        var places = [UInt32](repeating: 0, count: 1 << 16 + 1)
        for place in numbers.indices { places[unsafe Int(numbers[place] >> 48) + 1] += 1 }
        for value in 1...1 << 16 { places[value] += places[value - 1] }
        self.places = places
        unsafe scratch = unsafe (0..<Self.depth).map { _ in .allocate(capacity: numbers.count) }
        unsafe counters = .allocate(capacity: Self.depth * Self.countersPerLevel)
    }

    private func free() {
        for level in unsafe scratch.indices { unsafe scratch[level].deallocate() }
        unsafe counters.deallocate()
    }

    /// Finds the pairs in a bucket.
    ///
    /// - Parameters:
    ///   - start: the place of the bucket in the list of its level.
    ///   - level: the number of blocks in which its numbers agree; `agreeing` has a bit for each.
    ///   - first: the block after the last one of these.
    private mutating func search(
        _ bucket: UnsafeBufferPointer<UInt64>, at start: Int, level: Int, from first: Int, agreeing: UInt32
    ) {
        if level == Self.depth || bucket.count <= Self.smallCount {
            return unsafe compare(bucket, before: first, agreeing)
        }
        let target = unsafe UnsafeMutableBufferPointer(rebasing: scratch[level][start..<start + bucket.count])
        let ends = unsafe UnsafeMutableBufferPointer(
            rebasing: counters[level * Self.countersPerLevel..<(level + 1) * Self.countersPerLevel])
        for block in first..<Self.blockCount - (Self.depth - level - 1) where pairs.count < pairsMax {
            unsafe Self.sort(bucket, by: block, into: target, ends)
            var begin = 0
            for value in 0..<1 << Int(Self.width(block)) {
                let end = unsafe Int(ends[value])
                if end - begin > 1 {
                    unsafe search(
                        UnsafeBufferPointer(rebasing: target[begin..<end]), at: start + begin,
                        level: level + 1, from: block + 1, agreeing: agreeing | 1 << UInt32(block))
                }
                begin = end
            }
        }
    }

    /// Sorts by the value of a block; numbers of one value stay in their order. `ends[v]` is then the end of those of
    /// value v.
    private static func sort(
        _ bucket: UnsafeBufferPointer<UInt64>, by block: Int, into target: UnsafeMutableBufferPointer<UInt64>,
        _ ends: UnsafeMutableBufferPointer<UInt32>
    ) {
        let (shift, width) = (shift(block), width(block))
        let mask: UInt64 = 1 << width - 1
        unsafe ends.baseAddress!.update(repeating: 0, count: Int(mask) + 2)
        for place in bucket.indices {
            unsafe ends[Int(truncatingIfNeeded: bucket[place] >> shift & mask) + 1] &+= 1
        }
        for value in 1...Int(mask) { unsafe ends[value] &+= ends[value - 1] }
        for place in bucket.indices {
            let number = unsafe bucket[place]
            let value = Int(truncatingIfNeeded: number >> shift & mask)
            unsafe target[Int(truncatingIfNeeded: ends[value])] = number
            unsafe ends[value] &+= 1
        }
    }

    /// Compares the numbers of a bucket. A pair that agrees in another block before `first` too is in a bucket of that
    /// one, and is left out here.
    private mutating func compare(
        _ bucket: UnsafeBufferPointer<UInt64>, before first: Int, _ agreeing: UInt32
    ) {
        for index in 0..<bucket.count {
            let number = unsafe bucket[index]
            for other in index + 1..<max(index + 1, min(bucket.count, index + 1 + Self.comparedMax)) {
                let difference = unsafe number ^ bucket[other]
                guard difference.nonzeroBitCount <= Self.distanceMax else { continue }
                unsafe note(number, bucket[other], difference, before: first, agreeing)
            }
        }
    }

    @inline(never)
    private mutating func note(
        _ number: UInt64, _ other: UInt64, _ difference: UInt64, before first: Int, _ agreeing: UInt32
    ) {
        for block in 0..<first where agreeing >> UInt32(block) & 1 == 0 {
            let (shift, width) = (Self.shift(block), Self.width(block))
            if difference >> shift & (1 << width - 1) == 0 { return }
        }
        guard pairs.count < pairsMax else { return }
        let (first, second) = (place(of: min(number, other)), place(of: max(number, other)))
        pairs.append(NearPair(first, second, distance: UInt8(difference.nonzeroBitCount)))
    }

    private func place(of number: UInt64) -> UInt32 {
        var low = Int(places[Int(number >> 48)])
        var high = Int(places[Int(number >> 48) + 1]) - 1
        while low < high {
            let middle = (low + high) / 2
            if unsafe sorted[middle] < number { low = middle + 1 } else { high = middle }
        }
        return UInt32(low)
    }
}
