import KernelNames
import VaultCatalogue

/// A file, directory, symbolic link or node in memory. All fields are under the catalogue's lock.
///
/// `row` is authoritative; it is written to the table before the transaction ends. Unsaved size and times of an open
/// file are in its `FileState`.
final class Inode: @unchecked Sendable {
    var row: InodeRow
    /// Whether `row` differs from the table's.
    var isDirty = false
    /// Open handles.
    var openCount = 0
    /// Present while the file is open, or closed but not saved yet.
    var state: FileState?
    /// For a file or node: all of its names; nil if not loaded.
    var names: [DentryRow]?
    /// For a directory: hashes of all names in it, and perhaps of former ones; nil if not known.
    var nameHashes: Set<Int>?
    /// Its names in the kernel's cache.
    var dentries = DentryState()
    /// The kernel forgot it after its last name was removed.
    var isForgotten = false
    /// Its contribution to the total bytes of all photos, as last counted.
    var countedBytes: UInt64

    init(_ row: InodeRow) {
        self.row = row
        countedBytes = row.flags.contains(.photo) ? row.countedBytes : 0
    }

    var ino: UInt64 { row.ino }
    var isDirectory: Bool { row.mode & fileTypeMask == directoryType }
    /// A directory or a symbolic link: path resolution continues from it.
    var continuesPath: Bool { isDirectory || row.mode & fileTypeMask == linkType }
    var isRegular: Bool { row.mode & fileTypeMask == regularType }
    var isPhoto: Bool { row.flags.contains(.photo) }
    /// A photo that was taken out of moments: its only names are in the trash.
    var isTrashed: Bool { row.flags.contains(.trashed) }
    /// A copy of a photo, which is another inode.
    var isCopy: Bool { row.flags.contains(.copy) }
    /// A day of moments.
    var isDay: Bool { row.day != 0 }
    /// A day that readdir omits: created by classification, and empty now.
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

/// The rules that hold in a directory.
enum Area {
    /// The root: only trash directories (`.Trash-UID`) can be made.
    case root
    /// `moments` itself: days only.
    case moments
    /// A day: photos and plain files.
    case day
    /// `albums` and everything below it; also the trash, which differs little: `Tree.isInTrash` tells them apart.
    case album
}
