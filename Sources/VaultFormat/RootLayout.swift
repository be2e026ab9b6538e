/// Byte layout of a root record's plaintext. See the format specification, *Roots*.
public enum RootLayout {
    public static let generationOffset = 0
    public static let kindOffset = 8
    public static let kindDurable: UInt8 = 1
    public static let kindSoft: UInt8 = 2
    /// The space's version, less 1 (2 bytes); see `SpaceFormat`.
    public static let versionOffset = 14
    public static let epochOffset = 16
    public static let bootHashOffset = 24
    public static let bootHashBytes = 32
    /// Generation of the previous durable root: in a soft root, of the one that it builds on.
    public static let baseOffset = 56
    public static let releasedOffset = 64
    public static let pairCountOffset = 72
    /// The release that is needed for version and features.
    public static let releaseOffset = 76
    // Placement of writes after a takeover from a mount that may still be writing.
    /// 1 more than the avoided slot of the durable ring, 0 for none.
    public static let avoidedRootOffset = 9
    /// Number of the first pair above the split, 0 if no side is preferred (2 bytes).
    public static let splitPairOffset = 10
    /// 1: slots are allocated above the split; 0: below.
    public static let isAboveOffset = 12
    /// Segment where the allocation of sectors starts.
    public static let startSegmentOffset = deltaOffset + MapLayout.referenceBytes
    public static let objectsOffset = 80
    public static let objectBytes = 48
    // Features of the space, 4 bytes each, behind the references of the first three objects.
    public static let incompatibleOffset = objectsOffset + 44
    public static let writingFeaturesOffset = incompatibleOffset + objectBytes
    public static let compatibleOffset = writingFeaturesOffset + objectBytes
    public static let deltaOffset = objectsOffset + MapObject.allCases.count * objectBytes
    /// Most sectors ever in use at once: the disk that a vault of one space takes on its host.
    public static let peakSectorsOffset = deltaOffset + 40
    public static let pairsOffset = peakSectorsOffset + 8
    public static let pairBytes = 8
    /// Most pairs of a root.
    public static let pairsMax = (Geometry.pagePlainBytes - pairsOffset) / pairBytes
    /// Pairs are added up to this number. A root of more has no room for extensions.
    public static let pairsMaxWithRoom = (roomOffset - pairsOffset) / pairBytes
    /// Room for extensions: kept as found.
    public static let roomOffset = Geometry.pagePlainBytes - roomBytes
    public static let roomBytes = 256
    /// Most slots of all pairs together: 256 GiB of pages, whose bits take 8 MiB.
    public static let slotsMax = 1 << 26

    // An object: its pages and the root of its map.
    public static let objectPagesOffset = 0
    public static let objectLevelsOffset = 4
    public static let objectReferenceOffset = 8

    /// The first slots of the first pair of page segments hold roots and the claim, never other pages.
    public static let rootSlots = 16
    public static let durableSlots = 0..<4
    public static let softSlots = 4..<12
    /// The slot of the claim; see `ClaimLayout`.
    public static let claimSlot = 12
}

/// Byte layout of a claim's plaintext. A claim is the page by which a writing mount excludes other writers. See the
/// format specification, *Claims*.
public enum ClaimLayout {
    /// Random number of the writing mount.
    public static let ownerOffset = 0
    public static let ownerBytes = 16
    /// Keyed hash of the computer's identity.
    public static let machineOffset = 16
    /// Keyed hash of its boot id.
    public static let bootOffset = 48
    public static let markBytes = 32
    /// Inode number of the pid namespace.
    public static let namespaceOffset = 80
    /// Start time of the process, in clock ticks since boot.
    public static let startOffset = 88
    /// ID of the process in its namespace.
    public static let processOffset = 96
}

/// The paged objects of a space. Each has its own map.
public enum MapObject: Int, CaseIterable, Sendable {
    /// SQLite's database.
    case catalogue = 0
    /// Which sectors are in use, page p for sectors 16,384 p ..< 16,384 (p + 1).
    case sectorBitmap = 1
    /// Which page slots are in use, page p for slots 16,384 p ..< 16,384 (p + 1).
    case slotBitmap = 2
    /// Sectors in use in each segment, 32-bit numbers, 1,000 a page.
    case usage = 3

    public var role: PageRole {
        switch self {
        case .catalogue: .catalogue
        case .sectorBitmap: .sectorBitmap
        case .slotBitmap: .slotBitmap
        case .usage: .usage
        }
    }
}

/// Layout of map nodes and of the pages that carry bits and counts.
public enum MapLayout {
    /// References in a node.
    public static let fanout = 112
    /// Slot (4), tag of copy A (16), tag of copy B (16).
    public static let referenceBytes = 36
    public static let absentSlot: UInt32 = .max
    public static let levelsMax = 4
    /// Most pages of a tree of `levelsMax` levels.
    public static let pagesMax = fanout * fanout * fanout * fanout

    public static let bitsPerPage = 16_384
    public static let bitmapBytes = bitsPerPage / 8
    public static let countsPerPage = 1_000
}

/// Layout of delta pages: a commit's allocated and freed sectors and slots. See the format specification, *Deltas*.
public enum DeltaLayout {
    public static let generationOffset = 0
    public static let countOffset = 8
    public static let previousOffset = 16
    public static let entriesOffset = 56
    public static let entryBytes = 16
    public static let entriesPerPage = (Geometry.pagePlainBytes - entriesOffset) / entryBytes

    public static let kindExtentsWritten: UInt8 = 1
    public static let kindSectorsFreed: UInt8 = 2
    public static let kindSlotsFreed: UInt8 = 3
}
