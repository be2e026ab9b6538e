import Glibc
import LinuxIO
import Synchronization
import TestSupport
import Testing

@testable import VaultStore

/// What the change times of a vault's files tell, which the host gives and nobody can set.
@Suite struct ChangeTimeTests {
    private let directory = TemporaryDirectory()
    /// The header, two directories above those of the two spaces, and four segments in each of these.
    private static let fileCount = 13

    @Test(arguments: [true, false])
    func `files are changed at one time, whichever were written just before`(writes: Bool) throws {
        let path = try makeVault(directory, spaces: 2, bytes: 16 << 20)
        let calls = ClockedCalls(callsPerTick: 200)
        let unlocked = try Vault.unlock(path, password: secret("one"), calls: calls)
        let space = try unlocked.openSpace(readOnly: false)
        for phase in stride(from: 0, to: 200, by: 13) {
            calls.setPhase(phase)
            if writes {
                _ = try space.writeAll(1, bytes(50_000, seed: UInt64(phase)))
                try space.commit(durable: true)
            }
            calls.forgetTimes()
            unlocked.levelTimes()
            #expect(calls.times.count == Self.fileCount)
            #expect(Set(calls.times.values).count == 1, "phase \(phase)")
        }
    }

    @Test func `a clock that never stands still is not waited for`() throws {
        let path = try makeVault(directory, spaces: 2, bytes: 16 << 20)
        let calls = ClockedCalls(callsPerTick: 1)
        let unlocked = try Vault.unlock(path, password: secret("one"), calls: calls)
        unlocked.levelTimes()
        #expect(calls.times.count == Self.fileCount)
        #expect(calls.settingCount <= 8 * Self.fileCount)
    }
}

/// The real calls, on a host whose clock goes on with each of them. It dates changes as Linux does since 6.13: by its
/// last tick; but exactly, where the file was looked at since it was last changed and would get the same time again.
private final class ClockedCalls: ForwardingCalls {
    private struct State {
        /// In calls, as all times here.
        var now = 0
        /// The last exact date: none after it is earlier.
        var exact = 0
        /// By inode, when it was changed last.
        var changed: [UInt64: Int] = [:]
        var lookedAt: Set<UInt64> = []
        /// By path, when it was changed by the last setting of its times.
        var times: [String: Int] = [:]
        var settingCount = 0
    }
    private let state = Mutex(State())
    private let callsPerTick: Int

    init(callsPerTick: Int) { self.callsPerTick = callsPerTick }

    var times: [String: Int] { state.withLock { $0.times } }
    var settingCount: Int { state.withLock { $0.settingCount } }
    func forgetTimes() { state.withLock { $0.times = [:] } }

    /// Has the clock be so many calls after a tick.
    func setPhase(_ calls: Int) {
        state.withLock { $0.now = ($0.now / callsPerTick + 1) * callsPerTick + calls }
    }

    private func tick(_ state: State) -> Int { state.now / callsPerTick * callsPerTick }

    @discardableResult
    private func noteChange(_ inode: UInt64) -> Int {
        state.withLock { state in
            var time = max(tick(state), state.exact)
            if let last = state.changed[inode], state.lookedAt.contains(inode), time <= last {
                time = state.now
                state.exact = time
            }
            state.changed[inode] = time
            state.lookedAt.remove(inode)
            return time
        }
    }

    func willCall(_ call: SystemCall, _ descriptor: Int32) throws(Errno) {
        state.withLock { $0.now += 1 }
        switch call {
        case .write: noteChange(try real.status(descriptor).inode)
        case .status:
            let inode = try real.status(descriptor).inode
            state.withLock { _ = $0.lookedAt.insert(inode) }
        default: break
        }
    }

    func setTimes(_ directory: Int32, _ path: String, _ time: Timestamp) throws(Errno) {
        try willCall(.setTimes, directory)
        try real.setTimes(directory, path, time)
        let descriptor = try real.open(directory, path, flags: O_RDONLY, mode: 0)
        defer { real.close(descriptor) }
        let changed = noteChange(try real.status(descriptor).inode)
        state.withLock { state in
            state.times[path] = changed
            state.settingCount += 1
        }
    }

    func changeTime() -> Timestamp { state.withLock { Timestamp(seconds: Int64(tick($0))) } }
}
