/// The version of the header that this program writes, and the newest that it reads; part of the associated data of
/// everything that is sealed. See the format specification, *Versions*, for those of other structures.
public let formatVersion: UInt16 = 1

/// Sizes that every vault of this format version shares. See the format specification, *Space*.
public enum Geometry {
    /// The unit of allocation within a segment.
    public static let sectorBytes = 512
    /// File content is sealed in pieces of this many plaintext bytes: the kernel's read-ahead unit.
    public static let chunkBytes = 128 * 1024
    /// A stored catalogue page.
    public static let pageBytes = 4096
    /// Plaintext bytes of a page: the rest is its nonce (24) and tag (16).
    public static let pagePlainBytes = pageBytes - nonceBytes - tagBytes
    public static let sectorsPerPage = pageBytes / sectorBytes

    public static let nonceBytes = 24
    public static let tagBytes = 16
    public static let keyBytes = 32

    /// Bytes before an extent's payload: nonce, sealed descriptor, the descriptor's tag.
    public static let extentHeaderBytes = nonceBytes + descriptorBytes + tagBytes
    public static let descriptorBytes = 40
    public static let extentOverheadBytes = extentHeaderBytes + tagBytes

    /// Sectors of an extent with `plainBytes` bytes of plaintext: 1 byte takes 1, a whole chunk 257.
    @inlinable
    public static func sectors(forPlaintext plainBytes: Int) -> Int {
        (plainBytes + extentOverheadBytes + sectorBytes - 1) / sectorBytes
    }

    /// Sectors of a whole chunk: the distance between chunks of a run.
    public static let sectorsPerChunk = sectors(forPlaintext: chunkBytes)

    public static let segmentBytesMin: UInt64 = 4 << 20
    /// The smallest size that a header may name. Tests use it, so that a small vault has hundreds of segments.
    public static let segmentBytesLeast: UInt64 = 512 << 10
    public static let segmentBytesUsual: UInt64 = 16 << 20
    public static let segmentBytesMax: UInt64 = 4 << 30
    /// A space from this size on has segments of the usual size.
    public static let spaceBytesUsual = 16 * segmentBytesUsual
    /// Segment sizes are chosen so that a space has at most this many, up to `segmentBytesMax`.
    public static let segmentsPerSpaceMax: UInt64 = 16_384
    /// Segment numbers are below this, so that the usage counts take at most 16 MiB of memory.
    public static let segmentsMax = 1 << 22
    /// No count of commits, contents or bytes exceeds this, so that sums cannot overflow.
    public static let numberMax: UInt64 = 1 << 62
    /// The largest number of an inode, content or name. Readers accept larger ones, so that the next number is valid
    /// too. In the table `retired` the blocks of inodes are numbered below 2^40, those of contents from 2^40 on.
    public static let idMax: UInt64 = 1 << 50 - 1
    /// The largest file, sparse ones included: an exbibyte.
    public static let fileBytesMax: UInt64 = 1 << 60
    /// Runs from this sector on stand for lost bytes. Far beyond every real sector.
    public static let lostSector: UInt64 = 1 << 61
    /// The most bytes of one such run: its count of sectors cannot overflow.
    public static let lostBytesMax: UInt64 = 1 << 40
    public static let spacesMax = 8
    /// A smaller space could not hold two copies of its catalogue and a photo.
    public static let spaceBytesMin: UInt64 = 16 << 20

    /// The segment size for a space of `spaceBytes`: 16 MiB, less only for spaces under 256 MiB, more if there would be
    /// over 16,384 segments.
    public static func segmentBytes(forSpace spaceBytes: UInt64) -> UInt64 {
        var bytes = spaceBytes < spaceBytesUsual ? segmentBytesMin : segmentBytesUsual
        while bytes < segmentBytesMax && bytes * segmentsPerSpaceMax < spaceBytes { bytes *= 2 }
        return bytes
    }

    /// Whether a header may name this segment size.
    public static func isPlausible(segmentBytes bytes: UInt64) -> Bool {
        bytes >= segmentBytesLeast && bytes <= segmentBytesMax && bytes & (bytes - 1) == 0
    }
}

/// The kind of an extent's payload.
public enum ExtentRole: UInt8, Sendable {
    case content = 1
    case thumbnail = 2
    case identity = 3
}

/// The kind of a sealed 4 KiB page.
public enum PageRole: UInt8, Sendable {
    case catalogue = 17
    case sectorBitmap = 18
    case slotBitmap = 19
    case usage = 20
    case mapNode = 21
    case delta = 22
    case root = 23
    case claim = 24
}
