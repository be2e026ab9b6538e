internal import Glibc

/// The resources that a thumbnailer may use.
struct ThumbnailerLimits: Sendable {
    /// Time from the start to the last byte of the picture.
    var milliseconds = 30_000
    /// Processor time of each process.
    var processorSeconds = 20
    /// Number of processes and threads.
    var processCount = 256
    /// Private memory of each process.
    var memoryBytes = 2 << 30
    /// The largest file that it may write, and so the largest picture.
    var outputBytes = 32 << 20
    /// Size of all files that it may write: they are in memory.
    var scratchBytes = 64 << 20
    /// Bytes of a picture or video that are copied into memory; of a larger one only parts are.
    var inputBytes = 512 << 20
}

/// The sandbox in which a thumbnailer runs: namespaces made by bubblewrap, with a read-only /usr, a /tmp in memory, the
/// picture, and nothing else. No other file of the machine, no network, no other processes, no way to gain privileges,
/// and no environment variables of ours.
struct ThumbnailerSandbox: Sendable {
    var bubblewrap = "/usr/bin/bwrap"
    var limits = ThumbnailerLimits()

    /// The descriptor of the picture in the sandbox's first process.
    static let inputDescriptor: Int32 = 3

    /// The complete environment of the programs in the sandbox.
    static let environment = [
        "PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "LC_ALL=C.UTF-8", "GIO_USE_VFS=local",
    ]

    private static let output = "/tmp/output.png"

    /// The command that runs a thumbnailer on the file open as ``inputDescriptor``, and writes the picture to its
    /// standard output.
    ///
    /// - Parameter side: the width and height, in pixels, in which the picture must fit.
    func command(
        _ thumbnailer: ThumbnailerCatalogue.Thumbnailer, type: MediaType, side: Int
    ) -> [String] {
        // The name tells only the type, by which some programs go.
        let input = "/tmp/input." + type.usualExtension
        var words = thumbnailer.entry.commandLine(
            ThumbnailerEntry.Fields(
                input: input, uri: "file://" + input, output: Self.output, side: side))
        words[0] = thumbnailer.program
        // Process 1 is the shell. It holds the picture open for all others, and they end with it.
        let shell = ["/bin/sh", "-c", "\"$@\" </dev/null >/dev/null 2>&1 && exec cat \"$0\"", Self.output]
        return humble + namespaces + files(input: input, program: thumbnailer.program) + limited + shell
            + words
    }

    /// Wrappers for the processes outside: last in line for the processor, first to be killed when memory runs out, and
    /// never root. Root in a namespace, even without any capability, could still write to /proc/sys.
    private var humble: [String] {
        let lowly = ["/usr/bin/choom", "-n", "1000", "--", "/usr/bin/nice", "-n", "10"]
        guard geteuid() == 0 else { return lowly }
        // An ID that no user has: systemd gives these to services for as long as they run.
        let user = UInt32.random(in: 61_184...65_519)
        return ["/usr/bin/setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups", "--"] + lowly
    }

    private var namespaces: [String] {
        [
            bubblewrap, "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent",
            "--as-pid-1",
            "--uid", "65534", "--gid", "65534", "--hostname", "localhost",
        ]
    }

    private func files(input: String, program: String) -> [String] {
        var words = ["--ro-bind", "/usr", "/usr"]
        for name in ["bin", "sbin", "lib", "lib32", "lib64", "libx32"] {
            words +=
                isLink("/" + name)
                ? ["--symlink", "usr/" + name, "/" + name] : ["--ro-bind-try", "/" + name, "/" + name]
        }
        // The locations of libraries and fonts.
        for path in ["/etc/ld.so.cache", "/etc/alternatives", "/etc/fonts"] {
            words += ["--ro-bind-try", path, path]
        }
        words += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]
        words += ["--size", String(limits.scratchBytes), "--tmpfs", "/tmp", "--chdir", "/tmp"]
        // A link and not a file: the bytes are in memory only once, and as sparse as the input.
        words += ["--symlink", "/proc/1/fd/\(Self.inputDescriptor)", input]
        if let own = resolved(program), !own.hasPrefix("/usr/") { words += ["--ro-bind", own, program] }
        return words + ["--remount-ro", "/", "--"]
    }

    private var limited: [String] {
        [
            "/usr/bin/prlimit", "--core=0", "--cpu=\(limits.processorSeconds)",
            "--nproc=\(limits.processCount)",
            "--data=\(limits.memoryBytes)", "--fsize=\(limits.outputBytes)", "--",
        ]
    }

    /// Whether a sandbox can be made on this machine: makes one, with the limits of all, and passes bytes in and out.
    func isUsable() -> Bool {
        guard isProgram(bubblewrap), let entry = ThumbnailerEntry(Self.trial), let alarm = Alarm() else {
            return false
        }
        let bytes = Array("through".utf8)
        guard let input = MemoryFile.copy(of: MemoryByteSource(bytes), byteCount: bytes.count) else {
            return false
        }
        let thumbnailer = ThumbnailerCatalogue.Thumbnailer(entry: entry, program: "/usr/bin/cp")
        let sandbox = Self(bubblewrap: bubblewrap)
        let command = sandbox.command(thumbnailer, type: .bmp, side: 1)
        return runSandboxed(command, input: input, sandbox.limits, unless: alarm) == .picture(bytes)
    }

    private static let trial = "[Thumbnailer Entry]\nExec=cp %i %o\nMimeType=image/bmp\n"
}

private func isLink(_ path: String) -> Bool {
    var found = stat()
    return lstat(path, &found) == 0 && found.st_mode & mode_t(S_IFMT) == mode_t(S_IFLNK)
}

/// The path without links; nil if there is no such file.
private func resolved(_ path: String) -> String? {
    guard let found = realpath(path, nil) else { return nil }
    defer { free(found) }
    return String(cString: found)
}
