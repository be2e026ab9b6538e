import LinuxIO
import Synchronization
import Testing
import VaultFormat

@testable import VaultStore

/// The real calls, of which chosen ones fail.
final class FaultyCalls: FileSystemCalls {
    /// Writes and syncs left before one fails; negative: none fails.
    let countdown = Mutex(-1)
    let error: Errno

    init(_ error: Errno) { self.error = error }

    private func count() throws(Errno) {
        let isDue = countdown.withLock { left in
            if left < 0 { return false }
            left -= 1
            return left < 0
        }
        if isDue { throw error }
    }

    private var real: LinuxCalls { .shared }

    func open(_ directory: Int32, _ path: String, flags: Int32, mode: UInt32) throws(Errno) -> Int32 {
        try real.open(directory, path, flags: flags, mode: mode)
    }
    func close(_ descriptor: Int32) { real.close(descriptor) }
    func pread(_ d: Int32, _ bytes: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(Errno) -> Int {
        try real.pread(d, bytes, at: offset)
    }
    func pwrite(_ d: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(Errno) -> Int {
        try count()
        // Short, as a kernel may be.
        let part = UnsafeRawBufferPointer(rebasing: bytes.prefix(max(1, bytes.count / 2)))
        return try real.pwrite(d, part, at: offset)
    }
    func dataSync(_ d: Int32) throws(Errno) {
        try count()
        try real.dataSync(d)
    }
    func sync(_ d: Int32) throws(Errno) {
        try count()
        try real.sync(d)
    }
    func truncate(_ d: Int32, to size: UInt64) throws(Errno) { try real.truncate(d, to: size) }
    func allocate(_ d: Int32, offset: UInt64, length: UInt64) throws(Errno) {
        try count()
        try real.allocate(d, offset: offset, length: length)
    }
    func status(_ d: Int32) throws(Errno) -> FileStatus { try real.status(d) }
    func hostStatus(_ d: Int32) throws(Errno) -> HostStatus { try real.hostStatus(d) }
    func setTimes(_ d: Int32, _ time: Timestamp) throws(Errno) { try real.setTimes(d, time) }
    func makeDirectory(_ d: Int32, _ path: String, mode: UInt32) throws(Errno) {
        try real.makeDirectory(d, path, mode: mode)
    }
    func unlink(_ d: Int32, _ path: String) throws(Errno) { try real.unlink(d, path) }
    func list(_ d: Int32) throws(Errno) -> [String] { try real.list(d) }
    func lock(_ d: Int32) throws(Errno) { try real.lock(d) }
}

@Suite struct FaultTests {
    let directory = TemporaryDirectory()

    /// Every write and sync of a few commits fails once. What was published before stays, what failed is
    /// published by the next try, and a mount at any moment finds one of the two.
    @Test(arguments: [Errno.inputOutput, .noSpace])
    func anyCallMayFail(error: Errno) throws {
        let calls = FaultyCalls(error)
        let path = try makeVault(directory, calls: calls)
        let data = bytes(300_000, seed: 11)
        var kept: Space? = try openSpace(path, calls: calls)
        kept?.stage(0, 1)
        try kept?.commit(durable: true)
        var round: UInt8 = 1
        for n in 0..<60 {
            round += 1
            if kept == nil { kept = try openSpace(path, calls: calls) }
            let space = try #require(kept)
            calls.countdown.withLock { $0 = n }
            space.stage(0, round)
            space.stage(UInt32(n) + 1, round)
            var failed = false
            do {
                let runs = try space.writeAll(UInt64(n), data)
                space.adopt(runs)
                try space.commit(durable: n % 2 == 0)
                try space.commit(durable: true)
                #expect(try space.readAll(UInt64(n), runs) == data)
                space.free(runs)
            } catch { failed = true }
            calls.countdown.withLock { $0 = -1 }
            #expect(try space.page(0) == round)
            if failed { try space.commit(durable: true) }
            #expect(try space.page(0) == round && space.page(UInt32(n) + 1) == round)
            if n % 3 == 0 { try space.close() }
            if n % 3 != 2 { kept = nil }
        }
    }
}
