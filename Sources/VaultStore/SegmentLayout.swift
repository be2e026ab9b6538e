import LinuxIO
import VaultFormat

/// A segment of a vault.
struct SegmentPlace: Sendable, Hashable {
    var space: Int
    var number: Int

    /// Where the segment's roots end, which are copied last: 0 for a segment without.
    var rootBytes: UInt64 { number < 2 ? UInt64(RootSnapshot.rootBytes) : 0 }
}

/// In which file of a vault a segment lies, and where in it.
///
/// A vault of one space has a file for each segment, in `segments`, and so as many as it needs. One of several has all
/// segments of all spaces in the file `spaces`: a host tells of each file when and how often it was changed, and so of
/// a space that had files of its own whether it is in use.
struct SegmentLayout: Sendable, Equatable {
    let spaceCount: Int
    let segmentBytes: UInt64

    /// The file of a vault of several spaces.
    static let sharedName = "spaces"
    /// The directory of a vault of one.
    static let directoryName = "segments"

    var isShared: Bool { spaceCount > 1 }

    /// Bytes that one number's segments of all spaces take.
    var rowBytes: UInt64 { UInt64(spaceCount) * segmentBytes }

    /// The path from the vault's directory of the one that has the segments' files.
    var directoryPath: String { isShared ? "." : Self.directoryName }

    /// The name in that directory of a segment's file.
    func fileName(_ number: Int) -> String { isShared ? Self.sharedName : Self.name(number) }

    /// The path of a segment's file from the vault's directory.
    func path(_ place: SegmentPlace) -> String {
        isShared ? Self.sharedName : "\(Self.directoryName)/\(Self.name(place.number))"
    }

    /// Where a segment begins in its file, in bytes.
    func start(_ place: SegmentPlace) -> UInt64 {
        isShared ? UInt64(place.number) * rowBytes + UInt64(place.space) * segmentBytes : 0
    }

    /// How many segments every space has whole in a file of `size` bytes.
    func rows(ofFile size: UInt64) -> Int { Int(min(size / rowBytes, UInt64(Geometry.segmentsMax))) }

    /// How many bytes of a segment a file of `size` bytes has.
    func bytes(_ place: SegmentPlace, ofFile size: UInt64) -> UInt64 {
        let start = start(place)
        return size > start ? min(size - start, segmentBytes) : 0
    }

    /// The name of a segment's file in `segments`.
    static func name(_ number: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, 6 - digits.count)) + digits + ".seg"
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
