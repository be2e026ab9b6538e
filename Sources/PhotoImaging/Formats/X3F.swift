/// Sigma's raw format: numbers with the lowest byte first, and a directory at the end, to which the last four bytes
/// point. Its pictures are JPEGs, in newer cameras with EXIF; the older ones tell the date as a property.
///
/// Source: Foveon, "X3F File Format"; exiftool's `SigmaRaw.pm`.
enum X3FReader: FormatReader {
    static func identify(_ region: Region) -> MediaType? {
        region.matches("FOVb") && region.count >= 64 ? .x3f : nil
    }

    /// Cameras write fewer than ten.
    private static let entriesMax: UInt32 = 32
    private static let propertiesMax: UInt32 = 256
    /// The format of a picture that is a JPEG.
    private static let jpegFormat: UInt32 = 18

    static func read(_ region: Region, into facts: inout MediaFacts) {
        let size: UInt64 = (region.u16(6, .little) ?? 0) < 4 ? 28 : 40
        facts.setSize(region.u32(size, .little), region.u32(size + 4, .little))
        guard let start = region.u32(region.count - 4, .little).map(UInt64.init),
            region.matches("SECd", at: start), let count = region.u32(start + 8, .little)
        else { return }
        var properties: Region?
        for index in 0..<UInt64(min(count, entriesMax)) {
            let entry = start + 12 + 12 * index
            guard let offset = region.u32(entry, .little), let length = region.u32(entry + 4, .little),
                let type = region.u32(entry + 8)
            else { break }
            let section = region.clipped(UInt64(offset), UInt64(length))
            switch type {
            case fourCC("IMAG"), fourCC("IMA2"): readPicture(section, into: &facts)
            case fourCC("PROP"): properties = section
            default: break
            }
        }
        if let properties, facts.dates.isEmpty { readDate(properties, into: &facts) }
    }

    /// A header of 28 bytes, then the pixels.
    private static func readPicture(_ section: Region, into facts: inout MediaFacts) {
        guard section.matches("SECi"), section.u32(12, .little) == jpegFormat else { return }
        let jpeg = section.from(28)
        guard JPEGReader.identify(jpeg) != nil else { return }
        JPEGReader.read(jpeg, into: &facts)
        facts.addPreview(jpeg, 0, jpeg.count)
    }

    /// Names and values in UTF-16, by the number of the unit in which each begins. `TIME` is the camera's clock, in
    /// seconds since 1970.
    private static func readDate(_ section: Region, into facts: inout MediaFacts) {
        guard section.matches("SECp"), let count = section.u32(8, .little), count <= propertiesMax else {
            return
        }
        let texts = section.from(24 + 8 * UInt64(count))
        for index in 0..<UInt64(count) {
            guard let name = section.u32(24 + 8 * index, .little),
                let value = section.u32(28 + 8 * index, .little)
            else { return }
            guard text(in: texts, at: name) == "TIME" else { continue }
            let seconds = text(in: texts, at: value).flatMap { Int64($0) }
            guard let seconds, (0..<1 << 33).contains(seconds) else { return }
            facts.add(.dateTimeOriginal, ParsedDate(time: CivilTime(secondsSince1970: seconds)))
            return
        }
    }

    /// A text of ASCII, which ends with a zero; nil if it is none, or longer than any that is looked for.
    private static func text(in texts: Region, at unit: UInt32) -> String? {
        var result = ""
        for index in 0..<UInt64(12) {
            guard let code = texts.u16((UInt64(unit) + index) * 2, .little), code < 0x80 else { return nil }
            if code == 0 { return result }
            result.unicodeScalars.append(Unicode.Scalar(UInt8(code)))
        }
        return nil
    }
}
