import Glibc
import LinuxIO
import VaultCatalogue
import VaultFormat
import VaultStore

/// A chunk of a file that is still to be sealed. Bytes from `valid` on are zeros, whatever the buffer holds.
final class DirtyChunk {
    let buffer: UnsafeMutableRawBufferPointer
    var valid: UInt64
    /// Room set aside for it, in bytes.
    var claim: UInt64 = 0

    init(_ buffer: UnsafeMutableRawBufferPointer, valid: UInt64) {
        self.buffer = buffer
        self.valid = valid
    }
}

/// The content of one open file, shared by its handles.
///
/// `writer` is held by whoever changes the file, as long as that takes; fields marked (w) belong to it.
/// `view` is held for moments only, by readers and, for each single change, by the writer too; fields marked
/// (v) are changed with both held and read with either. Order: `writer`, the catalogue's lock, `view`.
final class FileState: @unchecked Sendable {
    let inode: Inode
    let ino: UInt64
    let context: FileContext
    let writer = Lock()
    let view = Lock()

    /// (v) As write(2) left it.
    var size: UInt64
    /// (v)
    var map: ExtentMap
    /// (v) Whether other inodes may have this content: then it must not be changed, but left to them.
    var isShared: Bool
    /// (v) Chunks not sealed yet, by index. Their bytes change with both locks held.
    var dirty: [UInt64: DirtyChunk] = [:]
    /// (v) Grows with each change of `map` or `dirty`, and of the bytes or their number.
    var changeCount = 0
    /// (v) Whether size and times here are newer than the inode's row.
    var isNewer = false
    /// (v)
    var modified: Timestamp
    /// (v)
    var changed: Timestamp
    /// (v) Handles that may still write: opened for it, and not closed since their last write.
    var writerCount = 0
    /// (v) Whether the mode may have bits that a write must clear.
    var mayHavePrivileges: Bool

    /// (w) Where the rows no longer say what `map` does.
    var unsavedRange: (lower: UInt64, upper: UInt64)?
    /// (w) Saved runs that nothing refers to any more; freed with the next save.
    var freed: [ExtentRun] = []
    /// (w) Whether the catalogue has rows of this content.
    var hasRows: Bool
    /// (w) Whether the bytes are others than when the file was last looked at, whether it is a photo.
    var needsFiling = false
    /// (w) Whether the catalogue says so too, for the next session.
    var isNotedUnfiled = false
    /// (w) The `changeCount` for which somebody compares the file at length.
    var comparedCount: Int?
    /// (w) Whether the bytes changed since the last save.
    var hasNewBytes = false
    /// (w) The thread that wrote last.
    var lastWriter: Int32 = -1
    /// (w) When it was registered as unsaved, by the monotonic clock; nil while all is saved.
    var unsavedSince: Int64?
    /// (w) The last name has gone and the last handle too: nothing is to be saved.
    var isDiscarded = false

    init(_ inode: Inode, _ runs: [ExtentRun], _ context: FileContext) {
        self.inode = inode
        self.context = context
        ino = inode.ino
        size = inode.row.size
        map = ExtentMap(content: inode.row.content, saved: runs)
        isShared = inode.row.flags.contains(.shared)
        hasRows = !runs.isEmpty
        modified = inode.row.modified
        changed = inode.row.changed
        mayHavePrivileges = inode.row.mode & (setUserID | setGroupID) != 0
    }

    /// Puts what is newer here into attributes made of the inode's row. Under the catalogue's lock.
    func overlay(_ shown: inout Attributes) {
        view.lock()
        defer { view.unlock() }
        guard isNewer else { return }
        shown.size = size
        let unsealed = dirty.reduce(0) { $0 + $1.value.valid }
        shown.blocks = (map.allocated + unsealed + 511) / 512
        shown.modified = modified
        shown.changed = changed
    }

    /// Whose extents the bytes lie in. The writer's lock, or `view`, is held.
    var content: UInt64 { map.content }

    /// Whether something is here that the tree does not have.
    var hasUnsaved: Bool { view.withLock { isNewer || !dirty.isEmpty } }

    /// Notes that the file has something to save. The writer's lock is held.
    func noteUnsaved() {
        guard unsavedSince == nil else { return }
        unsavedSince = MonotonicClock.milliseconds
        context.register(self)
    }

    /// Widens the range whose rows are to be written.
    func noteChange(_ lower: UInt64, _ upper: UInt64) {
        if let range = unsavedRange {
            unsavedRange = (min(range.lower, lower), max(range.upper, upper))
        } else {
            unsavedRange = (lower, upper)
        }
    }

    /// Puts runs in place of all in a range of whole chunks. Both locks are held.
    func replace(_ lower: UInt64, _ upper: UInt64, with runs: [ExtentRun]) {
        let removed = map.replace(lower, upper, with: runs)
        changeCount += 1
        if runs.isEmpty && removed.isEmpty { return }
        noteChange(lower, upper)
        var abandoned: [ExtentRun] = []
        for piece in removed {
            if piece.isSaved { freed.append(piece.run) } else { abandoned.append(piece.run) }
        }
        if !abandoned.isEmpty { context.space.abandon(abandoned) }
    }

    /// Takes a chunk out of the dirty ones. Both locks are held.
    func drop(_ index: UInt64) {
        guard let chunk = dirty.removeValue(forKey: index) else { return }
        changeCount += 1
        context.uncountDirty(claim: chunk.claim)
        context.chunks.give(chunk.buffer)
    }

    /// Sets size and times after a change of the bytes. Both locks are held.
    func noteWritten(size: UInt64, _ now: Timestamp) {
        self.size = size
        changeCount += 1
        modified = now
        changed = now
        isNewer = true
        needsFiling = true
        hasNewBytes = true
    }

    /// Sets a time by utimensat(2), over what writes set. Under the catalogue's lock.
    func setTimes(modified: Timestamp?, changed: Timestamp) {
        view.lock()
        defer { view.unlock() }
        if let modified { self.modified = modified }
        self.changed = changed
    }

    /// Throws away what was never saved. The writer's lock is held.
    func discard() {
        isDiscarded = true
        view.lock()
        for index in Array(dirty.keys) { drop(index) }
        let pending = map.pieces.filter { !$0.isSaved }.map(\.run)
        map = ExtentMap(content: content)
        freed = []
        isNewer = false
        view.unlock()
        if !pending.isEmpty { context.space.abandon(pending) }
        if unsavedSince != nil {
            unsavedSince = nil
            context.unregister(self)
        }
    }
}
