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
        Box.forEach(in: region) { box in
            guard box.type == fourCC("meta") else { return true }
            var meta = HEIFMeta(file: region)
            meta.read(box.body.from(4))
            meta.finish(&facts)
            return false
        }
    }
}

/// The items of a `meta` box that are metadata or the primary picture.
struct HEIFMeta {
    private enum ItemKind {
        case exif, xmp
    }

    private struct Item {
        var kind: ItemKind
        var id: UInt32
        var region: Region?
    }

    private let file: Region
    private var items: [Item] = []
    private var geometry = HEIFGeometry(meta: nil)

    private static let metadataItemsMax = 8

    init(file: Region) {
        self.file = file
    }

    mutating func read(_ meta: Region) {
        geometry = HEIFGeometry(meta: meta)
        if let information = Box.first("iinf", in: meta) { readInformation(information) }
        if items.isEmpty { return }
        let locations = ItemLocations(file: file, meta: meta)
        let found = locations.regions(of: Set(items.map(\.id)))
        for index in items.indices { items[index].region = found[items[index].id] }
    }

    private mutating func readInformation(_ body: Region) {
        let entries = body.from(body.u8(0) == 0 ? 6 : 8)
        var found: [Item] = []
        Box.forEach(in: entries) { box in
            guard box.type == fourCC("infe"), let version = box.body.u8(0), version >= 2 else { return true }
            let wide = version >= 3
            guard let id = wide ? box.body.u32(4) : box.body.u16(4).map(UInt32.init),
                let type = box.body.u32(wide ? 10 : 8)
            else { return true }
            if type == fourCC("Exif") {
                found.append(Item(kind: .exif, id: id))
            } else if type == fourCC("mime"), HEIFMeta.isXMP(box.body.from(wide ? 14 : 12)) {
                found.append(Item(kind: .xmp, id: id))
            }
            return found.count < HEIFMeta.metadataItemsMax
        }
        items = found
    }

    /// A name, then a content type, each ended by NUL.
    private static func isXMP(_ strings: Region) -> Bool {
        strings.withView(0, 256) { view in
            guard let end = view.firstIndex(of: 0, from: 0, end: view.count) else { return false }
            return view.matches("application/rdf+xml", at: end + 1)
        } ?? false
    }

    /// Adds the collected facts to `facts`.
    func finish(_ facts: inout MediaFacts) {
        finishPicture(&facts)
        let orientation = facts.orientation
        for item in items {
            guard let region = item.region else { continue }
            switch item.kind {
            case .exif: HEIFMeta.readEXIF(region, into: &facts)
            case .xmp: XMPScanner.scan(region, into: &facts)
            }
        }
        // EXIF's orientation is only informative here: the properties turn the picture.
        facts.orientation = orientation
    }

    private func finishPicture(_ facts: inout MediaFacts) {
        let item = geometry.primary
        let size = item?.size ?? geometry.widest
        guard let size else { return }
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
