public import LinuxIO

/// A row of table `inode`; see `Schema`.
public struct InodeRow: Sendable, Equatable {
    public var ino: UInt64
    /// Type and permission bits, as st_mode.
    public var mode: UInt32
    public var uid: UInt32
    public var gid: UInt32
    public var rdev: UInt64
    public var nlink: UInt32
    /// Bytes; for a directory the number of its entries.
    public var size: UInt64
    /// Plaintext bytes that have extents.
    public var allocated: UInt64
    public var content: UInt64
    /// Grows with each save of the bytes.
    public var revision: UInt64
    public var parent: UInt64
    /// YYYYMMDD of a day of moments, else 0.
    public var day: Int64
    public var flags: InodeFlags
    public var accessed: Timestamp
    public var modified: Timestamp
    public var changed: Timestamp

    /// A new inode without names, all of its times `now`.
    public init(ino: UInt64, mode: UInt32, uid: UInt32, gid: UInt32, now: Timestamp) {
        self.ino = ino
        self.mode = mode
        self.uid = uid
        self.gid = gid
        (rdev, nlink, size, allocated, content, revision, parent, day) = (0, 0, 0, 0, 0, 0, 0, 0)
        flags = []
        (accessed, modified, changed) = (now, now, now)
    }

    /// Whether type and day are valid in the table.
    public var isPlausible: Bool {
        let types: [UInt32] = [0o010000, 0o020000, 0o040000, 0o060000, 0o100000, 0o120000, 0o140000]
        return mode <= 0o177777 && types.contains(mode & 0o170000) && Self.days.contains(day)
    }

    /// Bytes that a photo adds to the total of all photos. Limited, so that sparse photos of impossible sizes do not
    /// overflow the sum.
    public var countedBytes: UInt64 { min(size, Self.countedBytesMax) }
    public static let countedBytesMax: UInt64 = 1 << 40

    /// Changes the link count. It is clamped, because wrong counts in a damaged vault must not crash the process.
    public mutating func countLinks(by difference: Int) {
        nlink = UInt32(clamping: Int(nlink) + difference)
    }

    /// As `countLinks`, for the entries of a directory.
    public mutating func countEntries(by difference: Int) {
        size = UInt64(clamping: min(Int(clamping: size), Int.max - 1) + difference)
    }

    /// Dates as YYYYMMDD, and 0 for none.
    public static let days: ClosedRange<Int64> = 0...9999_12_31
}

/// Flags of an inode.
public struct InodeFlags: OptionSet, Sendable {
    public let rawValue: Int64
    public init(rawValue: Int64) { self.rawValue = rawValue }

    /// A day of moments that was made by mkdir: listed even if it is empty.
    public static let madeByHand = InodeFlags(rawValue: 1)
    /// A directory whose own name is that of a program's working files.
    public static let working = InodeFlags(rawValue: 2)
    /// A regular file that is a photo: it has a row in `photo`.
    public static let photo = InodeFlags(rawValue: 4)
    /// Has rows in `xattr`.
    public static let hasAttributes = InodeFlags(rawValue: 8)
    /// A regular file that stands for another inode's photo: it has a row in `copy`.
    public static let copy = InodeFlags(rawValue: 16)
    /// Other inodes have, or have had, the same content; see `share`.
    public static let shared = InodeFlags(rawValue: 32)
    /// A photo that was removed from moments and is in the trash: it has a row in `trash`.
    public static let trashed = InodeFlags(rawValue: 64)
    /// A photo whose name in moments was given there: it does not follow the names in albums.
    public static let namedInMoments = InodeFlags(rawValue: 128)
    /// A version of a photo: a file in one of the directories of versions.
    public static let version = InodeFlags(rawValue: 256)
    /// A file that a repair found by its bytes alone, and that nobody has written to since: its name is a number, and
    /// more of it may be found later. Of the root: records were away when a repair made the tree.
    public static let foundWithoutRecord = InodeFlags(rawValue: 4096)
    /// A file of which a repair found newer bytes than its record names, and that nobody has written to since: its
    /// newest record was away.
    public static let olderRecord = InodeFlags(rawValue: 8192)

    /// Whether a repair made the file without its newest record, which counts if it comes back.
    public var isGuess: Bool { !isDisjoint(with: .guesses) }
    public static let guesses: InodeFlags = [.foundWithoutRecord, .olderRecord]
}
