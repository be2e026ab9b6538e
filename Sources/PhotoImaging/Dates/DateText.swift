/// A date parsed from text.
struct ParsedDate: Equatable {
    var time: CivilTime
    /// Seconds east of UTC, if the text names a zone.
    var offsetSeconds: Int?
}

/// Parses dates as cameras and programs write them: leniently in form, but only real days.
///
/// `2004:11:23 18:49:38` is EXIF's form; dashes, slashes, points, a `T`, a missing time, zones and trailing words are
/// all accepted. An invalid time of day (24:00:00) becomes midnight: the day is still known.
struct DateText {
    private let text: ByteView
    private var index = 0

    private init(_ text: ByteView) {
        self.text = text
    }

    /// The date at the beginning of `text`.
    static func parse(_ text: ByteView) -> ParsedDate? {
        var scanner = DateText(text)
        return scanner.parse()
    }

    /// The date at the beginning of `text`.
    static func parse(_ text: [UInt8]) -> ParsedDate? {
        text.withUnsafeBytes { bytes in
            bytes.baseAddress.flatMap { parse(ByteView($0, count: bytes.count)) }
        }
    }

    /// Digits after a decimal point, as nanoseconds: "123" is 123 ms.
    static func nanoseconds(fraction text: ByteView) -> Int? {
        var scanner = DateText(text)
        scanner.skipSpaces()
        return ASCII.isDigit(scanner.text[scanner.index]) ? scanner.fraction() : nil
    }

    /// A zone such as `+02:00`, `-0800` or `Z`, in seconds east of UTC.
    static func offset(_ text: ByteView) -> Int? {
        var scanner = DateText(text)
        return scanner.zone()
    }

    /// As `offset`, of a text that is nothing else, and gives a zone that exists: from -12:00 to +14:00.
    static func offset(whole text: String) -> Int? {
        let digits = text.utf8.filter { $0 != UInt8(ascii: ":") }
        guard digits.count == 5, digits.dropFirst().allSatisfy(ASCII.isDigit),
            let seconds = Array(text.utf8).withUnsafeBytes({ bytes in
                bytes.baseAddress.flatMap { offset(ByteView($0, count: bytes.count)) }
            }), (-12 * 3600...14 * 3600).contains(seconds)
        else { return nil }
        return seconds
    }

    private mutating func parse() -> ParsedDate? {
        skipSpaces()
        guard let year = number(digits: 4) else { return nil }
        let separated = separator()
        guard let month = number(digits: 2, padded: separated), separator() == separated,
            let day = number(digits: 2, padded: separated), !ASCII.isDigit(text[index]) || !separated,
            let date = CivilDay(year: year, month: month, day: day), let midnight = CivilTime(date)
        else { return nil }
        let time = timeOfDay(on: date)
        return ParsedDate(time: time ?? midnight, offsetSeconds: time == nil ? nil : zone())
    }

    private mutating func timeOfDay(on date: CivilDay) -> CivilTime? {
        if text[index] == UInt8(ascii: "T") || text[index] == UInt8(ascii: ":") { index += 1 }
        skipSpaces()
        guard let hour = number(digits: 2, padded: true) else { return nil }
        let separated = text[index] == UInt8(ascii: ":") || text[index] == UInt8(ascii: ".")
        if separated { index += 1 }
        guard let minute = number(digits: 2) else { return nil }
        var second = 0
        var nanosecond = 0
        if !separated || text[index] == UInt8(ascii: ":") || text[index] == UInt8(ascii: ".") {
            if separated { index += 1 }
            second = number(digits: 2) ?? 0
            if text[index] == UInt8(ascii: ".") {
                index += 1
                nanosecond = fraction()
            }
        }
        return CivilTime(date, hour: hour, minute: minute, second: min(second, 59), nanosecond: nanosecond)
    }

    private mutating func zone() -> Int? {
        skipSpaces()
        let sign = text[index]
        if sign == UInt8(ascii: "Z") { return 0 }
        guard sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") else { return nil }
        index += 1
        guard let hours = number(digits: 2) else { return nil }
        if text[index] == UInt8(ascii: ":") { index += 1 }
        let minutes = number(digits: 2) ?? 0
        let seconds = hours * 3600 + minutes * 60
        guard minutes < 60, seconds <= offsetSecondsMax else { return nil }
        return sign == UInt8(ascii: "-") ? -seconds : seconds
    }

    private mutating func fraction() -> Int {
        var value = 0
        var digits = 0
        while ASCII.isDigit(text[index]), digits < 64 {
            if digits < 9 { value = value * 10 + Int(text[index] - 0x30) }
            digits += 1
            index += 1
        }
        while digits < 9 {
            value *= 10
            digits += 1
        }
        return value
    }

    private mutating func skipSpaces() {
        while ASCII.isSpace(text[index]) { index += 1 }
    }

    private mutating func separator() -> Bool {
        switch text[index] {
        case UInt8(ascii: ":"), UInt8(ascii: "-"), UInt8(ascii: "/"), UInt8(ascii: "."):
            index += 1
            return true
        default:
            return false
        }
    }

    /// A number of that many digits; with `padded`, a blank or nothing may stand for a leading zero.
    private mutating func number(digits: Int, padded: Bool = false) -> Int? {
        var value = 0
        var seen = 0
        if padded, text[index] == UInt8(ascii: " "), ASCII.isDigit(text[index + 1]) {
            index += 1
            seen = 1
        }
        while seen < digits {
            guard ASCII.isDigit(text[index]) else {
                guard padded, seen == 1, ASCII.isDigit(text[index - 1]) else { return nil }
                return value
            }
            value = value * 10 + Int(text[index] - 0x30)
            index += 1
            seen += 1
        }
        return value
    }
}
