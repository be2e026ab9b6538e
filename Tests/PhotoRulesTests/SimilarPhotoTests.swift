import PhotoRules
import Testing

@Suite("The tree: similar photos") struct SimilarPhotoTests {
    /// Random hashes; beside each third one some that differ from it in 1 to 9 bits.
    private func hashes(_ count: Int, seed: UInt64) -> [UInt64] {
        var random = SmallRandom(seed)
        var found: Set<UInt64> = []
        while found.count < count {
            var hash = random.next()
            found.insert(hash)
            guard found.count % 3 == 0 else { continue }
            for _ in 0..<random.next() % 10 { hash ^= 1 << (random.next() % 64) }
            found.insert(hash)
        }
        return found.sorted()
    }

    private func distance(_ first: UInt64, _ second: UInt64) -> Int { (first ^ second).nonzeroBitCount }

    @Test(arguments: [2, 9, 10, 11, 300, 4000])
    func `all pairs that differ in six bits are found, once each`(count: Int) {
        let numbers = hashes(count, seed: UInt64(count))
        let pairs = NearPairs.find(among: numbers, limit: .max)
        var found: Set<UInt64> = []
        for pair in pairs {
            let real = distance(numbers[Int(pair.first)], numbers[Int(pair.second)])
            #expect(pair.first < pair.second && Int(pair.distance) == real && real <= NearPairs.distanceMax)
            #expect(found.insert(UInt64(pair.first) << 32 | UInt64(pair.second)).inserted)
        }
        for second in numbers.indices {
            for first in 0..<second where distance(numbers[first], numbers[second]) <= 6 {
                #expect(found.contains(UInt64(first) << 32 | UInt64(second)))
            }
        }
    }

    @Test func `most pairs that differ in seven bits are found`() {
        var random = SmallRandom(7)
        let numbers = (0..<4000).map { _ in random.next() }
        var near: [UInt64] = []
        for number in numbers {
            var bits: Set<UInt64> = []
            while bits.count < 7 { bits.insert(random.next() % 64) }
            near.append(bits.reduce(number) { $0 ^ 1 << $1 })
        }
        let pairs = NearPairs.find(among: (numbers + near).sorted(), limit: .max)
        #expect(pairs.count { $0.distance == 7 } > 4000 * 94 / 100)
    }

    @Test func `hashes that agree in most blocks take bounded time`() {
        // All in one bucket: without the bound 10 billion comparisons.
        let numbers = (0..<150_000 as Range<UInt64>).map { $0 * 0x10_0001 & 0xFFFF_FFFF }
        let pairs = NearPairs.find(among: Array(Set(numbers)).sorted(), limit: 1000)
        #expect(pairs.count == 1000)
    }

    private func groups(_ hashes: [UInt64], limit: Int = .max) -> [[UInt64]] {
        SimilarPhotos.groups(
            of: hashes.enumerated().map { PhotoLikeness(ino: UInt64($0 + 16), hash: $1) }, limit: limit)
    }

    @Test func `the largest group comes first, and equal ones in the order of their photos`() {
        let (a, b, c): (UInt64, UInt64, UInt64) = (0x1234_5678_9ABC_DEF0, 0xF0F0_1111_2222_4444, 0xFFFF << 20)
        let found = groups([a, b, c, b ^ 1, a ^ 3, a, 77, b])
        #expect(found == [[16, 20, 21], [17, 19, 23]])
        #expect(groups([a, b, c, b ^ 1, a ^ 3, a, 77, b], limit: 1) == [[16, 20, 21]])
        #expect(groups([77, a, b, a ^ 7, b ^ 1, b]) == [[18, 20, 21], [17, 19]])
        #expect(groups([]).isEmpty && groups([a]).isEmpty && groups([a, b, c]).isEmpty)
        #expect(groups([a, a]) == [[16, 17]])
    }

    @Test func `a group of pictures, each near the last one, ends where it is too wide`() {
        // Each differs from the one before in 4 bits.
        var (hashes, hash): ([UInt64], UInt64) = ([], 0x0123_4567_89AB_CDEF)
        for step in 0..<12 {
            hashes.append(hash)
            for bit in 0..<4 as Range<UInt64> { hash ^= 1 << (UInt64(step) * 4 + bit) }
        }
        let found = groups(hashes)
        #expect(found.count > 1)
        for group in found {
            // One of its hashes is near all others: the one around which it grew.
            let members = group.map { hashes[Int($0) - 16] }
            let isClose = members.contains { centre in
                members.allSatisfy { distance($0, centre) <= SimilarPhotos.spreadMax }
            }
            #expect(isClose, "\(group)")
        }
        #expect(found.flatMap { $0 }.sorted() == Array(16..<28).map { UInt64($0) })
    }
}

/// xorshift64*, the same in each run.
struct SmallRandom: RandomNumberGenerator {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 | 1 }

    mutating func next() -> UInt64 {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return state &* 0x2545_F491_4F6C_DD1D
    }
}
