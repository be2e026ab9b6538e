import Glibc

/// Which world a vault seems to be of, by one number: above a threshold one, below the other.
struct Stump: Sendable {
    var feature: Int
    var threshold: Double
    /// Whether values above the threshold mean the hidden world.
    var isHiddenAbove: Bool

    func votesHidden(_ values: [Double]) -> Bool { (values[feature] > threshold) == isHiddenAbove }
}

/// Numbers of vaults, and the world of each: the samples of classifiers.
struct Examples: Sendable {
    /// By vault, then by feature.
    var values: [[Double]]
    var isHidden: [Bool]
    /// Vaults by the value of each feature.
    private let order: [[Int]]

    init(_ values: [[Double]], _ isHidden: [Bool]) {
        self.values = values
        self.isHidden = isHidden
        order = (values.first ?? []).indices.map { feature in
            values.indices.sorted { values[$0][feature] < values[$1][feature] }
        }
    }

    var featureCount: Int { order.count }

    /// Those of some features.
    func only(_ features: [Int]) -> Examples {
        Examples(values.map { row in features.map { row[$0] } }, isHidden)
    }

    /// The stump of a feature that is right most often, each vault counting by its weight; and how much is right.
    func bestStump(_ feature: Int, _ weights: [Double]) -> (stump: Stump, right: Double) {
        let hidden = zip(weights, isHidden).reduce(0) { $0 + ($1.1 ? $1.0 : 0) }
        let total = weights.reduce(0, +)
        // With the threshold below all, everything is above it.
        var right = hidden
        var best = (stump: Stump(feature: feature, threshold: -.infinity, isHiddenAbove: true), right: hidden)
        let vaults = order[feature]
        for (place, vault) in vaults.enumerated() {
            right += isHidden[vault] ? -weights[vault] : weights[vault]
            let value = values[vault][feature]
            let next = place + 1 < vaults.count ? values[vaults[place + 1]][feature] : .infinity
            if next == value { continue }
            let threshold = next == .infinity ? value : value + (next - value) / 2
            for (isHiddenAbove, right) in [(true, right), (false, total - right)] where right > best.right {
                best = (Stump(feature: feature, threshold: threshold, isHiddenAbove: isHiddenAbove), right)
            }
        }
        return best
    }

    /// The best stump of each feature, all vaults counting alike.
    func stumps() -> [Stump] {
        let weights = [Double](repeating: 1, count: values.count)
        return (0..<featureCount).map { bestStump($0, weights).stump }
    }
}

/// Stumps that vote, each fitted to the errors of those before it (AdaBoost: Freund and Schapire, 1997).
struct BoostedStumps: Sendable {
    private var members: [(stump: Stump, weight: Double)] = []

    static let rounds = 40

    init(_ examples: Examples) {
        var weights = [Double](
            repeating: 1 / Double(max(1, examples.values.count)), count: examples.values.count)
        for _ in 0..<Self.rounds {
            let best = (0..<examples.featureCount).map { examples.bestStump($0, weights) }
                .max { $0.right < $1.right }
            guard let best, best.right > 0.5 else { return }
            // No stump counts more than one that is right in all but a thousandth.
            let odds = min(best.right, 0.999) / (1 - min(best.right, 0.999))
            members.append((best.stump, log(odds) / 2))
            for vault in weights.indices {
                let isRight = best.stump.votesHidden(examples.values[vault]) == examples.isHidden[vault]
                weights[vault] *= isRight ? 1 / odds.squareRoot() : odds.squareRoot()
            }
            let sum = weights.reduce(0, +)
            for vault in weights.indices { weights[vault] /= sum }
        }
    }

    func votesHidden(_ values: [Double]) -> Bool {
        members.reduce(0.0) { $0 + ($1.stump.votesHidden(values) ? $1.weight : -$1.weight) } > 0
    }
}

/// How many of the held-out vaults may be told right before a feature fails.
public enum Limit: Sendable {
    /// Half of them and so many standard errors, for every feature.
    case standardErrors(Double)
    /// As many as honest vaults exceed with this chance, in one feature or more.
    case chance(Double)
    /// Such a share of them and so many standard errors, for every feature: they may tell something, but no more.
    case share(Double, standardErrors: Double)

    /// The most of `count` vaults that may be told right by one of `tests` features.
    /// - Parameter isWorst: the best of so many is judged at once.
    func mostRight(of count: Int, tests: Int, isWorst: Bool) -> Int {
        switch self {
        case .standardErrors(let errors) where !isWorst:
            let most = (Double(count) / 2 + errors * Double(count).squareRoot() / 2).rounded(.down)
            return min(count, Int(most))
        case .standardErrors(let errors):
            return Self.mostRight(of: count, chance: erfc(errors / 2.0.squareRoot()) / 2 / Double(tests))
        case .share(let share, let errors):
            let most = Double(count) * share + errors * (Double(count) * share * (1 - share)).squareRoot()
            return min(count, Int(most.rounded(.down)))
        case .chance(let chance):
            // Half of it for the features, half for the header's bytes.
            return Self.mostRight(of: count, chance: chance / 2 / Double(tests))
        }
    }

    /// The least k for which more than k of `count` fair coins show heads with no more than this chance.
    static func mostRight(of count: Int, chance: Double) -> Int {
        var (tail, most) = (0.0, count)
        while most > 0 {
            let ways = lgamma(Double(count + 1)) - lgamma(Double(most + 1)) - lgamma(Double(count - most + 1))
            tail += exp(ways - Double(count) * log(2))
            if tail > chance { return most }
            most -= 1
        }
        return most
    }
}
