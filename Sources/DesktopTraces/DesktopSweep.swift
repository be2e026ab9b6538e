import Glibc
import HostFiles
import LinuxIO

/// Removes the traces that desktop programs kept, outside a mount, of its photos: soon after mounting those that an
/// earlier mount left, because its process was killed or the power went, and at unmounting those added since.
///
/// Each sweep is done by a process of its own, this program executed anew. It holds no key while it reads files that
/// any program may have written, and as root it becomes the user, or gives up its capabilities if that is root. Its
/// command line is `obscura --sweep USER SECONDS DIR WAIT`, with seconds since 1970, or `-` for everything, and seconds
/// to wait first. It prints the digests of thumbnails without a URI, 16 bytes each: only the library knows whether they
/// are of its paths.
package struct DesktopSweep: Equatable {
    /// The private first word of the command line.
    package static let word = "--sweep"
    static let digestBytes = 16

    var user: uid_t
    /// In seconds since 1970. Nil: older traces, too.
    var since: Int?
    /// An absolute path, as the user named it.
    var directory: String
    /// How long it waits before it begins.
    var waitSeconds: UInt32

    init(user: uid_t, since: Int?, directory: String, waitSeconds: UInt32 = 0) {
        self.user = user
        self.since = since
        self.directory = directory
        self.waitSeconds = waitSeconds
    }

    /// Parses a command line made by `commandLine`, without the program's name. Nil if it is another one.
    package init?(commandLine words: [String]) {
        guard words.count == 5, let user = uid_t(words[1]), let wait = UInt32(words[4]) else { return nil }
        self.init(user: user, since: Int(words[2]), directory: words[3], waitSeconds: wait)
    }

    var commandLine: [String] {
        ["obscura", Self.word, String(user), since.map { String($0) } ?? "-", directory, String(waitSeconds)]
    }

    /// Starts the process, whose output comes from `output`. Nil if that fails: the mount works without it.
    func start() -> (process: pid_t, output: Int32)? {
        guard let digests = try? makePipe() else { return nil }
        defer { close(digests.write) }
        guard let process = start(writingTo: digests.write) else {
            close(digests.read)
            return nil
        }
        return (process, digests.read)
    }

    /// Starts the process, which outlives this one. Nobody can tell any more whose thumbnails without a URI are.
    func startAlone() { _ = start(writingTo: nil) }

    private func start(writingTo output: Int32?) -> pid_t? {
        let null = open("/dev/null", O_RDWR | O_CLOEXEC)
        guard null >= 0 else { return nil }
        defer { close(null) }
        let streams = [(null, STDIN_FILENO), (output ?? null, STDOUT_FILENO), (null, STDERR_FILENO)]
            .map { (from: $0.0, to: $0.1) }
        return try? spawn(commandLine, executable: "/proc/self/exe", descriptors: streams, asSession: true)
    }

    /// Body of the process. Throws, with every trace left, if the process cannot give up its rights.
    package func sweep() throws(SweepError) {
        // Nobody waits for a sweep of old traces.
        if since == nil { setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 19) }
        let owner = DesktopUser(user)
        let (cache, data) = (owner.cacheDirectory, owner.dataDirectory)
        let lists = DesktopLists(of: owner)
        let files = DesktopFiles(of: owner, mountPoint: directory)
        let places = DesktopPlaces(of: owner)
        try owner.become()
        if waitSeconds > 0 {
            sleep(waitSeconds)
            // Traces of files that are there are no traces of the mount.
            guard isNothingThere() else { return }
        }
        if let cache {
            var gone = PathsBelow(directory, near: cache)
            let nameless = ThumbnailCache(in: places.open(.cache))
                .removeEntries(changedSince: since) { gone.contains($0) }
            tell(nameless)
        }
        // Tells the mount that no more digests follow.
        close(STDOUT_FILENO)
        if let data, let lists {
            var gone = PathsBelow(directory, near: data)
            files.remove { gone.contains($0) }
            lists.removeRecent { gone.contains($0) }
            lists.removeActivities { gone.contains($0) }
            lists.removeMetadata(of: directory)
        }
    }

    /// Whether nothing is mounted on the directory, and it is empty or not there. An automount that waits is not asked.
    private func isNothingThere() -> Bool {
        if let mount = mountEntry(at: realPath(directory)) { return mount.type == "autofs" }
        do throws(Errno) { return try HostPath(directory).list().isEmpty } catch { return error == .noEntry }
    }

    private func tell(_ digests: [[UInt8]]) { writeAll(Array(digests.joined()), to: STDOUT_FILENO) }
}
