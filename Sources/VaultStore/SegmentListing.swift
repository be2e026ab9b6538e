public import LinuxIO
import VaultFormat

/// The names in a space's directory, told apart: its segments, and what others put there.
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
            if let number = SegmentFiles.number(name) { found.append(number) } else { others.append(name) }
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
    /// The files of a space, by their names.
    func listing(space: Int) throws(VaultError) -> SegmentListing {
        let directory = try openSpace(space)
        defer { calls.close(directory) }
        do throws(Errno) { return SegmentListing(try calls.list(directory)) } catch {
            throw .system(error, "cannot list the vault's segments")
        }
    }

    /// The highest number that a segment of any space may have, -1 where there is none. A distant one counts where its
    /// file has something in it.
    func highestNumber(spaces: Int) throws(VaultError) -> Int {
        var highest = -1
        for space in 0..<spaces {
            let listing = try listing(space: space)
            let distant = listing.distant.last { (segmentBytes(space: space, number: $0) ?? 0) > 0 }
            highest = max(highest, listing.numbers.last ?? -1, distant ?? -1)
        }
        return highest
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
    /// Of several spaces only whole segments count: one that `grow` is making is not in use. Of what is longer than a
    /// segment only that much is the vault's.
    func segments(_ header: Header) throws(VaultError) -> FoundSegments {
        var found = FoundSegments()
        var last = -1
        for space in 0..<header.spaceCount {
            let listing = try listing(space: space)
            found.strays += listing.others.map { "\(Self.spacesName)/\(space)/\($0)" }
            for number in listing.numbers + listing.distant {
                let place = SegmentPlace(space: space, number: number)
                let isDistant = number > listing.numbers.last ?? -1
                let bytes = segmentBytes(space: space, number: number)
                // No regular file, or from somewhere else.
                if bytes == nil || isDistant { found.strays.append(place.path) }
                guard let bytes, !isDistant || bytes > 0 else { continue }
                if !isDistant { last = max(last, number) }
                let isWhole = header.spaceCount == 1 || bytes == header.segmentBytes
                if isWhole { found.segments.append((place, min(bytes, header.segmentBytes))) }
            }
        }
        found.segments.sort { ($0.place.number, $0.place.space) < ($1.place.number, $1.place.space) }
        // The last number may be one that is being made.
        let wanted = max(0, last) * header.spaceCount
        found.missing = wanted - found.segments.count { $0.place.number < last }
        return found
    }
}

extension Vault {
    /// Paths, from the vault's directory, of files among its segments that cannot be any. They count for nothing.
    public static func strayFiles(
        _ path: String, calls: any FileSystemCalls = LinuxCalls.shared
    ) throws(VaultError) -> [String] {
        let (vault, header) = try open(path, calls: calls, mayRepair: false)
        do throws(VaultError) { return try vault.segments(header).strays } catch {
            // A space whose directory is missing is damage.
            if case .damaged = error { return [] }
            throw error
        }
    }
}
