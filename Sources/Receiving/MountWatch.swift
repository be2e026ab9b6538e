import LinuxIO

/// Asks a mount again and again whether it answers, on a thread of its own: a mount that hangs holds up only that.
final class MountWatch: @unchecked Sendable {
    private let mount: ReceivingMount
    private let jobs = JobQueue()
    private let lock = Lock()
    private var isAsking = false
    private var answered = true

    init(_ mount: ReceivingMount) { self.mount = mount }

    /// The last answer. Asks for the next one.
    var answers: Bool {
        let begins = lock.withLock {
            defer { isAsking = true }
            return !isAsking
        }
        if begins {
            jobs.add { [self] in
                let answers = mount.answers
                lock.withLock { (answered, isAsking) = (answers, false) }
            }
        }
        return lock.withLock { answered }
    }
}
