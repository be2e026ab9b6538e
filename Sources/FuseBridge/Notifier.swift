internal import CFuse3
internal import FileRequests
internal import Glibc
internal import LinuxIO
internal import PhotoLibrary
internal import Synchronization

/// Sends cache invalidations to the kernel, from threads of its own.
///
/// The kernel takes the parent directory's lock for each message about a name. A process may hold that lock while it
/// waits for an answer of ours, so no thread that serves a request may send one, and none of our locks is held
/// meanwhile. Callers only enqueue. A process that is killed while it waits for that lock cannot end: `obscura-guard`
/// exists for that case.
///
/// Names in days and views have a queue of their own. The kernel looks them up whenever it uses them, so nobody waits
/// for their messages; and these must not delay the others while the kernel has locked the day for a save.
final class Notifier: TreeObserver {
    private let queue: NoticeQueue
    private let days: NoticeQueue

    /// - Parameter waitingMax: maximum number of messages in each queue.
    init(waitingMax: Int) {
        queue = NoticeQueue(waitingMax: waitingMax)
        days = NoticeQueue(waitingMax: waitingMax)
    }

    func invalidateEntry(parent: UInt64, name: Name, isInDay: Bool) {
        (isInDay ? days : queue).add(.entry(parent: parent, name: name))
    }

    func dropEntry(parent: UInt64, name: Name, isInDay: Bool) {
        (isInDay ? days : queue).add(.lostEntry(parent: parent, name: name))
    }

    func invalidateInode(_ ino: UInt64) { queue.add(.inode(ino)) }
    func invalidateAttributes(_ ino: UInt64) { queue.add(.attributes(ino)) }

    var hasUnsent: Bool { queue.hasUnsent || days.hasUnsent }

    func awaitLostNames(locked directories: [UInt64]) { queue.awaitLostNames(locked: directories) }

    /// Starts sending to the session, which must live until `stop` returns.
    ///
    /// - Parameter connection: the session's number in fusectl. A thread has its name from it, by which commands
    ///   recognise the process when the mount is gone from its directory.
    func start(_ session: Session, connection: Int? = nil) throws(Errno) {
        try queue.start(session, threadName: connection.map { connectionThreadName($0) })
        do throws(Errno) { try days.start(session, threadName: nil) } catch {
            queue.stop()
            throw error
        }
    }

    /// Discards queued messages and returns when the threads have ended. The session's workers must still serve, or its
    /// connection must be gone: otherwise the message being sent might wait for ever.
    func stop() {
        queue.stop()
        days.stop()
    }

    #if DEBUG
        /// For tests: messages are held back until a request awaits them, which it does patiently.
        func holdUntilAwaited(_ isHeld: Bool) { queue.hold(isHeld) }
    #endif
}

/// Messages to the kernel, and the thread that sends them in order.
///
/// Unchecked Sendable: `lock` guards every variable but `thread`, which `start` and `stop` set.
private final class NoticeQueue: @unchecked Sendable {
    enum Message: Hashable {
        case entry(parent: UInt64, name: Name)
        case lostEntry(parent: UInt64, name: Name)
        case inode(UInt64)
        case attributes(UInt64)

        var isLost: Bool { if case .lostEntry = self { true } else { false } }

        /// The directory that the kernel locks for it.
        var directory: UInt64? {
            switch self {
            case .entry(let parent, _), .lostEntry(let parent, _): parent
            case .inode, .attributes: nil
            }
        }
    }

    private let lock = Lock()
    private let change = Condition()
    private var waiting: [Message] = []
    private var known: Set<Message> = []
    /// Messages that the thread is sending: the first is on its way.
    private var batch: ArraySlice<Message> = []
    /// Signalled when a lost name was sent.
    private let progress = Condition()
    private var (lostCount, lostSentCount) = (0, 0)
    private var hasOverflowed = false
    private var isSending = false
    private var isStopping = false
    private var thread: WorkerThread?

    private let waitingMax: Int

    /// A client's process may hold the lock of a directory as long as it likes.
    private var patienceMilliseconds: Int64 = 100
    #if DEBUG
        private var isHeld = false
        private var isAwaited = false
    #endif

    init(waitingMax: Int) { self.waitingMax = waitingMax }

    var hasUnsent: Bool { lock.withLock { !isStopping && (isSending || !waiting.isEmpty) } }

    func awaitLostNames(locked directories: [UInt64]) {
        lock.withLock {
            let count = lostCount
            guard lostSentCount < count else { return }
            #if DEBUG
                isAwaited = true
                change.signalAll()
                defer { isAwaited = false }
            #endif
            // Messages are sent in order: a later one holds up no earlier one.
            func isInLocked(_ message: Message) -> Bool {
                message.directory.map(directories.contains) ?? false
            }
            let isBlocked = batch.contains(where: isInLocked) || waiting.contains(where: isInLocked)
            let end = MonotonicClock.milliseconds + patienceMilliseconds
            while !isBlocked, lostSentCount < count, !isStopping, MonotonicClock.milliseconds < end {
                progress.wait(lock, untilMilliseconds: end)
            }
        }
    }

    /// Enqueues a message unless an equal one is queued: that one will be sent after this call as well.
    func add(_ message: Message) {
        lock.withLock {
            guard !isStopping else { return }
            if waiting.count >= waitingMax {
                hasOverflowed = true
            } else if known.insert(message).inserted {
                waiting.append(message)
                if message.isLost { lostCount += 1 }
                change.signalAll()
            }
        }
    }

    func start(_ session: Session, threadName: String?) throws(Errno) {
        thread = try WorkerThread {
            if let threadName { nameThread(threadName) }
            self.run(session)
        }
    }

    func stop() {
        lock.withLock {
            isStopping = true
            change.signalAll()
            progress.signalAll()
        }
        thread?.join()
        thread = nil
    }

    #if DEBUG
        func hold(_ isHeld: Bool) {
            lock.withLock {
                self.isHeld = isHeld
                patienceMilliseconds = isHeld ? 60_000 : 100
                change.signalAll()
            }
        }

        private func awaitRequest() {
            lock.withLock { while isHeld, !isAwaited, !isStopping { change.wait(lock) } }
        }
    #endif

    private func run(_ session: Session) {
        while let (messages, overflowed) = take() {
            for message in messages {
                #if DEBUG
                    awaitRequest()
                #endif
                send(message, session.pointer)
                noteSent(message)
            }
            if overflowed { forgetAllNames(session.pointer) }
        }
    }

    private func noteSent(_ message: Message) {
        lock.withLock {
            batch.removeFirst()
            guard message.isLost else { return }
            lostSentCount += 1
            progress.signalAll()
        }
    }

    /// Waits for messages. Returns nil after `stop`.
    private func take() -> (messages: [Message], overflowed: Bool)? {
        lock.withLock {
            isSending = false
            while waiting.isEmpty && !isStopping { change.wait(lock) }
            guard !isStopping else { return nil }
            isSending = true
            batch = waiting[...]
            defer {
                waiting = []
                known = []
                hasOverflowed = false
            }
            return (waiting, hasOverflowed)
        }
    }

    /// Errors are ignored: ENOENT means that the kernel caches no such dentry, ENODEV that the mount is gone.
    private func send(_ message: Message, _ session: OpaquePointer) {
        switch message {
        case .entry(let parent, let name): expire(parent, name, session)
        case .lostEntry(let parent, let name): drop(parent, name, session)
        case .inode(let ino): fuse_lowlevel_notify_inval_inode(session, ino, 0, 0)
        case .attributes(let ino): fuse_lowlevel_notify_inval_inode(session, ino, -1, 0)
        }
    }

    /// Expires a dentry (Linux 6.2): the kernel revalidates it at its next use. Older kernels drop it instead, which
    /// also takes the working directory away from a program inside.
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

    /// The fallback when the queue overflowed: FUSE_NOTIFY_INC_EPOCH (Linux 6.16) makes the kernel revalidate every
    /// cached dentry. The message is a `struct fuse_out_header`: length, code, and 0 for "no request". Older kernels
    /// refuse it; there, dentries live until their timeout.
    private func forgetAllNames(_ session: OpaquePointer) {
        var header: (bytes: UInt32, code: Int32, unique: UInt64) = (16, 8, 0)
        _ = write(fuse_session_fd(session), &header, MemoryLayout.size(ofValue: header))
    }
}
