import Glibc

/// A mutual exclusion lock that can be held across function boundaries, where `Mutex` only takes closures.
///
/// Not recursive. Used where a class guards its own fields and says so at each of them.
public final class Lock: @unchecked Sendable {
    fileprivate let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

    public init() {
        let status = pthread_mutex_init(mutex, nil)
        precondition(status == 0)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    public func lock() { pthread_mutex_lock(mutex) }
    public func unlock() { pthread_mutex_unlock(mutex) }
    /// Takes the lock if it is free. Returns false otherwise.
    public func tryLock() -> Bool { pthread_mutex_trylock(mutex) == 0 }

    /// Runs `body` with the lock held.
    @inline(__always)
    public func withLock<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body()
    }
}

/// A condition variable on a `Lock`, pthread_cond_init(3), timed by the monotonic clock.
public final class Condition: @unchecked Sendable {
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    public init() {
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        let status = pthread_cond_init(condition, &attributes)
        precondition(status == 0)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        condition.deallocate()
    }

    /// Gives the lock up, waits for a signal, and takes it again. May return without a signal.
    public func wait(_ lock: Lock) { pthread_cond_wait(condition, lock.mutex) }

    /// As `wait`, but at most until `MonotonicClock.milliseconds` reaches `deadline`.
    public func wait(_ lock: Lock, untilMilliseconds deadline: Int64) {
        var time = timespec(tv_sec: Int(deadline / 1000), tv_nsec: Int(deadline % 1000) * 1_000_000)
        pthread_cond_timedwait(condition, lock.mutex, &time)
    }

    /// Wakes one of the threads that wait, if any does.
    public func signal() { pthread_cond_signal(condition) }

    public func signalAll() { pthread_cond_broadcast(condition) }
}

/// A clock that never jumps and continues while the machine is suspended, clock_gettime(CLOCK_BOOTTIME).
public enum BootClock {
    public static var milliseconds: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// Returns after that much of this clock has passed, also if signals come.
    public static func wait(milliseconds: Int64) {
        let end = Self.milliseconds + milliseconds
        var time = timespec(tv_sec: Int(end / 1000), tv_nsec: Int(end % 1000) * 1_000_000)
        while clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &time, nil) == EINTR {}
    }
}

/// A clock that never jumps, clock_gettime(CLOCK_MONOTONIC).
public enum MonotonicClock {
    public static var nanoseconds: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    public static var milliseconds: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// Blocks the thread until a moment, in nanoseconds; not at all if it has passed.
    public static func sleep(until nanoseconds: Int64) {
        while true {
            let wait = nanoseconds - self.nanoseconds
            guard wait > 0 else { return }
            usleep(UInt32(min(wait / 1000 + 1, 100_000)))
        }
    }
}
