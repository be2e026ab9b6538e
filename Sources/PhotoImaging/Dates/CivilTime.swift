/// A date and time of day as a wall clock shows it, without a zone; in the years 1 to 9999.
public struct CivilTime: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The date.
    public let day: CivilDay
    /// 0–23.
    public let hour: Int
    /// 0–59.
    public let minute: Int
    /// 0–59.
    public let second: Int
    /// 0–999,999,999.
    public let nanosecond: Int

    /// 1–9999.
    public var year: Int { day.year }
    /// 1–12.
    public var month: Int { day.month }

    /// The time, or nil where no clock could show it.
    public init?(
        year: Int, month: Int, day: Int, hour: Int = 0, minute: Int = 0, second: Int = 0, nanosecond: Int = 0
    ) {
        guard let day = CivilDay(year: year, month: month, day: day) else { return nil }
        self.init(day, hour: hour, minute: minute, second: second, nanosecond: nanosecond)
    }

    /// A time of a day, or nil where no clock could show it.
    public init?(_ day: CivilDay, hour: Int = 0, minute: Int = 0, second: Int = 0, nanosecond: Int = 0) {
        guard (0...23).contains(hour), (0...59).contains(minute), (0...59).contains(second),
            (0...999_999_999).contains(nanosecond)
        else { return nil }
        self.day = day
        self.hour = hour
        self.minute = minute
        self.second = second
        self.nanosecond = nanosecond
    }

    /// The time on a clock `offsetSeconds` east of UTC, `seconds` after 1970-01-01 00:00 UTC. Times outside the years
    /// 1–9999 become the nearest inside.
    public init(secondsSince1970 seconds: Int64, offsetSeconds: Int = 0, nanosecond: Int = 0) {
        let offset = Int64(min(max(offsetSeconds, -offsetSecondsMax), offsetSecondsMax))
        let first = CivilDay.firstDay * secondsPerDay
        let last = CivilDay.lastDay * secondsPerDay + secondsPerDay - 1
        let local = min(max(min(max(seconds, first), last) + offset, first), last)
        var days = local / secondsPerDay
        var rest = Int(local % secondsPerDay)
        if rest < 0 {
            rest += Int(secondsPerDay)
            days -= 1
        }
        day = CivilDay(daysSince1970: days)
        hour = rest / 3600
        minute = rest % 3600 / 60
        second = rest % 60
        self.nanosecond = min(max(nanosecond, 0), 999_999_999)
    }

    /// Seconds since 1970-01-01 00:00 on the same wall clock: since 1970 UTC, if this time is UTC.
    public var secondsSince1970: Int64 {
        day.daysSince1970 * secondsPerDay + Int64(hour * 3600 + minute * 60 + second)
    }

    /// This time, read as UTC, on a clock `offsetSeconds` east of UTC.
    public func shifted(by offsetSeconds: Int) -> CivilTime {
        CivilTime(secondsSince1970: secondsSince1970, offsetSeconds: offsetSeconds, nanosecond: nanosecond)
    }

    public static func < (left: CivilTime, right: CivilTime) -> Bool {
        let leftSeconds = left.secondsSince1970
        let rightSeconds = right.secondsSince1970
        return leftSeconds == rightSeconds ? left.nanosecond < right.nanosecond : leftSeconds < rightSeconds
    }

    /// `YYYY-MM-DD HH:MM:SS`, followed by a fraction if there is one.
    public var description: String {
        var text = "\(day) "
        text += CivilDay.digits(hour, 2) + ":" + CivilDay.digits(minute, 2) + ":" + CivilDay.digits(second, 2)
        guard nanosecond > 0 else { return text }
        var fraction = CivilDay.digits(nanosecond, 9)
        while fraction.hasSuffix("0") { fraction.removeLast() }
        return text + "." + fraction
    }
}

let secondsPerDay: Int64 = 86_400

/// No zone has ever been further from UTC.
let offsetSecondsMax = 16 * 3600
