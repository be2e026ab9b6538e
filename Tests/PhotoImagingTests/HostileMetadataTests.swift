import Foundation
import Glibc
import PhotoImaging
import TestFixtures
import Testing

/// Bytes that were made to hurt: nothing may trap, hang, or read without end.
@Suite("Damage: hostile metadata") struct HostileMetadataTests {
    /// The processor time of this thread so far.
    private var processorSeconds: Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// Everything the package does with one input, within its bounds.
    private func exercise(_ bytes: [UInt8], _ note: @autoclosure () -> String) {
        let source = CountingSource(bytes)
        let start = processorSeconds
        let type = identifyMedia(source)
        let identifyReads = source.reads
        let facts = readFacts(source)
        _ = readSidecar(MemoryByteSource(bytes))
        let reads = source.reads - identifyReads
        if processorSeconds > start + 2 { Issue.record("\(note()): more than 2 s of processor") }
        if identifyReads > 20 || reads > 64 || source.bytesRead > (1024 + 128) * 1024 {
            Issue.record("\(note()): \(identifyReads) + \(reads) reads, \(source.bytesRead) bytes")
        }
        if type != facts?.type {
            Issue.record("\(note()): \(String(describing: type)) is not the facts' type")
        }
        guard let facts else { return }
        _ = capture(facts, name: "IMG_20240501_101112.jpg")
        for preview in [facts.embeddedPreview, facts.largestPreview].compactMap(\.self) {
            if preview.upperBound > UInt64(bytes.count) {
                Issue.record("\(note()): a preview outside the file")
            }
        }
        if !(1...8).contains(facts.orientation) {
            Issue.record("\(note()): orientation \(facts.orientation)")
        }
    }

    /// `OBSCURA_FUZZ_SEED` repeats a run, `OBSCURA_FUZZ_COUNT` lengthens it.
    @Test func `mutated pictures are survived`() throws {
        let environment = ProcessInfo.processInfo.environment
        let seed = environment["OBSCURA_FUZZ_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: .min ... .max)
        let count = environment["OBSCURA_FUZZ_COUNT"].flatMap { Int($0) } ?? 4000
        print("mutated pictures: OBSCURA_FUZZ_SEED=\(seed)")
        var inputs = 0
        defer { print("mutated pictures: \(inputs) inputs survived") }
        var random = SeededGenerator(seed: seed)
        for round in 0..<count {
            let sample = Samples.all[round % Samples.all.count]
            inputs += 1
            exercise(mutated(sample.bytes, &random), "seed \(seed), round \(round), \(sample.name)")
        }
        for row in Shared.rows {
            let bytes = Array(row.bytes.prefix(200_000))
            for round in 0..<max(1, count / 1000) {
                // Headers are where readers look, so that is where most of the damage goes.
                inputs += 1
                let head = mutated(Array(bytes.prefix(2048)), &random)
                exercise(head + bytes.dropFirst(2048), "seed \(seed), \(row.path), round \(round)")
            }
        }
    }

    /// Inputs that libFuzzer made to reach as much as it could (`scripts/fuzz metadata corpus`).
    @Test func `the fuzzer's corpus is survived`() throws {
        let directory = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../Fuzz/Corpus/metadata").standardized
        let names = try FileManager.default.contentsOfDirectory(atPath: directory.path)
        #expect(!names.isEmpty)
        for name in names {
            exercise([UInt8](try Data(contentsOf: directory.appendingPathComponent(name))), name)
        }
    }

    @Test func `every truncation is survived`() {
        for sample in Samples.all {
            let step = max(1, sample.bytes.count / 400)
            for count in stride(from: 0, through: sample.bytes.count, by: step) {
                exercise(Array(sample.bytes.prefix(count)), "\(sample.name) cut at \(count)")
            }
        }
    }

    @Test func `directories that loop end`() {
        var tiff = ByteBuilder()
        tiff.add("MM")
        tiff.u16(42)
        tiff.u32(8)
        tiff.u16(3)
        for tag in [0x014A, 0x8769, 0x8825] {
            tiff.u16(tag)
            tiff.u16(4)
            tiff.u32(1)
            tiff.u32(8)
        }
        tiff.u32(8)
        exercise(tiff.bytes, "loops")
    }

    @Test func `counts that claim everything end`() {
        var tiff = ByteBuilder(isBig: false)
        tiff.add("II")
        tiff.u16(42)
        tiff.u32(8)
        tiff.u16(4096)
        for index in 0..<4096 {
            tiff.u16(index % 2 == 0 ? 0x014A : 0x02BC)
            tiff.u16(4)
            tiff.u32(index % 3 == 0 ? 0xFFFF_FFFF : 8)
            tiff.u32(index * 7)
        }
        exercise(tiff.bytes, "counts")
        let claims = Picture.box(
            "moov", (0..<3000).flatMap { _ in Picture.box("trak", Picture.box("tkhd", [])) })
        exercise(Picture.ftyp("isom") + claims, "boxes")
        exercise(Picture.gif([]) + [UInt8](repeating: 1, count: 2_000_000), "gif")
        exercise(Picture.png([], images: 600), "png")
        exercise([0xFF, 0xD8] + (0..<2_000_000).map { _ in 0xFF }, "fill bytes")
        let segments = (0..<60).map { _ in Picture.segment(0xE1, [UInt8](repeating: 0xFF, count: 65_000)) }
        exercise(Picture.jpeg(segments), "segments")
    }

    /// Directories, heaps and packets that all point at each other are read once or a few times, not by powers.
    @Test func `references do not multiply`() {
        var tiff = ByteBuilder(isBig: false)
        tiff.add("II")
        tiff.u16(42)
        tiff.u32(8)
        tiff.u16(4000)
        for index in 0..<4000 {
            tiff.u16(index % 2 == 0 ? 0x014A : 0x02BC)
            tiff.u16(index % 2 == 0 ? 4 : 1)
            tiff.u32(index % 2 == 0 ? 8 : 60_000)
            tiff.u32(index % 2 == 0 ? 10 + 2 * index : 0)
        }
        tiff.add([UInt8](repeating: UInt8(ascii: ":"), count: 40_000))
        exercise(tiff.bytes, "directories")
        exercise(Picture.png([("eXIf", tiff.bytes), ("eXIf", tiff.bytes), ("eXIf", tiff.bytes)]), "in PNG")

        var heap = ByteBuilder(isBig: false)
        heap.add("II")
        heap.u32(26)
        heap.add("HEAPCCDR")
        heap.add([UInt8](repeating: 0, count: 12))
        heap.u16(500)
        for _ in 0..<500 {
            heap.u16(0x300A)
            heap.u32(500 * 10 + 2 + 4)
            heap.u32(0)
        }
        heap.u32(0)
        exercise(heap.bytes, "heaps")

        let zeros = [UInt8](repeating: 0, count: 60_000)
        exercise(
            Picture.webp([]) + (0..<10).flatMap { _ in zeros + Array("abcd".utf8) + [0, 0, 0, 0] }, "zeros")
        let marks = (0..<12_000).flatMap { _ in Array("MDPM@".utf8) }
        exercise(Picture.transportStream(step: 188) + marks, "marks")
        let colons = Array(String(repeating: " exif:DateTimeOriginal=' ", count: 10_000).utf8)
        exercise(
            Picture.jpeg((0..<4).map { Picture.xmpSegment(Array(colons.dropFirst($0).prefix(60_000))) }),
            "XMP")
    }

    /// A stream of a few bytes that unpacks to much more is cut at the limit.
    @Test func `bombs are cut`() {
        var bits: [UInt8] = [0x78, 0x9C, 0xED, 0xC1]
        bits += [UInt8](repeating: 0, count: 60_000)
        let chunk = ("iTXt", Array("XML:com.adobe.xmp\0".utf8) + [1, 0, 0, 0] + bits)
        exercise(Picture.png([chunk]), "bomb")
        let real = Data(base64Encoded: HostileMetadataTests.bomb).map { [UInt8]($0) } ?? []
        let small = ("zTXt", Array("Raw profile type exif\0".utf8) + [0] + real)
        exercise(Picture.png((0..<50).map { _ in small }, images: 0), "bombs")
    }

    /// Meta-blocks of one byte that define as much as they can: 18,000 symbols and contexts in 82 bytes.
    @Test func `costly codes of Brotli are cut`() {
        var stream = BitWriter()
        stream.put(0, 1)
        func simpleCode(of symbol: Int, _ width: Int) {
            for (value, count) in [(1, 2), (0, 2), (symbol, width)] { stream.put(value, count) }
        }
        for _ in 0..<1500 {
            // Not the last one; a length of 1 in four digits; compressed.
            for (value, count) in [(0, 1), (0, 2), (0, 16), (0, 1)] { stream.put(value, count) }
            // 256 block types of literals, one of commands and distances, and no direct distances.
            for (value, count) in [(1, 1), (7, 3), (127, 7)] { stream.put(value, count) }
            simpleCode(of: 0, 9)
            simpleCode(of: 0, 5)
            for (value, count) in [(0, 2), (0, 1), (0, 1), (0, 6)] { stream.put(value, count) }
            for _ in 0..<256 { stream.put(0, 2) }
            // The map of 2 codes is one run of 16,384 zeros, each moved to the front.
            for (value, count) in [(1, 1), (0, 3), (1, 1), (13, 4)] { stream.put(value, count) }
            simpleCode(of: 14, 4)
            for (value, count) in [(0, 14), (1, 1), (0, 1)] { stream.put(value, count) }
            for _ in 0..<2 { simpleCode(of: 65, 8) }
            // Inserts one literal.
            simpleCode(of: 136, 10)
            simpleCode(of: 0, 6)
        }
        let box = Picture.box("brob", Array("Exif".utf8) + stream.bytes)
        exercise(
            Picture.box("JXL ", [0x0D, 0x0A, 0x87, 0x0A]) + box + box + box + box, "codes")
    }

    static let bomb = """
        eNrtwTERACAMBLD9VVQCK4LgDgeVXxdMSXL63dTOAgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAgA8GLGsLTw==
        """

    @Test func `sources that fail or lie are survived`() {
        struct Failing: ByteSource {
            var byteCount: UInt64 { .max }
            func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int { -1 }
        }
        #expect(readFacts(Failing()) == nil)
        #expect(identifyMedia(Failing()) == nil)
        struct Endless: ByteSource {
            let picture: [UInt8]
            var byteCount: UInt64 { .max }
            func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
                for index in buffer.indices {
                    let position = offset &+ UInt64(index)
                    buffer[index] = position < UInt64(picture.count) ? picture[Int(position)] : 0xFF
                }
                return buffer.count
            }
        }
        for sample in Samples.all { _ = readFacts(Endless(picture: sample.bytes)) }
    }

    @Test func `a common JPEG costs one read`() {
        let body = [UInt8](repeating: 0x5A, count: 3_000_000)
        let source = CountingSource(Picture.jpeg([Picture.exifSegment(Picture.camera().bytes)]) + body)
        #expect(readFacts(source) != nil)
        #expect(source.reads == 1)
        #expect(source.bytesRead == 65_536)
        #expect(identifyMedia(source) == .jpeg)
        #expect(source.bytesRead == 65_536 + 4096)
    }
}

/// Bits, the lowest of a byte first.
private struct BitWriter {
    private(set) var bytes: [UInt8] = []
    private var free = 0

    mutating func put(_ value: Int, _ count: Int) {
        for index in 0..<count {
            if free == 0 {
                bytes.append(0)
                free = 8
            }
            bytes[bytes.count - 1] |= UInt8(value >> index & 1) << UInt8(8 - free)
            free -= 1
        }
    }
}
