/// HEIC and AVIF: still pictures in ISO/IEC 23008-12 boxes.
enum HEIFReader: FormatReader {
    private static let heicBrands: Set<UInt32> = [
        fourCC("heic"), fourCC("heix"), fourCC("heim"), fourCC("heis"), fourCC("hevc"), fourCC("hevx"),
        fourCC("hevm"), fourCC("hevs"), fourCC("mif1"), fourCC("mif2"), fourCC("msf1"), fourCC("miaf"),
    ]

    static func identify(_ region: Region) -> MediaType? {
        guard let brands = FileType(region) else { return nil }
        if brands.major == fourCC("avif") || brands.major == fourCC("avis") { return .avif }
        guard heicBrands.contains(brands.major) else { return nil }
        let isGeneric = brands.major == fourCC("mif1") || brands.major == fourCC("miaf")
        return isGeneric && brands.has("avif") ? .avif : .heic
    }

    static func read(_ region: Region, into facts: inout MediaFacts) {
        // Of a sequence the movie's header may have the only date.
        let isSequence = FileType(region)?.isSequence == true
        Box.forEach(in: region) { box in
            switch box.type {
            case fourCC("meta"): HEIFMeta(file: region, meta: box.body.from(4)).read(into: &facts)
            case fourCC("moov") where isSequence:
                if let header = Box.first("mvhd", in: box.body) { QuickTimeReader.readDate(header, &facts) }
            default: return true
            }
            return isSequence
        }
    }
}

/// The metadata and the primary picture of a `meta` box.
struct HEIFMeta {
    private let file: Region
    private let meta: Region

    /// - Parameter meta: the boxes in the `meta` box.
    init(file: Region, meta: Region) { (self.file, self.meta) = (file, meta) }

    /// Adds the facts to `facts`. First those of the metadata: tables of very many tiles may reach the limit of
    /// reading.
    func read(into facts: inout MediaFacts) {
        let items = HEIFItems(meta: meta)
        if !items.metadata.isEmpty {
            let locations = ItemLocations(file: file, meta: meta)
            let regions = locations.regions(of: Set(items.metadata.map(\.id)))
            for item in items.metadata {
                guard let region = regions[item.id] else { continue }
                if item.isXMP {
                    XMPScanner.scan(region, into: &facts)
                } else {
                    HEIFMeta.readEXIF(region, into: &facts)
                }
            }
        }
        readPicture(items, into: &facts)
    }

    /// EXIF's orientation and size are only informative here: the properties turn the picture.
    private func readPicture(_ items: HEIFItems, into facts: inout MediaFacts) {
        facts.orientation = 1
        let geometry = HEIFGeometry(meta: meta, items: items)
        let item = geometry.primary
        guard let size = item?.size ?? geometry.widest else { return }
        (facts.width, facts.height) = (0, 0)
        facts.setSize(UInt32(clamping: size.width), UInt32(clamping: size.height))
        facts.orientation = item?.shown(of: size).orientation ?? 1
    }

    /// An offset to the TIFF header comes first (ISO/IEC 23008-12, A.2.1); some writers repeat "Exif\0\0".
    static func readEXIF(_ region: Region, into facts: inout MediaFacts) {
        guard let skipped = region.u32(0).map(UInt64.init) else { return }
        for start in [4 + skipped, 4, 10, 0] {
            if EXIFScanner.scan(region.from(start), into: &facts) != nil { return }
        }
    }
}

/// A sequence of turns and flips, and the EXIF orientation with the same effect.
struct Upright {
    private var isMirrored = false
    private var quarters = 0

    mutating func turn(clockwise count: Int) {
        quarters = (quarters + count) & 3
    }

    mutating func flipHorizontally() {
        isMirrored.toggle()
        quarters = (4 - quarters) & 3
    }

    mutating func flipVertically() {
        flipHorizontally()
        turn(clockwise: 2)
    }

    /// 1–8.
    var orientation: Int {
        isMirrored ? [2, 7, 4, 5][quarters] : [1, 6, 3, 8][quarters]
    }
}
