internal import CShims
import Glibc
import Synchronization

/// Number of processors that may be used, at least 1.
public let coreCount = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))

/// Memory of the machine, in bytes; 0 if it is not known.
public let memoryBytes = max(0, sysconf(Int32(_SC_PHYS_PAGES))) * max(0, sysconf(Int32(_SC_PAGESIZE)))

/// Gives memory that was freed back to the system. The C library keeps what lies below memory in use, for ever.
public func returnFreeMemory() { obscura_return_memory() }

/// Calls `body` with each number below `count`, in order, on one thread per core, including the calling thread. Returns
/// when all threads have ended.
///
/// - Parameters:
///   - threadsMax: maximum number of threads on a machine with more cores.
///   - ownTurn: called on the calling thread after each of its numbers; false: no further number is started.
public func onAllCores(
    _ count: Int, threadsMax: Int = .max, _ body: @escaping @Sendable (Int) -> Void,
    ownTurn: () -> Bool = { true }
) {
    let turns = Turns(count: count, body: body)
    let threads = (1..<max(1, min(coreCount, count, threadsMax))).compactMap { _ in turns.startThread() }
    while turns.takeOne() {
        if !ownTurn() { turns.stop() }
    }
    for thread in threads { pthread_join(thread, nil) }
}

private final class Turns: Sendable {
    private let count: Int
    private let body: @Sendable (Int) -> Void
    private let next = Atomic<Int>(0)

    init(count: Int, body: @escaping @Sendable (Int) -> Void) {
        self.count = count
        self.body = body
    }

    /// Returns false if no number is left.
    func takeOne() -> Bool {
        let number = next.wrappingAdd(1, ordering: .relaxed).oldValue
        guard number < count else { return false }
        body(number)
        return true
    }

    func stop() { next.store(count, ordering: .relaxed) }

    /// Nil if no thread can be created: the others do its work.
    func startThread() -> pthread_t? {
        var thread = pthread_t()
        let own = Unmanaged.passRetained(self)
        let status = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                Processors.releaseThread()
                let turns = Unmanaged<Turns>.fromOpaque(argument).takeRetainedValue()
                while turns.takeOne() {}
                return nil
            }, own.toOpaque())
        guard status == 0 else {
            own.release()
            return nil
        }
        return thread
    }
}
