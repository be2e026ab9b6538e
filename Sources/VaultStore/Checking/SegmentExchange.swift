import Glibc
import LinuxIO
import VaultFormat

/// Segments whose files have the names of others: as a careless copy or a tool that mends file systems leaves them.
public struct SegmentExchange: Sendable, Hashable {
    /// By segment, the number in the name of the file that has its bytes. Those that have their own name are left out.
    let places: [Int: Int]

    /// - Parameter places: as the property; segments with their own name may be among them. Nil where all have.
    init?(_ places: [Int: Int]) {
        self.places = places.filter { $0 != $1 }
        if self.places.isEmpty { return nil }
    }

    /// Segments that have each other's names, each group ascending; and single ones that have the name of none.
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
            // What lies in a file of no segment's name, or of a segment that is not found, is told with that name.
            if let number = next, number != first, !group.contains(number) { group.append(number) }
            groups.append(group.sorted())
        }
        return groups
    }

    /// One line a group: `segments 5 and 9 are exchanged`.
    public var texts: [String] { groups.map { WriteStop.exchanged($0) } }

    /// Why a space that has them is not written.
    var stop: WriteStop { .segmentsExchanged(groups.first ?? []) }

    /// The exchanges of two names each that give every segment its own, in order. Nothing is lost by any of them.
    var steps: [(Int, Int)] {
        var left = places
        var steps: [(Int, Int)] = []
        for segment in places.keys.sorted() {
            guard let place = left[segment], place != segment else { continue }
            steps.append((place, segment))
            // What had the segment's name has the other's now.
            if let other = left.first(where: { $0.value == segment })?.key { left[other] = place }
            left[segment] = segment
        }
        return steps
    }
}

extension UnlockedSpace {
    /// Gives the files of exchanged segments their own names. Killed at any moment, it leaves every file with some
    /// segment's name, and the next search finds what is left to do. Under the vault's lock.
    public func undo(_ exchange: SegmentExchange) throws(VaultError) {
        let directory = try vault.openSegments(layout)
        defer { vault.calls.close(directory) }
        do throws(Errno) {
            let spare = (try vault.calls.list(directory).compactMap(SegmentLayout.number).max() ?? 0) + 1
            for (place, segment) in exchange.steps {
                try exchangeNames(directory, place, segment, spare: spare)
            }
            try vault.calls.sync(directory)
        } catch {
            if error.refusesWriting { throw .notWritable(.io(error)) }
            throw .system(error, "cannot rename the vault's segments")
        }
    }

    /// - Parameter spare: a number that no file has, for hosts that cannot exchange names in one step.
    private func exchangeNames(_ directory: Int32, _ first: Int, _ second: Int, spare: Int) throws(Errno) {
        let (first, second) = (SegmentLayout.name(first), SegmentLayout.name(second))
        do throws(Errno) {
            return try vault.calls.rename(directory, first, second, isExchange: true)
        } catch {
            switch error.rawValue {
            // A segment that is missing leaves its name free.
            case ENOENT: return try vault.calls.rename(directory, first, second, isExchange: false)
            case EINVAL, ENOSYS, EOPNOTSUPP: break
            default: throw error
            }
        }
        let spare = SegmentLayout.name(spare)
        try vault.calls.rename(directory, second, spare, isExchange: false)
        try vault.calls.rename(directory, first, second, isExchange: false)
        try vault.calls.rename(directory, spare, first, isExchange: false)
    }
}
