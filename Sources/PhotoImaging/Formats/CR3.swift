/// Canon's CR3: a QuickTime-like movie whose `uuid` box holds EXIF's directories, each as a TIFF of its own.
///
/// Source: Laurent Clévy, "Describing the Canon Raw v3 (CR3) file format".
enum CR3Reader: FormatReader {
    static func identify(_ region: Region) -> MediaType? {
        FileType(region)?.major == fourCC("crx ") ? .cr3 : nil
    }

    static func read(_ region: Region, into facts: inout MediaFacts) {
        Box.forEach(in: region) { box in
            if box.type == fourCC("moov") {
                readMovie(box.body, file: region, &facts)
            } else if let xmp = box.xmp {
                XMPScanner.scan(xmp, into: &facts)
            } else if let preview = box.contents(ofUUID: 0xEAF4_2B5E_1C98_4B88, 0xB9FB_B7DC_406E_4D16) {
                if let body = Box.first("PRVW", in: preview.from(8)) { addPreview(body, &facts) }
            }
            return true
        }
    }

    private static func readMovie(_ movie: Region, file: Region, _ facts: inout MediaFacts) {
        Box.forEach(in: movie) { box in
            if let canon = box.contents(ofUUID: 0x85C0_B687_820F_11E0, 0x8111_F4CE_462B_6A48) {
                readCanon(canon, &facts)
            } else if box.type == fourCC("trak") {
                addTrack(box.body, file: file, &facts)
            }
            return true
        }
    }

    private static func readCanon(_ canon: Region, _ facts: inout MediaFacts) {
        Box.forEach(in: canon) { box in
            switch box.type {
            case fourCC("CMT1"): _ = EXIFScanner.scan(box.body, root: .main, into: &facts)
            case fourCC("CMT2"): _ = EXIFScanner.scan(box.body, root: .exif, into: &facts)
            case fourCC("CMT4"): _ = EXIFScanner.scan(box.body, root: .gps, into: &facts)
            case fourCC("THMB"): addPreview(box.body, &facts)
            default: break
            }
            return true
        }
    }

    /// A JPEG after a header whose length differs between versions.
    private static func addPreview(_ body: Region, _ facts: inout MediaFacts) {
        let starts = stride(from: UInt64(8), through: 32, by: 2)
        guard let start = starts.first(where: { body.u32($0).map { $0 >> 8 } == 0xFFD8FF }) else { return }
        facts.addPreview(body, start, body.count - start)
    }

    /// The first track's only sample is the full-size JPEG.
    private static func addTrack(_ track: Region, file: Region, _ facts: inout MediaFacts) {
        guard let media = Box.first("mdia", in: track), let information = Box.first("minf", in: media),
            let table = Box.first("stbl", in: information), let sizes = Box.first("stsz", in: table),
            let first = sizes.u32(4), let length = first == 0 ? sizes.u32(12) : first
        else { return }
        if let chunks = Box.first("co64", in: table), let offset = chunks.u64(8) {
            facts.addPreview(file, offset, UInt64(length))
        } else if let chunks = Box.first("stco", in: table), let offset = chunks.u32(8) {
            facts.addPreview(file, UInt64(offset), UInt64(length))
        }
    }
}
