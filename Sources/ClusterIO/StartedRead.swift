import Glibc
import LinuxIO

/// A read of a part of an object that runs beside others. It belongs to its callback as well, until it is answered.
///
/// Unchecked Sendable: `answer` and `request` are guarded by `lock`; the bytes are not changed once there is an answer.
final class StartedRead: @unchecked Sendable {
    private let bytes: UnsafeMutableRawBufferPointer
    /// Of the pool, `bytes` being its beginning; nil for a buffer of its own.
    private let pooled: UnsafeMutableRawBufferPointer?
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
        let isUsual = (Self.usualBytesMax / 2...Self.usualBytesMax).contains(range.count)
        pooled = isUsual ? Self.pool.take() : nil
        bytes =
            pooled.map { UnsafeMutableRawBufferPointer(rebasing: $0[..<range.count]) }
            ?? .allocate(byteCount: range.count, alignment: 4096)
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

    deinit { if let pooled { Self.pool.give(pooled) } else { bytes.deallocate() } }

    /// 1 MiB of a file with the overhead of its chunks.
    static let usualBytesMax = (1 << 20) + (8 << 10)
    /// Of reads that are about as large, which are most of a photo's: fresh memory would take as long as the copying.
    private static let pool = BufferPool(bufferBytes: usualBytesMax, keptMax: 12)

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
        let answer = wait()
        guard answer >= 0 || answer == -ENOENT else { return nil }
        let found = max(0, min(Int(max(answer, 0)) - offset, buffer.count))
        buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + found]))
        UnsafeMutableRawBufferPointer(rebasing: buffer[found...]).initializeMemory(
            as: UInt8.self, repeating: 0)
        return answer >= 0
    }

    /// Waits for the answer, and lends a range of the bytes to `body`. Nil if the object lacks some of them, or reading
    /// failed.
    func lend(_ range: Range<Int>, to body: (UnsafeRawBufferPointer) -> Bool) -> Bool? {
        guard Int(wait()) >= range.upperBound else { return nil }
        return body(UnsafeRawBufferPointer(rebasing: bytes[range]))
    }

    private func wait() -> Int32 {
        lock.withLock {
            while true {
                if let answer { return answer }
                hasEnded.wait(lock)
            }
        }
    }
}
