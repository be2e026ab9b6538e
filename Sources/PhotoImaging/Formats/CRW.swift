/// Canon's first raw format, a heap of records in the Camera Image File Format (CIFF 1.0 revision 4).
enum CRWReader: FormatReader {
    static func identify(_ region: Region) -> MediaType? {
        region.matches("HEAPCCDR", at: 6) && order(region) != nil ? .crw : nil
    }

    private static func order(_ region: Region) -> ByteOrder? {
        switch region.u16(0) {
        case 0x4949: .little
        case 0x4D4D: .big
        default: nil
        }
    }

    /// Maximum nesting of heaps; a real file has three levels.
    private static let depthMax = 6

    static func read(_ region: Region, into facts: inout MediaFacts) {
        guard let order = order(region), let start = region.u32(2, order).map(UInt64.init) else { return }
        var heap = CIFFHeap(order: order)
        heap.read(region.from(start), depthLeft: depthMax, into: &facts)
    }
}

/// A heap of records, and the heaps in it.
private struct CIFFHeap {
    let order: ByteOrder
    /// Heaps may point at each other at will, so the records of all heaps together are limited.
    private var recordsLeft = 2048

    init(order: ByteOrder) {
        self.order = order
    }

    /// A heap ends with the offset of its directory of records.
    mutating func read(_ heap: Region, depthLeft: Int, into facts: inout MediaFacts) {
        guard depthLeft > 0, heap.count >= 6,
            let directory = heap.u32(heap.count - 4, order).map(UInt64.init),
            let count = heap.u16(directory, order)
        else { return }
        for index in 0..<UInt64(count) {
            guard recordsLeft > 0 else { return }
            recordsLeft -= 1
            let record = directory + 2 + index * 10
            guard let tag = heap.u16(record, order), let length = heap.u32(record + 2, order),
                let offset = heap.u32(record + 6, order)
            else { return }
            // Bits 15 and 14 tell whether the value is in the record itself.
            let body =
                tag & 0xC000 == 0x4000
                ? heap.inside(record + 2, 8) : heap.inside(UInt64(offset), UInt64(length))
            guard let body else { continue }
            switch tag & 0x3FFF {
            case let kind where kind & 0x3800 == 0x2800 || kind & 0x3800 == 0x3000:
                read(body, depthLeft: depthLeft - 1, into: &facts)
            case let kind:
                readRecord(kind, body, into: &facts)
            }
        }
    }

    private func readRecord(_ kind: UInt16, _ body: Region, into facts: inout MediaFacts) {
        switch kind {
        case 0x080A: readCamera(body, into: &facts)
        case 0x180E:
            // Seconds since 1970 on the camera's own wall clock.
            guard let seconds = body.u32(0, order), seconds != 0 else { return }
            facts.add(
                DateCandidate(
                    source: .dateTimeOriginal, time: CivilTime(secondsSince1970: Int64(seconds))))
        case 0x1810:
            facts.setSize(body.u32(0, order), body.u32(4, order))
            switch body.u32(12, order) {
            case 90: facts.orientation = 6
            case 180: facts.orientation = 3
            case 270: facts.orientation = 8
            default: break
            }
        case 0x2007, 0x2008: facts.addPreview(body, 0, body.count)
        default: break
        }
    }

    /// Maker and model, each ended by NUL.
    private func readCamera(_ body: Region, into facts: inout MediaFacts) {
        body.lend(0, 128) { view in
            guard let end = view.firstIndex(of: 0, from: 0, end: view.count) else { return }
            let make = view.slice(0..<end).trimmedText
            let model = view.slice(end + 1..<view.count).trimmedText
            facts.make = make.isEmpty ? nil : make
            facts.model = model.isEmpty ? nil : model
        }
    }
}
