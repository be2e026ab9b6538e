import Glibc
import LinuxIO

/// Takes what desktop programs kept of a mount's photos outside of it away: soon after mounting what a mount before
/// left, because its process was killed or the power went, and at unmounting what was added since.
///
/// Each is done by a process of its own, this program executed anew, which holds no key while it reads files that any
/// program may have written, and which as root becomes the user. Its command line is
/// `obscura --sweep USER SECONDS DIR`, the seconds of 1970 or `-` for everything. It prints the digests of thumbnails
/// that do not say what they are of, 16 bytes each: only the library knows whether they are of its paths.
struct DesktopSweep: Equatable {
    /// The private first word of the command line.
    static let word = "--sweep"
    static let digestBytes = 16

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

    /// Starts the process; what it prints comes out of `output`. Nil where that cannot be: a mount is no worse for it.
    func start() -> (process: pid_t, output: Int32)? {
        guard let digests = try? makePipe() else { return nil }
        defer { close(digests.write) }
        let null = open("/dev/null", O_RDWR | O_CLOEXEC)
        guard null >= 0 else {
            close(digests.read)
            return nil
        }
        defer { close(null) }
        let streams = [(null, STDIN_FILENO), (digests.write, STDOUT_FILENO), (null, STDERR_FILENO)]
            .map { (from: $0.0, to: $0.1) }
        guard
            let process = try? spawn(
                commandLine, executable: "/proc/self/exe", descriptors: streams, asSession: true)
        else {
            close(digests.read)
            return nil
        }
        return (process, digests.read)
    }

    /// What the process does.
    func run() throws(Failure) {
        // Nobody waits for what is old.
        if since == nil { setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 19) }
        let owner = DesktopUser(user)
        let (cache, data) = (owner.cacheDirectory, owner.dataDirectory)
        let lists = DesktopLists(of: owner)
        let files = DesktopFiles(of: owner, mountPoint: directory)
        try owner.become()
        if let cache {
            var gone = PathsBelow(directory, near: cache)
            let nameless = ThumbnailCache(path: cache + "/thumbnails", owner: user)
                .removeEntries(changedSince: since) { gone.contains($0) }
            tell(nameless)
        }
        // The mount is told that there are no more.
        close(STDOUT_FILENO)
        if let data, let lists {
            var gone = PathsBelow(directory, near: data)
            files.remove { gone.contains($0) }
            lists.removeRecent { gone.contains($0) }
            lists.removeActivities { gone.contains($0) }
            lists.removeMetadata(of: directory)
        }
    }

    private func tell(_ digests: [[UInt8]]) { writeAll(Array(digests.joined()), to: STDOUT_FILENO) }
}
