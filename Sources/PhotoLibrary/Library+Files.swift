import CatalogueRows
public import FileRequests
import FileTree
import Glibc
public import LinuxIO
import PhotoRules
import PhotoTree
import Thumbnails
import VaultCatalogue
import VaultStore

/// An open file. The bridge keeps the handle alive from open to release.
public final class FileHandle: @unchecked Sendable {
    /// Nil for a thumbnail.
    let state: FileState?
    /// The open inode.
    public let ino: UInt64
    /// A thumbnail's bytes.
    let fixed: [UInt8]
    public let isWritable: Bool
    /// Whether the kernel's cached pages of this inode are still valid.
    public let keepsCache: Bool
    /// Whether its owner has called close(2) and written nothing since. Under the file's `view`.
    var isClosing = false

    init(_ state: FileState, isWritable: Bool) {
        self.state = state
        ino = state.ino
        self.isWritable = isWritable
        fixed = []
        keepsCache = true
    }

    init(fixed: [UInt8], ino: UInt64) {
        self.ino = ino
        state = nil
        self.fixed = fixed
        isWritable = false
        keepsCache = false
    }
}

extension Library {
    /// Creates a regular file and opens it.
    public func create(
        _ parent: UInt64, _ name: Name, mode: UInt32, flags: Int32, _ caller: Caller
    ) throws(FileError) -> (Entry, FileHandle) {
        try check(name)
        if VirtualInode.isVirtual(parent) { throw .readOnly }
        let mode = mode & permissionMask | regularType
        return try changing { tree throws(FileError) in
            let (directory, inode) = try tree.make(parent, name.bytes, mode: mode, caller) { _, _ in }
            let entry = try tree.entry(inode, in: directory)
            return (entry, try openedHandle(inode, tree, flags: flags))
        }
    }

    /// Opens a regular file. O_TRUNC empties it. `cancellation` as for `lookup`.
    public func open(
        _ ino: UInt64, flags: Int32, _ caller: Caller, unless cancellation: Cancellation? = nil
    ) throws(FileError) -> FileHandle {
        if VirtualInode.isVirtual(ino) {
            return try openThumbnail(ino, flags: flags, caller, unless: cancellation)
        }
        let isWriting = flags & O_ACCMODE != O_RDONLY
        if isReadOnly && (isWriting || flags & O_TRUNC != 0) { throw .readOnly }
        let handle = try locked { tree throws(FileError) in
            // Data must not be written into a file that no name leads to.
            let inode = try resolve(ino, tree, by: caller)
            guard !inode.isDirectory else { throw .isDirectory }
            guard inode.isRegular else { throw .noSuchDeviceOrAddress }
            return try openedHandle(inode, tree, flags: flags)
        }
        if flags & O_TRUNC != 0, let file = handle.state {
            do throws(FileError) {
                try truncate(file, to: 0, caller)
            } catch {
                close(handle)
                throw error
            }
        }
        return handle
    }

    /// A handle on an inode. All handles of an inode share its state. Under the catalogue's lock.
    private func openedHandle(_ inode: Inode, _ tree: PhotoTree, flags: Int32) throws(FileError) -> FileHandle
    {
        let state = try openedState(inode, tree)
        let isWritable = flags & O_ACCMODE != O_RDONLY
        if isWritable { state.view.withLock { state.writerCount += 1 } }
        return FileHandle(state, isWritable: isWritable)
    }

    private func openedState(_ inode: Inode, _ tree: PhotoTree) throws(FileError) -> FileState {
        if let state = inode.state {
            inode.openCount += 1
            return state
        }
        let isEmpty = inode.row.allocated == 0
        let runs = isEmpty ? [] : try sql(tree.tables.extents(of: inode.row.content))
        guard space.areValid(runs) else { throw .damaged }
        let state = FileState(inode, runs, context)
        inode.state = state
        inode.openCount += 1
        return state
    }

    /// Runs `body` with a file that stays open meanwhile.
    func withState<R>(of ino: UInt64, _ body: (FileState) throws(FileError) -> R) throws(FileError) -> R {
        let state = try locked { tree throws(FileError) in
            let inode = try tree.inode(ino)
            guard inode.isRegular else { throw inode.isDirectory ? .isDirectory : .invalid }
            return try openedState(inode, tree)
        }
        defer { leave(state) }
        return try body(state)
    }

    /// Releases one use of a file.
    private func leave(_ file: FileState) {
        let isOver = try? locked { tree throws(FileError) in
            let inode = file.inode
            inode.openCount -= 1
            guard inode.openCount == 0 else { return false }
            let isOver = inode.row.nlink == 0 && inode.isForgotten
            // A file that could not be saved keeps its state until the committer has saved it.
            if isOver || !file.hasUnsaved { inode.state = nil }
            return isOver
        }
        guard isOver == true else { return }
        file.writer.lock()
        file.discard()
        file.writer.unlock()
        // If this fails, the next session finds the inode in the table of orphans.
        try? destroy(file.ino)
    }

    /// Passes `reply` the bytes from `offset` on: exactly `count` (at most 1 MiB), or fewer at the file's end.
    public func read<R>(
        _ handle: FileHandle, offset: UInt64, count: Int, reply: (UnsafeRawBufferPointer) -> R
    ) throws(FileError) -> R {
        if let file = handle.state { return try file.read(offset, count, reply) }
        return handle.fixed.withUnsafeBytes { bytes in
            let first = Int(min(offset, UInt64(bytes.count)))
            let end = first + min(count, bytes.count - first)
            return reply(UnsafeRawBufferPointer(rebasing: bytes[first..<end]))
        }
    }

    /// Writes bytes. Returns their number: fewer than all only if an error came after some.
    public func write(
        _ handle: FileHandle, offset: UInt64, _ bytes: UnsafeRawBufferPointer, _ caller: Caller
    ) throws(FileError) -> Int {
        guard let file = handle.state, handle.isWritable else { throw .badHandle }
        try requireWritable()
        file.writer.lock()
        defer { file.writer.unlock() }
        if caller.uid != 0 { try dropPrivileges(file) }
        file.noteWriter(handle)
        file.lastWriter = caller.pid
        return try file.write(at: offset, bytes, now: .now())
    }

    /// A write clears set-user-ID and set-group-ID.
    private func dropPrivileges(_ file: FileState) throws(FileError) {
        guard file.view.withLock({ file.mayHavePrivileges }) else { return }
        try changing { tree throws(FileError) in
            tree.dropPrivileges(file.inode)
            file.view.withLock { file.mayHavePrivileges = false }
        }
    }

    /// FLUSH, at each close(2): saves the file, and classifies it if this was its last writer.
    ///
    /// - Parameter request: the client's request, which may take long; nil cannot be cancelled.
    public func flush(_ handle: FileHandle, for request: (any LongRequest)? = nil) throws(FileError) {
        try flush(handle, isReleased: false, request)
    }

    private func flush(
        _ handle: FileHandle, isReleased: Bool, _ request: (any LongRequest)?
    ) throws(FileError) {
        guard let file = handle.state, handle.isWritable else { return }
        file.writer.lock()
        defer { file.writer.unlock() }
        file.view.withLock {
            if !handle.isClosing {
                handle.isClosing = true
                file.writerCount -= 1
            }
        }
        try settle(file, isReleased: isReleased, request)
    }

    /// Saves a file and, if no writer is left, classifies it. The writer's lock is held, and released during a long
    /// comparison.
    private func settle(
        _ file: FileState, isReleased: Bool, _ request: (any LongRequest)?
    ) throws(FileError) {
        for _ in 0..<Self.classificationsMax {
            // `cat new >photo`: the shell closes a copy of the descriptor between truncating and writing. Only the
            // close of the last copy tells whether the file stays empty, and so is no longer a photo.
            var isDeferred = false
            if !isReleased, file.view.withLock({ file.size == 0 }) {
                isDeferred = try locked { _ throws(FileError) in file.inode.isPhoto }
            }
            let isLast = file.view.withLock { file.writerCount == 0 }
            guard isLast, file.needsClassification, !isDeferred else {
                if file.unsavedSince != nil { try save(file) }
                return
            }
            let (place, isPhoto) = try locked { tree throws(FileError) in
                (try tree.classifiableName(of: file.inode)?.row, file.inode.isPhoto)
            }
            var classification =
                place != nil || isPhoto ? classify(file, at: place.map { ($0.parent, $0.name) }) : .unknown
            if classification.isUndecided {
                switch try compareAtLength(file, classification, for: request) {
                case .changed: continue
                case .underWay: return
                case .cancelled:
                    file.needsClassification = false
                    return deferClassification(file)
                case .decided(let decided): classification = decided
                }
            }
            try save(file, applying: classification, for: file.lastWriter)
            file.needsClassification = false
            if case .plain = classification, let place, isSidecarName(place.name) {
                try classifyBesideSidecar(file.inode)
            }
            return
        }
        // Other threads keep changing the file: the last of them classifies it.
    }

    /// Attempts at classifying a file that changes meanwhile.
    static let classificationsMax = 16

    /// Re-dates the photos next to a sidecar that is new or has changed.
    func classifyBesideSidecar(_ inode: Inode) throws(FileError) {
        let photos = try locked { tree throws(FileError) in try tree.photos(besideSidecar: inode) }
        for photo in photos where photo != inode.ino { try classifyAndApply(photo) }
    }

    /// RELEASE: the handle is gone. Saves and classifies the changes since the last flush. `request` as for `flush`.
    public func release(_ handle: FileHandle, for request: (any LongRequest)? = nil) {
        guard handle.state != nil else { return }
        // The kernel reports no error of RELEASE; a file that failed stays unsaved until the committer's next try.
        if handle.isWritable { try? flush(handle, isReleased: true, request) }
        close(handle)
    }

    private func close(_ handle: FileHandle) {
        guard let file = handle.state else { return }
        if handle.isWritable {
            file.view.withLock {
                if !handle.isClosing { file.writerCount -= 1 }
                handle.isClosing = true
            }
        }
        leave(file)
    }

    /// fsync(2): returns once everything written is on the disk.
    public func fsync(_ handle: FileHandle, dataOnly: Bool) throws(FileError) {
        guard let file = handle.state else { return }
        do {
            file.writer.lock()
            defer { file.writer.unlock() }
            try saveForGood(file)
        }
        try committer.makeDurable()
    }
}

extension PhotoTree {
    /// The handle's own inode, else the inode with that number.
    func inode(_ ino: UInt64, _ handle: FileHandle?) throws(FileError) -> Inode {
        if let inode = handle?.state?.inode { return inode }
        return try inode(ino)
    }
}
