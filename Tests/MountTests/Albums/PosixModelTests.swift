import Foundation
import Glibc
import TestThreads
import Testing

@testable import TestSupport

/// Random POSIX calls in an album and in a directory of tmpfs at a time: both must answer the same, and have the same
/// in them, from four threads, with unmounts and kills between. `scripts/model` tries many seeds.
@Suite("Albums: an ordinary POSIX tree, compared with tmpfs", .serialized, .waiting) struct PosixModelTests {
    private static let threads = 4

    @Test(arguments: InterfaceModelTests.seeds)
    func `an album is what tmpfs is`(seed: UInt64) throws {
        let place = try Place(isLeast: seed % 2 == 0)
        let known = "/dev/shm/\(URL(fileURLWithPath: place.root).lastPathComponent)"
        defer { try? FileManager.default.removeItem(atPath: known) }
        try place.mount()
        try place.shell("mkdir '\(known)' D/albums/x")
        let common = CommonInodes()
        let seats = (0..<Self.threads).map {
            Seat(
                TwinPlayer(
                    known: known, tried: place.albums + "/x", number: $0, seed: seed, common: common))
        }
        for seat in seats { try seat.player.makeHome() }
        for turn in 0..<4 {
            try work(seats, steps: 150)
            for seat in seats { seat.player.closeAll() }
            seats[0].player.forgetOpenFiles()
            try seats[0].player.compare()
            if turn % 2 == 1 { try place.killAndMount(syncing: place.albums) } else { try place.mountAnew() }
            try seats[0].player.compare("mounted anew: ")
        }
    }

    /// Where a player sits. Unchecked Sendable: one thread at a time uses it.
    private final class Seat: @unchecked Sendable {
        var player: TwinPlayer
        init(_ player: TwinPlayer) { self.player = player }
    }

    /// Each player works in a directory of its own; now and then one reaches into others', or works on files that they
    /// have in common, while these wait.
    private func work(_ seats: [Seat], steps: Int) throws {
        let gate = Gate()
        let failures = Failures()
        DispatchQueue.concurrentPerform(iterations: seats.count) { number in
            do {
                for step in 0..<steps {
                    if step % 10 == 9 {
                        try gate.alone { try seats[number].player.reachOver(players: seats.count) }
                    } else {
                        try self.step(seats[number], gate)
                    }
                }
            } catch { failures.add(error) }
        }
        if let first = failures.first { throw first }
    }

    private func step(_ seat: Seat, _ gate: Gate) throws {
        let operation = seat.player.choose()
        let isDone = try gate.together {
            if seat.player.isCommon(operation) { return false }
            try seat.player.perform(operation)
            return true
        }
        if !isDone { try gate.alone { try seat.player.perform(operation) } }
    }

    /// A lock that many have together or one alone; pthread_rwlock_wrlock(3). Unchecked Sendable: that is its nature.
    private final class Gate: @unchecked Sendable {
        private let lock = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)
        init() { pthread_rwlock_init(lock, nil) }
        deinit {
            pthread_rwlock_destroy(lock)
            lock.deallocate()
        }
        func together<R>(_ body: () throws -> R) rethrows -> R {
            pthread_rwlock_rdlock(lock)
            defer { pthread_rwlock_unlock(lock) }
            return try body()
        }
        func alone(_ body: () throws -> Void) rethrows {
            pthread_rwlock_wrlock(lock)
            defer { pthread_rwlock_unlock(lock) }
            try body()
        }
    }
}

/// The errors of several threads. Unchecked Sendable: `lock` guards the errors.
final class Failures: @unchecked Sendable {
    private let lock = NSLock()
    private var errors: [any Error] = []
    func add(_ error: any Error) { lock.withLock { errors.append(error) } }
    var first: (any Error)? { lock.withLock { errors.first } }
}

extension Place {
    /// Ends the mount in peace and begins the next.
    func mountAnew() throws {
        try unmount()
        try mount()
    }

    /// Kills the daemon, after all was synced where a directory is named, and mounts again.
    func killAndMount(syncing directory: String? = nil) throws {
        if let directory { try #require(MountedTree(root: directory).sync() == 0) }
        kill(try #require(daemon), SIGKILL)
        #expect(eventually { daemon == nil })
        try mount()
    }
}
