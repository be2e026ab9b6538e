import Foundation

/// How well the hidden world was told, by each feature and by all together.
public struct Judgement: Sendable {
    /// One line of the table.
    public struct Line: Sendable {
        public var group: FeatureGroup?
        public var name: String
        /// Held-out vaults told right, of `count`; honest ones stay at or below `limit`.
        public var right: Int
        public var count: Int
        public var limit: Int

        public var isTold: Bool { right > limit }
        /// One for the feature: it took the same value in every vault.
        public var isConstant: Bool
        /// The middle value where the decoy is alone, and where it is not; nil if there is none.
        public var middles: (alone: Double, hidden: Double)?
    }
    public private(set) var lines: [Line] = []
    /// Answers that were not the same in both vaults of a pair.
    public private(set) var differingWords: [String] = []

    public var failures: [Line] { lines.filter(\.isTold) }
    public var isHonest: Bool { failures.isEmpty && differingWords.isEmpty }

    /// - Parameters:
    ///   - pairs: of each pair the vault where the decoy is alone, then the other.
    ///   - fittedCount: how many pairs, from the first, are fitted on; the rest is held out.
    init(_ pairs: [(alone: Sample, hidden: Sample)], fittedCount: Int, limit: Limit) {
        let names = pairs.first?.alone.features.map(\.name) ?? []
        let groups = pairs.first?.alone.features.map(\.group) ?? []
        for pair in pairs {
            for sample in [pair.alone, pair.hidden] {
                precondition(sample.features.map(\.name) == names, "every vault has the same features")
            }
        }
        func examples(_ part: ArraySlice<(alone: Sample, hidden: Sample)>) -> Examples {
            Examples(
                part.flatMap { [$0.alone, $0.hidden] }.map { $0.features.map(\.value) },
                part.flatMap { _ in [false, true] })
        }
        let (fitted, held) = (examples(pairs[..<fittedCount]), examples(pairs[fittedCount...]))
        let count = held.values.count
        // With the classifiers over each group and over all.
        let most = limit.mostRight(
            of: count, tests: names.count + FeatureGroup.allCases.count + 1, isWorst: false)
        func right(_ votesHidden: ([Double]) -> Bool) -> Int {
            zip(held.values, held.isHidden).filter { votesHidden($0) == $1 }.count
        }
        for (stump, (name, group)) in zip(fitted.stumps(), zip(names, groups)) {
            let all = (fitted.values + held.values).map { $0[stump.feature] }
            func middle(_ isHidden: Bool) -> Double {
                let some = zip(all, fitted.isHidden + held.isHidden).filter { $0.1 == isHidden }.map(\.0)
                return some.sorted()[some.count / 2]
            }
            lines.append(
                Line(
                    group: group, name: name, right: right(stump.votesHidden), count: count, limit: most,
                    isConstant: all.allSatisfy { $0 == all[0] },
                    middles: all.isEmpty ? nil : (middle(false), middle(true))))
        }
        for group in FeatureGroup.allCases {
            let some = groups.indices.filter { groups[$0] == group }
            if some.isEmpty { continue }
            let boosted = BoostedStumps(fitted.only(some))
            lines.append(
                Line(
                    group: group, name: "all together",
                    right: right { values in boosted.votesHidden(some.map { values[$0] }) }, count: count,
                    limit: most, isConstant: false))
        }
        let boosted = BoostedStumps(fitted)
        lines.append(
            Line(
                group: nil, name: "all features together", right: right(boosted.votesHidden), count: count,
                limit: most, isConstant: false))
        lines.append(Self.headerLine(pairs, fittedCount, limit))
        differingWords = Self.differingWords(pairs)
    }

    /// The byte of the header that tells best, at a limit for the best of so many.
    private static func headerLine(
        _ pairs: [(alone: Sample, hidden: Sample)], _ fittedCount: Int, _ limit: Limit
    ) -> Line {
        let byteCount = pairs.first?.alone.header.count ?? 0
        func examples(
            _ part: ArraySlice<(alone: Sample, hidden: Sample)>, _ range: Range<Int>
        ) -> Examples {
            Examples(
                part.flatMap { [$0.alone, $0.hidden] }.map { $0.header[range].map(Double.init) },
                part.flatMap { _ in [false, true] })
        }
        var best = 0
        for start in stride(from: 0, to: byteCount, by: 256) {
            let range = start..<min(start + 256, byteCount)
            let (fitted, held) = (
                examples(pairs[..<fittedCount], range), examples(pairs[fittedCount...], range)
            )
            for stump in fitted.stumps() {
                best = max(
                    best, zip(held.values, held.isHidden).filter { stump.votesHidden($0) == $1 }.count)
            }
        }
        let count = 2 * (pairs.count - fittedCount)
        let most = limit.mostRight(of: count, tests: max(1, byteCount), isWorst: true)
        return Line(
            group: .header, name: headerBytesFeature, right: best, count: count, limit: most,
            isConstant: false)
    }

    private static func differingWords(_ pairs: [(alone: Sample, hidden: Sample)]) -> [String] {
        var found: [String: String] = [:]
        for pair in pairs where pair.alone.words != pair.hidden.words {
            for key in Set(pair.alone.words.keys).union(pair.hidden.words.keys)
            where pair.alone.words[key] != pair.hidden.words[key] {
                let (alone, hidden) = (pair.alone.words[key] ?? "-", pair.hidden.words[key] ?? "-")
                found[key] = "\(key): alone \"\(alone)\", with others \"\(hidden)\""
            }
        }
        return found.values.sorted()
    }

    /// The table, the most telling feature first, with its middle values; and the meaning of each failure.
    public var text: String {
        let count = lines.first?.count ?? 0
        var rows = ["  right  limit  feature of \(count) vaults held out (middle value alone, with others)"]
        let constant = lines.filter { $0.isConstant && !$0.isTold }
        for line in lines.filter({ !$0.isConstant || $0.isTold }).sorted(by: { $0.right > $1.right }) {
            let percent = 100 / Double(max(1, line.count))
            let numbers = String(
                format: "%6.2f%% %5.2f%%", Double(line.right) * percent, Double(line.limit) * percent)
            let group = line.group.map { "\($0.rawValue): " } ?? ""
            let middles = line.middles.map { String(format: " (%.6g, %.6g)", $0.alone, $0.hidden) } ?? ""
            rows.append("\(line.isTold ? "!" : " ")\(numbers)  \(group)\(line.name)\(middles)")
        }
        rows.append("\(constant.count) more took one value in every vault")
        for group in Set(failures.compactMap(\.group)).sorted(by: { $0.rawValue < $1.rawValue }) {
            rows.append("\(group.rawValue) fails: \(group.meaning)")
        }
        rows += differingWords.map { "differs: \($0)" }
        return rows.joined(separator: "\n")
    }
}
