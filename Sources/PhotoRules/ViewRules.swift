package import CatalogueRows
import FileRequests
import Glibc
package import PhotoImaging

/// Views: virtual directories that group the photos of moments by camera, date, kind, rating and arrival. A photo has
/// the same name in all of them.

package let viewsName = Array("views".utf8)

/// How many photos the view of the newest arrivals has.
package let recentPhotosMax = 500

/// A kind of photo that has a view. The raw values are stored; see the format specification, table `photo`.
package enum PhotoKind: Int64, Sendable, CaseIterable {
    case video = 1
    case raw = 2
    case panorama = 3
    case screenshot = 4

    /// The name of its view.
    package var name: String {
        switch self {
        case .video: "video"
        case .raw: "raw"
        case .panorama: "panorama"
        case .screenshot: "screenshot"
        }
    }
}

/// The kind of a photo with that name; nil for most photos.
package func photoKind(_ facts: MediaFacts, named name: [UInt8]) -> PhotoKind? {
    if facts.type.isVideo { return .video }
    if facts.type.isRaw { return .raw }
    if facts.isScreenshot || isScreenshotName(name) { return .screenshot }
    if facts.isPanorama || isPanorama(width: facts.width, height: facts.height) { return .panorama }
    return nil
}

/// A picture without metadata that say so is a panorama if it is much longer than any screen or print.
private func isPanorama(width: Int, height: Int) -> Bool {
    let (long, short) = (max(width, height), min(width, height))
    return long >= 3000 && short > 0 && long * 2 >= short * 5
}

/// Whether a name is one that systems give to a picture of their screen.
private func isScreenshotName(_ name: [UInt8]) -> Bool {
    let text = String(decoding: name, as: UTF8.self).lowercased()
    return screenshotNames.contains { text.hasPrefix($0) }
}

/// Android and Windows, GNOME and KDE; macOS before 2019; KDE's Spectacle; and in German, French, Spanish, Italian.
private let screenshotNames = [
    "screenshot", "screen shot", "screen_shot", "scrnshot", "bildschirmfoto", "capture d’écran",
    "capture d'écran", "captura de pantalla", "schermata",
]

/// A camera's name as that of a directory; nil if nothing is left of it.
package func cameraDirectoryName(_ camera: String) -> [UInt8]? {
    var name = camera.utf8.map { $0 == UInt8(ascii: "/") || $0 < 0x20 || $0 == 0x7F ? UInt8(ascii: "_") : $0 }
    if name.count > nameBytesMax {
        var end = nameBytesMax
        // Not within a UTF-8 sequence: continuation bytes are 10xxxxxx.
        while end > 0 && name[end] & 0xC0 == 0x80 { end -= 1 }
        name = Array(name[..<end])
    }
    return name.isEmpty || name.allSatisfy { $0 == UInt8(ascii: ".") } ? nil : name
}

/// The attribute in which Dolphin and Gwenview keep a rating: half stars, from 0 to 10.
package let ratingAttribute = Array("user.baloo.rating".utf8)

/// The stars that the value of `ratingAttribute` stands for, 0 to 5: half a star counts as a whole one. Nil if it is no
/// rating.
package func stars(ofHalves value: [UInt8]) -> Int64? {
    guard let halves = Int64(String(decoding: value, as: UTF8.self)), (0...10).contains(halves) else {
        return nil
    }
    return (halves + 1) / 2
}

/// The stars that a photo's metadata give it: a sidecar's before its own. A rejected picture has none.
func stars(_ facts: MediaFacts, _ sidecar: Sidecar?) -> Int64 {
    Int64(max(0, min(5, sidecar?.rating ?? facts.rating ?? 0)))
}

/// Where a photo was taken: its sidecar's position comes before its own.
package func photoPosition(_ facts: MediaFacts, _ sidecar: Sidecar?) -> PhotoPosition {
    if let place = sidecar?.place {
        return PhotoPosition(latitude: place.latitude, longitude: place.longitude)
    }
    return PhotoPosition(latitude: facts.latitude, longitude: facts.longitude)
}

// MARK: Names of views by date

/// The days of a year, YYYYMMDD; nil if the name is not that of a year.
package func daysOfYear(named name: [UInt8]) -> ClosedRange<Int64>? {
    guard name.count == 4, let year = number(name[...]), year > 0 else { return nil }
    return year * 10_000...year * 10_000 + 1231
}

/// The days of a month, YYYYMMDD; nil if the name is not that of a month.
package func daysOfMonth(named name: [UInt8]) -> ClosedRange<Int64>? {
    guard name.count == 7, name[4] == UInt8(ascii: "-"), let year = number(name[..<4]), year > 0,
        let month = number(name[5...]), (1...12).contains(month)
    else { return nil }
    let first = year * 10_000 + month * 100
    return first...first + 31
}

/// `YYYY`.
package func yearName(ofDay day: Int64) -> [UInt8] { digits(day / 10_000, 4) }

/// `YYYY-MM`.
package func monthName(ofDay day: Int64) -> [UInt8] {
    digits(day / 10_000, 4) + [UInt8(ascii: "-")] + digits(day / 100 % 100, 2)
}

private func number(_ text: ArraySlice<UInt8>) -> Int64? {
    guard text.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else { return nil }
    return Int64(String(decoding: text, as: UTF8.self))
}

private func digits(_ number: Int64, _ count: Int) -> [UInt8] {
    let text = Array(String(number).utf8)
    return [UInt8](repeating: UInt8(ascii: "0"), count: max(0, count - text.count)) + text
}
