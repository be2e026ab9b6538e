/// Where a `meta` box says that the bytes of its items are (`iloc`: ISO/IEC 14496-12, 8.11.3).
struct ItemLocations {
    private let file: Region
    private var table: Region?
    private var data: Region?

    private static let itemsMax = UInt32(HEIFItems.countMax)

    /// - Parameter meta: the boxes in the `meta` box.
    init(file: Region, meta: Region) {
        self.file = file
        table = Box.first("iloc", in: meta)
        data = Box.first("idat", in: meta)
    }

    /// The first extents of items. Metadata and headers in several extents are unknown in practice.
    func regions(of wanted: Set<UInt32>) -> [UInt32: Region] {
        guard let table, let version = table.u8(0), version <= 2, let sizes = table.u16(4) else { return [:] }
        let offsetSize = UInt64(sizes >> 12)
        let lengthSize = UInt64(sizes >> 8 & 15)
        let baseSize = UInt64(sizes >> 4 & 15)
        let indexSize = version == 0 ? 0 : UInt64(sizes & 15)
        guard let count = version < 2 ? table.u16(6).map(UInt32.init) : table.u32(6), count <= Self.itemsMax
        else { return [:] }
        var found: [UInt32: Region] = [:]
        var offset: UInt64 = version < 2 ? 8 : 10
        for _ in 0..<count where found.count < wanted.count {
            guard let id = version < 2 ? table.u16(offset).map(UInt32.init) : table.u32(offset) else { break }
            offset += version < 2 ? 2 : 4
            var method: UInt16 = 0
            if version > 0 {
                method = (table.u16(offset) ?? 0) & 15
                offset += 2
            }
            guard let base = Self.number(table, offset + 2, baseSize),
                let extents = table.u16(offset + 2 + baseSize)
            else { break }
            offset += 4 + baseSize
            if wanted.contains(id), extents > 0,
                let start = Self.number(table, offset + indexSize, offsetSize),
                let length = Self.number(table, offset + indexSize + offsetSize, lengthSize)
            {
                found[id] = region(method, base, start, length)
            }
            offset += UInt64(extents) * (indexSize + offsetSize + lengthSize)
        }
        return found
    }

    private func region(_ method: UInt16, _ base: UInt64, _ start: UInt64, _ length: UInt64) -> Region? {
        let (offset, overflow) = base.addingReportingOverflow(start)
        guard !overflow, let holder = method == 1 ? data : method == 0 ? file : nil, offset < holder.count
        else { return nil }
        return holder.clipped(offset, length == 0 ? .max : length)
    }

    private static func number(_ body: Region, _ offset: UInt64, _ size: UInt64) -> UInt64? {
        switch size {
        case 0: 0
        case 4: body.u32(offset).map(UInt64.init)
        case 8: body.u64(offset)
        default: nil
        }
    }
}
