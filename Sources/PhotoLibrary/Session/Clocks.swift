import Glibc
import LinuxIO

/// The clocks for the age of trash entries and for retries; tests use others.
public struct Clocks: Sendable {
    /// The wall clock: seconds since 1970.
    public var wall: @Sendable () -> Int64 = { Timestamp.now().seconds }
    /// Seconds since the machine was started, including sleep: a clock that cannot be set.
    public var boot: @Sendable () -> Int64 = { BootClock.milliseconds / 1000 }

    /// Milliseconds of the monotonic clock.
    public var monotonic: @Sendable () -> Int64 = { MonotonicClock.milliseconds }
    /// Waits for this many milliseconds.
    public var sleep: @Sendable (Int64) -> Void = { usleep(UInt32(clamping: $0 * 1000)) }

    public init() {}
}
