import Foundation
import Glibc
import LinuxIO
import Synchronization
import TestSupport
import Testing

/// The program.
let obscura = builtProgram("obscura")

/// A directory with a vault V and a mount point D. At a test's end nothing of this is
/// mounted, running or there.
final class Place {
    let root = "/tmp/obscura-mount-\(UUID().uuidString)"
    var vault: String { root + "/V" }
    var mountPoint: String { root + "/D" }
    var albums: String { mountPoint + "/albums" }
    var moments: String { mountPoint + "/moments" }

    /// For all programs, beside the plain environment.
    private let variables: [String: String]
    /// The `daemon` that was found last.
    private let foundDaemon = Mutex<pid_t?>(nil)

    /// Makes a vault of quick key derivation, whose first space opens with "one".
    ///
    /// - Parameter isLeast: whether the vault has hundreds of the smallest segments, and all programs the least limits.
    init(spaces: Int = 1, size: String = "48M", isLeast: Bool = false) throws {
        variables = isLeast ? ["OBSCURA_LIMITS": "least"] : [:]
        try FileManager.default.createDirectory(atPath: mountPoint, withIntermediateDirectories: true)
        // What other tests copy into namespaces of their own (`unshare --propagation slave`) then goes when it is
        // unmounted here, and does not hold it.
        if geteuid() == 0 {
            try #require(Glibc.mount(root, root, nil, UInt(MS_BIND), nil) == 0)
            try #require(Glibc.mount(nil, root, nil, UInt(MS_SHARED), nil) == 0)
        }
        let words = ["create", vault, "--spaces=\(spaces)", "--kdf-memory=8M", "--kdf-passes=1"]
        let made = try run(
            [obscura] + words + (spaces == 1 ? [] : ["--size=\(size)"]) + ["--password-stdin"], "one\n")
        try #require(made.status == 0, "\(made.errors)")
    }

    deinit {
        // Ends the daemon also where a program still stands in the mount.
        while umount2(mountPoint, Int32(MNT_DETACH)) == 0 {}
        _ = eventually { daemon == nil }
        if geteuid() == 0 { _ = umount2(root, Int32(MNT_DETACH)) }
        try? FileManager.default.removeItem(atPath: root)
    }

    /// That of all programs.
    var environment: [String: String] {
        Child.plainEnvironment.merging(variables) { $1 }.merging(["HOME": root]) { $1 }
    }

    /// Runs a program to its end, without a terminal, in the directory of this place.
    @discardableResult
    func run(_ words: [String], _ input: String = "") throws -> Ended {
        try Child(
            words, environment: environment, directory: root,
            input: .text(input), output: .collected, errors: .collected, asSession: true
        ).finish()
    }

    /// A function of the shell that tries a command anew for ten seconds: a program that another test starts, or a
    /// desktop's that looks into all mounts, keeps a mount busy for a moment.
    static let patiently = """
        patiently() {
            for try in {1..100}; do refusal=$("$@" 2>&1) && return; sleep 0.1; done
            echo "$refusal" >&2; return 1
        }

        """

    /// Runs a line of the shell, which must succeed, and returns its output. It may call `patiently`.
    @discardableResult
    func shell(_ line: String, location: SourceLocation = #_sourceLocation) throws -> String {
        let ended = try run(["/bin/bash", "-ec", Self.patiently + line])
        #expect(ended.status == 0, "\(line): \(ended.errors)\(ended.output)", sourceLocation: location)
        return ended.output
    }

    /// - Parameter variables: `NAME=value` each, for the program's environment.
    func mount(
        password: String = "one", options: String = "rw", variables: [String] = [],
        location: SourceLocation = #_sourceLocation
    ) throws {
        let words = [obscura, "mount", vault, mountPoint, "-o", options, "--password-stdin"]
        let ended = try run(["env"] + variables + words, password + "\n")
        try #require(ended.status == 0, "\(ended.errors)", sourceLocation: location)
    }

    /// Patiently: a program that another test starts has this process's descriptors until it is a program of its own.
    func unmount(location: SourceLocation = #_sourceLocation) throws {
        var errors = ""
        let isUnmounted = try eventually {
            let ended = try run([obscura, "unmount", mountPoint])
            errors = ended.errors
            try #require(
                ended.status == 0 || errors.contains(") is using it: "), "\(errors)", sourceLocation: location
            )
            return ended.status == 0
        }
        try #require(isUnmounted, "\(errors)", sourceLocation: location)
    }

    /// Waits until all that was closed is in a root, which a kill leaves.
    func awaitCommit(location: SourceLocation = #_sourceLocation) throws {
        let isCommitted = try eventually {
            let told = try run([obscura, "status", mountPoint, "--json"])
            return try jsonObject(told.output)["committed"] as? Bool == true
        }
        try #require(isCommitted, sourceLocation: location)
    }

    /// The process that serves the mount; nil where there is none.
    var daemon: pid_t? {
        // Every test looks for it among all processes, and again until it has ended.
        if let found = foundDaemon.withLock({ $0 }), isDaemon(found) { return found }
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        let found = names.lazy.compactMap { pid_t($0) }.first(where: isDaemon)
        foundDaemon.withLock { $0 = found }
        return found
    }

    private func isDaemon(_ process: pid_t) -> Bool {
        let line = contents(ofFile: "/proc/\(process)/cmdline") ?? []
        let end = Array("\0\(mountPoint)\0".utf8)
        guard line.count > end.count, memcmp(Array(line.suffix(end.count)), end, end.count) == 0 else {
            return false
        }
        return line.split(separator: 0).dropFirst().first?.elementsEqual("--daemon".utf8) == true
    }

    /// Writes a file outside the mount and returns its path.
    @discardableResult
    func source(_ name: String, _ bytes: [UInt8], modified: Int? = nil) throws -> String {
        let path = root + "/source/" + name
        let parent = URL(fileURLWithPath: path).deletingLastPathComponent().path
        try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        if let modified {
            var times = [timespec(tv_sec: modified, tv_nsec: 0), timespec(tv_sec: modified, tv_nsec: 0)]
            #expect(utimensat(AT_FDCWD, path, &times, 0) == 0)
        }
        return path
    }

    /// Files below a directory, as paths from there, in order.
    func files(_ directory: String) throws -> [String] {
        try shell("cd '\(directory)'; find . -type f -printf '%P\\n' | LC_ALL=C sort")
            .split(separator: "\n").map(String.init)
    }

    /// Every photo of the space, as `day/name`.
    func shown() throws -> [String] { try files(moments) }

    func bytes(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: path))) }
}

/// The answer of lstat(2).
func status(_ path: String) throws -> stat {
    var found = stat()
    try #require(lstat(path, &found) == 0, "\(path): \(String(cString: strerror(errno)))")
    return found
}

func exists(_ path: String) -> Bool {
    var found = stat()
    return lstat(path, &found) == 0
}

/// The error of a call that must fail; nil if it did not.
func errorNumber(_ result: Int32) -> Int32? { result == 0 ? nil : errno }

/// The one object that a `--json` printed, on one line.
func jsonObject(_ output: String) throws -> [String: Any] {
    #expect(output.hasSuffix("}\n") && output.split(separator: "\n").count == 1, "\(output)")
    return try #require(try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any])
}
