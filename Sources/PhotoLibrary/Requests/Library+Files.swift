import CatalogueRows
public import FileRequests
import Glibc
import KernelNames
public import LinuxIO
import PhotoRules
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
    /// Where it was opened, if another one may take that one's place while it is open; see `Library.newer`.
    let library: Library?

    init(_ state: FileState, isWritable: Bool, of library: Library? = nil) {
        self.state = state
        self.library = library
        ino = state.ino
        self.isWritable = isWritable
        fixed = []
        keepsCache = library == nil
    }

    /// The state, if the file was opened in this library.
    func state(in library: Library) -> FileState? {
        self.library.map { $0 === library } ?? true ? state : nil
    }

    init(fixed: [UInt8], ino: UInt64) {
        self.ino = ino
        (state, library) = (nil, nil)
        self.fixed = fixed
        isWritable = false
        keepsCache = false
    }
}

extension Library {
    /// Creates a regular file and opens it. It takes the place of a photo that the program has just removed in order to
    /// save it: see `Tree.recreate`.
    public func create(
        _ parent: UInt64, _ name: Name, mode: UInt32, flags: Int32, _ caller: Caller
    ) throws(FileError) -> (Entry, FileHandle) {
        try checkNew(name)
        guard Node(parent).isReal else { throw .readOnly }
        let mode = mode & permissionMask | regularType
        try session.room.requireRowRoom()
        return try session.change { change throws(FileError) in
            let saved = try change.tree.saves.recreate(
                parent, name.bytes, mode: mode, caller, session.space, change)
            let (directory, inode) =
                if let saved { saved } else {
                    try change.tree.make(parent, name.bytes, mode: mode, caller) { _, _ in }
                }
            return (
                try change.tree.entry(inode, in: directory),
                try openedHandle(inode, change.tree, flags: flags)
            )
        }
    }

    /// Empties a file that was just opened. Closes the handle if that fails.
    private func empty(_ handle: FileHandle, _ caller: Caller) throws(FileError) {
        guard let file = handle.state else { return }
        do throws(FileError) { try truncate(file, to: 0, caller) } catch {
            close(handle)
            throw error
        }
    }

    /// Opens a regular file. O_TRUNC empties it. `cancellation` as for `lookup`.
    public func open(
        _ ino: UInt64, flags: Int32, _ caller: Caller, unless cancellation: Cancellation? = nil
    ) throws(FileError) -> FileHandle {
        switch Node(ino) {
        case .version, .view: throw .isDirectory
        case .thumbnail(let number):
            guard let virtual else { throw .stale }
            let bytes = try virtual.open(number, flags: flags, caller, unless: cancellation)
            return FileHandle(fixed: bytes, ino: number)
        case .real(let ino): return try openReal(ino, flags: flags, caller)
        }
    }

    private func openReal(_ ino: UInt64, flags: Int32, _ caller: Caller) throws(FileError) -> FileHandle {
        let isWriting = flags & O_ACCMODE != O_RDONLY
        if isReadOnly && (isWriting || flags & O_TRUNC != 0) { throw .readOnly }
        let handle = try session.locked { tree throws(FileError) in
            // Data must not be written into a file that no name leads to.
            let inode = try session.resolve(ino, tree, by: caller)
            tree.kernelNames.noteUse(of: ino, by: caller.pid)
            guard !inode.isDirectory else { throw .isDirectory }
            guard inode.isRegular else { throw .noSuchDeviceOrAddress }
            if inode.isVersion, isWriting || flags & O_TRUNC != 0 { throw .readOnly }
            return try openedHandle(inode, tree, flags: flags)
        }
        if flags & O_TRUNC != 0 { try empty(handle, caller) }
        return handle
    }

    /// A handle on an inode. All handles of an inode share its state. Under the catalogue's lock.
    private func openedHandle(_ inode: Inode, _ tree: Tree, flags: Int32) throws(FileError) -> FileHandle {
        let state = try session.openState(inode, tree)
        let isWritable = flags & O_ACCMODE != O_RDONLY
        if isWritable { state.view.withLock { state.writerCount += 1 } }
        return FileHandle(state, isWritable: isWritable, of: options.follows ? self : nil)
    }

    /// Passes `reply` the bytes from `offset` on: exactly `count` (at most 1 MiB), or fewer at the file's end.
    public func read<R>(
        _ handle: FileHandle, offset: UInt64, count: Int, reply: (UnsafeRawBufferPointer) -> R
    ) throws(FileError) -> R {
        if let file = handle.state {
            guard handle.state(in: self) == nil else { return try unsafe file.read(offset, count, reply) }
            return try withNewer(file) { file throws(FileError) in try unsafe file.read(offset, count, reply)
            }
        }
        return unsafe handle.fixed.withUnsafeBytes { bytes in
            let first = Int(min(offset, UInt64(bytes.count)))
            let end = first + min(count, bytes.count - first)
            return unsafe reply(UnsafeRawBufferPointer(rebasing: bytes[first..<end]))
        }
    }

    /// Writes bytes. Returns their number: fewer than all only if an error came after some.
    ///
    /// - Parameter isHeld: whether `bytes` stay valid, and may be overwritten by others who write there, until
    ///   `sealAccepted`, which must be called even after an error.
    public func write(
        _ handle: FileHandle, offset: UInt64, _ bytes: UnsafeRawBufferPointer, _ caller: Caller,
        isWriteback: Bool = false, isHeld: Bool = false
    ) throws(FileError) -> Int {
        guard let file = handle.state, handle.isWritable else { throw .badHandle }
        guard !isReadOnly else { throw .readOnly }
        file.writer.lock()
        defer { file.writer.unlock() }
        if caller.uid != 0 { try dropPrivileges(file) }
        file.noteWriter(handle)
        file.lastWriter = caller.pid
        return try unsafe file.write(at: offset, bytes, isWriteback: isWriteback, isHeld: isHeld, now: .now())
    }

    /// Seals what `write` accepted, while its caller goes on.
    public func sealAccepted(_ handle: FileHandle, offset: UInt64, _ bytes: UnsafeRawBufferPointer) {
        guard let file = handle.state else { return }
        file.writer.lock()
        defer { file.writer.unlock() }
        unsafe file.sealAccepted(at: offset, bytes)
    }

    /// A write clears set-user-ID and set-group-ID.
    private func dropPrivileges(_ file: FileState) throws(FileError) {
        guard file.view.withLock({ file.mayHavePrivileges }) else { return }
        try session.change { change throws(FileError) in
            change.tree.dropPrivileges(file.inode)
            file.view.withLock { file.mayHavePrivileges = false }
        }
    }

    /// FLUSH, at each close(2): saves the file, and classifies it if this was its last writer.
    ///
    /// - Parameter request: the client's request, which may take long; nil cannot be cancelled.
    public func flush(_ handle: FileHandle, for request: (any LongRequest)? = nil) throws(FileError) {
        defer { session.observer?.awaitLostNames(locked: []) }
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
        try classifier.close(file, isReleased: isReleased, request)
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
        (handle.library?.session ?? session).close(file)
    }

    /// fsync(2): returns once everything written is on the disk.
    public func fsync(_ handle: FileHandle, dataOnly: Bool) throws(FileError) {
        guard let file = handle.state else { return }
        do {
            file.writer.lock()
            defer { file.writer.unlock() }
            try session.saveForGood(file)
        }
        try session.committer.makeDurable()
    }
}
