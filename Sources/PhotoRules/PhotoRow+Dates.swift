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
        let found = zonedCaptureDate(
            facts, fileName: name, modified: modified.seconds, modifiedNanoseconds: modified.nanoseconds,
            sidecar: probe.sidecar, now: now.seconds,
            localOffset: localOffset)
        day = dayNumber(found.time.day)
        captured = found.time.secondsSince1970
        capturedNanoseconds = Int64(found.time.nanosecond)
        source = Array(found.source.rawValue.utf8)
        zone = found.mountOffset.map { Int64($0) }
        media = Int64(facts.type.rawValue)
        width = Int64(facts.width)
        height = Int64(facts.height)
        orientation = Int64(facts.orientation)
        isDatedByMtime = found.source == .mtime
        fingerprint = probe.fingerprint
        camera = facts.camera.flatMap(cameraDirectoryName)
        kind = photoKind(facts, named: name)?.rawValue ?? 0
        rating = stars(facts, probe.sidecar)
        group = groupIdentifier(facts)
        position = photoPosition(facts, probe.sidecar)
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

    /// Takes over from `old` what a save at `now` leaves: the arrival; the group where the new bytes name none,
    /// because a program that drops maker notes does not part a Live Photo; the day if the user chose it or `keepsDay`.
    /// Returns whether the day stays.
    @discardableResult package mutating func inherit(from old: PhotoRow, now: Int64) -> Bool {
        arrived = old.arrived
        group = group ?? old.group
        if old.isPinned {
            pin(to: old.day)
            (captured, capturedNanoseconds) = (old.captured, old.capturedNanoseconds)
            return true
        }
        keepZone(of: old)
        guard keepsDay(old, savedAs: self, now: now) else { return false }
        (day, captured, capturedNanoseconds) = (old.day, old.captured, old.capturedNanoseconds)
        // A photo that was dated by its time of modification follows that again when a program sets it.
        isDatedByMtime = old.isDatedByMtime
        source = keptSource
        zone = old.zone
        return true
    }

    /// Whether nothing but its time of modification dates the photo.
    package var followsTime: Bool { isDatedByMtime && !isPinned && sourceName == mtimeSource }

    /// With the date of another time of modification.
    package func dated(byTime modified: Timestamp) -> PhotoRow {
        var row = self
        let offset = localOffset(modified.seconds)
        let time = CivilTime(secondsSince1970: modified.seconds, offsetSeconds: offset)
        row.day = dayNumber(time.day)
        (row.captured, row.capturedNanoseconds) = (time.secondsSince1970, Int64(modified.nanoseconds))
        row.source = mtimeSource
        row.zone = Int64(offset)
        return row
    }

    /// Whether of two times of modification of equal files this one dates the photo: the earlier day, but a time of a
    /// clock that was never set last.
    package func precedes(_ other: PhotoRow) -> Bool {
        func isUnset(_ row: PhotoRow) -> Bool { isUnsetClock(CivilTime(secondsSince1970: row.captured)) }
        return isUnset(self) == isUnset(other) ? day < other.day : isUnset(other)
    }

    /// Whether a sidecar dates the photo.
    package var isDatedBySidecar: Bool { sourceName == sidecarSource }

    /// Lets a photo without a date of its own follow its time of modification, which a program has set.
    package mutating func forgetKeptDay() {
        guard sourceName == keptSource else { return }
        let zone = zone
        source = mtimeSource
        self.zone = zone
    }
}

/// Whether a photo keeps its day when it is saved: its bytes have changed and have no date of their own. The
/// time of modification is that of the save. So is the DateTime that some editors write (GIMP), in some time
/// zone. Later saves leave that DateTime as it is: in a photo whose day was kept before, a DateTime later
/// than its kept date is an editor's.
///
/// - Parameter now: the time of the save, in seconds since 1970.
package func keepsDay(_ old: PhotoRow, savedAs new: PhotoRow, now: Int64) -> Bool {
    let isOfEditor =
        abs(new.captured - now) <= timeZoneSecondsMax
        || old.sourceName == keptSource && new.captured > old.captured
    let isStamped = new.sourceName == lastChangeSource && isOfEditor
    // A name's date dates nothing that has a better one: phones write it in UTC.
    let isNamed = new.sourceName == nameSource && old.sourceName != nameSource && !old.isDatedByMtime
    guard new.isDatedByMtime || isStamped || isNamed, !old.isPinned else { return false }
    // Classified again with the same bytes, it follows its time of modification, unless its day was kept before.
    return new.fingerprint != old.fingerprint || old.sourceName == keptSource
}

/// The largest offset of a time zone from UTC.
private let timeZoneSecondsMax: Int64 = 14 * 3600

private let keptSource = Array(DateSource.kept.rawValue.utf8)
private let mtimeSource = Array(DateSource.mtime.rawValue.utf8)
private let sidecarSource = Array(DateSource.sidecar.rawValue.utf8)
private let nameSource = Array(DateSource.fileName.rawValue.utf8)
private let lastChangeSource = Array(DateSource.dateTime.rawValue.utf8)

private let secondsPerDay: Int64 = 86_400

/// Seconds east of UTC of the mount's time zone at a given time; localtime_r(3).
package func localOffset(_ utcSeconds: Int64) -> Int {
    var seconds = time_t(utcSeconds)
    var parts = unsafe tm()
    return unsafe localtime_r(&seconds, &parts) == nil ? 0 : parts.tm_gmtoff
}

/// The captured date in the format of `user.obscura.captured`: `YYYY-MM-DD HH:MM:SS`, with a fraction if there is one.
package func capturedText(_ row: PhotoRow) -> [UInt8] {
    let time = CivilTime(secondsSince1970: row.captured, nanosecond: Int(row.capturedNanoseconds))
    return Array(time.description.utf8)
}
