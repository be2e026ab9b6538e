import Glibc
import LinuxIO

/// Removes the traces that desktop programs kept, outside a mount, of its photos: soon after mounting those that an
/// earlier mount left, because its process was killed or the power went, and at unmounting those added since.
///
/// Each sweep is done by a process of its own, this program executed anew. It holds no key while it reads files that
/// any program may have written, and as root it becomes the user, or gives up its capabilities if that is root. Its
/// command line is `obscura --sweep USER SECONDS DIR`, with seconds since 1970, or `-` for everything. It prints the
/// digests of thumbnails without a URI, 16 bytes each: only the library knows whether they are of its paths.
package struct DesktopSweep: Equatable {
    /// The private first word of the command line.
    package static let word = "--sweep"
    static let digestBytes = 16

    var user: uid_t
    /// In seconds since 1970. Nil: older traces, too.
    var since: Int?
    /// An absolute path, as the user named it.
    var directory: String

    init(user: uid_t, since: Int?, directory: String) {
        self.user = user
        self.since = since
        self.directory = directory
    }

    /// Parses a command line made by `commandLine`, without the program's name. Nil if it is another one.
    package init?(commandLine words: [String]) {
        guard words.count == 4, let user = uid_t(words[1]) else { return nil }
        self.init(user: user, since: Int(words[2]), directory: words[3])
    }

    var commandLine: [String] {
        ["obscura", Self.word, String(user), since.map { String($0) } ?? "-", directory]
    }

    /// Starts the process, whose output comes from `output`. Nil if that fails: the mount works without it.
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

    private func tell(_ digests: [[UInt8]]) { writeAll(Array(digests.joined()), to: STDOUT_FILENO) }
}
