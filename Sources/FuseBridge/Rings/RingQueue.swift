internal import CFuse3
internal import Glibc
internal import LinuxIO
internal import Synchronization

/// The requests of one processor, and the threads that serve them.
///
/// One thread at a time is the leader: it alone submits and waits, and serves quick requests itself. The kernel copies
/// a request on the thread that submitted the entry, so a thread that waits for a disk must own no entry: requests that
/// may wait are handed to threads that own none, and their answers are committed by the leader. If the leader itself is
/// held up, a thread that watches it becomes the leader.
///
/// The leader is bound to the processor whose requests it takes: the program that sent one sleeps, and the leader runs
/// in its place, with warm caches. On another processor it would have to be woken from there, which takes longer than
/// many a request, and so it would have to spin before it sleeps. The other threads run wherever there is room.
///
/// A thread that submitted entries must not end before the connection does: the kernel would lose them.
/// Unchecked Sendable: `lock` guards the fields that are not atomic, `ringLock` the ring.
final class RingQueue: @unchecked Sendable {
    /// Longest time that the leader may serve a request itself.
    private static let busyMillisecondsMax: Int64 = 2
    /// Time without a request after which nobody watches the leader, until it has a request.
    private static let idleMilliseconds: Int64 = 100

    private let commands: any RingCommanding
    private let processor: Int?
    private let entries: [RingEntry]
    private let process: @Sendable (RingEntry, inout fuse_buf) -> Void
    /// Called once with false if the kernel refuses the entries, or with true.
    private let didRegister: @Sendable (Bool) -> Void

    private let ringLock = Lock()
    // Under `ringLock`.
    private var isRegistered = false
    /// The leader's term in which `wake` was last prepared for; 0 if it is not.
    private var wakeupTerm: UInt64 = 0

    private let lock = Lock()
    private let change = Condition()
    // Under `lock`.
    private var threads: [WorkerThread] = []
    /// The thread that last submitted each entry.
    private var owners: [RingThread?]
    /// Number of the leader's term; 0 if there is none.
    private var leader: UInt64 = 0
    private var terms: UInt64 = 0
    /// Requests that the leader has not looked at.
    private var received: [Int] = []
    /// Requests for the other threads.
    private var handed: [Int] = []
    /// Answered entries, to be committed.
    private var answered: [Int] = []
    private var idle: [RingThread] = []
    /// Threads that were started and do not wait yet.
    private var startingThreads = 0
    private var hasWatcher = false
    private var isOver = false

    /// Start of the request that the leader serves, in monotonic milliseconds; 0 if it waits.
    private let busySince = Atomic<Int64>(0)
    private let lastRequest = Atomic<Int64>(0)
    private let isWatcherAsleep = Atomic<Bool>(false)
    private let answeredCount = Atomic<Int>(0)
    private let isLeaderAsleep = Atomic<Bool>(false)

    /// - Parameters:
    ///   - processor: the one whose requests come here; nil: none in particular.
    ///   - process: serves a request and writes its answer into the entry.
    init(
        _ commands: any RingCommanding, _ entries: [RingEntry], processor: Int? = nil,
        didRegister: @escaping @Sendable (Bool) -> Void,
        process: @escaping @Sendable (RingEntry, inout fuse_buf) -> Void
    ) {
        self.commands = commands
        self.entries = entries
        self.processor = processor
        self.didRegister = didRegister
        self.process = process
        owners = Array(repeating: nil, count: entries.count)
    }

    /// Whether a thread serves that request now. Any thread may ask.
    func serves(_ request: UInt64) -> Bool { entries.contains { $0.serves(request) } }

    // MARK: Threads

    /// Starts the leader, which hands the entries to the kernel, and a thread that watches it.
    func start() throws(Errno) {
        try startThread()
        try? startThread()
    }

    private func startThread() throws(Errno) {
        lock.withLock { startingThreads += 1 }
        do throws(Errno) {
            let thread = try WorkerThread { self.work() }
            lock.withLock { threads.append(thread) }
        } catch {
            lock.withLock { startingThreads -= 1 }
            throw error
        }
    }

    /// Starts threads until there are enough: one without entries for each of `more` requests besides those that were
    /// handed over, and one to watch the leader. Returns whether there are enough for the requests.
    private func ensureThreads(for more: Int) -> Bool {
        while true {
            let (servers, all, isFull) = lock.withLock {
                let spare = startingThreads - handed.count
                return (
                    idle.count { $0.ownedEntries == 0 } + spare, idle.count + spare,
                    threads.count >= 2 * entries.count + 2
                )
            }
            if servers >= more && all > more { return true }
            if isFull { return servers >= more }
            do throws(Errno) { try startThread() } catch { return servers >= more }
        }
    }

    /// Makes the kernel use /dev/fuse for the connection. Call it only if `start` failed.
    func refuse() {
        ringLock.withLock {
            commands.prepareRefusal()
            commands.submit()
        }
    }

    /// Ends the threads after their current requests, and returns when they have ended.
    func stop() {
        lock.withLock {
            isOver = true
            change.signalAll()
        }
        commands.wake()
        while let thread = lock.withLock({ threads.popLast() }) { thread.join() }
    }

    private func work() {
        let thread = RingThread()
        lock.lock()
        startingThreads -= 1
        while !isOver {
            if leader == 0 {
                terms += 1
                leader = terms
                let term = terms
                passWatch()
                lock.unlock()
                if let processor { Processors.bindThread(to: processor) }
                lead(term, thread)
                if processor != nil { Processors.releaseThread() }
                lock.lock()
            } else if !handed.isEmpty && thread.ownedEntries == 0 {
                let entry = entries[handed.removeFirst()]
                passWatch()
                lock.unlock()
                serve(entry)
                lock.lock()
            } else {
                idle.append(thread)
                if hasWatcher { change.wait(lock) } else { watch() }
                idle.removeAll { $0 === thread }
            }
        }
        lock.unlock()
    }

    /// If this thread was the one that watched, has another do so. Under `lock`.
    private func passWatch() { if !hasWatcher && !idle.isEmpty { change.signalAll() } }

    /// Waits a while, and ends the term of a leader that is held up. Under `lock`.
    private func watch() {
        hasWatcher = true
        defer { hasWatcher = false }
        let now = MonotonicClock.milliseconds
        let since = busySince.load(ordering: .acquiring)
        if since != 0 && now - since > Self.busyMillisecondsMax {
            leader = 0
            busySince.store(0, ordering: .releasing)
        } else if since != 0 || now - lastRequest.load(ordering: .relaxed) < Self.idleMilliseconds {
            change.wait(lock, untilMilliseconds: now + Self.busyMillisecondsMax)
        } else {
            isWatcherAsleep.store(true, ordering: .sequentiallyConsistent)
            // Checked again: the leader may have become busy before it could see that the watcher sleeps.
            if busySince.load(ordering: .sequentiallyConsistent) == 0 { change.wait(lock) }
            isWatcherAsleep.store(false, ordering: .relaxed)
        }
    }

    // MARK: The leader

    private func lead(_ term: UInt64, _ thread: RingThread) {
        while receive(term, thread) {
            while let (index, isLast) = next(term) {
                let entry = entries[index]
                guard var request = entry.take() else {
                    finish(entry)
                    continue
                }
                let weight = RequestWeight(request)
                let isForOthers =
                    switch weight {
                    case .light: false
                    case .heavy, .large: !isLast
                    case .slow, .lasting: true
                    }
                // If there are no others and none can be started, it is the leader after all.
                if !isForOthers || !hand(entry) {
                    _ = ensureThreads(for: 0)
                    begin()
                    process(entry, &request)
                    end(term)
                    finish(entry)
                }
                if !isLast { commitAnswered(term, thread) }
            }
        }
    }

    /// The next received request, and whether it is the last; nil if there is none, or the term is over.
    private func next(_ term: UInt64) -> (index: Int, isLast: Bool)? {
        lock.withLock {
            guard leader == term, !received.isEmpty else { return nil }
            return (received.removeFirst(), received.isEmpty)
        }
    }

    /// Returns false if there is no thread for it.
    private func hand(_ entry: RingEntry) -> Bool {
        guard ensureThreads(for: 1) else { return false }
        lock.withLock {
            handed.append(entry.index)
            change.signalAll()
        }
        return true
    }

    private func begin() {
        let now = max(1, MonotonicClock.milliseconds)
        lastRequest.store(now, ordering: .relaxed)
        busySince.store(now, ordering: .sequentiallyConsistent)
        if isWatcherAsleep.load(ordering: .sequentiallyConsistent) {
            lock.withLock { change.signalAll() }
        }
    }

    private func end(_ term: UInt64) {
        lock.withLock { if leader == term { busySince.store(0, ordering: .releasing) } }
    }

    private func serve(_ entry: RingEntry) {
        if var request = entry.take() {
            process(entry, &request)
        } else {
            entry.answerIfMissing(error: EIO)
        }
        finish(entry)
    }

    /// Leaves an answered entry to the leader.
    private func finish(_ entry: RingEntry) {
        entry.answerIfMissing(error: EIO)
        lock.withLock {
            answered.append(entry.index)
            answeredCount.store(answered.count, ordering: .sequentiallyConsistent)
        }
        if isLeaderAsleep.load(ordering: .sequentiallyConsistent) { commands.wake() }
    }

    /// Submits the answered entries. Under `ringLock`.
    private func submitAnswered(_ thread: RingThread) {
        let indices = lock.withLock {
            defer { answered.removeAll(keepingCapacity: true) }
            answeredCount.store(0, ordering: .sequentiallyConsistent)
            for index in answered { setOwner(of: index, thread) }
            return answered
        }
        for index in indices { commands.prepareCommit(entries[index]) }
        commands.submit()
    }

    /// Under `lock`.
    private func setOwner(of index: Int, _ thread: RingThread) {
        owners[index]?.ownedEntries -= 1
        owners[index] = thread
        thread.ownedEntries += 1
    }

    /// Submits answers between two requests. Not for a former leader: the present one may sleep with the lock.
    private func commitAnswered(_ term: UInt64, _ thread: RingThread) {
        guard answeredCount.load(ordering: .relaxed) > 0, lock.withLock({ leader == term }) else { return }
        ringLock.withLock { submitAnswered(thread) }
    }

    /// Commits answers and waits for requests. Returns false if the term or the connection is over.
    private func receive(_ term: UInt64, _ thread: RingThread) -> Bool {
        ringLock.lock()
        defer { ringLock.unlock() }
        // Another thread may have become the leader while this one waited for the lock.
        guard lock.withLock({ leader == term }) else { return false }
        if !isRegistered { register(thread) }
        submitAnswered(thread)
        // Requests that a former leader received and did not take up must not wait for anything.
        if lock.withLock({ received.isEmpty }) { waitForCompletions(term) }
        var requests: [Int] = []
        var isGone = false
        commands.takeCompletions { completion in
            switch completion {
            case .request(let entry): requests.append(entry)
            case .failure(_, let error): isGone = isGone || error == ENOTCONN || error == ECONNABORTED
            case .wakeup: wakeupTerm = 0
            }
        }
        return lock.withLock {
            // Also those of a term that is over: the next leader finds them.
            received += requests
            if isGone {
                isOver = true
                change.signalAll()
            }
            if leader == term && isOver { leader = 0 }
            return leader == term
        }
    }

    /// Hands all entries to the kernel. Under `ringLock`.
    private func register(_ thread: RingThread) {
        isRegistered = true
        lock.withLock { for index in entries.indices { setOwner(of: index, thread) } }
        for entry in entries { commands.prepareRegister(entry) }
        commands.submit()
        didRegister(!commands.hasFailed)
    }

    /// Under `ringLock`.
    private func waitForCompletions(_ term: UInt64) {
        if commands.hasCompletions { return }
        isLeaderAsleep.store(true, ordering: .sequentiallyConsistent)
        defer { isLeaderAsleep.store(false, ordering: .relaxed) }
        // Checked again: an answer may have come before its thread could see that the leader sleeps.
        let mustReturn = answeredCount.load(ordering: .sequentiallyConsistent) > 0 || lock.withLock { isOver }
        if mustReturn { return }
        // The kernel notices `wake` on the thread that asked for it: not on one that may wait for a disk.
        if wakeupTerm != term {
            commands.prepareWakeup()
            wakeupTerm = term
        }
        commands.submitAndWait()
    }
}

/// A thread of a queue. Guarded by the queue's `lock`.
private final class RingThread {
    /// Entries that it was the last to submit.
    var ownedEntries = 0
}
