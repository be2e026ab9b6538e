/// The time when a photo was taken, and the source of that time.
///
/// The first plausible one of these: the sidecar's date, DateTimeOriginal, XMP's and IPTC's date created,
/// DateTimeDigitized, for video QuickTime's creation date and then the movie header (UTC), the GPS date (UTC), a date
/// in the file's name, DateTime of IFD0, the file's own time of modification, which is always accepted. A wall clock is
/// never shifted. UTC becomes local by the file's own offset, else by `localOffset`.
///
/// Not plausible: before 1826, the year of the oldest photograph; the time of a clock that was never set; and more than
/// a day ahead of now.
///
/// - Parameters:
///   - facts: The result of ``readFacts(_:)``.
///   - fileName: The name's bytes, without directories.
///   - modified: The file's mtime in seconds since 1970 UTC.
///   - modifiedNanoseconds: Its nanoseconds.
///   - sidecar: The result of ``readSidecar(_:)``, if there is a sidecar.
///   - now: Seconds since 1970 UTC.
///   - localOffset: The offset of the mount's time zone in seconds east of UTC, at a time in seconds since 1970 UTC.
public func captureDate(
    _ facts: MediaFacts, fileName: [UInt8], modified: Int64, modifiedNanoseconds: UInt32 = 0,
    sidecar: Sidecar? = nil, now: Int64, localOffset: (_ utcSeconds: Int64) -> Int
) -> (time: CivilTime, source: DateSource) {
    let latest =
        CivilTime(secondsSince1970: now, offsetSeconds: localOffset(now))
        .secondsSince1970 + secondsPerDay
    let fileOffset = facts.dates.lazy.filter { !$0.isUTC }.compactMap(\.offsetSeconds).first

    func plausible(_ candidate: DateCandidate) -> CivilTime? {
        var time = candidate.time
        if candidate.source == .gps, time.day == satelliteEpoch { return nil }
        if candidate.isUTC {
            let offset = candidate.offsetSeconds ?? fileOffset ?? localOffset(time.secondsSince1970)
            guard !isUnsetClock(time) else { return nil }
            time = time.shifted(by: offset)
        }
        return time.year >= firstPhotographYear && time.secondsSince1970 <= latest && !isUnsetClock(time)
            ? time : nil
    }

    for candidate in sidecar?.dates ?? [] {
        if let time = plausible(candidate) { return (time, .sidecar) }
    }
    for source in captureOrder {
        if source == .fileName {
            if let time = FileNameDate.find(in: fileName).flatMap(plausible) { return (time, source) }
        } else {
            for candidate in facts.dates where candidate.source == source {
                if let time = plausible(candidate) { return (time, source) }
            }
        }
    }
    let time = CivilTime(
        secondsSince1970: modified, offsetSeconds: localOffset(modified), nanosecond: Int(modifiedNanoseconds)
    )
    return (time, .mtime)
}

/// The order in which dates are tried.
private let captureOrder: [DateSource] = [
    .dateTimeOriginal, .xmp, .iptc, .dateTimeDigitized, .quickTimeCreationDate,
    .quickTimeMovieHeader, .gps, .fileName, .dateTime,
]

/// Niépce's view from the window at Le Gras.
private let firstPhotographYear = 1826

/// The epoch of satellite time: a receiver reports it until it has heard a satellite.
private let satelliteEpoch = CivilDay(year: 1980, month: 1, day: 6)

/// Whether a clock that was never set, or lost its battery, would show this.
///
/// Clocks count on from the epoch of their firmware: 1904 (QuickTime), 1970 (Unix; seen as 1969-12-31 west of
/// Greenwich) and 1980 (DOS) are recognised by the day alone, as hardly any scan is known to be of that very day. Many
/// cameras begin at 2000-01-01 00:00, a night of which there are real pictures too: only its first hour counts.
private func isUnsetClock(_ time: CivilTime) -> Bool {
    switch (time.year, time.month, time.day.day) {
    case (1904, 1, 1), (1970, 1, 1), (1969, 12, 31), (1980, 1, 1): true
    case (2000, 1, 1): time.hour == 0
    default: false
    }
}
