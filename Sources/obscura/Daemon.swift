import CShims
import Glibc
import LinuxIO
import VaultCrypto
import VaultStore

/// The process that serves a mount: this program executed anew, so that it never held the password, nor the memory in
/// which the password was stretched.
///
/// Its command line is `obscura --daemon -o WORDS VAULT DIR`: DIR last, for pgrep -f.
struct Daemon: Equatable {
    /// Private first words of the command line.
    static let backgroundWord = "--daemon"
    static let foregroundWord = "--foreground"
    /// In the background of a private session. Ends with the session.
    static let sessionWord = "--private-daemon"
    static let words: Set = [backgroundWord, foregroundWord, sessionWord]

    /// The daemon reads the key from the first pipe and writes the outcome to the second. It holds the lock by
    /// inheriting its descriptor.
    static let keyDescriptor: Int32 = 3
    static let statusDescriptor: Int32 = 4
    static let lockDescriptor: Int32 = 5

    /// A pipe holds this many bytes without a reader.
    private static let keyBytesMax = 65_536

    private static let executable = "/proc/self/exe"

    var words: MountOptionParser
    /// A resolved path.
    var vault: String
    /// An absolute path that ends as the user typed it.
    var directory: String

    init(words: MountOptionParser, vault: String, directory: String) {
        self.words = words
        self.vault = vault
        self.directory = directory
    }

    /// Parses a command line made by `commandLine`, without the program's name.
    init(_ words: [String]) throws(Failure) {
        guard words.count == 5, words[1] == "-o" else {
            throw Failure(.usage, words.first ?? "", "not for users: obscura mount runs it")
        }
        self.words = MountOptionParser()
        try self.words.apply(words[2])
        (vault, directory) = (words[3], words[4])
    }

    /// - Parameter word: one of `Daemon.words`.
    func commandLine(_ word: String) -> [String] {
        ["obscura", word, "-o", words.daemonList, vault, directory]
    }

    /// Starts the daemon and returns when the mount is live. Until then it is of this command's process group, which an
    /// automount lets pass; then it leads a session of its own.
    ///
    /// - Parameter word: `backgroundWord` or `sessionWord`.
    @discardableResult
    func start(_ space: UnlockedSpace, as word: String = backgroundWord) throws(Failure) -> pid_t {
        let status = try pipeEnds(for: directory)
        defer { close(status.read) }
        let complaints = try pipeEnds(for: directory)
        defer { close(complaints.read) }
        let process = try spawnDaemon(space, word, status: status.write, complaints: complaints.write)
        if try waitUntilLive(status.read) { return process }

        let complaint = String(decoding: readAll(complaints.read, countMax: 4096), as: UTF8.self)
        let reason = complaint.split(separator: "\n").last.map { ": \($0)" } ?? ""
        switch waitForEnd(of: process) {
        case .exited(let code):
            throw Failure(
                .failed, directory, "its process ended with status \(code) before the mount was live\(reason)"
            )
        case .signalled(let signal):
            throw Failure(
                .failed, directory,
                "its process was ended by signal \(signal) before the mount was live\(reason)")
        }
    }

    /// Starts the process and closes the daemon's ends of the pipes here, so that the pipes end with the daemon.
    private func spawnDaemon(
        _ space: UnlockedSpace, _ word: String, status: Int32, complaints: Int32
    ) throws(Failure) -> pid_t {
        defer {
            close(status)
            close(complaints)
        }
        let key = try keyPipe(space)
        defer { close(key) }
        let null = open("/dev/null", O_RDWR | O_CLOEXEC)
        if null < 0 { throw Failure("/dev/null", "opening it", .last) }
        defer { close(null) }
        do {
            return try spawn(
                commandLine(word), executable: Self.executable,
                environment: daemonEnvironment(),
                descriptors: [
                    (null, STDIN_FILENO), (null, STDOUT_FILENO), (complaints, STDERR_FILENO),
                    (key, Self.keyDescriptor), (status, Self.statusDescriptor),
                    (space.passLockOn() ?? null, Self.lockDescriptor),
                ], directory: "/")
        } catch {
            throw Failure(directory, "starting the process that serves the mount", error)
        }
    }

    /// Returns true when the mount is live, false if the daemon ended without a message. Throws the error that it
    /// reports.
    private func waitUntilLive(_ status: Int32) throws(Failure) -> Bool {
        guard var code = nextByte(status) else { return false }
        while code == StatusPipe.line {
            note(readLine(status))
            guard let next = nextByte(status) else { return false }
            code = next
        }
        if code == StatusPipe.live {
            let line = String(decoding: readAll(status, countMax: 4096), as: UTF8.self)
            if !line.isEmpty { note(line) }
            return true
        }
        let words = readAll(status, countMax: 4096).split(separator: 0, omittingEmptySubsequences: false)
        guard let status = ExitStatus(rawValue: Int32(code)), words.count == 2 else { return false }
        throw Failure(
            status, String(decoding: words[0], as: UTF8.self), String(decoding: words[1], as: UTF8.self))
    }

    /// The next byte; nil at the end.
    private func nextByte(_ pipe: Int32) -> UInt8? {
        var byte: UInt8 = 0
        while true {
            let count = read(pipe, &byte, 1)
            if count == 1 { return byte }
            if count == 0 || errno != EINTR { return nil }
        }
    }

    private func readLine(_ pipe: Int32) -> String {
        var line: [UInt8] = []
        while let byte = nextByte(pipe), byte != UInt8(ascii: "\n") { line.append(byte) }
        return String(decoding: line, as: UTF8.self)
    }

    /// Executes the daemon in place of this process (-f). The standard streams and the terminal stay.
    func replaceThisProcess(_ space: UnlockedSpace) throws(Failure) {
        let key = try keyPipe(space)
        // Copied above both targets first, so that neither is overwritten before it is moved.
        let raisedKey = fcntl(key, F_DUPFD_CLOEXEC, Self.lockDescriptor + 1)
        let raisedLock = fcntl(space.passLockOn() ?? STDIN_FILENO, F_DUPFD_CLOEXEC, Self.lockDescriptor + 1)
        guard raisedKey >= 0, raisedLock >= 0, dup2(raisedKey, Self.keyDescriptor) >= 0,
            dup2(raisedLock, Self.lockDescriptor) >= 0
        else { throw Failure(directory, "handing over the key", .last) }
        close(Self.statusDescriptor)
        _ = obscura_close_from(Self.lockDescriptor + 1)
        withCStrings(commandLine(Self.foregroundWord)) { arguments in
            withCStrings(daemonEnvironment()) { variables in
                _ = execve(Self.executable, arguments, variables)
            }
        }
        throw Failure(directory, "starting the process that serves the mount", .last)
    }

    /// A pipe that holds the space's key and then ends.
    private func keyPipe(_ space: UnlockedSpace) throws(Failure) -> Int32 {
        let bytes = space.encodeForDaemon()
        precondition(bytes.count <= Self.keyBytesMax, "the key fits a pipe")
        let pipe = try pipeEnds(for: directory)
        let count = bytes.withUnsafeBytes { write(pipe.write, $0.baseAddress, $0.count) }
        let code = errno
        close(pipe.write)
        guard count == bytes.count else {
            close(pipe.read)
            throw Failure(directory, "handing over the key", Errno(code))
        }
        return pipe.read
    }
}

/// The part of the user's environment that the daemon may know. Swift's backtracer stays off, because it prints memory.
private func daemonEnvironment() -> [String] {
    var names = [
        "TZ", "PATH", "HOME", "LANG", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
        "XDG_DATA_DIRS",
        "XDG_RUNTIME_DIR", "CEPH_CONF", "CEPH_ARGS", "DBUS_SYSTEM_BUS_ADDRESS", "DBUS_SESSION_BUS_ADDRESS",
    ]
    #if DEBUG
        names += [inspectionVariable, "OBSCURA_CLAIM_TIMES", "OBSCURA_NO_LOCKS", "OBSCURA_LIMITS"]
    #endif
    let kept = names.compactMap { name in getenv(name).map { "\(name)=\(pathText($0))" } }
    return [backtracerOff] + kept
}
