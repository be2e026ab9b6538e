import LinuxIO
import VaultFormat

/// A segment of a vault.
struct SegmentPlace: Sendable, Hashable {
    var space: Int
    var number: Int

    /// End of the segment's roots, which a backup copies last; 0 for a segment without roots.
    var rootBytes: UInt64 { number < 2 ? UInt64(RootSnapshot.rootBytes) : 0 }
}

/// Maps a segment to its file and its offset there.
///
/// A vault of one space has a file for each segment, in `segments`, and so grows on demand. A vault of several spaces
/// has all segments of all spaces in the file `spaces`: a host shows when and how often each file changed, so separate
/// files would show which spaces are in use.
struct SegmentLayout: Sendable, Equatable {
    let spaceCount: Int
    let segmentBytes: UInt64

    /// The file of a vault of several spaces.
    static let sharedName = "spaces"
    /// The directory of a vault of one.
    static let directoryName = "segments"

    var isShared: Bool { spaceCount > 1 }

    /// Bytes of a row: the segments of one number in all spaces.
    var rowBytes: UInt64 { UInt64(spaceCount) * segmentBytes }

    /// The path of the segments' directory from the vault's.
    var directoryPath: String { isShared ? "." : Self.directoryName }

    /// The name of a segment's file in that directory.
    func fileName(_ number: Int) -> String { isShared ? Self.sharedName : Self.name(number) }

    /// The path of a segment's file from the vault's directory.
    func path(_ place: SegmentPlace) -> String {
        isShared ? Self.sharedName : "\(Self.directoryName)/\(Self.name(place.number))"
    }

    /// Offset of a segment in its file, in bytes.
    func start(_ place: SegmentPlace) -> UInt64 {
        isShared ? UInt64(place.number) * rowBytes + UInt64(place.space) * segmentBytes : 0
    }

    /// The number of whole rows in a file of `size` bytes.
    func rows(ofFile size: UInt64) -> Int { Int(min(size / rowBytes, UInt64(Geometry.segmentsMax))) }

    /// Bytes of a segment in a file of `size` bytes.
    func bytes(_ place: SegmentPlace, ofFile size: UInt64) -> UInt64 {
        let start = start(place)
        return size > start ? min(size - start, segmentBytes) : 0
    }

    /// The name of a segment's file in `segments`.
    static func name(_ number: Int) -> String {
        digits(number) + ".seg"
    }

    /// The number of a segment with at least six digits.
    static func digits(_ number: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, 6 - digits.count)) + digits
    }

    /// The number in the name of a segment's file; nil for any other name, and for a number that no segment has.
    static func number(_ name: String) -> Int? {
        guard name.hasSuffix(".seg"),
            let number = Quantity(digits: name.dropLast(4), in: 0...UInt64(Geometry.segmentsMax - 1))?.int,
            Self.name(number) == name
        else { return nil }
        return number
    }
}
