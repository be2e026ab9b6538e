package import PhotoImaging

/// Whether a date of an export says no more than the photo does itself.
///
/// Exports give an instant in UTC, cameras the wall clock: where the two differ by what a time zone may differ from
/// UTC, they are the same moment, and the wall clock, which the day is taken from, is the better of both. Any other
/// difference is a correction by the user.
///
/// - Parameters:
///   - own: the date that the photo has without the export, and its source.
///   - taken: seconds since 1970 UTC.
///   - precision: of `taken`, in seconds.
package func isSameMoment(
    _ own: CivilTime, _ source: DateSource, taken: Int64, precision: Int64
) -> Bool {
    if source == .mtime { return false }
    // A date in a name may have no time of day.
    if source == .fileName, own.hour == 0, own.minute == 0, own.second == 0 { return false }
    let difference = own.secondsSince1970 - taken
    guard (-12 * 3600 - precision...14 * 3600 + precision).contains(difference) else { return false }
    // Zones differ from UTC by quarters of an hour.
    let rest = ((difference % zoneSeconds) + zoneSeconds) % zoneSeconds
    return rest <= precision || rest >= zoneSeconds - precision
}

private let zoneSeconds: Int64 = 900

/// An XMP sidecar with the facts that a photo does not have itself; nil if there are none.
///
/// - Parameters:
///   - date: when it was taken, on the wall clock there.
///   - offset: the clock's offset in seconds east of UTC.
package func sidecarText(
    date: CivilTime?, offset: Int, place: PhotoMetadata.Place?, description: String
) -> [UInt8]? {
    guard date != nil || place != nil || !description.isEmpty else { return nil }
    var attributes = ""
    if let date {
        let text = date.description.split(separator: " ").joined(separator: "T") + zoneText(offset)
        attributes += "\n   exif:DateTimeOriginal=\"\(text)\"\n   photoshop:DateCreated=\"\(text)\""
    }
    if let place {
        attributes += "\n   exif:GPSLatitude=\"\(degreesText(place.latitude, "N", "S"))\""
        attributes += "\n   exif:GPSLongitude=\"\(degreesText(place.longitude, "E", "W"))\""
    }
    var elements = ""
    if !description.isEmpty {
        elements = """

               <dc:description><rdf:Alt><rdf:li xml:lang="x-default">\(escaped(description))</rdf:li></rdf:Alt>\
            </dc:description>
            """
    }
    return Array(
        """
        <?xpacket begin="\u{FEFF}" id="W5M0MpCehiHzreSzNTczkc9d"?>
        <x:xmpmeta xmlns:x="adobe:ns:meta/">
         <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
          <rdf:Description rdf:about=""
           xmlns:dc="http://purl.org/dc/elements/1.1/"
           xmlns:exif="http://ns.adobe.com/exif/1.0/"
           xmlns:photoshop="http://ns.adobe.com/photoshop/1.0/"\(attributes)>\(elements)
          </rdf:Description>
         </rdf:RDF>
        </x:xmpmeta>
        <?xpacket end="w"?>

        """.utf8)
}

/// `+02:00`.
private func zoneText(_ offset: Int) -> String {
    let minutes = abs(offset) / 60
    return (offset < 0 ? "-" : "+") + padded(minutes / 60, 2) + ":" + padded(minutes % 60, 2)
}

/// Degrees as XMP writes them: `48,51.498N`, with six digits of a minute (some millimetres).
private func degreesText(_ degrees: Double, _ positive: String, _ negative: String) -> String {
    let millionths = Int((abs(degrees) * 60_000_000).rounded())
    let (whole, minutes) = (millionths / 60_000_000, millionths % 60_000_000)
    return "\(whole),\(minutes / 1_000_000).\(padded(minutes % 1_000_000, 6))"
        + (degrees < 0 ? negative : positive)
}

private func padded(_ number: Int, _ width: Int) -> String {
    let text = String(number)
    return String(repeating: "0", count: max(0, width - text.utf8.count)) + text
}

/// Text in XML. Characters that XML 1.0 has not are left out. Colons are escaped as well: the text must not look like a
/// property to a reader that does not parse XML.
private func escaped(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
        switch scalar {
        case "&": result += "&amp;"
        case "<": result += "&lt;"
        case ">": result += "&gt;"
        case ":": result += "&#58;"
        case "\r": result += "&#13;"
        case "\t", "\n": result.unicodeScalars.append(scalar)
        case _ where scalar.value < 0x20 || scalar.value & 0xFFFE == 0xFFFE: break
        default: result.unicodeScalars.append(scalar)
        }
    }
    return result
}
