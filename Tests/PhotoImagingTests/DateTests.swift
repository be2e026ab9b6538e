import PhotoImaging
import TestFixtures
import Testing

@Suite("Days: civil dates") struct CivilTests {
    @Test func `days are real days`() {
        #expect(CivilDay(parsing: "2024-02-29")?.description == "2024-02-29")
        for name in ["2023-02-29", "1900-02-29", "2024-13-01", "2024-00-10", "2024-04-31", "0000-01-01"] {
            #expect(CivilDay(parsing: name) == nil, "\(name)")
        }
        for name in ["2024-2-29", "2024/02/29", "2024-02-29 ", "20240229", "", "٢٠٢٤-02-29", "-024-02-29"] {
            #expect(CivilDay(parsing: name) == nil, "\(name)")
        }
        #expect(CivilDay(parsing: "2000-02-29") != nil)
    }

    @Test func `counting days goes both ways`() {
        #expect(CivilDay(daysSince1970: 0).description == "1970-01-01")
        #expect(CivilDay(daysSince1970: -719_162).description == "0001-01-01")
        #expect(CivilDay(daysSince1970: 2_932_896).description == "9999-12-31")
        #expect(CivilDay(daysSince1970: .max).description == "9999-12-31")
        #expect(CivilDay(daysSince1970: .min).description == "0001-01-01")
        var previous = CivilDay(daysSince1970: -719_162)
        for days in stride(from: Int64(-719_161), through: 2_932_896, by: 1) {
            let day = CivilDay(daysSince1970: days)
            guard day.daysSince1970 == days, previous < day, day.day == previous.day + 1 || day.day == 1
            else {
                Issue.record("\(days) is \(day) after \(previous)")
                return
            }
            previous = day
        }
    }

    @Test func `times are clamped and shifted`() {
        #expect(CivilTime(secondsSince1970: .min).description == "0001-01-01 00:00:00")
        #expect(CivilTime(secondsSince1970: .max, offsetSeconds: .max).description == "9999-12-31 23:59:59")
        #expect(
            CivilTime(secondsSince1970: -1, nanosecond: 1_500_000).description == "1969-12-31 23:59:59.0015")
        #expect(civil(2024, 2, 28, 23, 30).shifted(by: 3600) == civil(2024, 2, 29, 0, 30))
        #expect(CivilTime(year: 2024, month: 1, day: 1, hour: 24) == nil)
        #expect(civil(2024, 1, 1, 0, 0, 0, 1) > civil(2024, 1, 1))
    }
}

/// The forms in which dates are written: each as EXIF's DateTimeOriginal of a JPEG.
@Suite("Days: dates as text") struct DateTextTests {
    private func read(_ text: String) -> CivilTime? {
        let exif = TIFFBuilder(main: [.exif], exif: [.ascii(0x9003, text)])
        let facts = readFacts(MemoryByteSource(Picture.jpeg([Picture.exifSegment(exif.bytes)])))
        return facts?.dates.first?.time
    }

    @Test(arguments: [
        ("2004:11:23 18:49:38", civil(2004, 11, 23, 18, 49, 38)),
        ("2004-11-23 18:49:38", civil(2004, 11, 23, 18, 49, 38)),
        ("2004/11/23 18:49:38", civil(2004, 11, 23, 18, 49, 38)),
        ("2004-11-23T18:49:38", civil(2004, 11, 23, 18, 49, 38)),
        ("2004-11-23T18:49:38.5+02:00", civil(2004, 11, 23, 18, 49, 38, 500_000_000)),
        ("2004:11:23:18:49:38", civil(2004, 11, 23, 18, 49, 38)),
        ("2004:11:23 18:49", civil(2004, 11, 23, 18, 49)),
        ("2004:11:23", civil(2004, 11, 23)),
        ("20041123", civil(2004, 11, 23)),
        ("200411231849", civil(2004, 11, 23, 18, 49)),
        ("20041123 184938", civil(2004, 11, 23, 18, 49, 38)),
        ("2004: 1: 3  8:49:38", civil(2004, 1, 3, 8, 49, 38)),
        ("2004:1:3", civil(2004, 1, 3)),
        (" 2004:11:23 18:49:38 PM j", civil(2004, 11, 23, 18, 49, 38)),
        ("2004:11:23 24:00:00", civil(2004, 11, 23)),
        ("2004:11:23 18:61:00", civil(2004, 11, 23)),
        ("2016:12:31 23:59:60", civil(2016, 12, 31, 23, 59, 59)),
        ("2004:11:23   :  :  ", civil(2004, 11, 23)),
    ])
    func `a date as text is read`(_ text: String, _ time: CivilTime) {
        #expect(read(text) == time, "\(text)")
    }

    @Test(arguments: [
        "", "    :  :     :  :  ", "0000:00:00 00:00:00", "2015:02:30 10:00:00", "2015:13:07 10:00:00",
        "yesterday afternoon", "2004", "2004:11", "23:11:2004 10:00:00", "20041", "2004:11:231",
    ])
    func `text that is no date gives none`(_ text: String) {
        #expect(read(text) == nil, "\(text)")
    }
}

@Suite("Days: dates in names") struct FileNameTests {
    private func find(_ name: String, hoursEast: Int = 0) -> CivilTime? {
        let answer = capture(MediaFacts(type: .jpeg), name: name, hoursEast: hoursEast)
        return answer.source == .fileName ? answer.time : nil
    }

    @Test(arguments: [
        ("IMG_20240501_101112.jpg", civil(2024, 5, 1, 10, 11, 12)),
        ("IMG_20240501_101112345.jpg", civil(2024, 5, 1, 10, 11, 12, 345_000_000)),
        ("VID_20240501_101112.mp4", civil(2024, 5, 1, 10, 11, 12)),
        ("VID_20240501_101112_HDR10.mp4", civil(2024, 5, 1, 10, 11, 12)),
        ("MVIMG_20240501_101112.jpg", civil(2024, 5, 1, 10, 11, 12)),
        ("00000IMG_00000_BURST20240501101112345_COVER.jpg", civil(2024, 5, 1, 10, 11, 12, 345_000_000)),
        ("IMG20240501101112.jpg", civil(2024, 5, 1, 10, 11, 12)),
        ("DJI_20240501101112_0001_D.JPG", civil(2024, 5, 1, 10, 11, 12)),
        ("VID-20240501-WA0001.mp4", civil(2024, 5, 1)),
        ("IMG-20240501-WA0001(2).jpg", civil(2024, 5, 1)),
        ("WhatsApp Video 2024-05-01 at 10.11.12.mp4", civil(2024, 5, 1, 10, 11, 12)),
        ("Screenshot from 2024-05-01 10-11-12.png", civil(2024, 5, 1, 10, 11, 12)),
        ("Screenshot_20240501-101112_Chrome.png", civil(2024, 5, 1, 10, 11, 12)),
        ("Screenshot_20240501_101112_Chrome.png", civil(2024, 5, 1, 10, 11, 12)),
        ("signal-2024-05-01-10-11-12-345.jpg", civil(2024, 5, 1, 10, 11, 12)),
        ("signal-2024-05-01-101112_002.jpeg", civil(2024, 5, 1, 10, 11, 12)),
        ("Screen Shot 2024-05-01 at 3.11.12 PM.png", civil(2024, 5, 1, 15, 11, 12)),
        ("Screenshot 2024-05-01 at 10.11.12\u{202F}PM.png", civil(2024, 5, 1, 22, 11, 12)),
        ("Screenshot 2024-05-01 at 12.11.12\u{202F}AM (2).png", civil(2024, 5, 1, 0, 11, 12)),
        ("2024-05-01 13.11 pm.png", civil(2024, 5, 1, 13, 11)),
        ("2024-05-01 10.11.12 pmc.png", civil(2024, 5, 1, 10, 11, 12)),
        ("2024-05-01 3.11.12.png", civil(2024, 5, 1)),
        ("2024-05-01T10:11:12+02:00.jpg", civil(2024, 5, 1, 10, 11, 12)),
        ("2024-05-01T101112.jpg", civil(2024, 5, 1, 10, 11, 12)),
        ("20240501T101112.jpg", civil(2024, 5, 1, 10, 11, 12)),
        ("20240501_101112(1).jpg", civil(2024, 5, 1, 10, 11, 12)),
        ("20240501-101112.jpg", civil(2024, 5, 1, 10, 11, 12)),
        ("20240501101112.jpg", civil(2024, 5, 1, 10, 11, 12)),
        ("20240501.jpg", civil(2024, 5, 1)),
        ("IMG-20150418-WA0007.jpg", civil(2015, 4, 18)),
        ("Screenshot 2003-07-24 at 10.11.12.jpg", civil(2003, 7, 24, 10, 11, 12)),
        ("Screenshot_2020-01-30-09-57-18-12_abc.png", civil(2020, 1, 30, 9, 57, 18)),
        ("Screenshot_20200130-095718.png", civil(2020, 1, 30, 9, 57, 18)),
        ("WhatsApp Image 2019-01-02 at 10.11.12.jpeg", civil(2019, 1, 2, 10, 11, 12)),
        ("telegram_2020-01-30_09-57-18.jpg", civil(2020, 1, 30, 9, 57, 18)),
        ("signal-2019-01-02-101112.jpg", civil(2019, 1, 2, 10, 11, 12)),
        ("2018-04-12 19_24_49.jpg", civil(2018, 4, 12, 19, 24, 49)),
        ("2015-02-04(1).jpg", civil(2015, 2, 4)),
        ("1905-06-07 grandmother.jpg", civil(1905, 6, 7)),
        ("FB_IMG_1525167072123.jpg", civil(2018, 5, 1, 9, 31, 12, 123_000_000)),
        ("holiday 7 2019.07.08 beach.jpg", civil(2019, 7, 8)),
        ("21.08.2018 beach.jpg", civil(2018, 8, 21)), ("Foto 05.06.2019.jpg", civil(2019, 6, 5)),
        ("21-08-2018.jpg", civil(2018, 8, 21)), ("08-21-2018.jpg", civil(2018, 8, 21)),
        ("08.21.2018.jpg", civil(2018, 8, 21)), ("31.12.1999.jpg", civil(1999, 12, 31)),
        ("2019_0203_101112_001.MP4", civil(2019, 2, 3, 10, 11, 12)),
        ("Bildschirmfoto 2024-05-01 um 10.11.12.png", civil(2024, 5, 1, 10, 11, 12)),
        ("Capture d’écran 2024-05-01 à 10.11.12.png", civil(2024, 5, 1, 10, 11, 12)),
        ("Capture d’écran 2024-05-01 a\u{300} 10.11.12.png", civil(2024, 5, 1, 10, 11, 12)),
        ("Captura de Tela 2024-05-01 às 20.11.12.png", civil(2024, 5, 1, 20, 11, 12)),
        ("Captura 2024-05-01 a las 8.11.12 p.m..png", civil(2024, 5, 1, 20, 11, 12)),
        ("Schermata 2024-05-01 alle 10.11.12.png", civil(2024, 5, 1, 10, 11, 12)),
        ("Immagine 2024-05-01 alle ore 10.11.12.jpg", civil(2024, 5, 1, 10, 11, 12)),
        ("스크린샷 2024-05-01 오후 10.11.12.png", civil(2024, 5, 1, 22, 11, 12)),
        ("스크린샷 2019-10-24 오전 9 50 37.png", civil(2019, 10, 24)),
        ("스크린샷 2024-05-01 \u{110B}\u{1169}\u{1112}\u{116E} 3.50.37.png", civil(2024, 5, 1, 15, 50, 37)),
        ("截屏2020-07-22 下午8.25.53.png", civil(2020, 7, 22, 20, 25, 53)),
        ("截屏2020-01-07上午6.21.42.png", civil(2020, 1, 7, 6, 21, 42)),
        ("スクリーンショット 2024-05-01 午後0.11.12.png", civil(2024, 5, 1, 12, 11, 12)),
        ("スクリーンショット 2024-05-01 午前10.11.12.png", civil(2024, 5, 1, 10, 11, 12)),
        ("2018年08月21日.jpg", civil(2018, 8, 21)), ("2018年8月21日 京都 (2).jpg", civil(2018, 8, 21)),
        ("照片 2018年8月1日 14 05 06.jpg", civil(2018, 8, 1)),
        ("2018年8月21日_101112.jpg", civil(2018, 8, 21, 10, 11, 12)),
        ("截图 2018年08月21日 10时11分12秒.png", civil(2018, 8, 21, 10, 11, 12)),
        ("2018年8月21日下午3时05分.png", civil(2018, 8, 21, 15, 5)),
        ("写真 2018年8月21日 10時1分2秒.heic", civil(2018, 8, 21, 10, 1, 2)),
        ("2018년 8월 21일.jpg", civil(2018, 8, 21)),
        ("2018년8월21일 오후 3시 5분 7초.jpg", civil(2018, 8, 21, 15, 5, 7)),
        (
            "2018\u{1102}\u{1167}\u{11AB} 8\u{110B}\u{116F}\u{11AF} 21\u{110B}\u{1175}\u{11AF}.jpg",
            civil(2018, 8, 21)
        ),
        ("20.08.2018-21.08.2018.jpg", civil(2018, 8, 20)), ("2018-08-20_21.08.2018.jpg", civil(2018, 8, 20)),
    ])
    func `a name with a date gives it`(_ name: String, _ time: CivilTime) {
        #expect(find(name) == time, "\(name)")
    }

    @Test(arguments: [
        "IMG_0412.jpg", "12345678901234567890.jpg", "order 20191345 no date.jpg",
        "order 20191215 no date.jpg",
        "DSC01234.jpg", "2019-02-30.jpg", "20190230.jpg", "99999999_999999.jpg", "x2019-1-2.jpg", "",
        "mm20240501x.jpg", "1525167072123.jpg", "IMG_19120101.jpg", "2990-01-01.jpg", "1700-01-01.jpg",
        "2018年8月.jpg", "2018年13月1日.jpg", "2018年2月30日.jpg", "平成30年8月21日.jpg",
        "30年8月21日.jpg",
        "12018年8月21日.jpg",
        "2018年008月21日.jpg", "2018年8月 日.jpg", "2018年의 사진 8월.jpg",
        "05-06-2019.jpg", "31.02.2019.jpg", "2019_0203.jpg", "22-04-06 15-21-03 2160.jpg", "1.2.2019.jpg",
    ])
    func `a name without a date gives none`(_ name: String) {
        #expect(find(name) == nil, "\(name)")
    }

    @Test func `names of Pixel phones are UTC`() {
        #expect(
            find("PXL_20231129_043736033.jpg", hoursEast: -8) == civil(2023, 11, 28, 20, 37, 36, 33_000_000))
        #expect(find("IMG_20231129_043736033.jpg", hoursEast: -8)?.day.day == 29)
    }

    @Test func `bytes that are no text are no date`() {
        let answer = captureDate(
            MediaFacts(type: .jpeg), fileName: [0xFF, 0x32, 0x30, 0x00, 0x80], modified: testModified,
            now: testNow,
            localOffset: { _ in 0 })
        #expect(answer.source == .mtime)
    }
}

/// The days of photos; see the manual.
@Suite("Days: the date that counts") struct CapturedTests {
    /// One date of each source, each on another day, the best first.
    private static let all: [(source: DateSource, day: Int)] = [
        (.dateTimeOriginal, 2), (.xmp, 3), (.iptc, 4), (.dateTimeDigitized, 5), (.quickTimeCreationDate, 6),
        (.quickTimeMovieHeader, 7), (.gps, 8), (.fileName, 9), (.dateTime, 10),
    ]

    private func facts(_ sources: [(source: DateSource, day: Int)]) -> MediaFacts {
        var facts = MediaFacts(type: .jpeg)
        for (source, day) in sources.reversed() where source != .fileName {
            facts.dates.append(DateCandidate(source: source, time: civil(2015, 3, day, 12)))
        }
        return facts
    }

    @Test func `the first plausible date counts`() {
        for start in Self.all.indices {
            let rest = Array(Self.all[start...])
            let answer = capture(facts(rest), name: start <= 7 ? "IMG_20150309_120000.jpg" : "x.jpg")
            #expect(answer.source == rest[0].source)
            #expect(answer.time == civil(2015, 3, rest[0].day, 12))
        }
        let sidecar = Sidecar(dates: [DateCandidate(source: .xmp, time: civil(2015, 3, 1))])
        #expect(capture(facts(Self.all), sidecar: sidecar).source == .sidecar)
        let last = capture(facts([]), hoursEast: 2)
        #expect(last.source == .mtime)
        #expect(last.time == civil(2013, 5, 6, 9, 8, 9))
    }

    @Test(arguments: [
        civil(1825, 12, 31), civil(1, 1, 1), civil(1904, 1, 1, 5), civil(1970, 1, 1, 0, 0, 1),
        civil(1969, 12, 31, 19),
        civil(1980, 1, 1), civil(1980, 1, 1, 3, 4, 5), civil(2000, 1, 1, 0, 7), civil(2026, 11, 22, 12, 0, 1),
        civil(2099, 1, 2),
    ])
    func `implausible dates are passed over`(_ time: CivilTime) {
        var facts = MediaFacts(type: .jpeg)
        facts.dates = [
            DateCandidate(source: .dateTimeOriginal, time: time),
            DateCandidate(source: .dateTimeDigitized, time: civil(2015, 3, 5)),
        ]
        #expect(capture(facts).source == .dateTimeDigitized)
        facts.dates.removeLast()
        #expect(capture(facts).source == .mtime)
    }

    @Test(arguments: [
        civil(1826, 1, 1), civil(1899, 12, 31, 23, 59, 59), civil(1975, 7, 15), civil(1998, 1, 1),
        civil(2000, 1, 1, 1), civil(2001, 1, 1), civil(2026, 11, 22, 11, 59), civil(2026, 11, 21, 13),
    ])
    func `old and recent dates are plausible`(_ time: CivilTime) {
        var facts = MediaFacts(type: .jpeg)
        facts.dates = [DateCandidate(source: .dateTimeOriginal, time: time)]
        #expect(capture(facts).time == time)
    }

    @Test func `wall clocks are never shifted`() {
        var facts = MediaFacts(type: .jpeg)
        let time = civil(2017, 6, 8, 23, 59)
        facts.dates = [DateCandidate(source: .dateTimeOriginal, time: time, offsetSeconds: -8 * 3600)]
        #expect(capture(facts, hoursEast: 9).time == time)
        facts.dates[0].source = .xmp
        facts.dates[0].offsetSeconds = 0
        #expect(capture(facts, hoursEast: 9).time == time)
    }

    /// The zone of the wall clock that is not plausible, else of DateTime, moves the GPS date.
    @Test func `GPS dates become local`() {
        var facts = MediaFacts(type: .jpeg)
        facts.dates = [DateCandidate(source: .gps, time: civil(2020, 5, 11, 23, 30), isUTC: true)]
        #expect(capture(facts, hoursEast: 2).time == civil(2020, 5, 12, 1, 30))
        facts.dates.append(
            DateCandidate(source: .dateTime, time: civil(2021, 1, 1), offsetSeconds: -8 * 3600))
        #expect(capture(facts, hoursEast: 2).time == civil(2020, 5, 11, 15, 30))
        #expect(capture(facts, hoursEast: 2).source == .gps)
        // A receiver that has heard no satellite.
        facts.dates[0].time = civil(1980, 1, 6, 0, 0, 4)
        #expect(capture(facts).source == .dateTime)
        facts.dates[0] = DateCandidate(source: .dateTimeOriginal, time: civil(1980, 1, 6))
        #expect(capture(facts).source == .dateTimeOriginal)
    }

    @Test func `universal time becomes local`() {
        var facts = MediaFacts(type: .mp4)
        facts.dates = [
            DateCandidate(source: .quickTimeMovieHeader, time: civil(2020, 5, 11, 23, 30), isUTC: true)
        ]
        #expect(capture(facts, hoursEast: 2).time == civil(2020, 5, 12, 1, 30))
        #expect(capture(facts, hoursEast: -2).time == civil(2020, 5, 11, 21, 30))
        // The file's own zone, told by a date that itself is not plausible, comes before the mount's.
        facts.dates.append(
            DateCandidate(source: .dateTimeOriginal, time: civil(1980, 1, 1), offsetSeconds: 9 * 3600))
        #expect(capture(facts, hoursEast: -2).time == civil(2020, 5, 12, 8, 30))
    }

    @Test func `extremes do not trap`() {
        var facts = MediaFacts(type: .mp4)
        facts.dates = [
            DateCandidate(
                source: .gps, time: civil(9999, 12, 31, 23, 59, 59), isUTC: true, offsetSeconds: .max),
            DateCandidate(
                source: .quickTimeMovieHeader, time: civil(1, 1, 1), isUTC: true, offsetSeconds: .min),
        ]
        for moment in [Int64.min, -1, 0, Int64.max] {
            let answer = captureDate(
                facts, fileName: [], modified: moment, modifiedNanoseconds: .max, now: moment,
                localOffset: { _ in moment > 0 ? Int.max : Int.min })
            #expect(answer.time.year >= 1)
        }
    }

    @Test func `sources have the names that the attribute shows`() {
        #expect(DateSource.dateTimeOriginal.rawValue == "DateTimeOriginal")
        #expect(DateSource.allCases.count == Set(DateSource.allCases.map(\.rawValue)).count)
    }
}
