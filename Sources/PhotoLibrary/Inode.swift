import VaultCatalogue

/// One file, directory, link or node in memory. Every field only under the catalogue's lock.
///
/// `row` is the truth; it is written to the table before the transaction ends. What an open file has not
/// saved yet (size, times) is in its `FileState`.
final class Inode: @unchecked Sendable {
    var row: InodeRow
    /// Whether `row` differs from the table's.
    var isDirty = false
    /// Handles that are open.
    var openCount = 0
    /// Present while the file is open.
    var state: FileState?
    /// All of its names, where they are known: of a file or node.
    var names: [DentryRow]?
    /// Hashes of all names that lie in it, where they are known, and perhaps of some that did: of a directory.
    var nameHashes: Set<Int>?
    /// A name of it went, or became another's, by more than that name's own removal or renaming: the kernel may still
    /// believe it. Until it is looked up anew.
    var mayHaveStaleDentry = false
    /// It was looked up anew before the kernel was told of the names that it lost; see `Library.resolve`.
    var hasUnconfirmedDentry = false
    /// The kernel gave it up after its last name had gone.
    var isForgotten = false
    /// What it adds to the bytes of all photos, as they were counted last.
    var countedBytes: UInt64

    init(_ row: InodeRow) {
        self.row = row
        countedBytes = row.flags.contains(.photo) ? row.countedBytes : 0
    }

    var ino: UInt64 { row.ino }
    var isDirectory: Bool { row.mode & fileTypeMask == directoryType }
    /// A directory or a symbolic link: who looks it up goes on from there.
    var leadsOn: Bool { isDirectory || row.mode & fileTypeMask == linkType }
    var isRegular: Bool { row.mode & fileTypeMask == regularType }
    var isPhoto: Bool { row.flags.contains(.photo) }
    /// A photo that was taken out of moments: it has no names but in the trash.
    var isTrashed: Bool { row.flags.contains(.trashed) }
    /// Stands for another inode's photo.
    var isCopy: Bool { row.flags.contains(.copy) }
    /// A day of moments.
    var isDay: Bool { row.day != 0 }
    /// A day that readdir leaves out: filing made it, and nothing is in it now.
    var isUnlistedDay: Bool { row.isUnlistedDay }
    var area: Area {
        if isDay { return .day }
        switch row.ino {
        case WellKnownInode.root: return .root
        case WellKnownInode.moments: return .moments
        default: return .album
        }
    }
}

extension InodeRow {
    var isUnlistedDay: Bool { day != 0 && size == 0 && !flags.contains(.madeByHand) }
}

/// Which rules hold in a directory.
enum Area {
    /// The root: nothing can be made.
    case root
    /// `moments` itself: days only.
    case moments
    /// A day: photos and plain files.
    case day
    /// `albums` and all below; also the trash, where little differs: `Tree.isInTrash` tells them apart.
    case album
}
