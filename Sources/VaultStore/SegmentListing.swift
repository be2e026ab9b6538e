public import LinuxIO
import VaultFormat

/// The names in the directory of segments, told apart: segments, and what others put there.
struct SegmentListing: Sendable, Equatable {
    /// In their order.
    private(set) var numbers: [Int] = []
    /// Numbers so far behind all others that they are no segments': losing that many files is less likely than a file
    /// from somewhere else. Nothing is counted by them; what they have is still looked at where all is.
    private(set) var distant: [Int] = []
    /// Names that no segment has, sorted.
    private(set) var others: [String] = []

    private static let gapMin = 4096
    private static let gapsPerSegment = 16

    init(_ names: [String]) {
        var found: [Int] = []
        for name in names {
            if let number = SegmentLayout.number(name) { found.append(number) } else { others.append(name) }
        }
        found.sort()
        for number in found {
            let gap = number - (numbers.last.map { $0 + 1 } ?? 0)
            if gap <= max(Self.gapMin, numbers.count * Self.gapsPerSegment) {
                numbers.append(number)
            } else {
                distant.append(number)
            }
        }
        others.sort()
    }
}

extension VaultDirectory {
    /// The files of the segments of a vault of one space, by their names.
    func listing(_ layout: SegmentLayout) throws(VaultError) -> SegmentListing {
        let directory = try openSegments(layout)
        defer { calls.close(directory) }
        do throws(Errno) { return SegmentListing(try calls.list(directory)) } catch {
            throw .system(error, "cannot list the vault's segments")
        }
    }

    /// The highest number that a segment may have, -1 where there is none. A distant one counts where its file has
    /// something in it.
    func highestNumber(_ layout: SegmentLayout) throws(VaultError) -> Int {
        if layout.isShared { return segmentCount(layout) - 1 }
        let listing = try listing(layout)
        let distant = listing.distant.last {
            (fileBytes(layout.path(SegmentPlace(space: 0, number: $0))) ?? 0) > 0
        }
        return max(listing.numbers.last ?? -1, distant ?? -1)
    }
}

/// The segments of all spaces, with their bytes, and what else is found among them.
struct FoundSegments {
    /// In order of their numbers.
    var segments: [(place: SegmentPlace, bytes: UInt64)] = []
    /// How many are missing in between.
    var missing = 0
    /// Paths, from the vault's directory, of what cannot be a segment.
    var strays: [String] = []
}

extension VaultDirectory {
    /// Of several spaces only whole segments count: those that `grow` is making are not in use. Of a file that is
    /// longer than a segment only that much is the vault's.
    func segments(_ layout: SegmentLayout) throws(VaultError) -> FoundSegments {
        var found = FoundSegments()
        if layout.isShared {
            for number in 0..<segmentCount(layout) {
                for space in 0..<layout.spaceCount {
                    found.segments.append((SegmentPlace(space: space, number: number), layout.segmentBytes))
                }
            }
            return found
        }
        let listing = try listing(layout)
        found.strays = listing.others.map { "\(SegmentLayout.directoryName)/\($0)" }
        var last = -1
        for number in listing.numbers + listing.distant {
            let place = SegmentPlace(space: 0, number: number)
            let isDistant = number > listing.numbers.last ?? -1
            let bytes = fileBytes(layout.path(place))
            // No regular file, or from somewhere else.
            if bytes == nil || isDistant { found.strays.append(layout.path(place)) }
            guard let bytes, !isDistant || bytes > 0 else { continue }
            if !isDistant { last = number }
            found.segments.append((place, min(bytes, layout.segmentBytes)))
        }
        // The last number may be one that is being made.
        found.missing = max(0, last) - found.segments.count { $0.place.number < last }
        return found
    }
}

extension Vault {
    /// Paths, from the vault's directory, of files among its segments that cannot be any. They count for nothing.
    public static func strayFiles(
        _ path: String, calls: any FileSystemCalls = LinuxCalls.shared
    ) throws(VaultError) -> [String] {
        let (vault, header) = try open(path, calls: calls, mayRepair: false)
        do throws(VaultError) { return try vault.segments(header.layout).strays } catch {
            // A directory that is missing is damage.
            if case .damaged = error { return [] }
            throw error
        }
    }
}
