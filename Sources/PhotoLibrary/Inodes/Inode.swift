package import CatalogueRows
import FileRequests
package import KernelNames
import VaultCatalogue

/// A file, directory, symbolic link or node in memory. All fields are under the catalogue's lock.
///
/// `row` is authoritative; it is written to the table before the transaction ends. The size of an open file, and the
/// times of its writes, are in its `FileState` until that is saved.
public final class Inode: @unchecked Sendable {
    package var row: InodeRow
    /// Whether `row` differs from the table's.
    package var isDirty = false
    /// Open handles, and uses by this program.
    package var openCount = 0
    /// Of these, the uses by this program.
    package var ownUseCount = 0
    /// Present while the file is open, or closed but not saved yet.
    package var state: FileState?
    /// For a file or node: all of its names; nil if not loaded.
    package var names: [DentryRow]?
    /// For a directory: hashes of all names in it, and perhaps of former ones; nil if not known.
    package var nameHashes: Set<Int>?
    /// For a directory: how often it was searched for a name while these were not known.
    package var searchCount: UInt64 = 0
    /// Its names in the kernel's cache.
    package var dentries = DentryState()
    /// The kernel forgot it after its last name was removed.
    package var isForgotten = false
    /// Its contribution to the tree's total, as last counted; see `Tree.countedBytes`.
    package var countedBytes: UInt64

    package init(_ row: InodeRow, countedBytes: UInt64) {
        self.row = row
        self.countedBytes = countedBytes
    }

    package var ino: UInt64 { row.ino }
    /// Whether a client has it open.
    package var hasHandles: Bool { openCount > ownUseCount }
    /// Whether a client has it open for writing, and has not closed it since it wrote.
    package var hasWriters: Bool { state?.hasWriters ?? false }
    package var isDirectory: Bool { row.mode & fileTypeMask == directoryType }
    /// A directory or a symbolic link: path resolution continues from it.
    package var continuesPath: Bool { isDirectory || row.mode & fileTypeMask == linkType }
    package var isRegular: Bool { row.mode & fileTypeMask == regularType }
    /// A day of moments.
    package var isDay: Bool { row.day != 0 }
    /// A day that readdir omits: created by classification, and empty now.
    package var isUnlistedDay: Bool { row.isUnlistedDay }
    /// For a directory: whether all of its entries are directories, and no day among them is unlisted. Links count
    /// the listed directories, and the size counts all entries.
    package var hasOnlyListedDirectories: Bool { UInt64(row.nlink) == row.size &+ 2 }
    package var area: Area {
        if isDay { return .day }
        switch ino {
        case WellKnownInode.root: return .root
        case WellKnownInode.moments: return .moments
        default: return .album
        }
    }
}

extension InodeRow {
    package var isUnlistedDay: Bool { day != 0 && size == 0 && !flags.contains(.madeByHand) }
}
