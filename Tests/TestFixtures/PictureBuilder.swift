package import PhotoImaging

/// Generated pictures of every format: as little of each as a reader of metadata needs, with known truth.
package enum Picture {
    /// The date that ``camera(isBig:)`` carries.
    package static let taken = civil(2017, 2, 18, 9, 41, 27, 250_000_000)

    /// An embedded thumbnail.
    package static let thumbnail: [UInt8] = jpeg([], width: 16, height: 12) + [UInt8](repeating: 0, count: 64)

    /// An EXIF block as a phone writes it: 5 hours east, in Kathmandu's direction, upside down.
    package static func camera(isBig: Bool = false) -> TIFFBuilder {
        TIFFBuilder(
            isBig: isBig,
            main: [
                .ascii(0x010F, "Maker"), .ascii(0x0110, "Model 7 "), .short(0x0112, 6),
                .ascii(0x0132, "2018:01:01 01:02:03"), .exif, .gps,
            ],
            exif: [
                .ascii(0x9003, "2017:02:18 09:41:27"), .ascii(0x9004, "2017:02:19 10:00:00"),
                .ascii(0x9011, "+05:45"), .ascii(0x9291, "25"),
                .raw(0x927C, type: 7, appleNote("B1A2C3D4-0000-4444-8888-123456789ABC")),
            ],
            gps: [
                .ascii(1, "N"), .rational(2, [(27, 1), (42, 1), (36, 1)]), .ascii(3, "W"),
                .rational(4, [(85, 1), (1950, 100), (0, 1)]), .rational(7, [(3, 1), (56, 1), (27, 1)]),
                .ascii(29, "2017:02:18"),
            ],
            next: [.short(0x0103, 6), .data(0x0201, index: 0), .long(0x0202, thumbnail.count)],
            data: [thumbnail])
    }

    package static func appleNote(_ identifier: String) -> [UInt8] {
        var note = ByteBuilder()
        note.add("Apple iOS\0")
        note.u16(1)
        note.add("MM")
        note.u16(1)
        note.u16(0x0011)
        note.u16(2)
        note.u32(identifier.utf8.count + 1)
        note.u32(14 + 2 + 12 + 4)
        note.u32(0)
        note.add(identifier + "\0")
        return note.bytes
    }

    package static func xmp(_ attributes: String, elements: String = "") -> [UInt8] {
        Array(
            """
            <?xpacket begin='' id='W5M0MpCehiHzreSzNTczkc9d'?><x:xmpmeta xmlns:x='adobe:ns:meta/'><rdf:RDF \
            xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'><rdf:Description rdf:about='' \
            xmlns:exif="http://ns.adobe.com/exif/1.0/" xmlns:xmp="http://ns.adobe.com/xap/1.0/" \(attributes)>\
            \(elements)</rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end='w'?>
            """.utf8)
    }

    package static func segment(_ marker: Int, _ body: [UInt8]) -> [UInt8] {
        [0xFF, UInt8(marker), UInt8((body.count + 2) >> 8), UInt8((body.count + 2) & 255)] + body
    }

    package static func exifSegment(_ block: [UInt8]) -> [UInt8] {
        segment(0xE1, Array("Exif\0\0".utf8) + block)
    }

    package static func xmpSegment(_ packet: [UInt8]) -> [UInt8] {
        segment(0xE1, Array("http://ns.adobe.com/xap/1.0/\0".utf8) + packet)
    }

    package static func iptc(date: String, time: String?) -> [UInt8] {
        var records = ByteBuilder()
        for (number, text) in [(5, "title"), (55, date)] + (time.map { [(60, $0)] } ?? []) {
            records.add([0x1C, 2, UInt8(number)])
            records.u16(text.utf8.count)
            records.add(text)
        }
        return records.bytes
    }

    package static func photoshop(_ resources: [(Int, [UInt8])]) -> [UInt8] {
        var out = ByteBuilder()
        for (number, data) in resources {
            out.add("8BIM")
            out.u16(number)
            out.u16(0)
            out.u32(data.count)
            out.add(data + (data.count % 2 == 1 ? [0] : []))
        }
        return out.bytes
    }

    package static func photoshopSegment(_ resources: [(Int, [UInt8])]) -> [UInt8] {
        segment(0xED, Array("Photoshop 3.0\0".utf8) + photoshop(resources))
    }

    package static func jpeg(_ segments: [[UInt8]], width: Int = 4000, height: Int = 3000) -> [UInt8] {
        var out = ByteBuilder()
        out.u16(0xFFD8)
        for value in segments { out.add(value) }
        out.add(segment(0xDB, [UInt8](repeating: 1, count: 65)))
        out.add(
            segment(
                0xC0,
                [
                    8, UInt8(height >> 8), UInt8(height & 255), UInt8(width >> 8), UInt8(width & 255), 1, 1,
                    0x11, 0,
                ]))
        out.add(segment(0xDA, [1, 1, 0, 0, 63, 0]))
        out.add([0x12, 0x34, 0x56])
        out.u16(0xFFD9)
        return out.bytes
    }

    package static func png(_ chunks: [(String, [UInt8])], images: Int = 1, last: [(String, [UInt8])] = [])
        -> [UInt8]
    {
        var out = ByteBuilder()
        out.add([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])
        var header = ByteBuilder()
        header.u32(640)
        header.u32(480)
        header.add([8, 2, 0, 0, 0])
        let image = [("IDAT", [UInt8](repeating: 7, count: 8192))]
        let all =
            [("IHDR", header.bytes)] + chunks + (0..<images).flatMap { _ in image } + last + [("IEND", [])]
        for (type, body) in all {
            out.u32(body.count)
            out.add(type)
            out.add(body)
            out.u32(0)
        }
        return out.bytes
    }

    package static func webp(_ chunks: [(String, [UInt8])]) -> [UInt8] {
        var body = ByteBuilder(isBig: false)
        body.add("WEBP")
        for (type, data) in chunks {
            body.add(type)
            body.u32(data.count)
            body.add(data + (data.count % 2 == 1 ? [0] : []))
        }
        var out = ByteBuilder(isBig: false)
        out.add("RIFF")
        out.u32(body.bytes.count)
        return out.bytes + body.bytes
    }

    package static func box(_ type: String, _ body: [UInt8]) -> [UInt8] {
        var out = ByteBuilder()
        out.u32(body.count + 8)
        out.add(type.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) })
        return out.bytes + body
    }

    /// A Brotli stream of one block that is not compressed: RFC 7932, 9.2. At most 64 KiB.
    package static func storedBrotli(_ bytes: [UInt8]) -> [UInt8] {
        precondition(bytes.count <= 1 << 16)
        if bytes.isEmpty { return [6] }
        // A window of 16 bits, not the last block, four digits of the length less one, stored; then an empty last one.
        let head = (bytes.count - 1) << 4 | 1 << 20
        return [UInt8(head & 255), UInt8(head >> 8 & 255), UInt8(head >> 16 & 255)] + bytes + [3]
    }

    package static func ftyp(_ major: String, _ compatible: [String] = []) -> [UInt8] {
        box("ftyp", Array((major + "\0\0\0\0" + compatible.joined()).utf8))
    }

    /// HEIC or AVIF with a primary picture of 4032 × 3024 among tiles, an EXIF and an XMP item.
    package static func heif(_ major: String, exif: [UInt8], xmp: [UInt8], transforms: [[UInt8]]) -> [UInt8] {
        let size = { (width: Int, height: Int) -> [UInt8] in
            var out = ByteBuilder()
            out.u32(0)
            out.u32(width)
            out.u32(height)
            return box("ispe", out.bytes)
        }
        let properties = [size(512, 512), size(4032, 3024)] + transforms
        var associations = ByteBuilder()
        associations.u32(0)
        associations.u32(2)
        associations.u16(1)
        associations.add([1, 1])
        associations.u16(2)
        associations.u8(1 + transforms.count)
        associations.u8(2)
        for index in transforms.indices { associations.u8(0x80 | (3 + index)) }
        let item = { (id: Int, type: String, rest: String) -> [UInt8] in
            box("infe", [2, 0, 0, 0, 0, UInt8(id), 0, 0] + Array((type + "\0" + rest).utf8))
        }
        let items =
            item(1, "hvc1", "") + item(2, "grid", "") + item(3, "Exif", "")
            + item(4, "mime", "application/rdf+xml\0")
        let exifItem = [0, 0, 0, 6] + Array("Exif\0\0".utf8) + exif
        // Where the items lie depends on the length of all before them, which does not depend on it.
        func file(_ exifAt: Int) -> [UInt8] {
            var locations = ByteBuilder()
            locations.add([1, 0, 0, 0, 0x44, 0x00])
            locations.u16(2)
            for (id, offset, count) in [(3, exifAt, exifItem.count), (4, exifAt + exifItem.count, xmp.count)]
            {
                for value in [id, 0, 0, 1] { locations.u16(value) }
                locations.u32(offset)
                locations.u32(count)
            }
            let meta =
                box("hdlr", [UInt8](repeating: 0, count: 24)) + box("pitm", [0, 0, 0, 0, 0, 2])
                + box("iinf", [0, 0, 0, 0, 0, 4] + items) + box("iloc", locations.bytes)
                + box("iprp", box("ipco", properties.flatMap { $0 }) + box("ipma", associations.bytes))
            return ftyp(major, ["mif1"]) + box("meta", [0, 0, 0, 0] + meta)
        }
        let head = file(0).count + 8
        return file(head) + box("mdat", exifItem + xmp)
    }

    package static func movieHeader(_ time: Int, version: Int = 0) -> [UInt8] {
        var out = ByteBuilder()
        out.u32(version << 24)
        if version == 1 { out.u64(time) } else { out.u32(time) }
        return box("mvhd", out.bytes + [UInt8](repeating: 0, count: 92))
    }

    package static func track(width: Int, height: Int, matrix: [Int]) -> [UInt8] {
        var out = ByteBuilder()
        out.add([UInt8](repeating: 0, count: 40))
        for value in matrix { out.u32(value) }
        out.u32(width << 16)
        out.u32(height << 16)
        return box("trak", box("tkhd", out.bytes))
    }

    package static let upright = [0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x4000_0000]
    package static let quarterTurn = [0, 0x10000, 0, -0x10000, 0, 0, 0, 0, 0x4000_0000]

    /// QuickTime's metadata by key.
    package static func keyed(_ pairs: [(String, String)]) -> [UInt8] {
        var keys = ByteBuilder()
        keys.u32(0)
        keys.u32(pairs.count)
        var list = ByteBuilder()
        for (index, pair) in pairs.enumerated() {
            keys.u32(8 + pair.0.utf8.count)
            keys.add("mdta" + pair.0)
            let data = box("data", [0, 0, 0, 1, 0, 0, 0, 0] + Array(pair.1.utf8))
            list.u32(data.count + 8)
            list.u32(index + 1)
            list.add(data)
        }
        let handler = box("hdlr", [UInt8](repeating: 0, count: 24))
        return box("meta", handler + box("keys", keys.bytes) + box("ilst", list.bytes))
    }

    package static func text(_ type: String, _ text: String) -> [UInt8] {
        var out = ByteBuilder()
        out.u16(text.utf8.count)
        out.u16(0x15C7)
        out.add(text)
        return box(type, out.bytes)
    }

    package static func cr3() -> [UInt8] {
        let canon: [UInt8] = [
            0x85, 0xC0, 0xB6, 0x87, 0x82, 0x0F, 0x11, 0xE0, 0x81, 0x11, 0xF4, 0xCE, 0x46, 0x2B, 0x6A, 0x48,
        ]
        let main = TIFFBuilder(main: [
            .short(0x0100, 6000), .short(0x0101, 4000), .ascii(0x010F, "Canon"), .short(0x0112, 8),
            .ascii(0x0132, "2018:01:01 01:02:03"),
        ])
        let exif = TIFFBuilder(main: [.ascii(0x9003, "2017:02:18 09:41:27"), .ascii(0x9291, "25")])
        let gps = TIFFBuilder(main: [
            .ascii(1, "S"), .rational(2, [(10, 1), (30, 1), (0, 1)]), .ascii(3, "E"),
            .rational(4, [(20, 1), (0, 1), (0, 1)]),
        ])
        let thumbnail = [UInt8](repeating: 0, count: 16) + Picture.thumbnail
        let boxes =
            box("CMT1", main.bytes) + box("CMT2", exif.bytes) + box("CMT4", gps.bytes)
            + box("THMB", thumbnail)
        return ftyp("crx ", ["isom"]) + box("moov", box("uuid", canon + boxes)) + box("mdat", [1, 2, 3])
    }

    package static func crw() -> [UInt8] {
        var values = ByteBuilder(isBig: false)
        var records: [(tag: Int, offset: Int, count: Int)] = []
        func add(_ tag: Int, _ bytes: [UInt8]) {
            records.append((tag, values.bytes.count, bytes.count))
            values.add(bytes)
        }
        var size = ByteBuilder(isBig: false)
        for value in [2272, 1704, 0x3F80_0000, 90] { size.u32(value) }
        var date = ByteBuilder(isBig: false)
        for value in [Int(civil(2017, 2, 18, 9, 41, 27).secondsSince1970), 0, 0] { date.u32(value) }
        add(0x080A, Array("Maker\0Model 7\0".utf8))
        add(0x1810, size.bytes)
        add(0x180E, date.bytes)
        func heap(_ values: [UInt8], _ records: [(tag: Int, offset: Int, count: Int)]) -> [UInt8] {
            var out = ByteBuilder(isBig: false)
            out.add(values)
            out.u16(records.count)
            for record in records {
                out.u16(record.tag)
                out.u32(record.count)
                out.u32(record.offset)
            }
            out.u32(values.count)
            return out.bytes
        }
        let inner = heap(values.bytes, records)
        let outer = heap(
            inner + thumbnail, [(0x300A, 0, inner.count), (0x2008, inner.count, thumbnail.count)])
        var file = ByteBuilder(isBig: false)
        file.add("II")
        file.u32(26)
        file.add("HEAPCCDR")
        file.add([UInt8](repeating: 0, count: 12))
        return file.bytes + outer
    }

    /// With a directory of the raw picture where its size is given.
    package static func raf(rawWidth: Int? = nil, rawHeight: Int = 0) -> [UInt8] {
        let picture = jpeg([exifSegment(camera().bytes)])
        var out = ByteBuilder()
        out.add("FUJIFILMCCD-RAW 0201FF389501")
        out.add([UInt8](repeating: 0, count: 84 - out.bytes.count))
        out.u32(160)
        out.u32(picture.count)
        if let rawWidth {
            out.u32(160 + picture.count)
            out.u32(24)
            var directory = ByteBuilder()
            directory.u32(2)
            for (tag, height, width) in [(0x0100, 1, 1), (0x0111, rawHeight, rawWidth)] {
                for value in [tag, 4, height, width] { directory.u16(value) }
            }
            out.add([UInt8](repeating: 0, count: 160 - out.bytes.count))
            return out.bytes + picture + directory.bytes
        }
        out.add([UInt8](repeating: 0, count: 160 - out.bytes.count))
        return out.bytes + picture + [UInt8](repeating: 9, count: 500)
    }

    package static func gif(_ packet: [UInt8]) -> [UInt8] {
        var out = ByteBuilder(isBig: false)
        out.add("GIF89a")
        out.u16(320)
        out.u16(200)
        out.add([0x80, 0, 0, 1, 2, 3, 4, 5, 6])
        out.add([0x21, 0xF9, 4, 0, 0, 0, 0, 0])
        out.add([0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x4C, 1, 0])
        out.add([0x21, 0xFF, 11] + Array("XMP DataXMP".utf8) + packet + [1, 0xFF, 0, 0])
        return out.bytes + [0x3B]
    }

    /// A video with a date in its header, or behind its pictures.
    package static func avi(_ date: String, inHeader: Bool = true) -> [UInt8] {
        func chunk(_ type: String, _ body: [UInt8]) -> [UInt8] {
            var out = ByteBuilder(isBig: false)
            out.add(type)
            out.u32(body.count)
            return out.bytes + body + (body.count % 2 == 1 ? [0] : [])
        }
        var header = ByteBuilder(isBig: false)
        for index in 0..<14 { header.u32(index == 8 ? 640 : index == 9 ? 480 : 0) }
        let text = Array(date.utf8)
        let list = Array("hdrl".utf8) + chunk("avih", header.bytes) + (inHeader ? chunk("IDIT", text) : [])
        let info = inHeader ? [] : chunk("LIST", Array("INFO".utf8) + chunk("ICRD", text))
        let pictures = chunk("LIST", Array("movi1234".utf8))
        return chunk("RIFF", Array("AVI ".utf8) + chunk("LIST", list) + pictures + info)
    }

    package static func matroska(_ nanoseconds: Int) -> [UInt8] {
        func element(_ id: [UInt8], _ body: [UInt8]) -> [UInt8] {
            var out = ByteBuilder()
            out.add(id)
            out.u32(0x1000_0000 | body.count)
            return out.bytes + body
        }
        var date = ByteBuilder()
        date.u64(nanoseconds)
        let video = element([0xB0], [5, 0]) + element([0xBA], [2, 208])
        let info = element([0x15, 0x49, 0xA9, 0x66], element([0x44, 0x61], date.bytes))
        let tracks = element([0x16, 0x54, 0xAE, 0x6B], element([0xAE], element([0xE0], video)))
        return element([0x1A, 0x45, 0xDF, 0xA3], element([0x42, 0x82], Array("webm".utf8)))
            + [0x18, 0x53, 0x80, 0x67, 0x01, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF] + info + tracks
    }

    package static func asf(since1601 seconds: Int) -> [UInt8] {
        func object(_ identifier: [UInt8], _ body: [UInt8]) -> [UInt8] {
            var out = ByteBuilder(isBig: false)
            out.add(identifier)
            out.u64(24 + body.count)
            return out.bytes + body
        }
        let tail: [UInt8] = [0x8E, 0xE4, 0x00, 0xC0, 0x0C, 0x20, 0x53, 0x65]
        var properties = ByteBuilder(isBig: false)
        properties.add([UInt8](repeating: 0, count: 24))
        properties.u64(seconds * 10_000_000)
        var stream = ByteBuilder(isBig: false)
        stream.add([
            0xC0, 0xEF, 0x19, 0xBC, 0x4D, 0x5B, 0xCF, 0x11, 0xA8, 0xFD, 0, 0x80, 0x5F, 0x5C, 0x44, 0x2B,
        ])
        stream.add([UInt8](repeating: 0, count: 38))
        stream.u32(640)
        stream.u32(480)
        let objects =
            object([0xA1, 0xDC, 0xAB, 0x8C, 0x47, 0xA9, 0xCF, 0x11] + tail, properties.bytes)
            + object([0x91, 0x07, 0xDC, 0xB7, 0xB7, 0xA9, 0xCF, 0x11] + tail, stream.bytes)
        return object(
            [0x30, 0x26, 0xB2, 0x75, 0x8E, 0x66, 0xCF, 0x11, 0xA6, 0xD9, 0, 0xAA, 0, 0x62, 0xCE, 0x6C],
            [2, 0, 0, 0, 1, 2] + objects)
    }

    package static func transportStream(step: Int) -> [UInt8] {
        var stream: [UInt8] = []
        for index in 0..<12 {
            var packet = [UInt8](repeating: 0, count: step - 188) + [0x47]
            if index == 7 {
                packet += [0, 0, 0] + Array("MDPM".utf8) + [3, 0x13, 0, 0, 3, 0, 0]
                packet += [0x18, 0x02, 0x20, 0x17, 0x02, 0x19, 0x18, 0x09, 0x41, 0x27]
            }
            stream += packet + [UInt8](repeating: 0xFF, count: step - packet.count)
        }
        return stream
    }
}
