/// The directories of a TIFF file or EXIF block: TIFF 6.0, BigTIFF, and the headers that Panasonic and Olympus use
/// instead of TIFF's own.
struct TIFFStructure {
    /// Offsets count from its beginning.
    let region: Region
    let order: ByteOrder
    let isBig: Bool
    /// The offset of the first directory.
    let firstDirectory: UInt64

    /// A directory with more entries is damaged: no real one has as many.
    static let entriesMax: UInt64 = 4096

    /// Nil if the region does not begin with a TIFF header.
    init?(_ region: Region) {
        guard let mark = region.u16(0), mark == 0x4949 || mark == 0x4D4D else { return nil }
        let order: ByteOrder = mark == 0x4949 ? .little : .big
        guard let magic = region.u16(2, order) else { return nil }
        self.region = region
        self.order = order
        switch magic {
        case 42, 0x0055, 0x4F52, 0x5352:
            guard let first = region.u32(4, order) else { return nil }
            isBig = false
            firstDirectory = UInt64(first)
        case 43:
            guard region.u16(4, order) == 8, let first = region.u64(8, order) else { return nil }
            isBig = true
            firstDirectory = first
        default:
            return nil
        }
    }

    /// A structure without a header: a maker note's directory.
    init(headless region: Region, order: ByteOrder, firstDirectory: UInt64) {
        self.region = region
        self.order = order
        self.firstDirectory = firstDirectory
        isBig = false
    }

    /// One entry whose value lies inside the region.
    struct Entry {
        let tag: UInt16
        let type: UInt16
        let count: UInt64
        /// The offset of the value's bytes in the structure's region.
        let offset: UInt64
        let byteCount: UInt64
    }

    /// Calls `body` with a directory's readable entries and returns the next directory's offset, 0 for none. Nil if
    /// there is no directory at `offset`.
    func forEachEntry(at offset: UInt64, _ body: (Entry) -> Void) -> UInt64? {
        let countBytes: UInt64 = isBig ? 8 : 2
        let entryBytes: UInt64 = isBig ? 20 : 12
        guard offset >= 8,
            let count = isBig ? region.u64(offset, order) : region.u16(offset, order).map(UInt64.init),
            count <= TIFFStructure.entriesMax
        else { return nil }
        var position = offset + countBytes
        for _ in 0..<count {
            guard region.contains(position, entryBytes) else { return nil }
            if let entry = entry(at: position) { body(entry) }
            position += entryBytes
        }
        return wide(position) ?? 0
    }

    /// A count or an offset: 64 bits in BigTIFF, else 32.
    private func wide(_ position: UInt64) -> UInt64? {
        isBig ? region.u64(position, order) : region.u32(position, order).map(UInt64.init)
    }

    private func entry(at position: UInt64) -> Entry? {
        guard let tag = region.u16(position, order), let type = region.u16(position + 2, order),
            let size = TIFFStructure.size(ofType: type),
            let count = wide(position + 4)
        else { return nil }
        let (byteCount, overflow) = count.multipliedReportingOverflow(by: size)
        guard !overflow else { return nil }
        let inlineBytes: UInt64 = isBig ? 8 : 4
        let field = position + (isBig ? 12 : 8)
        if byteCount <= inlineBytes {
            return Entry(tag: tag, type: type, count: count, offset: field, byteCount: byteCount)
        }
        guard let offset = wide(field), region.contains(offset, byteCount) else { return nil }
        return Entry(tag: tag, type: type, count: count, offset: offset, byteCount: byteCount)
    }

    private static func size(ofType type: UInt16) -> UInt64? {
        switch type {
        case 1, 2, 6, 7, 129: 1
        case 3, 8: 2
        case 4, 9, 11, 13: 4
        case 5, 10, 12, 16, 17, 18: 8
        default: nil
        }
    }

    /// The value at `index`, if it is an integer.
    func integer(_ entry: Entry, at index: UInt64 = 0) -> UInt64? {
        guard index < entry.count else { return nil }
        switch entry.type {
        case 1, 6, 7: return region.u8(entry.offset + index).map(UInt64.init)
        case 3, 8: return region.u16(entry.offset + 2 * index, order).map(UInt64.init)
        case 4, 9, 13: return region.u32(entry.offset + 4 * index, order).map(UInt64.init)
        case 16, 17, 18: return region.u64(entry.offset + 8 * index, order)
        default: return nil
        }
    }

    /// The value at `index` as an unsigned or signed fraction; nil if its denominator is zero.
    func fraction(_ entry: Entry, at index: UInt64) -> Double? {
        guard entry.type == 5 || entry.type == 10, index < entry.count,
            let above = region.u32(entry.offset + 8 * index, order),
            let below = region.u32(entry.offset + 8 * index + 4, order), below != 0
        else { return nil }
        return entry.type == 5
            ? Double(above) / Double(below)
            : Double(Int32(bitPattern: above)) / Double(Int32(bitPattern: below))
    }

    /// Lends a text's bytes, at most `max` of them.
    func withText<R>(_ entry: Entry, max: UInt64, _ body: (ByteView) -> R?) -> R? {
        guard entry.type == 2 || entry.type == 7 || entry.type == 1 || entry.type == 129 else { return nil }
        return region.withView(entry.offset, min(entry.byteCount, max)) { body($0) }
    }

    /// A text; nil if it is empty.
    func text(_ entry: Entry, max: UInt64 = 128) -> String? {
        withText(entry, max: max) { view in
            let text = view.trimmedText
            return text.isEmpty ? nil : text
        }
    }

    /// A date.
    func date(_ entry: Entry) -> ParsedDate? {
        withText(entry, max: 64) { DateText.parse($0) }
    }
}
