import CatalogueRows
import PhotoRules
import Testing

/// A date in UTC becomes local by the zone of the mount that files the photo, and stays so.
@Suite("Days: the time zone of a photo") struct ZoneRuleTests {
    private let tokyo: Int64 = 9 * 3600
    private let newYork: Int64 = -4 * 3600
    /// 2024-05-01 20:00 UTC: the second in Tokyo, the first in New York.
    private let time: Int64 = 1_714_593_600

    /// A photo with that time in UTC, as a mount of that zone files it.
    private func row(_ source: String, _ time: Int64, _ zone: Int64?) -> PhotoRow {
        var row = PhotoRow(ino: 1, day: zone == tokyo ? 20_240_502 : 20_240_501)
        row.captured = time + (zone ?? 0)
        row.source = Array(source.utf8)
        row.zone = zone
        row.isDatedByMtime = source == "mtime"
        return row
    }

    @Test func `the zone is behind the source`() {
        var row = row("GPS", time, tokyo)
        #expect(row.source == Array("GPS+32400".utf8) && row.sourceName == Array("GPS".utf8))
        row.zone = newYork
        #expect(row.source == Array("GPS-14400".utf8) && row.zone == newYork)
        row.zone = 0
        #expect(row.source == Array("GPS+0".utf8) && row.zone == 0)
        row.zone = nil
        #expect(row.source == Array("GPS".utf8) && row.zone == nil)
        for damaged in ["GPS-", "GPS+-9223372036854775808", "GPS-9223372036854775808", "GPS+99999999"] {
            row.source = Array(damaged.utf8)
            #expect(row.zone == nil)
        }
    }

    @Test(arguments: ["GPS", "QuickTimeMovieHeader", "FileName", "mtime"])
    func `the same time read under another zone is the same wall clock`(source: String) {
        var edited = row(source, time, newYork)
        edited.keepZone(of: row(source, time, tokyo)) { _ in Int(newYork) }
        #expect(edited.day == 20_240_502 && edited.captured == time + tokyo && edited.zone == tokyo)
    }

    @Test func `another time is local in the zone of the photo, but for a time of modification`() {
        var edited = row("QuickTimeMovieHeader", time - 3600, newYork)
        edited.keepZone(of: row("QuickTimeMovieHeader", time, tokyo)) { _ in Int(newYork) }
        #expect(edited.captured == time - 3600 + tokyo && edited.day == 20_240_502)
        edited = row("mtime", time - 3600, newYork)
        edited.keepZone(of: row("mtime", time, tokyo)) { _ in Int(newYork) }
        #expect(edited.captured == time - 3600 + newYork && edited.day == 20_240_501)
    }

    /// Summer time, in the mount of the photo's own zone.
    @Test func `a mount with the photo's zone dates it by its own offset`() {
        var edited = row("GPS", time + 200 * 86_400, newYork - 3600)
        edited.keepZone(of: row("GPS", time, newYork)) { _ in Int(newYork) }
        #expect(edited.captured == time + 200 * 86_400 + newYork - 3600)
    }

    @Test func `a photo that an early release filed stays if its times differ by what a zone may be`() {
        let old = row("GPS", time + tokyo, nil)
        var edited = row("GPS", time, newYork)
        edited.keepZone(of: old) { _ in Int(newYork) }
        #expect(edited.captured == old.captured && edited.zone == tokyo && edited.day == 20_240_502)
        for (source, difference) in [("GPS", 60), ("GPS", 24 * 3600), ("mtime", 0)] as [(String, Int64)] {
            edited = row(source, time + difference, newYork)
            edited.keepZone(of: old) { _ in Int(newYork) }
            #expect(edited.zone == newYork, "\(source) \(difference)")
        }
    }

    @Test func `a save keeps the zone with the day, and a time of modification that is set again finds it`() {
        var old = row("mtime", time, tokyo)
        old.fingerprint = 1
        var saved = row("mtime", time + 99_999, newYork)
        saved.fingerprint = 2
        let isKept = saved.inherit(from: old, now: time + 99_999)
        #expect(isKept)
        #expect(saved.day == 20_240_502 && saved.sourceName == Array("kept".utf8) && saved.zone == tokyo)
        saved.forgetKeptDay()
        #expect(saved.source == Array("mtime+32400".utf8))
        var again = row("mtime", time, newYork)
        again.fingerprint = 2
        let isKeptAgain = again.inherit(from: saved, now: time + 99_999)
        #expect(!isKeptAgain)
        #expect(again.day == 20_240_502 && again.captured == time + tokyo)
    }

    @Test func `a copy under another zone is of the same day`() {
        let photo = row("FileName", time, tokyo)
        #expect(mayBeCopy(row("FileName", time, newYork), of: photo))
        #expect(!mayBeCopy(row("FileName", time - 86_400, newYork), of: photo))
    }
}
