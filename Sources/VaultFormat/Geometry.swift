/// The version of the format this program writes, and the newest it reads.
public let formatVersion: UInt16 = 1

/// Sizes that every vault of this format version shares. See the format specification, *Space*.
public enum Geometry {
    /// The unit in which a segment is given out.
    public static let sectorBytes = 512
    /// File content is sealed in pieces of this many plaintext bytes: the kernel's read-ahead unit.
    public static let chunkBytes = 128 * 1024
    /// A catalogue page as it is stored.
    public static let pageBytes = 4096
    /// What a page holds: the rest is its nonce (24) and tag (16).
    public static let pagePlainBytes = pageBytes - nonceBytes - tagBytes
    public static let sectorsPerPage = pageBytes / sectorBytes

    public static let nonceBytes = 24
    public static let tagBytes = 16
    public static let keyBytes = 32

    /// What an extent carries before its payload: nonce, sealed descriptor, descriptor's tag.
    public static let extentHeaderBytes = nonceBytes + descriptorBytes + tagBytes
    public static let descriptorBytes = 40
    public static let extentOverheadBytes = extentHeaderBytes + tagBytes

    /// Sectors of an extent with `plainBytes` bytes of plaintext: 1 byte takes 1, a whole chunk 257.
    @inlinable
    public static func sectors(forPlaintext plainBytes: Int) -> Int {
        (plainBytes + extentOverheadBytes + sectorBytes - 1) / sectorBytes
    }

    /// A whole chunk's sectors: chunks of a run follow each other at this distance.
    public static let sectorsPerChunk = sectors(forPlaintext: chunkBytes)

    /// A chunk that finds no run of free sectors is split into at most this many extents.
    public static let chunkPiecesMax = 8

    public static let segmentBytesMin: UInt64 = 4 << 20
    /// The least that a header may name: what tests make, so that a small vault has hundreds of segments.
    public static let segmentBytesLeast: UInt64 = 512 << 10
    public static let segmentBytesUsual: UInt64 = 16 << 20
    public static let segmentBytesMax: UInt64 = 4 << 30
    /// Up to here larger spaces have larger segments rather than more.
    public static let segmentsPerSpaceMax: UInt64 = 16_384
    /// Segments are numbered below this, so that their counts take 16 MiB of memory at most.
    public static let segmentsMax = 1 << 22
    /// No number that counts commits, contents or bytes exceeds this: far from where sums overflow.
    public static let numberMax: UInt64 = 1 << 62
    /// Numbers of inodes, contents and names go up to here: what reads them takes more, so that the next one is one. In
    /// `dead` the blocks of inodes are numbered below 2^40, and those of contents from there on.
    public static let idMax: UInt64 = 1 << 50 - 1
    /// No file is larger: a sparse one neither. An exbibyte.
    public static let fileBytesMax: UInt64 = 1 << 60
    /// Runs from this sector on stand for bytes that are lost. Far behind all sectors that there can be.
    public static let lostSector: UInt64 = 1 << 61
    /// Bytes that one such run stands for at most: far from where their count of sectors overflows.
    public static let lostBytesMax: UInt64 = 1 << 40
    public static let spacesMax = 8
    /// A space smaller than this cannot hold its catalogue twice and a photo.
    public static let spaceBytesMin: UInt64 = 16 << 20

    /// Segments of this many bytes serve a space of `spaceBytes`: at most 16,384 of them, 16 MiB where that
    /// suffices, less only for spaces under 64 MiB.
    public static func segmentBytes(forSpace spaceBytes: UInt64) -> UInt64 {
        var bytes = spaceBytes < 4 * segmentBytesUsual ? segmentBytesMin : segmentBytesUsual
        while bytes < segmentBytesMax && bytes * segmentsPerSpaceMax < spaceBytes { bytes *= 2 }
        return bytes
    }

    /// Whether a header may name this segment size.
    public static func isPlausible(segmentBytes bytes: UInt64) -> Bool {
        bytes >= segmentBytesLeast && bytes <= segmentBytesMax && bytes & (bytes - 1) == 0
    }
}

/// What an extent holds.
public enum ExtentRole: UInt8, Sendable {
    case content = 1
    case thumbnail = 2
    case identity = 3
}

/// What a sealed 4 KiB page holds.
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
