import Glibc
import LinuxIO

/// A read of a part of an object that runs beside others. It belongs to its callback as well, until it is answered.
///
/// Unchecked Sendable: `answer` and `request` are guarded by `lock`; the bytes are not changed once there is an answer.
final class StartedRead: @unchecked Sendable {
    private let bytes: UnsafeMutableRawBufferPointer
    /// Set before anybody else has this object.
    private var begun: (any PoolRequest)?
    private let lock = Lock()
    private let hasEnded = Condition()
    private var request: RequestMeter.Request?
    private let budget: ReadBudget
    /// The number of bytes, or an error as a negative number.
    private var answer: Int32?

    /// Nil if it could not be begun.
    init?(
        _ connection: any PoolConnection, _ object: String, _ range: Range<UInt64>, _ meter: RequestMeter,
        _ budget: ReadBudget
    ) {
        guard budget.takeAtOnce(range.count) else { return nil }
        bytes =
            range.count == Self.pool.bufferBytes
            ? Self.pool.take() : .allocate(byteCount: range.count, alignment: 4096)
        self.budget = budget
        request = meter.begin(.read, bytes: range.count)
        do throws(Errno) {
            begun = try connection.startRead(object, at: range.lowerBound, into: bytes) {
                self.end($0.result)
            }
        } catch {
            budget.giveBack(range.count)
            return nil
        }
    }

    deinit { if bytes.count == Self.pool.bufferBytes { Self.pool.give(bytes) } else { bytes.deallocate() } }

    /// Of reads as large as any, which are most of a photo's: fresh memory would take as long as the copying.
    private static let pool = BufferPool(bufferBytes: 1 << 20, keptMax: 8)

    private func end(_ result: Int32) {
        lock.withLock {
            answer = result
            request = nil
            hasEnded.signalAll()
        }
        budget.giveBack(bytes.count)
    }

    /// Ends it with an error, if it is not answered yet.
    func cancel() {
        let isOver = lock.withLock { answer != nil }
        if !isOver { begun?.cancel() }
    }

    /// Waits for the answer, and copies the bytes from an offset on. Those that the object lacks are zeros. Returns
    /// whether there is such an object; nil if reading failed.
    func copy(from offset: Int, to buffer: UnsafeMutableRawBufferPointer) -> Bool? {
        let answer = lock.withLock { () -> Int32 in
            while true {
                if let answer = self.answer { return answer }
                hasEnded.wait(lock)
            }
        }
        guard answer >= 0 || answer == -ENOENT else { return nil }
        let found = max(0, min(Int(max(answer, 0)) - offset, buffer.count))
        buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + found]))
        UnsafeMutableRawBufferPointer(rebasing: buffer[found...]).initializeMemory(
            as: UInt8.self, repeating: 0)
        return answer >= 0
    }
}
