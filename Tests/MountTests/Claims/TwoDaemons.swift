import Foundation
import Glibc
import LinuxIO
import Synchronization
import TestSupport
import Testing

/// The bytes of files that must be there, by name: told safe by fsync(2). Used by several threads.
final class SafeFiles: Sendable {
    private let files = Mutex<[String: [UInt8]]>([:])

    func add(_ name: String, _ bytes: [UInt8]) { files.withLock { $0[name] = bytes } }
    func remove(_ name: String) { files.withLock { $0[name] = nil } }
    var all: [String: [UInt8]] { files.withLock { $0 } }
}

/// A program that writes files one after the other into an album, each with fsync(2), until one fails or it is to end.
/// It keeps the newest ones, so that it never fills the space, however fast it is.
final class FileWriter: Sendable {
    private static let keptMax = 80

    private let directory: String
    private let safe: SafeFiles
    private let state = Mutex((isEnding: false, isEnded: false, count: 0))
    /// Why it has ended; 0: it was to.
    let failure = Mutex<Int32>(0)

    /// - Parameter name: the prefix of its files' names.
    init(_ directory: String, _ name: String, _ safe: SafeFiles, seed: UInt64) {
        self.directory = directory
        self.safe = safe
        Thread.detachNewThread { [self] in
            var random = RandomSource(seed)
            var number = 0
            while !state.withLock({ $0.isEnding }) {
                number += 1
                let count = Int.random(in: 1..<(number % 7 == 0 ? 600_000 : 20_000), using: &random)
                guard put("\(name)-\(number)", Self.bytes(count, &random)) else { break }
                guard number <= Self.keptMax || remove("\(name)-\(number - Self.keptMax)") else { break }
                state.withLock { $0.count += 1 }
            }
            state.withLock { $0.isEnded = true }
        }
    }

    var count: Int { state.withLock { $0.count } }
    var isEnded: Bool { state.withLock { $0.isEnded } }
    func end() { state.withLock { $0.isEnding = true } }

    private static func bytes(_ count: Int, _ random: inout RandomSource) -> [UInt8] {
        var word = random.next()
        return [UInt8](unsafeUninitializedCapacity: count) { bytes, filled in
            for index in 0..<count {
                if index % 8 == 0 { word = word &* 0x5851_F42D_4C95_7F2D &+ 1_442_695_040_888_963_407 }
                bytes[index] = UInt8(truncatingIfNeeded: word >> UInt64(56 - index % 8 * 8))
            }
            filled = count
        }
    }

    /// False where it was not told safe.
    private func put(_ name: String, _ bytes: [UInt8]) -> Bool {
        let file = open("\(directory)/\(name)", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard file >= 0 else { return fail() }
        defer { close(file) }
        guard write(file, bytes, bytes.count) == bytes.count, fsync(file) == 0 else { return fail() }
        safe.add(name, bytes)
        return true
    }

    private func remove(_ name: String) -> Bool {
        safe.remove(name)
        return unlink("\(directory)/\(name)") == 0 || fail()
    }

    private func fail() -> Bool {
        let error = errno
        failure.withLock { $0 = error }
        return false
    }
}

/// A vault that two daemons of this machine have in common by a host whose locks do nothing, each with a mount of its
/// own.
final class TwoDaemons {
    /// The storage between the daemons and the vault.
    enum Storage {
        /// Two FUSE mounts of one directory, as two computers might have.
        case bindfs
        /// The debug build's calls, whose locks do nothing.
        case noLocks
    }

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    let place: Place
    private let storage: Storage
    /// For the daemons' environment: times other than usual, or none.
    private let times: String?

    init(spaces: Int, _ storage: Storage, times: String?) throws {
        (self.storage, self.times) = (storage, times)
        place = try Place(spaces: spaces, size: "64M")
        try place.shell("mkdir D0 D1 B0 B1 real; mv V real/V")
        if storage == .bindfs { try place.shell("bindfs real B0; bindfs real B1") }
    }

    deinit {
        for number in 0..<2 {
            if let daemon = daemon(number) {
                kill(daemon, SIGCONT)
                kill(daemon, SIGKILL)
            }
            while umount2(directory(number), Int32(MNT_DETACH)) == 0 {}
        }
        _ = eventually { daemon(0) == nil && daemon(1) == nil }
        for number in 0..<2 { while umount2("\(place.root)/B\(number)", Int32(MNT_DETACH)) == 0 {} }
    }

    func directory(_ number: Int) -> String { "\(place.root)/D\(number)" }
    func vault(_ number: Int) -> String {
        storage == .bindfs ? "\(place.root)/B\(number)/V" : "\(place.root)/real/V"
    }

    /// The process that serves a mount.
    func daemon(_ number: Int) -> pid_t? {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.compactMap { pid_t($0) }.first { process in
            let line = contents(ofFile: "/proc/\(process)/cmdline") ?? []
            let words = line.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
            return words.dropFirst().first == "--daemon" && words.last == directory(number)
        }
    }

    private var variables: [String] {
        (storage == .noLocks ? ["OBSCURA_NO_LOCKS=1"] : [])
            + (times.map { ["OBSCURA_CLAIM_TIMES=\($0)"] } ?? [])
    }

    func mount(_ number: Int, options: String = "rw") throws -> Ended {
        let words = [
            obscura, "mount", vault(number), directory(number), "-o", options, "--password-stdin",
        ]
        return try place.run(["env"] + variables + words, "one\n")
    }

    func mustMount(_ number: Int, options: String = "rw") throws {
        let ended = try mount(number, options: options)
        guard ended.status == 0 else {
            throw Failure(description: "mount \(number), \(options): \(ended.status): \(ended.errors)")
        }
    }

    /// Takes a mount away though its daemon may have more to write, and waits for its end.
    func takeAway(_ number: Int) throws {
        _ = umount2(directory(number), Int32(MNT_DETACH))
        guard eventually({ daemon(number) == nil }) else {
            throw Failure(description: "daemon \(number) lives on: \(threads(of: number))")
        }
    }

    /// Where the threads of a daemon are in the kernel, and in which state.
    private func threads(of number: Int) -> String {
        guard let daemon = daemon(number) else { return "it has ended now" }
        return (try? place.shell("grep -H . /proc/\(daemon)/task/*/{stat,wchan}")) ?? "?"
    }

    /// Safe files that a mount does not show as they must be.
    func missing(_ files: SafeFiles, in number: Int) -> [String] {
        files.all.sorted { $0.key < $1.key }.compactMap { name, bytes in
            let path = "\(directory(number))/albums/\(name)"
            guard let found = try? place.bytes(path) else {
                return "\(name): nothing of \(bytes.count) bytes"
            }
            return found == bytes ? nil : "\(name): other bytes, \(found.count) of \(bytes.count)"
        }
    }
}
