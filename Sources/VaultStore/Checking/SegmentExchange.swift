import LinuxIO
import VaultFormat

/// Segments whose files have other segments' names, as a careless copy or a file system repair tool may leave them.
public struct SegmentExchange: Sendable, Hashable {
    /// By segment, the number in the name of the file with its bytes: a permutation. Segments with their own name are
    /// left out.
    let places: [Int: Int]

    /// A segment that was not found, and whose file is another's, gets the file that is left over.
    ///
    /// - Parameter found: as `places`, but not all of a permutation, and with segments that have their own name. Nil if
    ///   all have it.
    init?(_ found: [Int: Int]) {
        var places = found.filter { $0 != $1 }
        if places.isEmpty { return nil }
        let owners = Dictionary(places.map { ($1, $0) }) { first, _ in first }
        for segment in owners.keys where found[segment] == nil {
            var file = segment
            while let owner = owners[file] { file = owner }
            places[segment] = file
        }
        self.places = places
    }

    /// Groups of segments with each other's names, ascending; also single segments whose file has no segment's name.
    var groups: [[Int]] {
        var left = Set(places.keys)
        var groups: [[Int]] = []
        for first in places.keys.sorted() where left.contains(first) {
            var group = [first]
            var next = places[first]
            left.remove(first)
            while let number = next, left.remove(number) != nil {
                group.append(number)
                next = places[number]
            }
            // A file with no segment's name, or with that of a segment not found, is named in the group.
            if let number = next, number != first, !group.contains(number) { group.append(number) }
            groups.append(group.sorted())
        }
        return groups
    }

    /// One line a group: `segments 5 and 9 are exchanged`.
    public var texts: [String] { groups.map { WriteStop.exchanged($0) } }

    /// The reason not to write a space with exchanged segments.
    var stop: WriteStop { .segmentsExchanged(groups.first ?? []) }

    /// The swaps of two names that give every segment its own, in order. No swap loses a file.
    var steps: [(Int, Int)] {
        var left = places
        var steps: [(Int, Int)] = []
        for segment in places.keys.sorted() {
            guard let place = left[segment], place != segment else { continue }
            steps.append((place, segment))
            // The file that had this segment's name has the other one now.
            if let other = left.first(where: { $0.value == segment })?.key { left[other] = place }
            left[segment] = segment
        }
        return steps
    }
}

extension UnlockedSpace {
    /// Gives exchanged segments their own names. If it is killed, each has still some segment's name, and the next
    /// search finds the remaining exchanges. Under the vault's lock.
    public func undo(_ exchange: SegmentExchange) throws(VaultError) {
        try vault.exchange(exchange.steps, layout)
    }
}
