import CHEIF
import CWebP
import Foundation
import Testing

@testable import PhotoImaging

extension WorkerTests {
    @Suite("Decoders: other formats") struct OtherFormatTests {
        let workers = makeWorkers()

        private func decoded(_ bytes: [UInt8], _ type: MediaType, box: Int = 256) throws -> DecodedThumbnail {
            try workers.decoded(bytes, type, box: box)
        }

        private func png(
            _ bytes: [UInt8], _ type: MediaType, _ size: PictureSize = PictureSize(fitting: 256)
        ) throws -> DecodedPNG {
            let png = try workers.makeThumbnail(
                of: MemorySource(bytes: bytes), type: type, size: size, format: .png)
            return try #require(DecodedPNG(png))
        }

        /// Each as large as expected, with its colours in their places.
        private func expectQuarters(_ bytes: [UInt8], _ type: MediaType) throws {
            let thumbnail = try decoded(bytes, type)
            #expect(thumbnail.size == PixelSize(width: 256, height: 192))
            #expect(thumbnail.corners == Corner.stored)
        }

        /// Transparent parts are white in a JPEG, and transparent in a PNG.
        private func expectHole(_ bytes: [UInt8], _ type: MediaType) throws {
            try expectQuarters(bytes, type)
            let kept = try png(bytes, type)
            #expect(kept.pixel(192, 144)[3] < 10)
            #expect(kept.pixel(64, 48)[3] > 245 && kept.pixel(64, 48)[0] > 220 && kept.pixel(64, 48)[1] < 35)
        }

        @Test(arguments: [TestPNG.Kind.color, .deepColor, .palette], [false, true])
        func `PNG`(kind: TestPNG.Kind, isInterlaced: Bool) throws {
            try expectQuarters(TestPNG(kind: kind, isInterlaced: isInterlaced).bytes, .png)
        }

        @Test func `gray PNG stays gray`() throws {
            let thumbnail = try decoded(TestPNG(kind: .gray).bytes, .png)
            #expect(thumbnail.isGray && thumbnail.pixel(64, 48)[0] > 245 && thumbnail.pixel(192, 48)[0] < 10)
        }

        /// Colours by code points: 10,000 nits by the perceptual quantizer, P3. Levels as in HEIFTests.
        @Test(arguments: [false, true])
        func `PNG with code points`(isInterlaced: Bool) throws {
            let codes = [0, 64, 128, 148, 192, 255]
            func levels(_ primaries: UInt8, _ transfer: UInt8, isDeep: Bool) throws -> [[UInt8]] {
                let picture = TestPNG(
                    width: 384, height: 16, kind: isDeep ? .deepColor : .gray, isInterlaced: isInterlaced)
                let row = (0..<384).flatMap { x in
                    [UInt8](repeating: UInt8(codes[x / 64]), count: isDeep ? 6 : 1)
                }
                var bytes = picture.encode([[UInt8]](repeating: row, count: 16))
                // Behind the signature and the header. libpng does not check the sum of a chunk that it ignores.
                let chunk: [UInt8] =
                    [0, 0, 0, 4] + Array("cICP".utf8) + [primaries, transfer, 0, 1, 0, 0, 0, 0]
                bytes.insert(contentsOf: chunk, at: 33)
                let thumbnail = try png(bytes, .png, PictureSize(fitting: 384))
                return (0..<6).map { thumbnail.pixel(32 + 64 * $0, 8) }
            }
            for isDeep in [true, false] {
                let mapped = try levels(9, 16, isDeep: isDeep)
                for (pixel, level) in zip(mapped, [0, 37, 120, 156, 232, 255]) {
                    #expect(
                        pixel[..<3].allSatisfy { abs(Int($0) - level) <= 4 } && pixel[3] == 255, "\(pixel)")
                }
                for (pixel, level) in zip(try levels(12, 13, isDeep: isDeep), codes) {
                    #expect(
                        pixel[..<3].allSatisfy { abs(Int($0) - level) <= 1 } && pixel[3] == 255, "\(pixel)")
                }
            }
        }

        /// Grey levels of a PNG with chunks behind its header, whose sums are right: libpng reads them.
        private func levels(
            _ chunks: [(String, [UInt8])], isDeep: Bool = false, profile: [UInt8] = []
        ) throws -> [[UInt8]] {
            let codes: [UInt8] = [0, 16, 64, 128, 192, 255]
            let picture = TestPNG(
                width: 384, height: 16, kind: isDeep ? .deepColor : .color, profile: profile)
            let row = (0..<384).flatMap { x in [UInt8](repeating: codes[x / 64], count: isDeep ? 6 : 3) }
            var bytes = picture.encode([[UInt8]](repeating: row, count: 16))
            for (type, body) in chunks.reversed() {
                let whole = Array(type.utf8) + body
                bytes.insert(
                    contentsOf: bigEndian(UInt32(body.count)) + whole + bigEndian(checksum(whole)), at: 33)
            }
            let thumbnail = try png(bytes, .png, PictureSize(fitting: 384))
            return (0..<6).map { Array(thumbnail.pixel(32 + 64 * $0, 8)[..<3]) }
        }

        private func bigEndian(_ value: UInt32) -> [UInt8] {
            (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) }
        }

        private func checksum(_ bytes: [UInt8]) -> UInt32 {
            ~bytes.reduce(UInt32.max) { sum, byte in
                (0..<8).reduce(sum ^ UInt32(byte)) { sum, _ in
                    sum & 1 == 1 ? sum >> 1 ^ 0xEDB8_8320 : sum >> 1
                }
            }
        }

        private func gamma(_ value: UInt32) -> (String, [UInt8]) { ("gAMA", bigEndian(value)) }

        private func primaries(_ values: [UInt32]) -> (String, [UInt8]) {
            ("cHRM", values.flatMap(bigEndian))
        }

        private let standardPrimaries: [UInt32] = [31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000]
        private let untouched = [0, 16, 64, 128, 192, 255]

        private func expectGrays(_ pixels: [[UInt8]], _ levels: [Int], _ comment: Comment? = nil) {
            for (pixel, level) in zip(pixels, levels) {
                #expect(pixel.allSatisfy { abs(Int($0) - level) <= 2 }, comment ?? "\(pixel) for \(level)")
            }
        }

        /// PNG, third edition, 4.3: cICP, then a profile, then sRGB, then gAMA and cHRM.
        @Test(arguments: [false, true]) func `PNG with a power of light`(isDeep: Bool) throws {
            // Linear light, and that of a display of 1.0/0.3; sRGB's code of it by IEC 61966-2-1.
            let linear = [0, 71, 137, 188, 225, 255]
            for chunks in [[gamma(100_000)], [primaries(standardPrimaries), gamma(100_000)]] {
                expectGrays(try levels(chunks, isDeep: isDeep), linear)
            }
            let dark = try levels([gamma(30_000)], isDeep: isDeep)
            expectGrays(dark, [0, 0, 25, 89, 167, 255])
            // Of displays, and none that could be: shown as it is.
            for value in [45_455, 47_000, 0] as [UInt32] {
                expectGrays(try levels([gamma(value)], isDeep: isDeep), untouched, "\(value)")
            }
            expectGrays(try levels([("sRGB", [0]), gamma(100_000)], isDeep: isDeep), untouched)
            expectGrays(try levels([("cICP", [1, 13, 0, 1]), gamma(100_000)], isDeep: isDeep), untouched)
            expectGrays(try levels([gamma(100_000)], isDeep: isDeep, profile: smallProfile), untouched)
        }

        /// 16 is black and 235 white; of HDR too, and beside opacity.
        @Test(arguments: [false, true]) func `PNG of narrow range`(isDeep: Bool) throws {
            expectGrays(
                try levels([("cICP", [1, 13, 0, 0])], isDeep: isDeep), [0, 0, 56, 130, 205, 255])
            // The levels of 130 and 205 of full range.
            let narrow = try levels([("cICP", [9, 16, 0, 0])], isDeep: isDeep)
            #expect(narrow[1][0] == 0 && narrow[5][0] == 255, "\(narrow)")
            #expect(abs(Int(narrow[3][0]) - 124) <= 4, "\(narrow)")
        }

        /// White stays white, and colours of Adobe RGB become more vivid.
        @Test func `PNG with primaries`() throws {
            let adobe = primaries([31270, 32900, 64000, 33000, 21000, 71000, 15000, 6000])
            expectGrays(try levels([gamma(45_455), adobe]), untouched)
            // Points that are no colours, or on one line, leave the power alone.
            for odd in [[0, 0, 0, 0, 0, 0, 0, 0], [31270, 32900, 10000, 10000, 20000, 20000, 30000, 30000]] {
                expectGrays(
                    try levels([gamma(100_000), primaries(odd.map { UInt32($0) })]),
                    [0, 71, 137, 188, 225, 255])
            }
            let row = (0..<16).flatMap { _ in [100, 200, 100] as [UInt8] }
            var bytes = TestPNG(width: 16, height: 16).encode([[UInt8]](repeating: row, count: 16))
            for (type, body) in [adobe, gamma(45_455)] {
                let whole = Array(type.utf8) + body
                bytes.insert(
                    contentsOf: bigEndian(UInt32(body.count)) + whole + bigEndian(checksum(whole)), at: 33)
            }
            let pixel = try png(bytes, .png, PictureSize(fitting: 16)).pixel(8, 8)
            // By the matrix of BT.709 and Adobe RGB (1998), with sRGB's curve.
            #expect(
                pixel[0] < 40 && abs(Int(pixel[1]) - 201) <= 3 && abs(Int(pixel[2]) - 92) <= 5, "\(pixel)")
        }

        @Test func `WebP`() throws {
            try expectQuarters(testWebP(), .webp)
            try expectQuarters(testWebP(isLossless: true), .webp)
        }

        @Test func `GIF`() throws {
            try expectQuarters(testGIF(), .gif)
            try expectQuarters(testGIF(isInterlaced: true), .gif)
        }

        /// The part of the screen that a frame leaves free is transparent.
        @Test func `a frame of GIF inside its screen`() throws {
            let thumbnail = try png(testGIF(60, 60, inset: 20), .gif)
            #expect(thumbnail.size == PixelSize(width: 100, height: 100))
            #expect(thumbnail.pixel(5, 50)[3] == 0 && thumbnail.pixel(30, 30) == [255, 0, 0, 255])
        }

        @Test func `TIFF`() throws {
            try expectQuarters(TestTIFF().bytes, .tiff)
            let turned = try decoded(TestTIFF(orientation: 6).bytes, .tiff)
            #expect(turned.size == PixelSize(width: 192, height: 256))
            #expect(turned.corners == [[.blue, .red], [.white, .green]])
        }

        @Test func `a TIFF of signed samples`() throws {
            try expectQuarters(TestTIFF(isSigned: true).bytes, .tiff)
            expectUndecodable(TestTIFF(hasHole: true, isSigned: true).bytes, .tiff)
        }

        /// Integers that libtiff's converter does not take; of 4 bits those with opacity.
        @Test(arguments: [4, 10, 11, 12, 14, 20, 32], [false, true])
        func `a TIFF of other integers`(bits: Int, hasHole: Bool) throws {
            for isSeparate in [false, true] {
                var file = TestTIFF(
                    width: 50, height: 37, hasHole: hasHole, bits: bits, isSeparate: isSeparate)
                let thumbnail = try decoded(file.bytes, .tiff)
                #expect(thumbnail.size == PixelSize(width: 50, height: 37))
                #expect(thumbnail.corners == Corner.stored)
                file.missingStrip = 1
                expectUndecodable(file.bytes, .tiff)
            }
            guard bits == 32 else { return }
            let signed = TestTIFF(width: 50, height: 37, hasHole: hasHole, isSigned: true, bits: 32)
            if hasHole {
                expectUndecodable(signed.bytes, .tiff)
            } else {
                #expect(try decoded(signed.bytes, .tiff).corners == Corner.stored)
            }
        }

        /// As ImageMagick shows them: from 0 to 1, clipped, with the profile. Most of measured values lie beyond.
        @Test(arguments: [16, 32, 64], [false, true])
        func `a TIFF of floating point`(bits: Int, isSeparate: Bool) throws {
            for (scale, hasHole) in [(1.0, false), (1.0, true), (1.7, false)] {
                let file = TestTIFF(
                    width: 50, height: 37, orientation: 6, hasHole: hasHole, bits: bits, isFloat: true,
                    scale: scale, isSeparate: isSeparate)
                let thumbnail = try decoded(file.bytes, .tiff)
                #expect(thumbnail.size == PixelSize(width: 37, height: 50))
                #expect(thumbnail.corners == [[.blue, .red], [.white, .green]])
            }
            let file = TestTIFF(
                width: 50, height: 37, bits: bits, isFloat: true, scale: 0.5, isSeparate: isSeparate)
            let half = try decoded(file.bytes, .tiff).pixel(45, 33)
            #expect(half.allSatisfy { abs(Int($0) - 128) <= 2 }, "\(half)")
        }

        /// By the plain formula, as of 8 bits.
        @Test(arguments: [8, 12, 32], [false, true])
        func `a TIFF of inks`(bits: Int, isSeparate: Bool) throws {
            let file = TestTIFF(width: 50, height: 37, bits: bits, isSeparate: isSeparate, hasInks: true)
            #expect(try decoded(file.bytes, .tiff).corners == Corner.stored)
        }

        /// libtiff's converter takes grey for multiplied by its opacity, and of 16 bits ignores that.
        @Test(arguments: [8, 16]) func `a TIFF of grey with opacity`(bits: Int) throws {
            let thumbnail = try decoded(TestTIFF.gray(100, opacity: 128, bits: bits), .tiff)
            // On white.
            #expect(thumbnail.pixel(32, 32).allSatisfy { abs(Int($0) - 177) <= 2 })
        }

        @Test func `a TIFF of measured values has no picture`() throws {
            let white = TestTIFF.floats([Float](repeating: 300, count: 64) + [0.1, -2, .nan])
            expectUndecodable(white, .tiff)
            let some = TestTIFF.floats(
                [Float](repeating: 300, count: 64) + [Float](repeating: 0.5, count: 64))
            #expect(try decoded(some, .tiff).pixel(100, 0).allSatisfy { abs(Int($0) - 128) <= 2 })
        }

        /// Codecs that libtiff lacks (JPEG XL, JPEG 2000, JPEG XR, PNG), a codec with the data of another, and a strip
        /// behind the end of the file: libtiff would leave the pixels black.
        @Test(arguments: [50002, 52546, 34712, 34934, 34933, 5])
        func `a TIFF whose pixels cannot be decoded has no picture`(compression: Int) throws {
            expectUndecodable(TestTIFF(compression: compression).bytes, .tiff)
        }

        @Test(arguments: [0, 7, 18]) func `a TIFF without one of its strips has no picture`(strip: Int) throws
        {
            expectUndecodable(TestTIFF(missingStrip: strip).bytes, .tiff)
        }

        /// libtiff reports bad codes of a fax, and says all the same that the strip was decoded.
        @Test func `a TIFF of a fax that is damaged has no picture`() throws {
            // A row as the one above, white, is one bit; then the end of the block.
            let white = TestTIFF.fax([0xFF, 0xFF, 0x00, 0x10, 0x01])
            let jpeg = try workers.makeThumbnail(
                of: MemorySource(bytes: white), type: .tiff, size: PictureSize(fitting: 256))
            #expect(try #require(DecodedThumbnail(jpeg)).pixel(32, 8).allSatisfy { $0 > 250 })
            expectUndecodable(TestTIFF.fax([0xFF] + [UInt8](repeating: 0, count: 40)), .tiff)
        }

        private func expectUndecodable(_ bytes: [UInt8], _ type: MediaType) {
            #expect(throws: ThumbnailError.undecodable) {
                try workers.makeThumbnail(
                    of: MemorySource(bytes: bytes), type: type, size: PictureSize(fitting: 256))
            }
        }

        /// The first frame in its place on the canvas, white around it.
        @Test(arguments: [(100, 100, 60, 60, 20, 30), (1000, 600, 400, 300, 600, 0), (64, 48, 64, 48, 0, 0)])
        func `the first frame of a WebP on its canvas`(
            wide: Int, high: Int, frameWide: Int, frameHigh: Int, left: Int, top: Int
        ) throws {
            let canvas = PixelSize(width: wide, height: high)
            let bytes = testAnimation(
                canvas: canvas, frame: PixelSize(width: frameWide, height: frameHigh), left: left, top: top)
            let thumbnail = try decoded(bytes, .webp, box: 200)
            #expect(thumbnail.size == canvas.fitted(in: PixelSize(width: 200, height: 200)))
            /// The colour at a place of the canvas.
            func color(_ x: Int, _ y: Int) -> [UInt8] {
                thumbnail.pixel(x * thumbnail.size.width / wide, y * thumbnail.size.height / high)
            }
            let red = color(left + frameWide / 4, top + frameHigh / 4)
            let blue = color(left + frameWide / 4, top + frameHigh * 3 / 4)
            #expect(red[0] > 220 && red[1] < 35 && blue[2] > 220 && blue[1] < 35)
            if left > 0 { #expect(color(left / 2, high / 2).allSatisfy { $0 > 250 }) }
            if top > 0 { #expect(color(wide / 2, top / 2).allSatisfy { $0 > 250 }) }
        }

        @Test(arguments: [(heif_compression_HEVC, MediaType.heic), (heif_compression_AV1, .avif)])
        func `HEIF`(format: heif_compression_format, type: MediaType) throws {
            try expectQuarters(try #require(testHEIF(format)), type)
            try expectHole(try #require(testHEIF(format, hasHole: true)), type)
        }

        /// The embedded thumbnail where it has all the pixels that are asked for, else the picture.
        @Test func `HEIF thumbnail`() throws {
            let bytes = try #require(testHEIF(heif_compression_HEVC, 640, 480, thumbnailSide: 320))
            #expect(try decoded(bytes, .heic, box: 256).corners == [[nil, nil], [nil, nil]])
            #expect(try decoded(bytes, .heic, box: 400).corners == Corner.stored)
        }

        /// A picture coded with rows of nothing below it, as cameras do.
        @Test func `HEIF is as large as it says`() throws {
            var bytes = try #require(testHEIF(heif_compression_HEVC, 256, 256))
            // ImageSpatialExtentsProperty: version and flags, width, height.
            let extents = Array("ispe".utf8) + [0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0]
            let place = try #require(Data(bytes).range(of: Data(extents)))
            bytes.replaceSubrange(place.upperBound - 2..<place.upperBound, with: [0, 128])
            let thumbnail = try decoded(bytes, .heic)
            #expect(thumbnail.size == PixelSize(width: 256, height: 128))
            #expect(thumbnail.corners == [[.red, .green], [.red, .green]])
        }

        /// Pixel by pixel the result of libwebp, if the picture is not made smaller.
        @Test func `WebP keeps its colours`() throws {
            let pixels = (0..<64 * 48 * 4).map {
                UInt8(truncatingIfNeeded: $0 % 4 == 3 ? 255 : $0 &* $0 >> 5)
            }
            var output: UnsafeMutablePointer<UInt8>?
            let count = WebPEncodeRGBA(pixels, 64, 48, 64 * 4, 90, &output)
            defer { WebPFree(output) }
            let bytes = Array(UnsafeBufferPointer(start: output, count: count))
            var (width, height): (Int32, Int32) = (0, 0)
            let expected = WebPDecodeRGBA(bytes, bytes.count, &width, &height)
            defer { WebPFree(expected) }
            #expect(
                try png(bytes, .webp).rgba == Array(UnsafeBufferPointer(start: expected, count: 64 * 48 * 4)))
        }

        @Test func `transparency is white or kept`() throws {
            try expectHole(TestPNG(kind: .colorWithAlpha).bytes, .png)
            try expectHole(TestPNG(kind: .colorWithAlpha, isInterlaced: true).bytes, .png)
            try expectHole(testWebP(isLossless: true, hasHole: true), .webp)
            try expectHole(testGIF(hasHole: true), .gif)
            try expectHole(TestTIFF(hasHole: true).bytes, .tiff)
        }

        /// A raw file is its largest preview, turned as the file says and not as the preview does.
        @Test func `raw is its preview`() throws {
            let preview = TestPicture(width: 600, height: 400).jpeg
            func short(_ value: Int) -> [UInt8] { [UInt8(value & 0xFF), UInt8(value >> 8)] }
            func entry(_ tag: Int, _ type: Int, _ value: Int) -> [UInt8] {
                short(tag) + short(type) + [1, 0, 0, 0] + short(value & 0xFFFF) + short(value >> 16)
            }
            // A DNG's first directory, with a preview as JPEGInterchangeFormat.
            let entries = [
                entry(256, 4, 600), entry(257, 4, 400), entry(274, 3, 6), entry(513, 4, 200),
                entry(514, 4, preview.count), entry(0xC612, 1, 1),
            ]
            var raw: [UInt8] = [0x49, 0x49, 42, 0, 8, 0, 0, 0] + short(entries.count) + entries.joined()
            raw += [UInt8](repeating: 0, count: 200 - raw.count)
            let thumbnail = try decoded(raw + preview, .dng)
            #expect(thumbnail.size == PixelSize(width: 171, height: 256))
            #expect(thumbnail.corners == [[.blue, .red], [.white, .green]])
            #expect(
                embeddedPreview(in: MemorySource(bytes: raw + preview)) == 200..<200 + UInt64(preview.count))
        }

        /// Of a CRW's previews those count that are there as a whole; a JPEG that is cut lacks its lower half.
        @Test func `a raw file whose preview is cut shows a smaller one, or nothing`() throws {
            let large = TestPicture(width: 1200, height: 800).jpeg
            let small = TestPicture(width: 160, height: 107).jpeg
            let cut = Array(large.prefix(large.count / 2))
            #expect(try decoded(crw([large, small]), .crw).size == PixelSize(width: 256, height: 171))
            #expect(try decoded(crw([cut, small]), .crw).size == PixelSize(width: 160, height: 107))
            expectUndecodable(crw([cut]), .crw)
            expectUndecodable(
                crw([Array(TestPicture(width: 1200, height: 800, isProgressive: true).jpeg.dropLast(900))]),
                .crw)
            // Without the marker of its end alone it is whole.
            #expect(
                try decoded(crw([Array(large.dropLast(2))]), .crw).size == PixelSize(width: 256, height: 171))
            #expect(embeddedPreview(in: MemorySource(bytes: crw([large, small])))?.count == small.count)
            #expect(embeddedPreview(in: MemorySource(bytes: crw([cut]))) == nil)
        }

        /// A heap of two records at most (CIFF): JpgFromRaw and the thumbnail.
        private func crw(_ previews: [[UInt8]]) -> [UInt8] {
            func number(_ value: Int, _ byteCount: Int) -> [UInt8] {
                (0..<byteCount).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
            }
            var heap: [UInt8] = []
            var directory = number(previews.count, 2)
            for (preview, kind) in zip(previews, [0x2007, 0x2008]) {
                directory += number(kind, 2) + number(preview.count, 4) + number(heap.count, 4)
                heap += preview
            }
            let start = heap.count
            return Array("II".utf8) + number(26, 4) + Array("HEAPCCDR".utf8) + number(0, 12) + heap
                + directory
                + number(start, 4)
        }

        @Test func `profiles are kept`() throws {
            let pictures: [([UInt8], MediaType)] = [
                (TestPNG(profile: smallProfile).bytes, .png),
                (TestTIFF(profile: smallProfile).bytes, .tiff),
                (try #require(testHEIF(heif_compression_HEVC, profile: smallProfile)), .heic),
            ]
            for (bytes, type) in pictures {
                let jpeg = try workers.makeThumbnail(
                    of: MemorySource(bytes: bytes), type: type, size: PictureSize(fitting: 64))
                #expect(Data(jpeg).range(of: Data(smallProfile)) != nil, "\(type)")
                let png = try workers.makeThumbnail(
                    of: MemorySource(bytes: bytes), type: type, size: PictureSize(fitting: 64), format: .png)
                #expect(Data(png).range(of: Data("iCCP".utf8)) != nil, "\(type)")
            }
        }

        /// A profile that libpng finds odd costs itself only.
        @Test func `an odd profile does not spoil the PNG`() throws {
            let part = TestPicture.profilePart(1, of: 1, byteCount: 200)
            #expect(
                try png(TestPicture(segments: part).jpeg, .jpeg).size == PixelSize(width: 256, height: 192))
        }

        @Test(arguments: [
            (400, 300, 100, 100, 100, 100), (400, 300, 300, 100, 300, 100), (300, 400, 64, 200, 64, 200),
            (200, 1000, 256, 256, 200, 256), (50, 40, 256, 256, 50, 40), (4001, 301, 300, 300, 300, 300),
        ])
        func `a picture fills its box`(
            width: Int, height: Int, wide: Int, high: Int, resultWide: Int, resultHigh: Int
        ) throws {
            let size = PictureSize(width: wide, height: high, isFilled: true)
            let thumbnail = try png(TestPicture(width: width, height: height).jpeg, .jpeg, size)
            #expect(thumbnail.size == PixelSize(width: resultWide, height: resultHigh))
            // Cut evenly: where the colours meet is still in the middle.
            let middle = thumbnail.size.width / 2
            let upper = thumbnail.size.height / 4
            #expect(thumbnail.pixel(middle - 8, upper)[0] > 200 && thumbnail.pixel(middle - 8, upper)[1] < 60)
            #expect(thumbnail.pixel(middle + 7, upper)[0] < 60 && thumbnail.pixel(middle + 7, upper)[1] > 200)
        }

        @Test func `a turned picture fills its box upright`() throws {
            let source = MemorySource(bytes: TestPicture(width: 400, height: 300, orientation: 6).jpeg)
            let size = PictureSize(width: 200, height: 100, isFilled: true)
            let jpeg = try workers.makeThumbnail(of: source, type: .jpeg, size: size)
            let thumbnail = try #require(DecodedThumbnail(jpeg))
            #expect(thumbnail.size == PixelSize(width: 200, height: 100))
            #expect(thumbnail.corners == [[.blue, .red], [.white, .green]])
        }

        /// Even lines of one pixel become an even grey in the step that averages too.
        @Test func `nothing aliases in PNG`() throws {
            let picture = TestPNG(width: 900, height: 300, kind: .gray)
            let row = (0..<900).map { $0 % 2 == 0 ? UInt8(255) : 0 }
            let bytes = picture.encode([[UInt8]](repeating: row, count: 300))
            let thumbnail = try png(bytes, .png, PictureSize(fitting: 200))
            #expect((8..<192).allSatisfy { abs(Int(thumbnail.pixel($0, 30)[0]) - 128) < 6 })
        }
    }
}
