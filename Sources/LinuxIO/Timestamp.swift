public import Glibc

/// A point in time: seconds since 1970-01-01 UTC and nanoseconds below one second, as in `timespec`.
public struct Timestamp: Sendable, Hashable, Comparable {
    public var seconds: Int64
    /// 0 ..< 1,000,000,000.
    public var nanoseconds: UInt32

    public init(seconds: Int64, nanoseconds: UInt32 = 0) {
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }

    public init(_ time: timespec) {
        // A host may report an invalid time of a file.
        let nanoseconds = min(max(time.tv_nsec, 0), 999_999_999)
        self.init(seconds: Int64(time.tv_sec), nanoseconds: UInt32(nanoseconds))
    }

    public var timespec: timespec { Glibc.timespec(tv_sec: Int(seconds), tv_nsec: Int(nanoseconds)) }

    /// The wall clock, clock_gettime(CLOCK_REALTIME).
    public static func now() -> Timestamp {
        var time = Glibc.timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(time)
    }

    public static func < (a: Timestamp, b: Timestamp) -> Bool {
        (a.seconds, a.nanoseconds) < (b.seconds, b.nanoseconds)
    }
}
