/// Extracts a few properties from an XMP packet without parsing XML. ISO 16684-1 lets each be an attribute
/// (`exif:DateTimeOriginal="…"`) or an element (`<exif:DateTimeOriginal>…`); prefixes are in practice always the
/// customary ones. The first of each counts: later ones are in descriptions of ingredients.
struct XMPScanner {
    private let packet: ByteView
    private var values: [String?] = Array(repeating: nil, count: Property.all.count)
    private var dates: [ParsedDate?] = Array(repeating: nil, count: Property.all.count)
    private var found = false
    /// Whether exif:UserComment is the word that Apple's devices write into pictures of their screens.
    private var isScreenshot = false

    private struct Property {
        let prefix: StaticString
        let name: StaticString
        /// Of a date.
        var source: DateSource?

        static let all: [Property] = [
            Property(prefix: "exif", name: "DateTimeOriginal", source: .xmp),
            Property(prefix: "xmp", name: "CreateDate", source: .xmp),
            Property(prefix: "xap", name: "CreateDate", source: .xmp),
            Property(prefix: "photoshop", name: "DateCreated", source: .xmp),
            Property(prefix: "exif", name: "DateTimeDigitized", source: .xmp),
            Property(prefix: "tiff", name: "Make"),
            Property(prefix: "tiff", name: "Model"),
            Property(prefix: "exif", name: "GPSLatitude"),
            Property(prefix: "exif", name: "GPSLongitude"),
            Property(prefix: "xmp", name: "Rating"),
            Property(prefix: "xap", name: "Rating"),
            Property(prefix: "GPano", name: "ProjectionType"),
            Property(prefix: "GCamera", name: "BurstID"),
            Property(prefix: "photoshop", name: "SidecarForExtension"),
            Property(prefix: "exif", name: "GPSTimeStamp", source: .gps),
        ]
    }

    /// Adds the properties of a packet to `facts`.
    static func scan(_ packet: ByteView, into facts: inout MediaFacts) {
        var scanner = XMPScanner(packet)
        scanner.run()
        guard scanner.found else { return }
        for candidate in scanner.candidates where !facts.dates.contains(candidate) {
            // EXIF's moment by satellite is the camera's own.
            if candidate.source == .gps { facts.add(candidate) } else { facts.dates.append(candidate) }
        }
        if facts.make == nil { facts.make = scanner.values[5] }
        if facts.model == nil { facts.model = scanner.values[6] }
        facts.setPlace(
            latitude: scanner.values[7].flatMap(XMPScanner.degrees),
            longitude: scanner.values[8].flatMap(XMPScanner.degrees))
        if facts.rating == nil {
            facts.rating = (scanner.values[9] ?? scanner.values[10]).flatMap(XMPScanner.rating)
        }
        if scanner.values[11] != nil { facts.isPanorama = true }
        if facts.burstIdentifier == nil { facts.burstIdentifier = scanner.values[12] }
        if scanner.isScreenshot { facts.isScreenshot = true }
    }

    /// Adds the properties of the packet in `region` to `facts`.
    static func scan(_ region: Region, into facts: inout MediaFacts) {
        region.lend { scan($0, into: &facts) }
    }

    /// photoshop:SidecarForExtension: the extension of the photo's name, without its dot.
    static func photoExtension(_ region: Region) -> String? {
        var value: String?
        region.lend { packet in
            var scanner = XMPScanner(packet)
            scanner.run()
            value = scanner.values[13]
        }
        if let text = value, text.hasPrefix(".") { value = String(text.dropFirst()) }
        return value?.isEmpty == true ? nil : value
    }

    private init(_ packet: ByteView) {
        self.packet = packet
    }

    /// The dates in the order of `Property.all`, best first.
    private var candidates: [DateCandidate] {
        zip(Property.all, dates).compactMap { property, date in
            guard let date, let source = property.source else { return nil }
            return source == .gps
                ? XMPScanner.satelliteDate(date)
                : DateCandidate(source: source, time: date.time, offsetSeconds: date.offsetSeconds)
        }
    }

    /// exif:GPSTimeStamp, which is in UTC also where it does not say so. A day alone is no moment.
    private static func satelliteDate(_ date: ParsedDate) -> DateCandidate {
        let isMoment = date.offsetSeconds != nil || date.time != CivilTime(date.time.day)
        return DateCandidate(
            source: .gps, time: date.time.shifted(by: -(date.offsetSeconds ?? 0)), isUTC: isMoment)
    }

    private mutating func run() {
        var index = 0
        while let colon = packet.firstIndex(of: UInt8(ascii: ":"), from: index, end: packet.count) {
            index = colon + 1
            switch packet[colon + 1] {
            case UInt8(ascii: "D"), UInt8(ascii: "C"), UInt8(ascii: "M"), UInt8(ascii: "G"),
                UInt8(ascii: "R"), UInt8(ascii: "P"), UInt8(ascii: "B"), UInt8(ascii: "S"):
                readProperty(at: colon)
            case UInt8(ascii: "U"): readComment(at: colon)
            default: break
            }
        }
    }

    private mutating func readProperty(at colon: Int) {
        for (index, property) in Property.all.enumerated() {
            guard packet.matches(property.name, at: colon + 1) else { continue }
            let start = colon - property.prefix.utf8CodeUnitCount
            guard packet.matches(property.prefix, at: start) else { continue }
            let before = packet[start - 1]
            guard before == UInt8(ascii: "<") || ASCII.isSpace(before) else { continue }
            guard let value = value(after: colon + 1 + property.name.utf8CodeUnitCount) else { return }
            if property.source != nil {
                if dates[index] == nil { dates[index] = DateText.parse(value) }
            } else if values[index] == nil {
                let text = value.trimmedText
                values[index] = text.isEmpty ? nil : text
            }
            found = true
            return
        }
    }

    /// A comment is a list of texts in several languages: the word is looked for in its beginning.
    private mutating func readComment(at colon: Int) {
        guard packet.matches("UserComment", at: colon + 1), packet.matches("exif", at: colon - 4) else {
            return
        }
        let end = colon + XMPScanner.valueBytesMax
        var index = colon + 1
        while let start = packet.firstIndex(of: UInt8(ascii: "S"), from: index, end: end) {
            if packet.matches("Screenshot", at: start) {
                (isScreenshot, found) = (true, true)
                return
            }
            index = start + 1
        }
    }

    /// A whole number of stars; some programs write `4.0`.
    private static func rating(_ text: String) -> Int? {
        guard text.utf8.count <= 8, let number = Double(text), number.isFinite else { return nil }
        let rounded = number.rounded()
        return (-1...5).contains(rounded) ? Int(rounded) : nil
    }

    /// No value of these properties is longer.
    private static let valueBytesMax = 130

    /// The attribute's or element's text.
    private func value(after index: Int) -> ByteView? {
        var start = skippingSpaces(index)
        if packet[start] == UInt8(ascii: "=") {
            start = skippingSpaces(start + 1)
            let quote = packet[start]
            guard quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else { return nil }
            let limit = start + XMPScanner.valueBytesMax
            return packet.firstIndex(of: quote, from: start + 1, end: limit).map {
                packet.slice(start + 1..<$0)
            }
        }
        let limit = start + XMPScanner.valueBytesMax
        guard start > index || packet[start] == UInt8(ascii: ">"),
            let close = packet.firstIndex(of: UInt8(ascii: ">"), from: start, end: limit),
            let end = packet.firstIndex(
                of: UInt8(ascii: "<"), from: close, end: close + XMPScanner.valueBytesMax)
        else { return nil }
        return packet.slice(close + 1..<end)
    }

    private func skippingSpaces(_ index: Int) -> Int {
        var result = index
        while ASCII.isSpace(packet[result]) { result += 1 }
        return result
    }

    /// XMP's GPSCoordinate: `DDD,MM,SSk` or `DDD,MM.mmk`, k being one of N, S, E, W; or signed degrees without it, as
    /// some programs write.
    private static func degrees(_ text: String) -> Double? {
        guard let direction = text.utf8.last, text.utf8.count <= 32 else { return nil }
        if ASCII.isDigit(direction) { return Double(text) }
        let parts = text.dropLast().split(separator: ",").map { Double($0) }
        guard let first = parts.first, let whole = first, parts.count <= 3 else { return nil }
        var result = whole
        if parts.count > 1, let minutes = parts[1] { result += minutes / 60 }
        if parts.count > 2, let seconds = parts[2] { result += seconds / 3600 }
        let negative = direction | 0x20 == UInt8(ascii: "s") || direction | 0x20 == UInt8(ascii: "w")
        return negative ? -result : result
    }
}

/// Reads an XMP file beside a photo (`NAME.EXT.xmp`, `NAME.xmp`). Nil if it contains no date, rating or place, and does
/// not name its photo's extension.
public func readSidecar(_ source: some ByteSource) -> Sidecar? {
    let region = Region(BoundedReader(source))
    var facts = MediaFacts(type: .tiff)
    XMPScanner.scan(region, into: &facts)
    // A moment by satellite comes after the photo's own dates.
    facts.dates.removeAll { $0.source == .gps }
    let photoExtension = XMPScanner.photoExtension(region)
    guard !facts.dates.isEmpty || facts.rating != nil || facts.latitude != nil || photoExtension != nil else {
        return nil
    }
    var place: Sidecar.Place?
    if let latitude = facts.latitude, let longitude = facts.longitude {
        place = Sidecar.Place(latitude: latitude, longitude: longitude)
    }
    return Sidecar(
        dates: facts.dates, rating: facts.rating, place: place, photoExtension: photoExtension)
}
