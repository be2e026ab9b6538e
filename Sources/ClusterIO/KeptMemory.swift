import CShims
import Glibc
import LinuxIO
import Synchronization

/// The memory that librados has freed. It is kept for the next requests, because fresh memory takes as much processor
/// time as all else in a read; and given back once the process has much of it, or rests.
///
/// Buffers of librados are made on one thread and freed on another, and lie between smaller ones, so the C library
/// would neither use them again nor give them back: a mount that reads and writes at once came to 200 MB.
final class KeptMemory: Sendable {
    private struct State {
        /// Bytes of all requests so far.
        var requested = 0
        /// `requested` when the memory was last measured, when it was last given back, and at the last second.
        var measured = 0
        var givenBack = 0
        var lastSecond = 0
    }

    private let state = Mutex(State())
    private let measure: @Sendable () -> Int
    private let giveBack: @Sendable () -> Void

    /// Free memory above it is given back. Requests on their way take some 50 MB of it.
    static let bytesMax = 90 << 20
    /// Bytes of requests after which the memory is measured.
    static let stepBytes = 8 << 20
    /// Bytes of requests between two times that it is given back, which takes some 20 ms.
    static let pauseBytes = 64 << 20
    /// Larger buffers are never kept.
    private static let keptBytesMax: Int32 = 8 << 20

    /// Of this process.
    static let shared: KeptMemory = {
        obscura_keep_freed(keptBytesMax)
        return KeptMemory(measure: ownMemory, giveBack: returnFreeMemory)
    }()

    /// - Parameter measure: returns the bytes of this process's own memory.
    init(measure: @escaping @Sendable () -> Int, giveBack: @escaping @Sendable () -> Void) {
        (self.measure, self.giveBack) = (measure, giveBack)
    }

    /// Notes a request that reads or writes so many bytes.
    func noteRequest(bytes: Int) {
        let mayBeMuch = state.withLock { state in
            state.requested += bytes
            guard state.requested - state.measured >= Self.stepBytes,
                state.givenBack == 0 || state.requested - state.givenBack >= Self.pauseBytes
            else { return false }
            state.measured = state.requested
            return true
        }
        guard mayBeMuch, measure() > Self.bytesMax else { return }
        state.withLock { $0.givenBack = $0.requested }
        giveBack()
    }

    /// Call every second: after one without requests all that is free is given back, once.
    func noteSecond() {
        let rests = state.withLock { state in
            defer { state.lastSecond = state.requested }
            guard state.requested == state.lastSecond, state.requested - state.givenBack >= Self.stepBytes
            else { return false }
            state.givenBack = state.requested
            return true
        }
        if rests { giveBack() }
    }

    /// Resident memory without that of files, as in /proc/self/statm.
    private static func ownMemory() -> Int {
        let text = contents(ofFile: "/proc/self/statm") ?? []
        let pages = text.split(separator: UInt8(ascii: " ")).prefix(3).map {
            Int(String(decoding: $0, as: UTF8.self)) ?? 0
        }
        return pages.count == 3 ? (pages[1] - pages[2]) * sysconf(Int32(_SC_PAGESIZE)) : 0
    }
}
