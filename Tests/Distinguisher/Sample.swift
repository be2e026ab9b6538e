/// The subject of a feature, and so the meaning of a difference between the two vaults.
public enum FeatureGroup: String, CaseIterable, Sendable {
    case times, files, order, extents, bytes, repeats, header, inside, opens, answers
    case memory, counters, journal, written

    /// Those that are looked at where each vault has a disk of its own.
    public static let ofDisks: Set<FeatureGroup> = [.memory, .counters, .journal]

    /// Looked at in pairs of their own, of one session each: see `Distinguisher.countsBytes`.
    public static let ofBytes: FeatureGroup = .written

    public var meaning: String {
        switch self {
        case .times:
            "times of files show which spaces were written, or whether anything was"
        case .files: "sizes, modes or numbers of files differ between used and unused spaces"
        case .order:
            "the order in which files were made, or stand in directories, shows which spaces are in use"
        case .extents:
            "disk blocks are given to used spaces otherwise than to unused ones: holes, preallocation, trim"
        case .bytes: "what is written, or what new segments are filled with, is not uniformly random"
        case .repeats: "the same bytes stand twice: a fill or a nonce was used again"
        case .header: "the header's slots, or its unused bytes, depend on how many spaces are in use"
        case .inside: "the decoy's own tables, roots or counts know of other sessions or spaces"
        case .opens:
            "sectors open under the decoy's key that should not, or the decoy writes elsewhere when not alone"
        case .memory: "the kernel's memory of files shows which parts of them were used"
        case .counters:
            "the file system counts changes of files, and so tells which spaces were written, or how much"
        case .journal:
            "the file system's journal keeps older states of files, which tell when and how often they changed"
        case .written:
            "more bytes were written than the decoy explains: other spaces were written"
        case .answers: "the program answers, counts or works otherwise when other spaces are in use"
        }
    }
}

/// All that the classifier gets of one vault.
public struct Sample: Sendable {
    struct Feature: Sendable {
        var group: FeatureGroup
        var name: String
        var value: Double
    }
    private(set) var features: [Feature] = []
    /// Both copies of the header, byte by byte.
    var header: [UInt8] = []
    /// Texts that must be equal in both vaults of a pair.
    var words: [String: String] = [:]

    init() {}

    mutating func add(_ group: FeatureGroup, _ name: String, _ value: some BinaryInteger) {
        add(group, name, Double(value))
    }

    mutating func add(_ group: FeatureGroup, _ name: String, _ value: Double) {
        features.append(Feature(group: group, name: name, value: value))
    }

    /// Adds the statistics of a number that each file of each space has: the decoy's against the others', and
    /// those of the others against each other.
    ///
    /// - Parameter values: by space, then by file.
    mutating func add(_ group: FeatureGroup, _ name: String, _ values: [[Double]], decoy: Int) {
        func mean(_ list: [Double]) -> Double { list.isEmpty ? 0 : list.reduce(0, +) / Double(list.count) }
        let others = values.indices.filter { $0 != decoy }.map { mean(values[$0]) }
        let all = values.flatMap { $0 }
        add(group, "\(name): decoy - others", mean(values[decoy]) - mean(others))
        add(group, "\(name): others apart", (others.max() ?? 0) - (others.min() ?? 0))
        add(group, "\(name): mean of others", mean(others))
        add(group, "\(name): spread", (all.max() ?? 0) - (all.min() ?? 0))
    }
}

/// The place of each number in the order of all: ties by where they stand.
func ranks(_ values: [[Double]]) -> [[Double]] {
    var places = values.map { $0.map { _ in 0.0 } }
    let order = values.indices.flatMap { space in values[space].indices.map { (space, $0) } }
        .sorted { values[$0.0][$0.1] < values[$1.0][$1.1] }
    for (place, (space, file)) in order.enumerated() { places[space][file] = Double(place) }
    return places
}
