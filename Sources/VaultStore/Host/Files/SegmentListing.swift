import LinuxIO
import VaultFormat

/// The names in the directory of segments: segments, and foreign files.
struct SegmentListing: Sendable, Equatable {
    /// Numbers of segments, ascending.
    private(set) var numbers: [Int] = []
    /// Numbers so far beyond the others that they are taken for foreign files: losing that many segments is less
    /// likely. They are not counted, but a full search still reads them.
    private(set) var distant: [Int] = []
    /// Names that are no segment's, sorted.
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

extension VaultFiles {
    /// Lists the segments' files of a vault of one space.
    func listing(_ layout: SegmentLayout) throws(VaultError) -> SegmentListing {
        let directory = try openSegments(layout)
        defer { calls.close(directory) }
        do throws(Errno) { return SegmentListing(try calls.list(directory)) } catch {
            throw .system(error, "cannot list the vault's segments")
        }
    }

    /// The highest number that a segment may have; -1 if there is none. A distant one counts if its file is not empty.
    func highestNumber(_ layout: SegmentLayout) throws(VaultError) -> Int {
        if layout.isShared { return segmentCount(layout) - 1 }
        let listing = try listing(layout)
        let distant = listing.distant.last {
            (fileBytes(layout.path(SegmentPlace(space: 0, number: $0))) ?? 0) > 0
        }
        return max(listing.numbers.last ?? -1, distant ?? -1)
    }
}

/// The segments of all spaces with their sizes, and stray files among them.
struct FoundSegments {
    /// Ordered by number.
    var segments: [(place: SegmentPlace, bytes: UInt64)] = []
    /// The number of missing segments in between.
    var missing = 0
    /// Paths, from the vault's directory, of files that cannot be segments.
    var strays: [String] = []
}

extension VaultFiles {
    /// Finds the segments of all spaces. With several spaces, only whole rows count: a row that `grow` is writing is
    /// not in use. With one, bytes beyond a segment's size do not count.
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
            // No regular file, or a foreign one.
            if bytes == nil || isDistant { found.strays.append(layout.path(place)) }
            guard let bytes, !isDistant || bytes > 0 else { continue }
            if !isDistant { last = number }
            found.segments.append((place, min(bytes, layout.segmentBytes)))
        }
        // The last segment may be one that is being created.
        found.missing = max(0, last) - found.segments.count { $0.place.number < last }
        return found
    }
}
