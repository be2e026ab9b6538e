/// TIFF 6.0, BigTIFF, and the raw formats that are based on TIFF: DNG, CR2, NEF, ARW, ORF, RW2, PEF, SRW.
enum TIFFReader: FormatReader {
    static func identify(_ region: Region) -> MediaType? {
        guard let tiff = TIFFStructure(region) else { return nil }
        switch region.u16(2, tiff.order) {
        case 0x0055: return .rw2
        // Olympus' magic numbers are letters: a text could begin with them, but not continue like this.
        case 0x4F52, 0x5352: return tiff.firstDirectory <= ReadLimits.identifyBytes ? .orf : nil
        default: break
        }
        if region.matches("CR\u{02}", at: 8) { return .cr2 }
        return rawType(tiff) ?? .tiff
    }

    /// The raw formats that differ from TIFF only in their tags.
    private static func rawType(_ tiff: TIFFStructure) -> MediaType? {
        var isDNG = false
        var isRaw = false
        // Its text may be far away: read once, after the directory.
        var maker: TIFFStructure.Entry?
        _ = tiff.forEachEntry(at: tiff.firstDirectory) { entry in
            switch entry.tag {
            case 0xC612: isDNG = true
            case 0x014A: isRaw = true
            // Colour filter array, and Pentax's own compression.
            case 0x0106: isRaw = isRaw || tiff.integer(entry) == 32_803
            case 0x0103: isRaw = isRaw || tiff.integer(entry) == 65_535
            case 0x010F: maker = maker ?? entry
            default: break
            }
        }
        if isDNG { return .dng }
        guard isRaw, let make = maker.flatMap({ tiff.text($0) })?.uppercased() else { return nil }
        if make.hasPrefix("NIKON") { return .nef }
        if make.hasPrefix("SONY") { return .arw }
        if make.hasPrefix("PENTAX") || make.hasPrefix("RICOH") || make.hasPrefix("ASAHI") { return .pef }
        return make.hasPrefix("SAMSUNG") ? .srw : nil
    }

    static func read(_ region: Region, into facts: inout MediaFacts) {
        guard let scanner = EXIFScanner.scan(region, into: &facts) else { return }
        readPackets(of: scanner, into: &facts)
        if let jpeg = scanner.embeddedJPEG { JPEGReader.read(jpeg, into: &facts) }
        if facts.dates.isEmpty { readLaterPages(region, into: &facts) }
    }

    /// Maximum number of pages whose dates are read: as many as are searched for the full picture.
    private static let pagesMax = 16

    /// The dates of the first page that has any, if the first page of all has none: it may be a preview of the next.
    private static func readLaterPages(_ region: Region, into facts: inout MediaFacts) {
        guard let tiff = TIFFStructure(region) else { return }
        var offset = tiff.firstDirectory
        for _ in 1..<pagesMax {
            guard let next = tiff.forEachEntry(at: offset, { _ in }), next != 0 else { return }
            offset = next
            var page = MediaFacts(type: facts.type)
            guard let scanner = EXIFScanner.scan(region, page: offset, into: &page) else { return }
            readPackets(of: scanner, into: &page)
            facts.dates = page.dates
            facts.make = facts.make ?? page.make
            facts.model = facts.model ?? page.model
            facts.setPlace(latitude: page.latitude, longitude: page.longitude)
            guard facts.dates.isEmpty else { return }
        }
    }

    private static func readPackets(of scanner: EXIFScanner, into facts: inout MediaFacts) {
        for packet in scanner.packets {
            switch packet.kind {
            case .xmp: XMPScanner.scan(packet.region, into: &facts)
            case .iptc: IPTCScanner.scan(packet.region, into: &facts)
            case .photoshop: IPTCScanner.scanPhotoshop(packet.region, into: &facts)
            }
        }
    }
}
