/// How many files have room in a space.
///
/// A file takes sectors for its bytes and its identity record, and page slots for its rows: both must be there.
public struct FileRoom: Sendable, Equatable {
    /// Bytes that can surely be written, in files of any size from 4 KiB on.
    public var bytes: UInt64
    /// Empty files that can surely be made.
    public var files: UInt64

    /// Page slots that the rows of a file take.
    public static let slotsPerFile = 0.085
    /// An identity record takes a sector, or two where the names are long.
    private static let sectorsPerRecord = 1
    /// The shown room may exceed what files of 4 KiB fill by this factor. Large files get a little less.
    private static let tolerance = 1.04
    static let largeShare = 0.99

    /// - Parameters:
    ///   - available: bytes that content may take.
    ///   - filesThatFit: how many files fit that take so many bytes of content each.
    public init(available: UInt64, filesThatFit: (_ bytesPerFile: Double) -> Double) {
        func files(_ bytes: Int) -> Double { filesThatFit(Self.contentBytes(ofFile: bytes)) }
        let small = files(Geometry.pageBytes) * Double(Geometry.pageBytes)
        // Larger files are split where the room is scattered, and never take more than the smallest.
        bytes = UInt64(min(small * Self.tolerance, Double(available) * Self.largeShare))
        self.files = UInt64(files(0))
    }

    /// Bytes of content that a file of so many bytes takes, with its identity record.
    static func contentBytes(ofFile bytes: Int) -> Double {
        let (chunks, rest) = bytes.quotientAndRemainder(dividingBy: Geometry.chunkBytes)
        let last = rest == 0 ? 0 : Geometry.sectors(forPlaintext: rest)
        return Double((chunks * Geometry.sectorsPerChunk + last + sectorsPerRecord) * Geometry.sectorBytes)
    }
}

/// The arithmetic of a space of fixed size: which of its segments pages may take, and how much room that leaves.
public struct FixedSpace: Sendable {
    public let segmentBytes: UInt64
    public let segmentCount: Int

    /// Sectors reserved from users' bytes, so that truncating and deleting work in a full space.
    public static let reservedSectors: UInt64 = 2048

    /// The most that the kept pictures of photos take, as a part of the photos' bytes.
    public static let pictureShare = 0.015

    public init(segmentBytes: UInt64, segmentCount: Int) {
        (self.segmentBytes, self.segmentCount) = (segmentBytes, segmentCount)
    }

    /// A space of a vault that is created with this size.
    public init(newOfBytes bytes: UInt64) {
        let segment = Geometry.segmentBytes(forSpace: bytes)
        self.init(segmentBytes: segment, segmentCount: Int((min(bytes, 1 << 62) + segment - 1) / segment))
    }

    /// Page slots of a pair of segments.
    public var slotsPerPair: Int { Int(segmentBytes) / Geometry.pageBytes }

    /// Pages of its sector bitmap.
    public var bitmapPages: Int {
        let sectorsPerSegment = Int(segmentBytes) / Geometry.sectorBytes
        return segmentCount * ((sectorsPerSegment + MapLayout.bitsPerPage - 1) / MapLayout.bitsPerPage)
    }

    /// Segments to have or set aside for pages: 1 % of the space, or room for eight times all bitmaps if that is more:
    /// those in use, those of a commit and of two that release, and what changes beside.
    public var pageSegments: Int {
        max((segmentCount / 100 + 1) / 2 * 2, (bitmapPages * 8 / slotsPerPair + 1) * 2)
    }

    /// Pairs of segments that pages may have at most: half of the segments stay for content.
    public var pairsMax: Int {
        min(segmentCount / 4, RootLayout.pairsMaxWithRoom, RootLayout.slotsMax / slotsPerPair)
    }

    /// How many files fit, if the catalogue takes more segments as it grows.
    ///
    /// - Parameters:
    ///   - content: bytes for content, with the present pairs.
    ///   - slots: page slots that files may have in them.
    ///   - pairs: pairs of segments that pages can still get.
    ///   - setAside: segments that are kept for pages already, and that are not counted as content's.
    public func filesThatFit(
        bytesPerFile: Double, content: Double, slots: Double, pairs: Int, setAside: Int
    ) -> Double {
        var (content, slots) = (content, slots)
        var best = min(content / bytesPerFile, slots / FileRoom.slotsPerFile)
        for added in stride(from: 1, through: pairs, by: 1) {
            slots += Double(slotsPerPair)
            if 2 * added > setAside { content -= Double(2 * segmentBytes) }
            guard content > 0 else { break }
            best = max(best, min(content / bytesPerFile, slots / FileRoom.slotsPerFile))
        }
        return best
    }

    /// Photos of so many bytes that surely fit into a new space, each with the small pictures that are kept of it.
    ///
    /// They are more than the room that its mount shows, because that is for files of any size: those of 4 KiB have a
    /// third of the space for their records and pages.
    public func photosWhenNew(bytesPerPhoto: Int) -> Int {
        let pictures = Int(Double(bytesPerPhoto) * Self.pictureShare)
        let bytesPerFile = FileRoom.contentBytes(ofFile: bytesPerPhoto + pictures)
        let reservedBytes = Int(Self.reservedSectors) * Geometry.sectorBytes
        let content = max(0, segmentCount - pageSegments) * Int(segmentBytes) - reservedBytes
        let reserve = max(Limits.production.reservedSlots, slotsPerPair / 8)
        // Of the first state, and of three commits that change bitmaps.
        let used = 232 + 3 * min(32, bitmapPages)
        let slots = Double(max(0, slotsPerPair - reserve - used))
        let files = filesThatFit(
            bytesPerFile: bytesPerFile, content: Double(max(0, content)), slots: slots, pairs: pairsMax - 1,
            setAside: pageSegments - 2)
        return Int(files * FileRoom.largeShare)
    }
}
