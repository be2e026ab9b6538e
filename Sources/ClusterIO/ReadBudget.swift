import LinuxIO

/// Limits the bytes of reads that wait for their answers: many programs may read while a server is away, and the
/// answers all come when it is back.
///
/// Unchecked Sendable: `bytes` is guarded by `lock`.
final class ReadBudget: @unchecked Sendable {
    private let lock = Lock()
    private let hasRoom = Condition()
    private var bytes = 0

    /// With the writes on their way no more than 64 MiB, of which librados has copies.
    static let bytesMax = 16 << 20

    /// Waits while so many bytes are too many. A read that is larger than all waits until it is the only one.
    func take(_ count: Int) {
        lock.withLock {
            while !fits(count) { hasRoom.wait(lock) }
            bytes += count
        }
    }

    /// As `take`, without waiting. Returns false if it would have to.
    func takeAtOnce(_ count: Int) -> Bool {
        lock.withLock {
            guard fits(count) else { return false }
            bytes += count
            return true
        }
    }

    func giveBack(_ count: Int) {
        lock.withLock {
            bytes -= count
            hasRoom.signalAll()
        }
    }

    /// Under the lock.
    private func fits(_ count: Int) -> Bool { bytes == 0 || bytes + count <= Self.bytesMax }
}
