package import CatalogueRows
import Glibc
package import LinuxIO
import PhotoImaging

extension PhotoRow {
    /// The row of a photo with that name, dated by its own metadata.
    package init(_ inode: InodeRow, _ probe: MediaProbe, named name: [UInt8], now: Timestamp) {
        self.init(ino: inode.ino, modified: inode.modified, probe, named: name, now: now)
    }

    /// As above, for a file that may have no inode yet.
    package init(ino: UInt64, modified: Timestamp, _ probe: MediaProbe, named name: [UInt8], now: Timestamp) {
        self.init(ino: ino, day: 0)
        let facts = probe.facts
        let (time, found) = captureDate(
            facts, fileName: name, modified: modified.seconds, modifiedNanoseconds: modified.nanoseconds,
            sidecar: probe.sidecar, now: now.seconds,
            localOffset: localOffset)
        day = dayNumber(time.day)
        captured = time.secondsSince1970
        capturedNanoseconds = Int64(time.nanosecond)
        source = Array(found.rawValue.utf8)
        media = Int64(facts.type.rawValue)
        width = Int64(facts.width)
        height = Int64(facts.height)
        orientation = Int64(facts.orientation)
        isDatedByMtime = found == .mtime
        fingerprint = probe.fingerprint
        camera = facts.camera.flatMap(cameraDirectoryName)
        kind = photoKind(facts, named: name)?.rawValue ?? 0
        rating = stars(facts, probe.sidecar)
        group = groupIdentifier(facts)
    }

    /// Moves the photo to a day that the user chose. Its clock time stays.
    package mutating func pin(to day: Int64) {
        let seconds = ((captured % secondsPerDay) + secondsPerDay) % secondsPerDay
        let (year, month, number) = (Int(day / 10_000), Int(day / 100 % 100), Int(day % 100))
        if let civil = CivilDay(year: year, month: month, day: number) {
            captured = civil.daysSince1970 * secondsPerDay + seconds
        }
        self.day = day
        isPinned = true
        source = Array(DateSource.moved.rawValue.utf8)
    }

    /// Leaves the photo on the day that it had with its former content; see `keepsDay`. A photo that was dated by its
    /// time of modification follows that again when a program sets it.
    package mutating func keepDay(of old: PhotoRow) {
        (day, captured, capturedNanoseconds) = (old.day, old.captured, old.capturedNanoseconds)
        isDatedByMtime = old.isDatedByMtime
        source = keptSource
    }

    /// Lets a photo without a date of its own follow its time of modification, which a program has set.
    package mutating func forgetKeptDay() {
        if source == keptSource { source = Array(DateSource.mtime.rawValue.utf8) }
    }
}

let keptSource = Array(DateSource.kept.rawValue.utf8)
let lastChangeSource = Array(DateSource.dateTime.rawValue.utf8)

private let secondsPerDay: Int64 = 86_400

/// Seconds east of UTC of the mount's time zone at a given time; localtime_r(3).
package func localOffset(_ utcSeconds: Int64) -> Int {
    var seconds = time_t(utcSeconds)
    var parts = tm()
    return localtime_r(&seconds, &parts) == nil ? 0 : parts.tm_gmtoff
}

/// The captured date in the format of `user.obscura.captured`: `YYYY-MM-DD HH:MM:SS`, with a fraction if there is one.
package func capturedText(_ row: PhotoRow) -> [UInt8] {
    let time = CivilTime(secondsSince1970: row.captured, nanosecond: Int(row.capturedNanoseconds))
    return Array(time.description.utf8)
}
