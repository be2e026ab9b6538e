import CJXL
import Foundation
import TestSupport
import Testing

@testable import PhotoImaging

extension WorkerTests {
    @Suite("Decoders: JPEG XL") struct JXLTests {
        let workers = makeWorkers()

        private func png(_ bytes: [UInt8], box: Int = 256) throws -> DecodedPNG {
            #expect(identifyMedia(MemorySource(bytes: bytes)) == .jxl)
            let png = try workers.makeThumbnail(
                of: MemorySource(bytes: bytes), type: .jxl, size: PictureSize(fitting: box), format: .png)
            return try #require(DecodedPNG(png))
        }

        private func decoded(_ bytes: [UInt8], box: Int = 256) throws -> DecodedThumbnail {
            try #require(
                DecodedThumbnail(
                    try workers.makeThumbnail(
                        of: MemorySource(bytes: bytes), type: .jxl, size: PictureSize(fitting: box))))
        }

        private func expectUndecodable(_ bytes: [UInt8], _ comment: Comment? = nil) {
            #expect(throws: ThumbnailError.undecodable, comment) {
                try workers.makeThumbnail(
                    of: MemorySource(bytes: bytes), type: .jxl, size: PictureSize(fitting: 256))
            }
        }

        /// With and without loss, bare and in boxes, larger than one group and not a multiple of anything.
        @Test(arguments: [true, false], [(400, 300), (1601, 1201)])
        func `four colours in their places`(isLossless: Bool, size: (Int, Int)) throws {
            for (hasContainer, beginsInMiddle) in [(false, false), (true, true)] {
                let file = TestJXL(
                    width: size.0, height: size.1, isLossless: isLossless, hasContainer: hasContainer,
                    beginsInMiddle: beginsInMiddle)
                let bytes = try #require(file.bytes)
                let thumbnail = try decoded(bytes)
                #expect(thumbnail.size == PixelSize(width: 256, height: 192))
                #expect(thumbnail.corners == Corner.stored)
                // Not reduced while it is decoded.
                #expect(try decoded(bytes, box: 1200).corners == Corner.stored)
            }
        }

        @Test(arguments: 1...8) func `turned as the codestream says`(orientation: Int) throws {
            let bytes = try #require(TestJXL(orientation: orientation).bytes)
            let thumbnail = try decoded(bytes)
            let expected: [[Corner]] =
                switch orientation {
                case 2: [[.green, .red], [.white, .blue]] as [[Corner]]
                case 3: [[.white, .blue], [.green, .red]]
                case 4: [[.blue, .white], [.red, .green]]
                case 5: [[.red, .blue], [.green, .white]]
                case 6: [[.blue, .red], [.white, .green]]
                case 7: [[.white, .green], [.blue, .red]]
                case 8: [[.green, .white], [.red, .blue]]
                default: Corner.stored
                }
            #expect(thumbnail.corners == expected)
            #expect(
                thumbnail.size
                    == (orientation < 5
                        ? PixelSize(width: 256, height: 192) : PixelSize(width: 192, height: 256)))
        }

        @Test(arguments: [true, false], [4, 2]) func `opacity`(isLossless: Bool, channels: Int) throws {
            let kept = try png(try #require(TestJXL(isLossless: isLossless, channels: channels).bytes))
            #expect(kept.pixel(192, 144)[3] < 10)
            #expect(kept.pixel(64, 48)[3] > 245 && kept.pixel(64, 48)[0] > 220)
        }

        /// Colours behind half an opacity, which a file may store multiplied by it: sRGB's, and linear light.
        @Test func `colours behind an opacity`() throws {
            let linear = TestJXL.Colors.points(JXL_PRIMARIES_SRGB, JXL_TRANSFER_FUNCTION_LINEAR)
            for (isMultiplied, level) in [(false, 200), (true, 100)] as [(Bool, UInt8)] {
                let pixels = repeated([level, level, 0, 0, 0, 0, 128, 128], 64 * 64)
                for (colors, shown) in [(.standard, 200), (linear, 229)] as [(TestJXL.Colors, Int)] {
                    let file = TestJXL(
                        width: 64, height: 64, colors: colors, bits: 16, channels: 4,
                        isMultiplied: isMultiplied)
                    let pixel = try png(try #require(file.encode(pixels))).pixel(32, 32)
                    #expect(abs(Int(pixel[0]) - shown) <= 2 && pixel[3] == 128, "\(pixel)")
                }
            }
        }

        @Test func `gray stays gray`() throws {
            let thumbnail = try decoded(try #require(TestJXL(width: 900, height: 700, channels: 1).bytes))
            #expect(thumbnail.isGray && thumbnail.pixel(64, 48)[0] > 245 && thumbnail.pixel(192, 48)[0] < 10)
        }

        /// Red, green and blue in the middle of six fields.
        private func fields(of picture: DecodedPNG, row: Int) -> [[Int]] {
            var found: [[Int]] = []
            for field in 0..<6 {
                let pixel = picture.pixel(32 + 64 * field, row)
                found.append([Int(pixel[0]), Int(pixel[1]), Int(pixel[2])])
            }
            return found
        }

        /// Levels of six fields of grey, of codes of 16 bits.
        private func levels(
            _ colors: TestJXL.Colors, isLossless: Bool, codes: [Int] = [0, 64, 128, 148, 192, 255]
        ) throws -> [[Int]] {
            let row = (0..<384).flatMap { x in [UInt8](repeating: UInt8(codes[x / 64]), count: 6) }
            let file = TestJXL(width: 384, height: 64, colors: colors, isLossless: isLossless, bits: 16)
            let thumbnail = try png(try #require(file.encode(repeated(row, 64))), box: 384)
            return fields(of: thumbnail, row: 32)
        }

        private func expect(_ pixels: [[Int]], _ levels: [Int], within tolerance: Int = 3) {
            for (pixel, level) in zip(pixels, levels) {
                #expect(pixel.allSatisfy { abs($0 - level) <= tolerance }, "\(pixel) for \(level)")
            }
        }

        /// The perceptual quantizer: the same levels as of a PNG with code points, and of a HEIC.
        @Test(arguments: [true, false]) func `HDR is tone-mapped`(isLossless: Bool) throws {
            let mapped = [0, 37, 120, 156, 232, 255]
            for primaries in [JXL_PRIMARIES_2100, JXL_PRIMARIES_P3, JXL_PRIMARIES_SRGB] {
                expect(
                    try levels(.points(primaries, JXL_TRANSFER_FUNCTION_PQ), isLossless: isLossless), mapped,
                    within: 5)
            }
        }

        /// Hybrid log-gamma has the levels of a PNG with code points, which are ffmpeg's (see `HEIFTests`).
        @Test(arguments: [true, false]) func `hybrid log-gamma is tone-mapped`(isLossless: Bool) throws {
            let codes = [0, 64, 128, 148, 192, 255]
            let row = (0..<384).flatMap { x in [UInt8](repeating: UInt8(codes[x / 64]), count: 6) }
            var bytes = TestPNG(width: 384, height: 16, kind: .deepColor).encode(
                [[UInt8]](repeating: row, count: 16))
            bytes.insert(contentsOf: [0, 0, 0, 4] + Array("cICP".utf8) + [9, 18, 0, 1, 0, 0, 0, 0], at: 33)
            let made = try workers.makeThumbnail(
                of: MemorySource(bytes: bytes), type: .png, size: PictureSize(fitting: 384), format: .png)
            let expected = try #require(DecodedPNG(made))
            let mapped = try levels(
                .points(JXL_PRIMARIES_2100, JXL_TRANSFER_FUNCTION_HLG), isLossless: isLossless)
            expect(mapped, fields(of: expected, row: 8).map { $0[0] }, within: 5)
        }

        /// Light in numbers, whose largest is that of a display or of 10,000 nits.
        @Test func `linear light`() throws {
            let linear = TestJXL.Colors.points(JXL_PRIMARIES_SRGB, JXL_TRANSFER_FUNCTION_LINEAR)
            for isLossless in [true, false] {
                expect(
                    try levels(linear, isLossless: isLossless, codes: [0, 16, 64, 128, 192, 255]),
                    [0, 71, 137, 188, 225, 255])
            }
            // The perceptual codes 64, 128, 148 and 192 of 255 are 5.2, 94.1, 202.4 and 1,010 nits.
            let bright = TestJXL.Colors.points(JXL_PRIMARIES_2100, JXL_TRANSFER_FUNCTION_LINEAR)
            var row: [UInt8] = []
            for code in [0, 34, 617, 1327, 6621, 65535] {
                row += repeated([UInt8(code & 0xFF), UInt8(code >> 8)], 3 * 64)
            }
            let file = TestJXL(
                width: 384, height: 64, colors: bright, nits: 10_000, isLossless: false, bits: 16)
            let thumbnail = try png(try #require(file.encode(repeated(row, 64))), box: 384)
            expect(fields(of: thumbnail, row: 32), [0, 37, 120, 156, 232, 255], within: 8)
        }

        @Test func `other curves and primaries`() throws {
            let untouched = [0, 64, 128, 148, 192, 255]
            expect(try levels(.power(0.45455), isLossless: true), untouched, within: 1)
            // A power of 1 is linear light.
            expect(
                try levels(.power(1), isLossless: true, codes: [0, 16, 64, 128, 192, 255]),
                [0, 71, 137, 188, 225, 255])
            let adobe = [SIMD2(0.64, 0.33), SIMD2(0.21, 0.71), SIMD2(0.15, 0.06)]
            expect(try levels(.primaries(adobe), isLossless: true), untouched, within: 1)
            // As of a PNG with cHRM: by the matrix of BT.709 and Adobe RGB (1998).
            let file = TestJXL(width: 16, height: 16, colors: .primaries(adobe))
            let pixel = try png(try #require(file.encode(repeated([100, 200, 100], 256)))).pixel(8, 8)
            #expect(
                pixel[0] < 40 && abs(Int(pixel[1]) - 201) <= 3 && abs(Int(pixel[2]) - 92) <= 5, "\(pixel)")
        }

        /// A profile is kept where the colours are the original's; from XYB they become sRGB.
        @Test func `a profile that code points cannot tell`() throws {
            let wide = try #require(
                TestJXL(colors: .points(JXL_PRIMARIES_P3, JXL_TRANSFER_FUNCTION_SRGB)).bytes)
            var profile = try #require(jxlProfile(wide))
            // Some other tone curve (parametricCurveType): its first number, the exponent.
            let curve = try #require(Data(profile).range(of: Data("para\0\0\0\0".utf8)))
            profile[curve.upperBound + 5] = 3
            let lossless = TestJXL(width: 64, height: 64, colors: .profile(profile))
            let bytes = try #require(lossless.encode(repeated([100, 200, 100], 64 * 64)))
            let jpeg = try workers.makeThumbnail(
                of: MemorySource(bytes: bytes), type: .jxl, size: PictureSize(fitting: 64))
            #expect(Data(jpeg).range(of: Data(profile)) != nil)
            #expect(try png(bytes).pixel(32, 32)[..<3] == [100, 200, 100])
            var seen = TestJXL(width: 64, height: 64, colors: .profile(profile), isLossless: false)
            let small = try #require(seen.encode(repeated([100, 200, 100], 64 * 64)))
            let pixel = try png(small).pixel(32, 32)
            // P3 by a power of about 3.4.
            #expect(
                pixel[0] < 10 && abs(Int(pixel[1]) - 183) <= 4 && abs(Int(pixel[2]) - 39) <= 6, "\(pixel)")
            // 1,000 nits, which would be white if they were those of a display.
            seen.nits = 1000
            let white = try png(try #require(seen.encode(repeated([255, 255, 255], 64 * 64)))).pixel(32, 32)
            #expect(white[..<3].allSatisfy { (222...240).contains($0) }, "\(white)")
        }

        /// An HDR picture that would have more than 64 MiB as a PNG of 16 bits.
        @Test func `a large HDR picture`() throws {
            let (width, height) = (4200, 2800)
            let file = TestJXL(
                width: width, height: height, colors: .points(JXL_PRIMARIES_2100, JXL_TRANSFER_FUNCTION_PQ),
                bits: 16)
            let left = repeated([128, 128, 128, 128, 128, 128] as [UInt8], width / 2)
            let right = repeated([192, 192, 192, 192, 192, 192] as [UInt8], width / 2)
            let thumbnail = try png(try #require(file.encode(repeated(left + right, height))))
            #expect(thumbnail.size == PixelSize(width: 256, height: 171))
            for (x, level) in [(60, 120), (200, 232)] {
                let pixel = thumbnail.pixel(x, 80)
                #expect(
                    abs(Int(pixel[0]) - level) <= 3 && pixel[0] == pixel[1] && pixel[1] == pixel[2],
                    "\(pixel)")
            }
        }

        /// A few bytes that claim much: all of the header is by default, then comes a frame of all those pixels.
        @Test(arguments: [(20_000, 19_999), (100_000, 100_000), (1 << 30, 1 << 30), (1 << 30, 1)])
        func `bombs`(width: Int, height: Int) throws {
            var bits: [Bool] = []
            func put(_ value: Int, _ count: Int) { bits += (0..<count).map { value >> $0 & 1 == 1 } }
            put(0, 1)
            put(3, 2)
            put(height - 1, 30)
            put(0, 3)
            put(3, 2)
            put(width - 1, 30)
            put(3, 2)
            while bits.count % 8 != 0 { bits.append(false) }
            let header = stride(from: 0, to: bits.count, by: 8).map { start in
                (0..<8).reduce(UInt8(0)) { bits[start + $1] ? $0 | 1 << $1 : $0 }
            }
            for rest in [0, 1, 0x5A, 0xFF] as [UInt8] {
                let bytes = [0xFF, 0x0A] + header + [1] + [UInt8](repeating: rest, count: 300)
                expectUndecodable(bytes, "\(rest)")
            }
            #expect(try decoded(try #require(TestJXL().bytes)).corners == Corner.stored)
        }

        @Test(arguments: [true, false]) func `a file that is cut has no picture`(isLossless: Bool) throws {
            let file = TestJXL(width: 900, height: 700, isLossless: isLossless, hasContainer: true)
            let bytes = try #require(file.encode(noise(900 * 700 * 3)))
            for part in 1..<16 { expectUndecodable(Array(bytes[..<(bytes.count * part / 16)]), "\(part)") }
            #expect(try decoded(bytes).size == PixelSize(width: 256, height: 199))
        }
    }
}
