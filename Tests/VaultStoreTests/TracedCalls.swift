import Glibc
import LinuxIO
import Synchronization
import TestSupport
import VaultCrypto
import VaultStore

/// The real calls but for syncs, written down, and for a test ended at one of them, or on a disk without room.
final class TracedCalls: ForwardingCalls {
    enum Event: Equatable {
        case write(offset: UInt64, bytes: Int)
        case sync
    }

    private struct State {
        /// Of the file with this inode.
        var traced: UInt64?
        var events: [Event] = []
        /// Calls left that change something; the last of them kills the process.
        var changesLeft = Int.max
        var isFull = false
        /// Inodes of files that have all disk they will need.
        var reserved: Set<UInt64> = []
        /// Writes of whole MiB, as those that fill segments, leave holes.
        var leavesHoles = false
        var reservesNothing = false
    }
    private let state = Mutex(State())

    /// Records the calls on the file at `path` from now on.
    func trace(_ path: String) throws {
        let descriptor = try real.open(AT_FDCWD, path, flags: O_RDONLY, mode: 0)
        defer { real.close(descriptor) }
        let inode = try real.status(descriptor).inode
        state.withLock { ($0.traced, $0.events) = (inode, []) }
    }
    var events: [Event] { state.withLock { $0.events } }
    /// The process is killed in the call that changes something after so many of them.
    func die(after changes: Int) { state.withLock { $0.changesLeft = changes + 1 } }
    func revive() { state.withLock { $0.changesLeft = .max } }
    var isRetired: Bool { state.withLock { $0.changesLeft == 0 } }
    /// Files have been removed, and others may get their inodes.
    func forgetReservations() { state.withLock { $0.reserved = [] } }
    func setFull(_ isFull: Bool) { state.withLock { $0.isFull = isFull } }
    /// A host that sets no disk aside.
    func reserveNothing() { state.withLock { $0.reservesNothing = true } }
    func leaveHoles() { state.withLock { $0.leavesHoles = true } }

    private enum Life {
        case living, dying, dead
    }

    private func live() -> Life {
        state.withLock { state in
            if state.changesLeft == 0 { return .dead }
            state.changesLeft -= 1
            return state.changesLeft == 0 ? .dying : .living
        }
    }

    func willCall(_ call: SystemCall, _ descriptor: Int32) throws(Errno) {
        if call.isChange && live() != .living { throw .inputOutput }
    }

    private func note(_ d: Int32, _ event: Event) throws(Errno) {
        let inode = try real.status(d).inode
        state.withLock { if $0.traced == inode { $0.events.append(event) } }
    }

    func pwrite(_ d: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(Errno) -> Int {
        let status = try real.status(d)
        let (isFull, leavesHoles) = state.withLock { state in
            (state.isFull && !state.reserved.contains(status.inode), state.leavesHoles)
        }
        if isFull, offset + UInt64(bytes.count) > status.size { throw .noSpace }
        switch live() {
        case .living: break
        case .dying:
            _ = try real.pwrite(
                d, UnsafeRawBufferPointer(rebasing: bytes.prefix(bytes.count / 2)), at: offset)
            throw .inputOutput
        case .dead: throw .inputOutput
        }
        try note(d, .write(offset: offset, bytes: bytes.count))
        if leavesHoles && bytes.count == 1 << 20 {
            try real.truncate(d, to: offset + UInt64(bytes.count))
            return bytes.count
        }
        return try real.pwrite(d, bytes, at: offset)
    }
    // Nothing here outlives the process: the page cache is as good as the disk.
    func dataSync(_ d: Int32) throws(Errno) { try sync(d) }
    func sync(_ d: Int32) throws(Errno) {
        try willCall(.sync, d)
        try note(d, .sync)
    }
    func reserve(_ d: Int32, bytes: UInt64) throws(Errno) {
        try willCall(.allocate, d)
        if state.withLock({ $0.reservesNothing }) { throw .notSupported }
        let inode = try real.status(d).inode
        let isRefused = state.withLock { state in
            if state.isFull { return !state.reserved.contains(inode) }
            state.reserved.insert(inode)
            return false
        }
        if isRefused { throw .noSpace }
        try real.reserve(d, bytes: bytes)
    }
}

/// Stretches at no cost, and counts.
final class QuickStretcher: PasswordStretcher {
    private let count = Mutex(0)
    /// Runs since it was asked last.
    func runs() -> Int {
        count.withLock { count in
            defer { count = 0 }
            return count
        }
    }

    func stretch(
        _ password: SecretBytes, salt: [UInt8], parameters: KDFParameters
    ) throws(VaultError) -> SecretBytes {
        count.withLock { $0 += 1 }
        let key = SecretBytes(count: 32)
        key.withUnsafeMutableBytes { key in
            password.withUnsafeBytes { password in salt.withUnsafeBytes { hash([password, $0], into: key) } }
        }
        return key
    }
}
