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
    let found = zonedCaptureDate(
        facts, fileName: fileName, modified: modified, modifiedNanoseconds: modifiedNanoseconds,
        sidecar: sidecar, now: now, localOffset: localOffset)
    return (found.time, found.source)
}

/// The time when a photo was taken.
public struct CaptureDate: Sendable, Equatable {
    /// The wall clock.
    public var time: CivilTime
    /// Where it was found.
    public var source: DateSource
    /// The seconds east of UTC of the mount's time zone, by which a time in UTC became local; nil if that zone does not
    /// matter.
    public var mountOffset: Int?
}

/// As ``captureDate(_:fileName:modified:modifiedNanoseconds:sidecar:now:localOffset:)``, with the offset that was used.
public func zonedCaptureDate(
    _ facts: MediaFacts, fileName: [UInt8], modified: Int64, modifiedNanoseconds: UInt32 = 0,
    sidecar: Sidecar? = nil, now: Int64, localOffset: (_ utcSeconds: Int64) -> Int
) -> CaptureDate {
    let latest =
        CivilTime(secondsSince1970: now, offsetSeconds: localOffset(now))
        .secondsSince1970 + secondsPerDay
    let fileOffset = facts.dates.lazy.filter { !$0.isUTC }.compactMap(\.offsetSeconds).first

    func plausible(_ candidate: DateCandidate, as source: DateSource) -> CaptureDate? {
        var time = candidate.time
        var mountOffset: Int?
        if candidate.source == .gps, time.day == satelliteEpoch { return nil }
        if candidate.isUTC {
            guard !isUnsetClock(time) else { return nil }
            let own = candidate.offsetSeconds ?? fileOffset ?? facts.utcOffset
            if own == nil { mountOffset = localOffset(time.secondsSince1970) }
            time = time.shifted(by: own ?? mountOffset ?? 0)
        }
        guard time.year >= firstPhotographYear, time.secondsSince1970 <= latest, !isUnsetClock(time) else {
            return nil
        }
        return CaptureDate(time: time, source: source, mountOffset: mountOffset)
    }

    for candidate in sidecar?.dates ?? [] {
        if let found = plausible(candidate, as: .sidecar) { return found }
    }
    for source in captureOrder {
        if source == .fileName {
            if let named = FileNameDate.find(in: fileName), let found = plausible(named, as: source) {
                return found
            }
        } else {
            for candidate in facts.dates where candidate.source == source {
                if let found = plausible(candidate, as: source) { return found }
            }
        }
    }
    let offset = localOffset(modified)
    let time = CivilTime(
        secondsSince1970: modified, offsetSeconds: offset, nanosecond: Int(modifiedNanoseconds))
    return CaptureDate(time: time, source: .mtime, mountOffset: offset)
}

/// The sources of a photo and of its name, in the order in which they are tried: that of their declaration.
private let captureOrder = DateSource.allCases.filter { source in
    switch source {
    case .dateTimeOriginal, .xmp, .iptc, .dateTimeDigitized, .quickTimeCreationDate,
        .quickTimeMovieHeader, .gps, .fileName, .dateTime:
        true
    case .sidecar, .mtime, .moved, .kept: false
    }
}

/// Niépce's view from the window at Le Gras.
private let firstPhotographYear = 1826

/// The epoch of satellite time: a receiver reports it until it has heard a satellite.
private let satelliteEpoch = CivilDay(year: 1980, month: 1, day: 6)

/// Whether a clock that was never set, or lost its battery, would show this.
///
/// Clocks count on from the epoch of their firmware: 1904 (QuickTime), 1970 (Unix; seen as 1969-12-31 west of
/// Greenwich) and 1980 (DOS) are recognised by the day alone, as hardly any scan is known to be of that very day. Many
/// cameras begin at 2000-01-01 00:00, a night of which there are real pictures too: only its first hour counts.
package func isUnsetClock(_ time: CivilTime) -> Bool {
    switch (time.year, time.month, time.day.day) {
    case (1904, 1, 1), (1970, 1, 1), (1969, 12, 31), (1980, 1, 1): true
    case (2000, 1, 1): time.hour == 0
    default: false
    }
}
