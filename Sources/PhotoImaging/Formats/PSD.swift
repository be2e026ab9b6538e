/// Photoshop documents, small and large: "Adobe Photoshop File Formats Specification" (2019). Their image resources
/// hold EXIF, XMP, IPTC and a JPEG thumbnail.
enum PSDReader: FormatReader {
    static func identify(_ region: Region) -> MediaType? {
        guard region.matches("8BPS"), let version = region.u16(4), version == 1 || version == 2,
            region.u32(6) == 0, region.u16(10) == 0
        else { return nil }
        return .psd
    }

    static func read(_ region: Region, into facts: inout MediaFacts) {
        facts.setSize(region.u32(18), region.u32(14))
        guard let colours = region.u32(26).map(UInt64.init), let length = region.u32(30 + colours) else {
            return
        }
        IPTCScanner.scanPhotoshop(region.clipped(34 + colours, UInt64(length)), into: &facts)
    }
}
