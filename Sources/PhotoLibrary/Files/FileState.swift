import CatalogueRows
package import FileRequests
import Glibc
package import LinuxIO
import Synchronization
import VaultCatalogue
package import VaultFormat
import VaultStore

/// A chunk of a file that is not sealed yet. Bytes from `valid` on are zeros, not those of the buffer.
@safe package final class DirtyChunk {
    package private(set) var buffer: UnsafeMutableRawBufferPointer
    package var valid: UInt64
    /// Room reserved for it, in bytes.
    package var reserved: UInt64 = 0
    /// Whether the buffer is a part of the request that wrote the chunk; else it is one of `FileContext.chunks`.
    package private(set) var isBorrowed = false

    package init(_ buffer: UnsafeMutableRawBufferPointer, valid: UInt64) {
        unsafe self.buffer = unsafe buffer
        self.valid = valid
    }

    /// A whole chunk of a request, which stays valid until `FileState.sealAccepted` has returned.
    init(borrowing part: UnsafeRawBufferPointer) {
        unsafe buffer = unsafe UnsafeMutableRawBufferPointer(mutating: part)
        valid = Chunk.bytes
        isBorrowed = true
    }

    /// Whether the buffer is a part of that request.
    func isBorrowed(from request: UnsafeRawBufferPointer) -> Bool {
        guard isBorrowed, let part = unsafe buffer.baseAddress, let start = request.baseAddress else {
            return false
        }
        return unsafe start <= part && part < start + request.count
    }

    /// Copies the bytes into a buffer of its own.
    func stopBorrowing(_ own: UnsafeMutableRawBufferPointer) {
        unsafe own.copyMemory(from: UnsafeRawBufferPointer(rebasing: buffer[..<Int(valid)]))
        unsafe (buffer, isBorrowed) = unsafe (own, false)
    }
}

/// When the bytes of a file were last written.
package struct WriteTimes: Sendable {
    /// Nil if the time in the inode's row is newer.
    var modified: Timestamp?
    /// Nil if the time in the inode's row is newer.
    var changed: Timestamp?
}

/// The content of one open file, shared by its handles.
///
/// `writer` is held throughout a change of the file; it protects the fields marked (w). `view` is held only briefly, by
/// readers and, for each single change, also by the writer. Fields marked (v) are changed with both held and read with
/// either. Order: `writer`, the catalogue's lock, `view`.
package final class FileState: @unchecked Sendable {
    package let inode: Inode
    package let ino: UInt64
    package let context: FileContext
    package let writer = Lock()
    package let view = Lock()

    /// (v) As of the last write(2).
    package var size: UInt64
    /// (v)
    package var map: ExtentMap
    /// (v) Whether other inodes may share this content: then the file must get its own before a change.
    package var isShared: Bool
    /// (v) Chunks not sealed yet, by index. Their bytes change with both locks held.
    package var dirty: [UInt64: DirtyChunk] = [:]
    /// (v) Incremented by each change of `map` or `dirty`, and of the bytes or their number.
    package var changeCount = 0
    /// (v) Whether the inode's row lacks changes of the size or the bytes.
    package var isNewer = false
    /// (v) The times of writes that the inode's row lacks. All other times are in the row alone.
    package var writeTimes = WriteTimes()
    /// (v) Handles that may still write: opened for writing, and not closed since their last write.
    package var writerCount = 0
    /// Whether a handle may still write. Takes `view`.
    package var hasWriters: Bool { view.withLock { writerCount > 0 } }
    /// (v) Whether the mode may have bits that a write must clear.
    package var mayHavePrivileges: Bool

    /// (w) The range in which the rows differ from `map`.
    package var unsavedRange: (lower: UInt64, upper: UInt64)?
    /// (w) Saved runs that nothing refers to any more; freed with the next save.
    package var freed: [ExtentRun] = []
    /// (w) Extent rows that the next save changes.
    package private(set) var unsavedRows = 0
    /// (w) Whether the catalogue has rows of this content.
    package var hasRows: Bool
    /// (w) Whether the bytes have changed since the file was last classified.
    package var needsClassification = false
    /// (w) Whether the catalogue lists the file as pending classification, for the next session.
    package var isNotedPending = false
    /// Whether the next session would not classify it.
    package var isUnnoted: Bool { needsClassification && !isNotedPending }
    /// (w) The `changeCount` for which a long comparison is running.
    package var comparedCount: Int?
    private let editing = Atomic<Bool>(false)
    private let passedOver = Atomic<Bool>(false)
    /// (w) Whether an edit is in progress: from before the first change until its writers have closed the
    /// file. Any thread may read it.
    package var isBeingEdited: Bool { editing.load(ordering: .sequentiallyConsistent) }
    /// (w) Whether the bytes changed since the last save.
    package var hasNewBytes = false
    /// (w) The thread that wrote last.
    package var lastWriter: Int32 = -1
    /// (w) When it was registered as unsaved, by the monotonic clock; nil while everything is saved.
    package var unsavedSince: Int64?
    /// (w) The last name and the last handle are gone: nothing is saved any more.
    package var isDiscarded = false

    package init(_ inode: Inode, _ runs: [ExtentRun], _ context: FileContext) {
        self.inode = inode
        self.context = context
        ino = inode.ino
        size = inode.row.size
        map = ExtentMap(content: inode.row.content, saved: runs)
        isShared = inode.row.flags.contains(.shared) || SnapshotID.isSnapshot(inode.row.content)
        hasRows = !runs.isEmpty
        mayHavePrivileges = inode.row.mode & (setUserID | setGroupID) != 0
    }

    /// Overwrites attributes made from the inode's row with the newer ones here. Under the catalogue's lock.
    package func overlay(_ shown: inout Attributes) {
        view.lock()
        defer { view.unlock() }
        guard isNewer else { return }
        shown.size = size
        let unsealed = dirty.reduce(0) { $0 + $1.value.valid }
        shown.blocks = (map.allocated + unsealed + 511) / 512
        shown.modified = writeTimes.modified ?? shown.modified
        shown.changed = max(shown.changed, writeTimes.changed ?? shown.changed)
    }

    /// The content that the bytes belong to. The writer's lock, or `view`, is held.
    package var content: UInt64 { map.content }

    /// Whether the tree lacks changes made here.
    package var hasUnsaved: Bool { view.withLock { isNewer || !dirty.isEmpty } }

    /// Notes that an edit begins. The writer's lock is held.
    func beginEdit() { editing.store(true, ordering: .sequentiallyConsistent) }

    /// Notes that an edit has ended. The writer's lock is held. Returns whether a photo was passed over meanwhile.
    func endEdit() -> Bool {
        editing.store(false, ordering: .sequentiallyConsistent)
        return passedOver.exchange(false, ordering: .sequentiallyConsistent)
    }

    /// Notes that a photo gets no picture while it is edited; `TreeSession.endEdit` makes up for it. Returns whether it
    /// is edited.
    func passOver() -> Bool {
        // Before the look: an edit that ends in between finds the note.
        passedOver.store(true, ordering: .sequentiallyConsistent)
        return isBeingEdited
    }

    /// Notes that the file has unsaved changes. The writer's lock is held.
    package func noteUnsaved() {
        guard unsavedSince == nil else { return }
        unsavedSince = MonotonicClock.milliseconds
        context.register(self)
    }

    /// Widens the range whose rows must be written.
    package func noteChange(_ lower: UInt64, _ upper: UInt64) {
        if let range = unsavedRange {
            unsavedRange = (min(range.lower, lower), max(range.upper, upper))
        } else {
            unsavedRange = (lower, upper)
        }
    }

    /// Replaces all runs in a range of whole chunks. Both locks are held.
    package func replace(_ lower: UInt64, _ upper: UInt64, with runs: [ExtentRun]) {
        let removed = map.replace(lower, upper, with: runs)
        changeCount += 1
        if runs.isEmpty && removed.isEmpty { return }
        noteChange(lower, upper)
        var abandoned: [ExtentRun] = []
        for piece in removed {
            if piece.isSaved { freed.append(piece.run) } else { abandoned.append(piece.run) }
        }
        countUnsaved(rows: runs.count + removed.count - 2 * abandoned.count)
        if !abandoned.isEmpty { context.space.abandon(abandoned) }
    }

    /// Counts extent rows that the next save changes. The writer's lock is held.
    func countUnsaved(rows count: Int) {
        let count = max(count, -unsavedRows)
        unsavedRows += count
        context.promise(rows: count)
    }

    /// Notes that the rows were saved, or are not saved any more. The writer's lock is held.
    package func forgetUnsavedRows() { countUnsaved(rows: -unsavedRows) }

    /// Removes a chunk from the dirty ones. Both locks are held.
    package func drop(_ index: UInt64) {
        guard let chunk = dirty.removeValue(forKey: index) else { return }
        changeCount += 1
        context.uncountDirty(reserved: chunk.reserved)
        if !chunk.isBorrowed { unsafe context.chunks.give(chunk.buffer) }
    }

    /// Sets size and times after a change of the bytes. Both locks are held.
    func noteWritten(size: UInt64, _ now: Timestamp) {
        self.size = size
        changeCount += 1
        writeTimes = WriteTimes(modified: now, changed: now)
        isNewer = true
        needsClassification = true
        hasNewBytes = true
    }

    /// Notes that SETATTR set times of the inode's row, which override those of earlier writes. Under the catalogue's
    /// lock.
    package func noteTimesSet(isModifiedSet: Bool) {
        view.lock()
        defer { view.unlock() }
        if isModifiedSet { writeTimes.modified = nil }
        writeTimes.changed = nil
    }

    /// Saves size and times in the inode's row. Both locks are held.
    package func saveAttributes() {
        isNewer = false
        inode.row.size = size
        inode.row.allocated = map.allocated
        inode.row.modified = writeTimes.modified ?? inode.row.modified
        inode.row.changed = max(inode.row.changed, writeTimes.changed ?? inode.row.changed)
        writeTimes = WriteTimes()
    }

    /// Discards all unsaved changes. The writer's lock is held.
    package func discard() {
        isDiscarded = true
        view.lock()
        for index in Array(dirty.keys) { drop(index) }
        let pending = map.pieces.filter { !$0.isSaved }.map(\.run)
        map = ExtentMap(content: content)
        freed = []
        isNewer = false
        view.unlock()
        if !pending.isEmpty { context.space.abandon(pending) }
        forgetUnsavedRows()
        if unsavedSince != nil {
            unsavedSince = nil
            context.unregister(self)
        }
    }
}
