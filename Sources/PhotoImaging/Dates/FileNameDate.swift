/// Whether a file's name, of these bytes, has a date, plausible or not.
package func hasDate(fileName: [UInt8]) -> Bool { FileNameDate.find(in: fileName) != nil }

/// Finds the date that cameras, phones and messengers put into a file's name.
///
/// Known forms: `IMG_20240501_101112`, `PXL_20240501_101112345` (UTC), `Screenshot 2024-05-01 at 10.11.12`,
/// `2024-05-01 10_11_12`, `IMG-20240501-WA0007` (the day only), `20240501_101112`, `signal-2024-05-01-101112`,
/// `2019_0203_101112`, `21.08.2018`, `Bildschirmfoto 2024-05-01 um 10.11.12`, `2018年8月21日`, `2018년 8월 21일`,
/// `截屏2020-07-22 下午8.25.53`, and milliseconds since 1970 after `FB_IMG_` or `mmexport` (UTC). Other digits
/// are no date.
///
/// Of a day before its month (`21-08-2018`) or behind it (`08-21-2018`) the larger number tells which is which. Where
/// both may be months, points mean that the day comes first, as everywhere where dates have points; `05-06-2019` is the
/// fifth of June or the sixth of May, and no date. Nor is a year of two digits (`22-04-06`): nothing tells the year.
struct FileNameDate {
    private let name: ByteView

    /// The first date in `name`.
    static func find(in name: [UInt8]) -> DateCandidate? {
        name.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress else { return nil }
            return FileNameDate(name: ByteView(base, count: min(bytes.count, 1024))).find()
        }
    }

    private func find() -> DateCandidate? {
        var index = 0
        while index < name.count {
            guard ASCII.isDigit(name[index]) else {
                index += 1
                continue
            }
            let length = digitCount(at: index)
            if let time = separated(at: index, length: length) ?? compact(at: index, length: length)
                ?? halfSeparated(at: index, length: length) ?? eastAsian(at: index, length: length)
            {
                let isUTC = name.matches("PXL_", at: index - 4)
                return DateCandidate(source: .fileName, time: time, isUTC: isUTC)
            }
            if isDayWithYearLast(at: index, length: length) {
                return yearLast(at: index).map { DateCandidate(source: .fileName, time: $0) }
            }
            if let time = milliseconds(at: index, length: length) {
                return DateCandidate(source: .fileName, time: time, isUTC: true)
            }
            index += length
        }
        return nil
    }

    /// `2024-05-01`, `2024_05_01`, `2024.05.01`, with or without a time after it.
    private func separated(at index: Int, length: Int) -> CivilTime? {
        let separator = name[index + 4]
        guard length == 4, isDateSeparator(separator), name[index + 7] == separator,
            digitCount(at: index + 5) == 2, digitCount(at: index + 8) == 2,
            let day = CivilDay(
                year: value(index, 4), month: value(index + 5, 2), day: value(index + 8, 2))
        else { return nil }
        return time(of: day, at: index + 10)
    }

    /// `2018年8月21日`, `2018년 8월 21일`, with or without a time after it.
    private func eastAsian(at index: Int, length: Int) -> CivilTime? {
        guard length == 4, let month = skip(EastAsianWords.year, at: index + 4) else { return nil }
        let monthDigits = digitCount(at: month)
        guard (1...2).contains(monthDigits), let date = skip(EastAsianWords.month, at: month + monthDigits)
        else { return nil }
        let dateDigits = digitCount(at: date)
        guard (1...2).contains(dateDigits),
            let end = EastAsianWords.day.first(where: { name.matches($0, at: date + dateDigits) }),
            let day = CivilDay(
                year: value(index, 4), month: value(month, monthDigits), day: value(date, dateDigits))
        else { return nil }
        return time(of: day, at: date + dateDigits + end.utf8CodeUnitCount)
    }

    /// The index after one of the words and a blank that may follow it; nil if none of them stands at `index`.
    private func skip(_ words: [StaticString], at index: Int) -> Int? {
        guard let word = words.first(where: { name.matches($0, at: index) }) else { return nil }
        let end = index + word.utf8CodeUnitCount
        return name[end] == UInt8(ascii: " ") ? end + 1 : end
    }

    /// `10时11分12秒`, `3시 50분`, or nil. The hour has `length` digits.
    private func eastAsianClock(of day: CivilDay, at index: Int, length: Int, _ isAfternoon: Bool?)
        -> CivilTime?
    {
        guard (1...2).contains(length), let minute = skip(EastAsianWords.hour, at: index + length) else {
            return nil
        }
        let minuteDigits = digitCount(at: minute)
        guard (1...2).contains(minuteDigits),
            let second = skip(EastAsianWords.minute, at: minute + minuteDigits)
        else { return nil }
        let secondDigits = digitCount(at: second)
        let hasSeconds =
            (1...2).contains(secondDigits)
            && EastAsianWords.second.contains { name.matches($0, at: second + secondDigits) }
        return CivilTime(
            day, hour: Self.hour(value(index, length), isAfternoon), minute: value(minute, minuteDigits),
            second: hasSeconds ? value(second, secondDigits) : 0)
    }

    /// The hour of 24 that one of 12 means. Japanese clocks count from 0 to 11.
    private static func hour(_ hour: Int, _ isAfternoon: Bool?) -> Int {
        guard let isAfternoon, (0...12).contains(hour) else { return hour }
        return hour % 12 + (isAfternoon ? 12 : 0)
    }

    /// `2019_0203_101112`: only with a time of day, as four digits alone may be anything.
    private func halfSeparated(at index: Int, length: Int) -> CivilTime? {
        guard length == 4, isDateSeparator(name[index + 4]), digitCount(at: index + 5) == 4,
            isDateSeparator(name[index + 9]), digitCount(at: index + 10) == 6,
            let day = CivilDay(year: value(index, 4), month: value(index + 5, 2), day: value(index + 7, 2)),
            day.year >= FileNameDate.compactYearMin
        else { return nil }
        return CivilTime(
            day, hour: value(index + 10, 2), minute: value(index + 12, 2), second: value(index + 14, 2))
    }

    /// Whether two digits, two digits and a year stand at `index`, with the same separator between them.
    private func isDayWithYearLast(at index: Int, length: Int) -> Bool {
        let separator = name[index + 2]
        return length == 2 && isDateSeparator(separator) && name[index + 5] == separator
            && digitCount(at: index + 3) == 2 && digitCount(at: index + 6) == 4
            && !(name[index - 1] == separator && ASCII.isDigit(name[index - 2]))
    }

    /// `21.08.2018`, `21-08-2018`, `08-21-2018`, with or without a time after it; nil if it may be two days.
    private func yearLast(at index: Int) -> CivilTime? {
        let (first, second) = (value(index, 2), value(index + 3, 2))
        let year = value(index + 6, 4)
        let hasPoints = name[index + 2] == UInt8(ascii: ".")
        let isDayFirst = hasPoints && second <= 12 || first > 12 || first == second
        guard isDayFirst || second > 12,
            let day = CivilDay(
                year: year, month: isDayFirst ? second : first, day: isDayFirst ? first : second)
        else { return nil }
        return time(of: day, at: index + 10)
    }

    /// `20240501_101112`, `20240501101112`, and `20240501` alone if its position indicates a date.
    private func compact(at index: Int, length: Int) -> CivilTime? {
        guard length == 8 || length == 14 || length == 17,
            let day = CivilDay(year: value(index, 4), month: value(index + 4, 2), day: value(index + 6, 2)),
            day.year >= FileNameDate.compactYearMin
        else { return nil }
        if length > 8 {
            return CivilTime(
                day, hour: value(index + 8, 2), minute: value(index + 10, 2), second: value(index + 12, 2),
                nanosecond: length == 17 ? value(index + 14, 3) * 1_000_000 : 0)
        }
        let found = time(of: day, at: index + 8)
        if found == CivilTime(day), !standsWhereDatesStand(index) { return nil }
        return found
    }

    /// The time of day after a date, or midnight if there is none.
    private func time(of day: CivilDay, at index: Int) -> CivilTime? {
        var start = index
        if let word = Self.wordsBeforeTimes.first(where: { name.matches($0, at: start) }) {
            start += word.utf8CodeUnitCount
        } else if isTimeSeparator(name[start]) {
            start += 1
        }
        var isAfternoon: Bool?
        if let half = EastAsianWords.halves.first(where: { name.matches($0.word, at: start) }) {
            isAfternoon = half.isAfternoon
            start += half.word.utf8CodeUnitCount
            if name[start] == UInt8(ascii: " ") { start += 1 }
        }
        let length = digitCount(at: start)
        if let found = eastAsianClock(of: day, at: start, length: length, isAfternoon) { return found }
        if start > index, length == 6 || (length >= 7 && length <= 9) {
            let fraction = length == 9 ? value(start + 6, 3) * 1_000_000 : 0
            let found = CivilTime(
                day, hour: value(start, 2), minute: value(start + 2, 2), second: value(start + 4, 2),
                nanosecond: fraction)
            return found ?? CivilTime(day)
        }
        let minute = start + length + 1
        if start > index, length == 1 || length == 2, isClockSeparator(name[minute - 1]),
            digitCount(at: minute) == 2
        {
            return clock(of: day, hourDigits: length, minuteAt: minute, isAfternoon) ?? CivilTime(day)
        }
        return CivilTime(day)
    }

    /// `10.11.12`, `10h11`, or `3.11.12 PM`. The hour may be one digit only before AM or PM, or after such a word.
    /// `21.08.2018` is another day.
    private func clock(
        of day: CivilDay, hourDigits: Int, minuteAt minute: Int, _ wordBefore: Bool?
    ) -> CivilTime? {
        if isDateSeparator(name[minute + 2]), digitCount(at: minute + 3) == 4 { return nil }
        let hasSeconds = isClockSeparator(name[minute + 2]) && digitCount(at: minute + 3) >= 2
        let isAfternoon = wordBefore ?? isAfternoon(at: minute + (hasSeconds ? 5 : 2))
        if isAfternoon == nil, hourDigits == 1 { return nil }
        let hour = Self.hour(value(minute - 1 - hourDigits, hourDigits), isAfternoon)
        return CivilTime(
            day, hour: hour, minute: value(minute, 2), second: hasSeconds ? value(minute + 3, 2) : 0)
    }

    /// Whether PM stands at `index`, perhaps after a blank or macOS' narrow no-break space; nil if neither AM nor PM
    /// stands there.
    private func isAfternoon(at index: Int) -> Bool? {
        let narrowSpace: StaticString = "\u{202F}"
        let start =
            name[index] == UInt8(ascii: " ")
            ? index + 1 : name.matches(narrowSpace, at: index) ? index + 3 : index
        if name.matchesIgnoringCase("p.m.", at: start) { return true }
        if name.matchesIgnoringCase("a.m.", at: start) { return false }
        guard !ASCII.isLetter(name[start + 2]) else { return nil }
        if name.matchesIgnoringCase("PM", at: start) { return true }
        return name.matchesIgnoringCase("AM", at: start) ? false : nil
    }

    /// Words between the day and the time in names of macOS' screenshots and WhatsApp's pictures, in languages whose
    /// clocks have 24 hours, and in English.
    private static let wordsBeforeTimes: [StaticString] = [
        " at ", " um ", " à ", " a\u{300} ", " a las ", " alle ore ", " alle ", " ore ", " om ", " às ",
        " a\u{300}s ",
        " klo ", " kl. ", " o ", " в ",
    ]

    /// `FB_IMG_1525167072000`, `mmexport1525167072000`.
    private func milliseconds(at index: Int, length: Int) -> CivilTime? {
        guard length == 13, name.matches("FB_IMG_", at: index - 7) || name.matches("mmexport", at: index - 8)
        else { return nil }
        let count = value(index, 13)
        return CivilTime(secondsSince1970: Int64(count / 1000), nanosecond: count % 1000 * 1_000_000)
    }

    /// Whether eight digits alone at `index` may be a date: they begin the name, or follow a known word.
    private func standsWhereDatesStand(_ index: Int) -> Bool {
        guard index > 0 else { return true }
        var start = index - 1
        guard !ASCII.isLetter(name[start]) else { return false }
        while start > 0, ASCII.isLetter(name[start - 1]) { start -= 1 }
        let word = name.slice(start..<index - 1)
        return FileNameDate.words.contains {
            word.count == $0.utf8CodeUnitCount && word.matchesIgnoringCase($0, at: 0)
        }
    }

    /// Earlier eight-digit numbers are more likely counters than days.
    private static let compactYearMin = 1970

    private static let words: [StaticString] = [
        "IMG", "VID", "PXL", "MVIMG", "PANO", "BURST", "DSC", "MOV", "PIC", "WA", "Screenshot", "signal",
        "photo", "image", "video", "scan", "wp", "C360", "capture", "telegram", "Screenrecorder", "Recording",
    ]

    private func isDateSeparator(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_") || byte == UInt8(ascii: ".")
    }

    private func isTimeSeparator(_ byte: UInt8) -> Bool {
        isDateSeparator(byte) || byte == UInt8(ascii: " ") || byte == UInt8(ascii: "T")
    }

    private func isClockSeparator(_ byte: UInt8) -> Bool {
        isDateSeparator(byte) || byte == UInt8(ascii: ":") || byte == UInt8(ascii: "h")
    }

    private func digitCount(at index: Int) -> Int {
        var end = index
        while ASCII.isDigit(name[end]) { end += 1 }
        return end - index
    }

    /// The number of `count` (at most 13) digits at `index`, which must exist.
    private func value(_ index: Int, _ count: Int) -> Int {
        var result = 0
        for position in index..<index + count { result = result * 10 + Int(name[position] & 0x0F) }
        return result
    }
}

/// Words of dates and times in Chinese, Japanese and Korean, as Unicode's CLDR has them for zh, ja and ko: in
/// `dateFormats` long (`y年M月d日`, `y년 M월 d일`), `timeFormats` full (`H時mm分ss秒`, `a h시 m분 s초`) and
/// `dayPeriods`. macOS names screenshots by them (`截屏2020-01-07上午6.21.42.png` and
/// `스크린샷 2023-12-29 오후 7.33.35.png` are in public repositories), Photos and galleries of phones albums and
/// exports. Korean also as HFS+ keeps it, decomposed.
private enum EastAsianWords {
    static let year: [StaticString] = ["年", "년", "\u{1102}\u{1167}\u{11AB}"]
    static let month: [StaticString] = ["月", "월", "\u{110B}\u{116F}\u{11AF}"]
    static let day: [StaticString] = ["日", "일", "\u{110B}\u{1175}\u{11AF}"]
    static let hour: [StaticString] = ["时", "時", "点", "시", "\u{1109}\u{1175}"]
    static let minute: [StaticString] = ["分", "분", "\u{1107}\u{116E}\u{11AB}"]
    static let second: [StaticString] = ["秒", "초", "\u{110E}\u{1169}"]
    static let halves: [(word: StaticString, isAfternoon: Bool)] = [
        ("上午", false), ("午前", false), ("오전", false), ("\u{110B}\u{1169}\u{110C}\u{1165}\u{11AB}", false),
        ("下午", true), ("午後", true), ("오후", true), ("\u{110B}\u{1169}\u{1112}\u{116E}", true),
    ]
}
