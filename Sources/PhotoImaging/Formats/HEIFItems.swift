/// The items that a `meta` box lists (`iinf` and `infe`: ISO/IEC 14496-12, 8.11.6). A picture of many tiles has one for
/// each of them, and cameras list its metadata last.
struct HEIFItems {
    /// The four characters of each item's type.
    private(set) var types: [UInt32: UInt32] = [:]
    /// The items of Exif and of XMP, in order.
    private(set) var metadata: [Metadata] = []

    struct Metadata {
        var id: UInt32
        var isXMP: Bool
    }

    /// More than the tiles of any grid, which are at most 256 by 256. ``ReadLimits/totalBytesMax`` bounds the tables
    /// of an item's names, places and properties together: with the shortest names, some 20,000 items are read to the
    /// end. libheif opens no more (MAX_CHILDREN_PER_BOX).
    static let countMax = 1 << 17
    private static let metadataMax = 8

    /// - Parameter meta: the boxes in the `meta` box.
    init(meta: Region) {
        guard let body = Box.first("iinf", in: meta) else { return }
        var (types, metadata): ([UInt32: UInt32], [Metadata]) = ([:], [])
        Box.forEach(in: body.from(body.u8(0) == 0 ? 6 : 8), max: Self.countMax) { box in
            guard box.type == fourCC("infe"), let version = box.body.u8(0), version >= 2 else { return true }
            let isWide = version >= 3
            guard let id = isWide ? box.body.u32(4) : box.body.u16(4).map(UInt32.init),
                let type = box.body.u32(isWide ? 10 : 8)
            else { return true }
            if types[id] == nil { types[id] = type }
            let isXMP = type == fourCC("mime") && Self.isXMP(box.body.from(isWide ? 14 : 12))
            if isXMP || type == fourCC("Exif"), metadata.count < Self.metadataMax {
                metadata.append(Metadata(id: id, isXMP: isXMP))
            }
            return true
        }
        (self.types, self.metadata) = (types, metadata)
    }

    /// A name, then a content type, each ended by NUL.
    private static func isXMP(_ strings: Region) -> Bool {
        strings.withView(0, 256) { view in
            guard let end = view.firstIndex(of: 0, from: 0, end: view.count) else { return false }
            return view.matches("application/rdf+xml", at: end + 1)
        } ?? false
    }
}
