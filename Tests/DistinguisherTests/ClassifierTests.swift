import Testing

@testable import Distinguisher

/// The classifier finds planted differences, and keeps its limits.
@Suite("Secrets: the distinguisher's classifier") struct ClassifierTests {
    /// Numbers without a meaning.
    private func noise(_ count: Int, _ width: Int, _ generator: inout Generator) -> [[Double]] {
        (0..<count).map { _ in (0..<width).map { _ in Double.random(in: 0..<1, using: &generator) } }
    }

    @Test func `a stump finds a threshold, whichever side is hidden`() {
        var generator = Generator(1)
        var values = noise(200, 3, &generator)
        let isHidden = values.indices.map { $0 % 2 == 1 }
        for isAbove in [true, false] {
            for vault in values.indices { values[vault][1] = isHidden[vault] == isAbove ? 2 : 1 }
            let stumps = Examples(values, isHidden).stumps()
            #expect(zip(values, isHidden).allSatisfy { stumps[1].votesHidden($0) == $1 })
            #expect(stumps[1].threshold == 1.5 && stumps[1].isHiddenAbove == isAbove)
            #expect(!zip(values, isHidden).allSatisfy { stumps[0].votesHidden($0) == $1 })
        }
    }

    @Test func `stumps together tell what none tells alone`() {
        var generator = Generator(2)
        let values = noise(1000, 6, &generator)
        let isHidden = values.map { $0.reduce(0, +) > 3 }
        let fitted = Examples(Array(values[..<500]), Array(isHidden[..<500]))
        let boosted = BoostedStumps(fitted)
        func right(_ votesHidden: ([Double]) -> Bool) -> Int {
            zip(values[500...], isHidden[500...]).filter { votesHidden($0) == $1 }.count
        }
        #expect(right(boosted.votesHidden) > 400)
        for stump in fitted.stumps() { #expect(right(stump.votesHidden) < 380) }
    }

    @Test func `limits are quantiles of fair coins`() {
        // 5 coins: 1 in 32 shows five heads, 6 in 32 at least four.
        #expect(Limit.mostRight(of: 5, chance: 0.02) == 5)
        #expect(Limit.mostRight(of: 5, chance: 0.04) == 4)
        #expect(Limit.mostRight(of: 5, chance: 0.19) == 3)
        #expect(Limit.standardErrors(4.5).mostRight(of: 2000, tests: 200, isWorst: false) == 1100)
        // Bonferroni: the more tests, the higher the limit.
        let limits = [2, 4000].map { Limit.chance(1e-6).mostRight(of: 48, tests: $0, isWorst: false) }
        #expect(limits[0] < limits[1])
        #expect(Limit.standardErrors(4.5).mostRight(of: 2000, tests: 8192, isWorst: true) > 1100)
    }

    @Test func `numbers of files become comparisons of the decoy with the others`() {
        var sample = Sample()
        sample.add(.files, "n", [[1, 2], [5, 5], [7, 9]], decoy: 1)
        let expected: [Double] = [0.25, 6.5, 4.75, 8]
        #expect(sample.features.map(\.value) == expected)
        let places: [[Double]] = [[3, 0], [1, 2]]
        #expect(ranks([[9, 1], [2, 3]]) == places)
    }
}
