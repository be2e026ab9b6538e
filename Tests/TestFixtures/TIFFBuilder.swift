/// Bytes put together number by number.
package struct ByteBuilder {
    package var bytes: [UInt8] = []
    package var isBig = true

    package init(isBig: Bool = true) {
        self.isBig = isBig
    }

    package mutating func add(_ more: [UInt8]) { bytes += more }
    package mutating func add(_ text: String) { bytes += Array(text.utf8) }
    package mutating func u8(_ value: Int) { bytes.append(UInt8(truncatingIfNeeded: value)) }
    package mutating func u16(_ value: Int) { add(number(value, 2)) }
    package mutating func u32(_ value: Int) { add(number(value, 4)) }
    package mutating func u64(_ value: Int) { add(number(value, 8)) }

    package func number(_ value: Int, _ count: Int) -> [UInt8] {
        let big = (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * (count - 1 - $0))) }
        return isBig ? big : big.reversed()
    }
}

/// One entry of a TIFF directory.
package enum TIFFTag {
    case ascii(Int, String)
    case short(Int, Int)
    case long(Int, Int)
    case longs(Int, [Int])
    case rational(Int, [(Int, Int)])
    case raw(Int, type: Int, [UInt8])
    /// The offset of another directory or of the data at that index of ``TIFFBuilder/data``.
    case exif, gps
    case subs(Int)
    case data(Int, index: Int)

    package var number: Int {
        switch self {
        case .ascii(let tag, _), .short(let tag, _), .long(let tag, _), .longs(let tag, _),
            .rational(let tag, _):
            tag
        case .raw(let tag, _, _), .data(let tag, _): tag
        case .exif: 0x8769
        case .gps: 0x8825
        case .subs: 0x014A
        }
    }
}

/// Writes TIFF files and EXIF blocks in either byte order.
package struct TIFFBuilder {
    package var isBig = false
    package var magic = 42
    package var header: [UInt8] = []
    package var main: [TIFFTag] = []
    package var exif: [TIFFTag] = []
    package var gps: [TIFFTag] = []
    package var next: [TIFFTag] = []
    package var subs: [[TIFFTag]] = []
    /// Blobs behind the directories: thumbnails and strips.
    package var data: [[UInt8]] = []

    package init(
        isBig: Bool = false, magic: Int = 42, header: [UInt8] = [], main: [TIFFTag] = [],
        exif: [TIFFTag] = [],
        gps: [TIFFTag] = [], next: [TIFFTag] = [], subs: [[TIFFTag]] = [], data: [[UInt8]] = []
    ) {
        (self.isBig, self.magic, self.header) = (isBig, magic, header)
        (self.main, self.exif, self.gps, self.next, self.subs) = (main, exif, gps, next, subs)
        self.data = data
    }

    private struct Layout {
        var exif = 0
        var gps = 0
        var next = 0
        var subs: [Int] = []
        var data: [Int] = []
    }

    /// The file. Offsets do not change a directory's length, so a first pass finds them.
    package var bytes: [UInt8] {
        let first = write(Layout(subs: subs.map { _ in 0 }, data: data.map { _ in 0 }))
        return write(first.layout).bytes
    }

    private func write(_ known: Layout) -> (bytes: [UInt8], layout: Layout) {
        var layout = Layout()
        var out = ByteBuilder(isBig: isBig)
        out.add(isBig ? "MM" : "II")
        out.u16(magic)
        out.u32(8 + header.count)
        out.add(header)
        out.add(directory(main, known, at: out.bytes.count, next: next.isEmpty ? 0 : known.next))
        layout.exif = out.bytes.count
        if !exif.isEmpty { out.add(directory(exif, known, at: out.bytes.count, next: 0)) }
        layout.gps = out.bytes.count
        if !gps.isEmpty { out.add(directory(gps, known, at: out.bytes.count, next: 0)) }
        layout.next = out.bytes.count
        if !next.isEmpty { out.add(directory(next, known, at: out.bytes.count, next: 0)) }
        for sub in subs {
            layout.subs.append(out.bytes.count)
            out.add(directory(sub, known, at: out.bytes.count, next: 0))
        }
        for blob in data {
            layout.data.append(out.bytes.count)
            out.add(blob)
        }
        return (out.bytes, layout)
    }

    private func directory(_ tags: [TIFFTag], _ known: Layout, at offset: Int, next: Int) -> [UInt8] {
        var entries = ByteBuilder(isBig: isBig)
        var values = ByteBuilder(isBig: isBig)
        let valuesAt = offset + 2 + 12 * tags.count + 4
        entries.u16(tags.count)
        for tag in tags.sorted(by: { $0.number < $1.number }) {
            let (type, count, value) = encode(tag, known)
            entries.u16(tag.number)
            entries.u16(type)
            entries.u32(count)
            if value.count <= 4 {
                entries.add(value + [UInt8](repeating: 0, count: 4 - value.count))
            } else {
                entries.u32(valuesAt + values.bytes.count)
                values.add(value + (value.count % 2 == 1 ? [0] : []))
            }
        }
        entries.u32(next)
        return entries.bytes + values.bytes
    }

    private func encode(_ tag: TIFFTag, _ known: Layout) -> (type: Int, count: Int, value: [UInt8]) {
        let numbers = ByteBuilder(isBig: isBig)
        switch tag {
        case .ascii(_, let text):
            return (2, text.utf8.count + 1, Array(text.utf8) + [0])
        case .short(_, let value): return (3, 1, numbers.number(value, 2))
        case .long(_, let value): return (4, 1, numbers.number(value, 4))
        case .longs(_, let values): return (4, values.count, values.flatMap { numbers.number($0, 4) })
        case .rational(_, let values):
            return (5, values.count, values.flatMap { numbers.number($0.0, 4) + numbers.number($0.1, 4) })
        case .raw(_, let type, let value): return (type, value.count, value)
        case .exif: return (4, 1, numbers.number(known.exif, 4))
        case .gps: return (4, 1, numbers.number(known.gps, 4))
        case .subs(let count): return (4, count, known.subs.prefix(count).flatMap { numbers.number($0, 4) })
        case .data(_, let index): return (4, 1, numbers.number(known.data[index], 4))
        }
    }
}
