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
    /// Who last found it by a name in a day: a link that the same thread makes next is a membership.
    var finderInDay: Int32?
    /// A name of it went, or became another's, by more than that name's own removal or renaming: the kernel may still
    /// believe it. Until it is looked up anew.
    var isTakenAway = false
    /// Who asks for it by which name, where it has been looked up anew before the kernel was told of the names that it
    /// lost. Nil: whoever asks for it means it.
    private var doubt: Doubt?
    /// The kernel gave it up after its last name had gone.
    var isForgotten = false
    /// What it adds to the bytes of all photos, as they were counted last.
    var countedBytes: UInt64

    init(_ row: InodeRow) {
        self.row = row
        countedBytes = row.flags.contains(.photo) ? row.countedBytes : 0
    }

    /// Threads, by their ids.
    private struct Doubt {
        /// Told that it is stale: the kernel then asks for the name again, in the same thread.
        var refused: Set<Int32> = []
        /// Of those, the ones whose name led here again: they may use it, once.
        var confirmed: Set<Int32> = []
    }

    /// A name of it was looked up.
    ///
    /// - Parameter isKernelTold: the kernel believes no name that is another file's by now.
    func noteLookedUp(by thread: Int32, isKernelTold: () -> Bool) {
        guard isTakenAway || doubt != nil else { return }
        if isKernelTold() {
            doubt = nil
        } else {
            var doubt = doubt ?? Doubt()
            if isTakenAway { doubt.confirmed = [] }
            if doubt.refused.remove(thread) != nil { doubt.confirmed.insert(thread) }
            self.doubt = doubt
        }
        isTakenAway = false
    }

    /// Throws `stale` where the thread that opens or changes it may come by a name that is another file's by now:
    /// though another name, the right one, was looked up, by it or somebody else, the kernel may still believe the
    /// wrong one.
    func requireMeant(by thread: Int32, isKernelTold: () -> Bool) throws(FileError) {
        if !isTakenAway {
            if doubt == nil { return }
            if isKernelTold() {
                doubt = nil
                return
            }
            if doubt?.confirmed.remove(thread) != nil { return }
        }
        var doubt = doubt ?? Doubt()
        doubt.refused.insert(thread)
        self.doubt = doubt
        throw .stale
    }

    /// As `requireMeant`, of what may come by a descriptor as well, which the kernel does not say: it cannot where
    /// nobody has the file open.
    func requireMeantUnlessOpen(by thread: Int32, isKernelTold: () -> Bool) throws(FileError) {
        if openCount == 0 { try requireMeant(by: thread, isKernelTold: isKernelTold) }
    }

    var ino: UInt64 { row.ino }
    var isDirectory: Bool { row.mode & fileTypeMask == directoryType }
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
        case Place.root: return .root
        case Place.moments: return .moments
        default: return .album
        }
    }
}

extension Inode {
    /// Notes by which kind of name a thread found the inode.
    func noteFound(in directory: Inode, by thread: Int32) {
        if directory.isDay {
            finderInDay = thread
        } else if finderInDay == thread {
            finderInDay = nil
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
