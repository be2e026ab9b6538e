import Glibc
import LinuxIO
import PhotoLibrary
import Synchronization

/// Takes what file managers kept of a mount's photos out of the mounting user's cache: soon after mounting what a mount
/// before left, because its process was killed or the power went, and after unmounting what was added since.
///
/// Each is done by a process of its own, this program executed anew, which holds no key while it reads files that any
/// program may have written, and which as root becomes the user. Its command line is
/// `obscura --sweep USER SECONDS DIR`, the seconds of 1970 or `-` for everything.
struct CacheSweep: Equatable {
    /// The private first word of the command line.
    static let word = "--sweep"

    /// Mounted by root with uid=: the one it names; else the one this process runs as.
    var user: uid_t
    /// Nil: also what is older.
    var since: Int?
    /// From the root, as the user named it.
    var directory: String

    init(user: uid_t, since: Int?, directory: String) {
        self.user = user
        self.since = since
        self.directory = directory
    }

    /// From the command line that `commandLine` makes, without the program's name.
    init(_ words: [String]) throws(Failure) {
        guard words.count == 4, let user = uid_t(words[1]) else {
            throw Failure(.usage, Self.word, "not for users: obscura mount runs it")
        }
        self.init(user: user, since: Int(words[2]), directory: words[3])
    }

    var commandLine: [String] {
        ["obscura", Self.word, String(user), since.map { String($0) } ?? "-", directory]
    }

    /// Starts the process. Nil where that cannot be: a mount is no worse for it.
    func start() -> pid_t? {
        let null = open("/dev/null", O_RDWR | O_CLOEXEC)
        guard null >= 0 else { return nil }
        defer { close(null) }
        let streams = [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO].map { (from: null, to: $0) }
        return try? spawn(commandLine, executable: "/proc/self/exe", descriptors: streams, asSession: true)
    }

    /// What the process does.
    func run() throws(Failure) {
        // Nobody waits for what is old.
        if since == nil { setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 19) }
        guard let cache = cacheDirectory else { return }
        try becomeUser()
        var gone = PathsBelow(directory, near: cache)
        ThumbnailCache(path: cache + "/thumbnails", owner: user)
            .removeEntries(changedSince: since) { gone.contains($0) }
    }

    private var isForOther: Bool { user != geteuid() }

    private func becomeUser() throws(Failure) {
        guard isForOther else { return }
        guard let entry = getpwuid(user), setgroups(0, nil) == 0, setgid(entry.pointee.pw_gid) == 0,
            setuid(user) == 0
        else { throw Failure(Self.word, "becoming user \(user)", .last) }
    }

    /// By the environment, unless that is another's; nil for a user without a home.
    private var cacheDirectory: String? {
        func path(_ text: UnsafePointer<CChar>?) -> String? {
            text.map { String(cString: $0) }.flatMap { $0.hasPrefix("/") ? $0 : nil }
        }
        if !isForOther, let cache = path(getenv("XDG_CACHE_HOME")) { return cache }
        let own = isForOther ? nil : path(getenv("HOME"))
        return (own ?? getpwuid(user).flatMap { path($0.pointee.pw_dir) }).map { $0 + "/.cache" }
    }
}

/// The sweeps of one mount.
final class CacheSweeps: Sendable {
    private let user: uid_t
    private let directory: String
    /// A second early: the clock of files is coarser than this one.
    private let begun = time(nil) - 1
    private let wasLive = Atomic<Bool>(false)
    /// The first sweep's process, until it has been waited for.
    private let early = Mutex<pid_t?>(nil)

    init(_ daemon: Daemon) {
        user = geteuid() == 0 ? daemon.words.uid ?? 0 : geteuid()
        directory = daemon.directory
    }

    /// To be called when the mount is live.
    func sweepOld() {
        wasLive.store(true, ordering: .relaxed)
        guard let process = CacheSweep(user: user, since: nil, directory: directory).start() else { return }
        early.withLock { $0 = process }
        startThread { [self] in
            var end = siginfo_t()
            while waitid(P_PID, id_t(process), &end, WEXITED | WNOWAIT) != 0, errno == EINTR {}
            early.withLock { process in
                if let process { _ = waitForEnd(of: process) }
                process = nil
            }
        }
    }

    /// To be called when the mount is gone; returns when what was added during it is, too. If the first sweep has not
    /// come to its end, the next mount's will.
    func sweepNew() {
        early.withLock { if let process = $0 { kill(process, SIGKILL) } }
        guard wasLive.load(ordering: .relaxed) else { return }
        if let late = CacheSweep(user: user, since: begun, directory: directory).start() {
            _ = waitForEnd(of: late)
        }
    }
}
