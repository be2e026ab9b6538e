/// A day of the Gregorian calendar, in the years 1 to 9999.
public struct CivilDay: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// 1–9999.
    public let year: Int
    /// 1–12.
    public let month: Int
    /// 1–31.
    public let day: Int

    /// The day, or nil if the calendar does not have it.
    public init?(year: Int, month: Int, day: Int) {
        guard (1...9999).contains(year), (1...12).contains(month), day >= 1,
            day <= CivilDay.dayCount(year: year, month: month)
        else { return nil }
        self.init(trusted: year, month, day)
    }

    private init(trusted year: Int, _ month: Int, _ day: Int) {
        self.year = year
        self.month = month
        self.day = day
    }

    /// Parses exactly `YYYY-MM-DD`: the name of a directory in `moments`. Nil for anything else, and for days that do
    /// not exist.
    public init?(parsing text: some StringProtocol) {
        self.init(parsing: Array(text.utf8))
    }

    /// Parses exactly `YYYY-MM-DD` from a name's bytes.
    public init?(parsing bytes: [UInt8]) {
        let dash = UInt8(ascii: "-")
        guard bytes.count == 10, bytes[4] == dash, bytes[7] == dash else { return nil }
        var numbers = (0, 0, 0)
        for (index, byte) in bytes.enumerated() where index != 4 && index != 7 {
            guard ASCII.isDigit(byte) else { return nil }
            let digit = Int(byte) - 0x30
            if index < 4 {
                numbers.0 = numbers.0 * 10 + digit
            } else if index < 7 {
                numbers.1 = numbers.1 * 10 + digit
            } else {
                numbers.2 = numbers.2 * 10 + digit
            }
        }
        self.init(year: numbers.0, month: numbers.1, day: numbers.2)
    }

    /// The day `daysSince1970` days after 1970-01-01. Days outside the years 1–9999 become the nearest inside.
    ///
    /// Source: Howard Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`.
    public init(daysSince1970: Int64) {
        let days = min(max(daysSince1970, CivilDay.firstDay), CivilDay.lastDay) + 719_468
        let era = (days >= 0 ? days : days - 146_096) / 146_097
        let dayOfEra = days - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shifted = (5 * dayOfYear + 2) / 153
        let month = shifted < 10 ? shifted + 3 : shifted - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        self.init(trusted: Int(year), Int(month), Int(dayOfYear - (153 * shifted + 2) / 5 + 1))
    }

    /// Days since 1970-01-01, by `days_from_civil` of the same source.
    public var daysSince1970: Int64 {
        let shiftedYear = Int64(month <= 2 ? year - 1 : year)
        let era = shiftedYear / 400
        let yearOfEra = shiftedYear - era * 400
        let shiftedMonth = Int64(month > 2 ? month - 3 : month + 9)
        let dayOfYear = (153 * shiftedMonth + 2) / 5 + Int64(day) - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    static let firstDay: Int64 = -719_162
    static let lastDay: Int64 = 2_932_896

    /// Days in a month.
    private static func dayCount(year: Int, month: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    public static func < (left: CivilDay, right: CivilDay) -> Bool {
        (left.year, left.month, left.day) < (right.year, right.month, right.day)
    }

    /// `YYYY-MM-DD`.
    public var description: String {
        CivilDay.digits(year, 4) + "-" + CivilDay.digits(month, 2) + "-" + CivilDay.digits(day, 2)
    }

    /// A number, padded with zeros.
    static func digits(_ value: Int, _ width: Int) -> String {
        let text = String(value)
        return String(repeating: "0", count: max(0, width - text.count)) + text
    }
}
