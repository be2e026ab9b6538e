import Foundation
import LinuxIO
import PhotoLibrary
import TestSupport
import Testing

@testable import FuseBridge

/// A real library in a vault of its own.
final class TestLibrary {
    let library: Library
    fileprivate let vault: TestVault

    init(_ change: (inout LibraryOptions) -> Void = { _ in }) throws {
        vault = try TestVault(bytesPerSpace: 256 << 20)
        var options = LibraryOptions(owner: (getuid(), getgid()), mountedByRoot: true)
        options.workerPath = workerPath
        change(&options)
        library = try Library.open(vault.unlock(), options: options)
        library.didGoLive()
    }
}

/// A library mounted for one test, served by a thread of its own.
final class MountedLibrary: @unchecked Sendable {
    private let made: TestLibrary
    var library: Library { made.library }
    /// The calls with which the vault is opened.
    var calls: FaultyCalls { made.vault.calls }
    let session: MountSession
    let mountPoint: String
    /// Where the test makes its files: `albums`.
    let directory: String
    private let finished = DispatchSemaphore(value: 0)
    private var thread: WorkerThread?
    private var end: MountEnd?

    /// - Parameter onLive: called on the session's thread, which watches the mount only after that.
    init(
        _ change: (inout MountOptions) -> Void = { _ in },
        library: (inout LibraryOptions) -> Void = { _ in }, onLive: @escaping @Sendable () -> Void = {}
    ) throws {
        var template = Array("/tmp/fusebridge-XXXXXX".utf8CString)
        mountPoint = String(cString: try #require(mkdtemp(&template)))
        directory = mountPoint + "/albums"
        var options = MountOptions()
        options.handlesSignals = false
        change(&options)
        made = try TestLibrary(library)
        session = try MountSession.mount(made.library, at: mountPoint, options: options)
        let live = DispatchSemaphore(value: 0)
        thread = try WorkerThread { [self] in
            end = try? session.run {
                live.signal()
                onLive()
            }
            finished.signal()
        }
        try #require(live.wait(timeout: .now() + 300) == .success)
    }

    /// How `run` ended; fails the test when it does not within so many seconds.
    func waitForEnd(seconds: Double = 300) throws -> MountEnd {
        try #require(finished.wait(timeout: .now() + seconds) == .success)
        finished.signal()
        // Until then it keeps the session, whose end puts back the handlers of signals: of the next session, maybe.
        thread?.join()
        thread = nil
        return try #require(end)
    }

    func path(_ name: String) -> String { directory + "/" + name }

    /// The value of a line that `obscura status` receives.
    private func statusLine(_ key: String) throws -> String {
        var value = [UInt8](repeating: 0, count: 65_536)
        let count = getxattr(mountPoint, "user.obscura.status", &value, value.count)
        try #require(count > 0)
        let lines = String(decoding: value[..<count], as: UTF8.self).split(separator: "\n")
        return String(try #require(lines.first { $0.hasPrefix(key + "=") }).dropFirst(key.count + 1))
    }

    /// Requests of the kernel so far, by operation.
    func requestCounts() throws -> [String: Int] {
        let pairs = try statusLine("requests").split(separator: " ").map { $0.split(separator: ":") }
        return Dictionary(
            uniqueKeysWithValues: pairs.compactMap { pair in Int(pair[1]).map { (String(pair[0]), $0) } })
    }

    var isMounted: Bool { isMountPoint(mountPoint) }

    /// Unmounts, closes the library and tidies up; every test ends with it.
    func finish() throws {
        session.unmount()
        _ = try waitForEnd()
        #expect(!isMounted)
        #expect(rmdir(mountPoint) == 0)
        try library.close()
    }
}

func isMountPoint(_ path: String) -> Bool { mountTable().contains { $0.directory == path } }

/// Mounts, runs the test, and always unmounts.
func withMount(_ change: (inout MountOptions) -> Void = { _ in }, _ body: (MountedLibrary) throws -> Void)
    throws
{
    let mounted = try MountedLibrary(change)
    let result = Result { try body(mounted) }
    try mounted.finish()
    try result.get()
}

/// errno of a call that must fail, 0 when it succeeds.
func failure(_ call: () -> Int) -> Int32 { call() == -1 ? errno : 0 }

func write(_ text: String, to path: String) throws {
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
}

func read(_ path: String) throws -> String { try String(contentsOfFile: path, encoding: .utf8) }

func status(_ path: String) throws -> stat {
    var result = stat()
    try #require(lstat(path, &result) == 0)
    return result
}
