internal import CFuse3
internal import Glibc
internal import LinuxIO
internal import PhotoLibrary

/// Tells the kernel what it must forget, from a thread of its own.
///
/// The kernel takes the parent's lock for each message, and a process may hold that lock while it waits for
/// one of our answers: so no request's thread may send one, and no lock of ours is held meanwhile. Callers
/// only enqueue. A process that is killed while it waits for that lock cannot end: for that there is `obscura-guard`.
/// Unchecked Sendable: `lock` guards every variable.
final class Notifier: LibraryObserver, @unchecked Sendable {
    private enum Message: Hashable {
        case entry(parent: UInt64, name: Name)
        case lostEntry(parent: UInt64, name: Name)
        case inode(UInt64)
        case attributes(UInt64)
    }

    private let lock = Lock()
    private let change = Condition()
    private var waiting: [Message] = []
    private var known: Set<Message> = []
    private var hasOverflowed = false
    private var isSending = false
    private var isStopping = false
    private var thread: WorkerThread?

    private let waitingMax: Int

    /// - Parameter waitingMax: messages that may wait.
    init(waitingMax: Int) { self.waitingMax = waitingMax }

    func invalidateEntry(parent: UInt64, name: Name) { enqueue(.entry(parent: parent, name: name)) }
    func dropEntry(parent: UInt64, name: Name) { enqueue(.lostEntry(parent: parent, name: name)) }
    func invalidateInode(_ ino: UInt64) { enqueue(.inode(ino)) }
    func invalidateAttributes(_ ino: UInt64) { enqueue(.attributes(ino)) }

    var hasUnsent: Bool { lock.withLock { !isStopping && (isSending || !waiting.isEmpty) } }

    /// A message that waits already is not sent twice: it will be sent after this call as well.
    private func enqueue(_ message: Message) {
        lock.withLock {
            guard !isStopping else { return }
            if waiting.count >= waitingMax {
                hasOverflowed = true
            } else if known.insert(message).inserted {
                waiting.append(message)
                change.signalAll()
            }
        }
    }

    /// Starts sending to the session, which must live until `stop` has returned.
    func start(_ session: Session) throws(Errno) {
        thread = try WorkerThread { self.run(session) }
    }

    /// Drops what waits and returns when the thread has ended. The session's workers must still serve, or its
    /// connection be gone: else the message being sent might wait for ever.
    func stop() {
        lock.withLock {
            isStopping = true
            change.signalAll()
        }
        thread?.join()
        thread = nil
    }

    private func run(_ session: Session) {
        while let (messages, overflowed) = take() {
            for message in messages { send(message, session.pointer) }
            if overflowed { forgetAllNames(session.pointer) }
        }
    }

    /// Waits for messages; nil when there will be no more.
    private func take() -> (messages: [Message], overflowed: Bool)? {
        lock.withLock {
            isSending = false
            while waiting.isEmpty && !isStopping { change.wait(lock) }
            guard !isStopping else { return nil }
            isSending = true
            defer {
                waiting = []
                known = []
                hasOverflowed = false
            }
            return (waiting, hasOverflowed)
        }
    }

    /// Errors are no news: ENOENT says that the kernel knows no such name, ENODEV that the mount is gone.
    private func send(_ message: Message, _ session: OpaquePointer) {
        switch message {
        case .entry(let parent, let name): expire(parent, name, session)
        case .lostEntry(let parent, let name): drop(parent, name, session)
        case .inode(let ino): fuse_lowlevel_notify_inval_inode(session, ino, 0, 0)
        case .attributes(let ino): fuse_lowlevel_notify_inval_inode(session, ino, -1, 0)
        }
    }

    /// Expiring (kernel 6.2) makes the kernel ask again at the next use. Before, the name is dropped, which
    /// also takes a working directory away from under a program.
    private func expire(_ parent: UInt64, _ name: Name, _ session: OpaquePointer) {
        name.bytes.withUnsafeBytes { bytes in
            let start = bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
            let result = fuse_lowlevel_notify_expire_entry(
                session, parent, start, bytes.count, FUSE_LL_EXPIRE_ONLY)
            if result == -ENOSYS { fuse_lowlevel_notify_inval_entry(session, parent, start, bytes.count) }
        }
    }

    private func drop(_ parent: UInt64, _ name: Name, _ session: OpaquePointer) {
        name.bytes.withUnsafeBytes { bytes in
            let start = bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
            _ = fuse_lowlevel_notify_inval_entry(session, parent, start, bytes.count)
        }
    }

    /// The way out when the queue overflowed: FUSE_NOTIFY_INC_EPOCH (kernel 6.16) makes every cached name be
    /// asked again. `struct fuse_out_header`: length, code, and 0 for "no request". Older kernels refuse it;
    /// names then last their timeout.
    private func forgetAllNames(_ session: OpaquePointer) {
        var header: (bytes: UInt32, code: Int32, unique: UInt64) = (16, 8, 0)
        _ = write(fuse_session_fd(session), &header, MemoryLayout.size(ofValue: header))
    }
}
