import Encodings

/// PNG, third edition (W3C 2025): the eXIf chunk, XMP in iTXt, and ImageMagick's and exiftool's raw profiles in text
/// chunks. Other texts, such as `Creation Time`, tell when the file was made, not the picture.
enum PNGReader: FormatReader {
    static func identify(_ region: Region) -> MediaType? {
        region.u64(0) == 0x8950_4E47_0D0A_1A0A ? .png : nil
    }

    /// Maximum number of chunks that are read one by one.
    fileprivate static let chunksMax = 64
    /// Maximum number of runs of image chunks; after more, only the file's end is searched.
    private static let imageRunsMax = 24
    /// Maximum number of texts that are read, as they may decompress to much; a real file has one or two.
    private static let textsMax = 6
    /// Bytes of the file's end that are searched for metadata behind many image chunks.
    private static let tailBytes = UInt64(ReadLimits.viewBytesMax)

    static func read(_ region: Region, into facts: inout MediaFacts) {
        var offset = PNGChunk.firstOffset
        var imageRuns = 0
        var textsLeft = textsMax
        for _ in 0..<chunksMax where imageRuns <= imageRunsMax {
            if let end = endOfRun(region, at: offset) {
                imageRuns += 1
                offset = end
                continue
            }
            guard let next = readChunk(region, at: offset, &textsLeft, &facts) else { return }
            offset = next
        }
        guard var last = lastChunks(region, from: offset) else { return }
        for _ in 0..<chunksMax {
            guard let next = readChunk(region, at: last, &textsLeft, &facts) else { return }
            last = next
        }
    }

    /// The end of a run of image chunks of the same length, which most programs write; nil if there is no image chunk.
    ///
    /// The last of them is found by bisection, so that many chunks cost few reads. Mostly a shorter chunk follows:
    /// it is a run of its own.
    private static func endOfRun(_ region: Region, at offset: UInt64) -> UInt64? {
        guard let length = region.u32(offset), length < 1 << 31, region.matches("IDAT", at: offset + 4) else {
            return nil
        }
        let stride = UInt64(length) + 12
        func isOfRun(_ number: UInt64) -> Bool {
            let start = offset + number * stride
            return region.u32(start) == length && region.matches("IDAT", at: start + 4)
        }
        guard isOfRun(1) else { return offset + stride }
        var (known, end) = (UInt64(1), (region.count - offset) / stride + 1)
        while end - known > 1 {
            let middle = known + (end - known) / 2
            if isOfRun(middle) { known = middle } else { end = middle }
        }
        return offset + (known + 1) * stride
    }

    /// Reads a chunk and returns the next one's offset; nil at the end.
    private static func readChunk(
        _ region: Region, at offset: UInt64, _ textsLeft: inout Int, _ facts: inout MediaFacts
    ) -> UInt64? {
        guard let chunk = PNGChunk(region, at: offset) else { return nil }
        let (type, body) = (chunk.type, chunk.body)
        switch type {
        case fourCC("IHDR"): facts.setSize(body.u32(0), body.u32(4))
        case fourCC("IEND"): return nil
        case fourCC("eXIf"), fourCC("exIf"):
            _ = EXIFScanner.scan(body.withoutEXIFMark, into: &facts)
        case fourCC("tEXt"), fourCC("zTXt"), fourCC("iTXt"):
            if textsLeft > 0, PNGText.read(body, type, into: &facts) { textsLeft -= 1 }
        default: break
        }
        return chunk.end
    }

    /// The offset, near the end, of a run of chunks that starts with metadata and ends with IEND.
    private static func lastChunks(_ region: Region, from offset: UInt64) -> UInt64? {
        guard region.count > offset else { return nil }
        let start = max(offset, region.count - min(region.count, tailBytes))
        return region.withView(start, tailBytes) { view -> UInt64? in
            var index = 4
            // Where chunks were followed from, in vain: other ways that lead there fail as well.
            var failed: Set<Int> = []
            while index + 8 <= view.count {
                if isText(view, index), runs(view, from: index - 4, except: &failed) {
                    return start + UInt64(index - 4)
                }
                index += 1
            }
            return nil
        }
    }

    private static func isText(_ view: ByteView, _ index: Int) -> Bool {
        switch view[index] {
        case UInt8(ascii: "e"): view.matches("eXIf", at: index)
        case UInt8(ascii: "i"): view.matches("iTXt", at: index)
        case UInt8(ascii: "t"): view.matches("tEXt", at: index)
        case UInt8(ascii: "z"): view.matches("zTXt", at: index)
        default: false
        }
    }

    /// Whether chunks from `start` on lead to IEND, however many.
    private static func runs(_ view: ByteView, from start: Int, except failed: inout Set<Int>) -> Bool {
        var index = start
        while index + 12 <= view.count, failed.insert(index).inserted {
            let length =
                Int(view[index]) << 24 | Int(view[index + 1]) << 16 | Int(view[index + 2]) << 8
                | Int(view[index + 3])
            if view.matches("IEND", at: index + 4) { return true }
            index += 12 + length
        }
        return false
    }
}

/// The code points of a PNG's colours (`cICP`; PNG, third edition, 11.3.2.6): primaries, transfer function, matrix, and
/// 1 for the full range. Nil without them before the pixels.
package func pngCodePoints(_ source: some ByteSource) -> [Int]? {
    let region = Region(BoundedReader(source))
    var offset = PNGChunk.firstOffset
    for _ in 0..<PNGReader.chunksMax {
        guard let chunk = PNGChunk(region, at: offset), chunk.type != fourCC("IDAT") else { return nil }
        if chunk.type == fourCC("cICP"), chunk.body.count == 4 {
            return (0..<4).compactMap { chunk.body.u8($0).map(Int.init) }
        }
        offset = chunk.end
    }
    return nil
}

/// A chunk of a PNG: length, type, body and a checksum, which is ignored.
struct PNGChunk {
    let type: UInt32
    /// Clipped at the file's end.
    let body: Region
    /// The offset of the next chunk.
    let end: UInt64

    /// The offset of a file's first chunk.
    static let firstOffset: UInt64 = 8

    /// Nil if there is none.
    init?(_ region: Region, at offset: UInt64) {
        guard let length = region.u32(offset), let type = region.u32(offset + 4), length < 1 << 31 else {
            return nil
        }
        self.type = type
        body = region.clipped(offset + 8, UInt64(length))
        end = offset + 12 + UInt64(length)
    }
}

/// PNG's three kinds of text chunks.
enum PNGText {
    /// Reads a text chunk. Returns whether its keyword is one of those that are read.
    static func read(_ body: Region, _ type: UInt32, into facts: inout MediaFacts) -> Bool {
        guard let text = contents(body, type) else { return false }
        switch text.keyword {
        case "XML:com.adobe.xmp":
            XMPScanner.scan(text.value, into: &facts)
        case "Raw profile type exif", "Raw profile type APP1", "Raw profile type xmp",
            "Raw profile type iptc":
            if let profile = rawProfile(text.value) { readProfile(profile, into: &facts) }
        default: break
        }
        return true
    }

    struct Text {
        var keyword: String
        var value: Region
    }

    /// The keyword and the text, decompressed if it is compressed; nil for other keywords.
    static func contents(_ body: Region, _ type: UInt32) -> Text? {
        guard let keyword = body.withView(0, 80, keyword) else { return nil }
        let start = UInt64(keyword.utf8.count) + 1
        switch type {
        case fourCC("tEXt"):
            return Text(keyword: keyword, value: body.from(start))
        case fourCC("zTXt"):
            return body.u8(start) == 0 ? unpacked(keyword, body.from(start + 1)) : nil
        default:
            guard let isPacked = body.u8(start) else { return nil }
            // Two flags are followed by a language and a translated keyword, each ended by NUL.
            let value = body.withView(start + 2, 1024) { view -> UInt64? in
                guard let first = view.firstIndex(of: 0, from: 0, end: view.count),
                    let second = view.firstIndex(of: 0, from: first + 1, end: view.count)
                else { return nil }
                return UInt64(second) + 1
            }
            guard let skipped = value else { return nil }
            let rest = body.from(start + 2 + skipped)
            return isPacked == 1 ? unpacked(keyword, rest) : Text(keyword: keyword, value: rest)
        }
    }

    private static func keyword(_ view: ByteView) -> String? {
        guard let end = view.firstIndex(of: 0, from: 0, end: view.count), end > 0,
            view.matches("XML:com.adobe.xmp", at: 0) || view.matches("Raw profile type ", at: 0)
                || view.matches("Thumb::URI", at: 0)
        else { return nil }
        return String(decoding: view.slice(0..<end).array, as: UTF8.self)
    }

    private static func unpacked(_ keyword: String, _ packed: Region) -> Text? {
        guard let bytes = packed.withView(0, .max, { Inflate.unpack($0) }) else { return nil }
        return Text(keyword: keyword, value: Region(unpacked: bytes))
    }

    /// ImageMagick's form: a line break, a name, a length in decimal, then hexadecimal digits.
    private static func rawProfile(_ text: Region) -> [UInt8]? {
        text.withView { view -> [UInt8]? in
            var index = 0
            for _ in 0..<3 {
                guard let line = view.firstIndex(of: 0x0A, from: index, end: index + 80) else { return nil }
                index = line + 1
            }
            var bytes: [UInt8] = []
            bytes.reserveCapacity((view.count - index) / 2)
            var high: UInt8?
            while index < view.count {
                if let digit = hexValue(view[index]) {
                    if let first = high {
                        bytes.append(first << 4 | digit)
                        high = nil
                    } else {
                        high = digit
                    }
                } else if view[index] != 0x0A, view[index] != 0x0D, view[index] != 0x20 {
                    break
                }
                index += 1
            }
            return bytes
        }
    }

    /// The first bytes tell the kind of a profile; its keyword is not reliable.
    private static func readProfile(_ bytes: [UInt8], into facts: inout MediaFacts) {
        let region = Region(unpacked: bytes)
        if region.matches("Exif\0\0") {
            _ = EXIFScanner.scan(region.from(6), into: &facts)
        } else if region.matches("http://ns.adobe.com/xap/1.0/\0") {
            XMPScanner.scan(region.from(29), into: &facts)
        } else if region.matches("8BIM") {
            IPTCScanner.scanPhotoshop(region, into: &facts)
        } else if region.u8(0) == 0x1C {
            IPTCScanner.scan(region, into: &facts)
        } else if EXIFScanner.scan(region, into: &facts) == nil {
            XMPScanner.scan(region, into: &facts)
        }
    }
}
