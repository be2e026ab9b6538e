package import CatalogueRows
import PhotoImaging

/// The time zone of a photo whose date is in UTC (a movie header, GPS, the name of a Pixel's photo, a time of
/// modification): that of the mount that filed it. `source` has it after the name of the source, as seconds east of
/// UTC with a sign: `GPS+32400`. A program that edits the photo under another zone does not move it to another day.
extension PhotoRow {
    /// A `DateSource`'s raw value: the value of `user.obscura.captured.source`.
    package var sourceName: [UInt8] {
        signIndex.map { Array(source[..<$0]) } ?? source
    }

    /// Seconds east of UTC by which the mount that filed the photo made its date local; nil if the date needed no zone,
    /// and for a photo that an early release filed.
    package var zone: Int64? {
        get {
            guard let index = signIndex else { return nil }
            let seconds = Int64(String(decoding: source[index...], as: UTF8.self))
            return seconds.flatMap { (-zoneSecondsMax...zoneSecondsMax).contains($0) ? $0 : nil }
        }
        set {
            source = sourceName
            guard let newValue else { return }
            source += Array(((newValue < 0 ? "" : "+") + String(newValue)).utf8)
        }
    }

    private var signIndex: Int? {
        source.lastIndex { $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "-") }
    }

    /// Keeps the zone by which `old`, the same photo before its bytes or times were changed, was filed: the same time
    /// in UTC is the same wall clock. So is another one, in the zone of the photo; but for a time of modification,
    /// which a person sets and reads in the zone of the mount. If the mount has the zone of the photo, its offset at
    /// the new time counts, which may be one of summer time.
    ///
    /// Without a recorded zone, times that differ by what a zone can be are the same.
    package mutating func keepZone(of old: PhotoRow, mountOffset: (_ utcSeconds: Int64) -> Int = localOffset)
    {
        guard let own = zone else { return }
        let time = captured - own
        guard let filed = old.zone else {
            let difference = old.captured - time
            if sourceName == old.sourceName, capturedNanoseconds == old.capturedNanoseconds,
                zonesOfNow.contains(difference), difference % zoneSecondsStep == 0
            {
                move(to: difference)
            }
            return
        }
        let isSame = time + filed == old.captured
        if !isSame, isDatedByMtime || Int64(mountOffset(old.captured - filed)) == filed { return }
        move(to: filed)
    }

    private mutating func move(to zone: Int64) {
        captured += zone - (self.zone ?? zone)
        day = dayNumber(CivilTime(secondsSince1970: captured).day)
        self.zone = zone
    }
}

/// No zone was ever further from UTC, local mean times included.
private let zoneSecondsMax: Int64 = 16 * 3600
/// The zones of today.
private let zonesOfNow: ClosedRange<Int64> = -12 * 3600...14 * 3600
private let zoneSecondsStep: Int64 = 900
