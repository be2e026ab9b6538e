import CHEIF
import Foundation
import Testing

@testable import PhotoImaging

extension WorkerTests {
    @Suite("Decoders: HEIF geometry and colours") struct HEIFTests {
        let workers = makeWorkers()

        private func decoded(_ file: TestHEIF, box: Int = 256) throws -> DecodedThumbnail {
            try workers.decoded(file.bytes, file.type, box: box)
        }

        private static let upright: [[Corner?]] = Corner.stored
        private static let turnedLeft: [[Corner?]] = [[.green, .white], [.red, .blue]]

        /// The result does not depend on the place of the size among the transformations.
        @Test(arguments: [heif_compression_HEVC, heif_compression_AV1], [false, true])
        func `turns before the size`(format: heif_compression_format, sizeIsFirst: Bool) throws {
            let picture = try #require(TestHEIF.Picture(format, 320, 192))
            func file(_ transformations: [[UInt8]]) -> TestHEIF {
                let size = [TestHEIF.extents(320, 192)]
                return TestHEIF(
                    format: format, picture: picture,
                    properties: sizeIsFirst ? size + transformations : transformations + size)
            }
            let turned = try decoded(file([TestHEIF.turn(1)]))
            #expect(turned.size == PixelSize(width: 154, height: 256))
            #expect(turned.corners == Self.turnedLeft)
            let half = try decoded(file([TestHEIF.turn(2)]))
            #expect(half.size == PixelSize(width: 256, height: 154))
            #expect(half.corners == [[.white, .blue], [.green, .red]])
            let mirrored = try decoded(file([TestHEIF.mirror(1)]))
            #expect(mirrored.corners == [[.green, .red], [.white, .blue]])
            let flippedAndTurned = try decoded(file([TestHEIF.mirror(0), TestHEIF.turn(3)]))
            #expect(flippedAndTurned.size == PixelSize(width: 154, height: 256))
            #expect(flippedAndTurned.corners == [[.red, .blue], [.green, .white]])
        }

        /// libheif turns opacity whether it is asked to or not.
        @Test(arguments: [heif_compression_HEVC, heif_compression_AV1], [UInt8(0), 1, 2])
        func `opacity is turned with the picture`(format: heif_compression_format, quarters: UInt8) throws {
            let picture = try #require(TestHEIF.Picture(format, 320, 192))
            let opacity = try #require(TestHEIF.Picture(format, 320, 192, levels: [255, 255, 0, 0]))
            let turn = quarters == 0 ? [] : [TestHEIF.turn(quarters)]
            var file = TestHEIF(
                format: format, picture: picture, properties: [TestHEIF.extents(320, 192)] + turn)
            file.auxiliaries = [(opacity, "urn:mpeg:mpegB:cicp:systems:auxiliary:alpha")]
            let expected: [[Corner?]] =
                switch quarters {
                case 1: [[.white, .white], [.red, .blue]]
                case 2: [[.white, .blue], [.white, .red]]
                default: [[.red, .white], [.blue, .white]]
                }
            #expect(try decoded(file).corners == expected)
        }

        /// The size is that of a smaller layer, which `a1op` chooses: libheif decodes the largest one.
        @Test func `a layer is shown whole`() throws {
            let picture = try #require(TestHEIF.Picture(heif_compression_AV1, 320, 192))
            func file(_ width: Int, _ height: Int, _ others: [[UInt8]] = []) -> TestHEIF {
                let layer = TestHEIF.box("a1op", [1])
                let size = TestHEIF.extents(width, height)
                return TestHEIF(
                    format: heif_compression_AV1, picture: picture, properties: [size, layer] + others)
            }
            let smaller = try decoded(file(80, 49))
            #expect(smaller.size == PixelSize(width: 80, height: 49))
            #expect(smaller.corners == Self.upright)
            #expect(try decoded(file(80, 48, [TestHEIF.turn(1)]), box: 40).corners == Self.turnedLeft)
            // Of another shape, or with a crop in pixels of that layer: the part that is shown is not known.
            #expect(throws: ThumbnailError.undecodable) { try decoded(file(80, 80)) }
            #expect(throws: ThumbnailError.undecodable) { try decoded(file(80, 48, [TestHEIF.crop(40, 24)])) }
        }

        /// The same as libheif's own result where the size stands first.
        @Test func `crops before and after a turn`() throws {
            let picture = try #require(TestHEIF.Picture(heif_compression_HEVC, 320, 192))
            func file(_ transformations: [[UInt8]]) -> TestHEIF {
                TestHEIF(picture: picture, properties: transformations + [TestHEIF.extents(320, 192)])
            }
            // The left upper quarter is red.
            let red = try decoded(file([TestHEIF.crop(160, 96, halfRight: -160, halfDown: -96)]))
            #expect(red.size == PixelSize(width: 160, height: 96))
            #expect(red.corners == [[.red, .red], [.red, .red]])
            let turned = try decoded(
                file([TestHEIF.crop(320, 96, halfDown: -96), TestHEIF.turn(1)]))
            #expect(turned.size == PixelSize(width: 77, height: 256))
            #expect(turned.corners == [[.green, .green], [.red, .red]])
            // The upper half of the picture that is turned.
            let upper = try decoded(
                file([TestHEIF.turn(1), TestHEIF.crop(192, 160, halfDown: -160)]))
            #expect(upper.size == PixelSize(width: 192, height: 160))
            #expect(upper.corners == [[.green, .white], [.green, .white]])
        }

        /// Debian 12's avifenc turns the tiles of a grid as well as the grid. libheif would show a chessboard of turned
        /// tiles, other programs the picture.
        @Test func `a grid of tiles that are turned one by one has no picture`() throws {
            let picture = try #require(TestHEIF.Picture(heif_compression_HEVC, 320, 192))
            func file(_ own: [[UInt8]], _ tiles: [[UInt8]]) -> TestHEIF {
                var file = TestHEIF(picture: picture, properties: [TestHEIF.extents(640, 192)] + own)
                file.grid = (
                    PixelSize(width: 640, height: 192), tileProperties: [TestHEIF.extents(320, 192)] + tiles
                )
                return file
            }
            let half = TestHEIF.turn(2)
            // The tile at the right.
            let right = TestHEIF.crop(320, 192, halfRight: 320)
            #expect(try decoded(file([right], [])).corners == Self.upright)
            #expect(try decoded(file([right, half], [])).corners == [[.white, .blue], [.green, .red]])
            let nothing = [TestHEIF.crop(320, 192), TestHEIF.turn(0)]
            #expect(try decoded(file([right], nothing)).corners == Self.upright)
            for transformation in [half, TestHEIF.mirror(1), TestHEIF.crop(160, 96)] {
                #expect(throws: (any Error).self) {
                    try decoded(file([transformation], [transformation]))
                }
            }
        }

        /// libheif 1.15 compresses the limited range of red, green and blue, ignores that of YCgCo, and takes constant
        /// luminance and ICtCp for JPEG's matrix. Of 4:2:0.
        @Test(arguments: [(0, false), (8, false), (10, false), (13, true), (14, false), (11, true)])
        func `colours of other matrices have no picture`(matrix: Int, isFullRange: Bool) throws {
            let picture = try #require(TestHEIF.Picture(heif_compression_AV1, 320, 192))
            func file(_ matrix: Int, isFullRange: Bool) -> TestHEIF {
                let colors = TestHEIF.colors(1, 13, matrix, isFullRange: isFullRange)
                return TestHEIF(
                    format: heif_compression_AV1, picture: picture,
                    properties: [TestHEIF.extents(320, 192), colors])
            }
            #expect(try decoded(file(6, isFullRange: isFullRange)).size.width == 256)
            #expect(throws: (any Error).self) { try decoded(file(matrix, isFullRange: isFullRange)) }
        }

        /// Five columns in full resolution, of 8 and 10 bits: avifenc 0.11's, as libheif 1.15 cannot encode such.
        private static let wholePlanes = [
            8: (
                "AAAADGF2MUOBIAAA",
                "EgAKCTghZ//ygIaAyDI1EKAAACAAY4cNXT46ItIxr+YxIvEyQnTvyvNW2KFC02qdwE4IwnR/cyPfYzM3HQTDa/F4FUg="
            ),
            10: (
                "AAAADGF2MUOBIEAA",
                "EgAKCTghZ//zgIaAyDI3EKAAACAAY4cNXMyi1DRruVZjEpPf1B9qnevI5nimU+gwqJAAMkEZv9cHS1UlPTRy3Y/ElsVp6g=="
            ),
        ]

        /// Those in full resolution have one: libheif is told that the planes are colours of full range, which it
        /// copies. By ITU-T H.273, 8.3.
        @Test(arguments: [(8, true, 10), (8, false, 8), (8, false, 10), (0, false, 8), (0, false, 10)])
        func `planes that libheif would convert wrongly`(matrix: Int, isFullRange: Bool, bits: Int) throws {
            let columns: [[UInt8]] = [
                [60, 128, 128], [126, 100, 150], [120, 140, 100], [180, 120, 140], [200, 128, 128],
            ]
            let (configuration, data) = try #require(Self.wholePlanes[bits])
            let picture = try #require(TestHEIF.Picture(configuration: configuration, data: data))
            let told = TestHEIF.colors(1, 13, matrix, isFullRange: isFullRange)
            let thumbnail = try decoded(
                TestHEIF(
                    format: heif_compression_AV1, picture: picture,
                    properties: [TestHEIF.extents(320, 64), told]), box: 384)
            func value(_ code: UInt8) -> Double {
                isFullRange ? Double(code) / 255 : (Double(code) - 16) / 219
            }
            func difference(_ code: UInt8) -> Double { (Double(code) - 128) / (isFullRange ? 255 : 224) }
            for (index, column) in columns.enumerated() {
                let (green, orange) = (difference(column[1]), difference(column[2]))
                let luma = value(column[0])
                let colors =
                    matrix == 0
                    ? [value(column[2]), luma, value(column[1])]
                    : [luma - green + orange, luma + green, luma - green - orange]
                let expected = colors.map { Int((min(max($0, 0), 1) * 255).rounded()) }
                let found = thumbnail.pixel(32 + 64 * index, 32).prefix(3).map { Int($0) }
                #expect(zip(found, expected).allSatisfy { abs($0 - $1) <= 4 }, "\(found), not \(expected)")
            }
        }

        /// The still picture of a file that has a sequence too.
        @Test(arguments: [
            (heif_compression_AV1, "avis"), (heif_compression_HEVC, "msf1"), (heif_compression_HEVC, "hevc"),
        ])
        func `brands of sequences`(format: heif_compression_format, brand: String) throws {
            let picture = try #require(TestHEIF.Picture(format, 320, 192))
            let thumbnail = try decoded(
                TestHEIF(
                    format: format, picture: picture, properties: [TestHEIF.extents(320, 192)], brand: brand))
            #expect(thumbnail.size == PixelSize(width: 256, height: 154))
            #expect(thumbnail.corners == Self.upright)
        }

        /// A picture with a gain map and another auxiliary picture: the day is known. Where libheif reads the file, it
        /// shows the base picture (as 1.15 does with this one), never an auxiliary one.
        @Test(arguments: [heif_compression_HEVC, heif_compression_AV1], [false, true])
        func `a gain map and a second auxiliary picture`(
            format: heif_compression_format, gainMapIsFirst: Bool
        ) throws {
            let picture = try #require(TestHEIF.Picture(format, 320, 192))
            let gray = try #require(TestHEIF.Picture(format, 320, 192, levels: [128]))
            let kinds = ["urn:iso:std:iso:ts:21496:-1", "urn:mpeg:mpegB:cicp:systems:auxiliary:depth"]
            var file = TestHEIF(format: format, picture: picture, properties: [TestHEIF.extents(320, 192)])
            file.auxiliaries = (gainMapIsFirst ? kinds : kinds.reversed()).map { (gray, $0) }
            file.hasToneMap = true
            file.exif = Self.exif("2019:03:04 05:06:07")
            let facts = try #require(readFacts(MemorySource(bytes: file.bytes)))
            #expect(
                facts.dates.first?.time
                    == CivilTime(year: 2019, month: 3, day: 4, hour: 5, minute: 6, second: 7))
            let type: MediaType = format == heif_compression_AV1 ? .avif : .heic
            let jpeg = try? workers.makeThumbnail(
                of: MemorySource(bytes: file.bytes), type: type, size: PictureSize(fitting: 256))
            if let jpeg { #expect(try #require(DecodedThumbnail(jpeg)).corners == Self.upright) }
        }

        /// ISO/IEC 23008-12's short form, which libheif 1.15 does not read: no picture rather than a wrong one.
        @Test func `a file in the short form has no picture`() throws {
            let type = TestHEIF.box("ftyp", Array("avif\0\0\0\0mif3avif".utf8))
            let file = type + TestHEIF.box("mini", [UInt8](repeating: 0x5A, count: 200))
            let facts = try #require(readFacts(MemorySource(bytes: file)))
            #expect(facts.type == .avif && facts.dates.isEmpty && facts.orientation == 1)
            #expect(throws: (any Error).self) {
                try workers.makeThumbnail(
                    of: MemorySource(bytes: file), type: .avif, size: PictureSize(fitting: 256))
            }
        }

        /// A TIFF structure of one date, DateTimeOriginal.
        private static func exif(_ date: String) -> [UInt8] {
            let pointer: [UInt8] = [0, 1, 0x87, 0x69, 0, 4, 0, 0, 0, 1, 0, 0, 0, 26, 0, 0, 0, 0]
            let entry: [UInt8] = [0, 1, 0x90, 0x03, 0, 2, 0, 0, 0, 20, 0, 0, 0, 44, 0, 0, 0, 0]
            return Array("MM\0*".utf8) + [0, 0, 0, 8] + pointer + entry + Array(date.utf8) + [0]
        }

        /// A picture that is coded smaller than the file says keeps its own aspect ratio.
        @Test func `a picture smaller than it says`() throws {
            let picture = try #require(TestHEIF.Picture(heif_compression_HEVC, 320, 192))
            let thumbnail = try decoded(
                TestHEIF(picture: picture, properties: [TestHEIF.extents(640, 640), TestHEIF.turn(1)]))
            #expect(thumbnail.size == PixelSize(width: 154, height: 256))
            #expect(thumbnail.corners == Self.turnedLeft)
        }

        /// A small copy, here of one grey, is used only if it shows the same part of the scene as the picture.
        @Test func `small copies that are not the picture`() throws {
            let picture = try #require(TestHEIF.Picture(heif_compression_HEVC, 640, 384))
            let copy = try #require(TestHEIF.Picture(heif_compression_HEVC, 320, 192, levels: [128]))
            func corners(_ own: [[UInt8]], _ copys: [[UInt8]], copySize: (Int, Int) = (320, 192)) throws
                -> [[Corner?]]
            {
                try decoded(
                    TestHEIF(
                        picture: picture, properties: [TestHEIF.extents(640, 384)] + own, thumbnail: copy,
                        thumbnailProperties: [TestHEIF.extents(copySize.0, copySize.1)] + copys)
                ).corners
            }
            let gray: [[Corner?]] = [[nil, nil], [nil, nil]]
            #expect(try corners([], []) == gray)
            #expect(try corners([TestHEIF.turn(1)], [TestHEIF.turn(1)]) == gray)
            #expect(try corners([TestHEIF.turn(2)], [TestHEIF.mirror(0), TestHEIF.mirror(1)]) == gray)
            // Its transformations are others.
            #expect(try corners([TestHEIF.turn(1)], []) == Self.turnedLeft)
            #expect(try corners([], [TestHEIF.turn(2)]) == Self.upright)
            // The picture shows a part of the copy.
            #expect(try corners([TestHEIF.crop(320, 192)], []) == Self.upright)
            #expect(try corners([], [TestHEIF.crop(300, 180)]) == Self.upright)
            // Its aspect ratio is another one, by two pixels.
            #expect(try corners([], [], copySize: (320, 190)) == Self.upright)
            // It is coded smaller than the file says.
            #expect(try corners([], [], copySize: (640, 384)) == Self.upright)
        }

        /// 16 is black and 235 white.
        @Test(arguments: [heif_compression_HEVC, heif_compression_AV1])
        func `gray of limited range`(format: heif_compression_format) throws {
            let picture = try #require(TestHEIF.Picture(format, 256, 64, levels: [16, 126, 235, 64]))
            func levels(isFullRange: Bool) throws -> [Int] {
                let thumbnail = try decoded(
                    TestHEIF(
                        format: format, picture: picture,
                        properties: [
                            TestHEIF.extents(256, 64),
                            TestHEIF.colors(1, 13, 6, isFullRange: isFullRange),
                        ]))
                return (0..<4).map { Int(thumbnail.pixel(32 + 64 * $0, 32)[0]) }
            }
            let limited = try levels(isFullRange: false)
            #expect(zip(limited, [0, 128, 255, 56]).allSatisfy { abs($0 - $1) <= 3 }, "\(limited)")
            let full = try levels(isFullRange: true)
            #expect(zip(full, [16, 126, 235, 64]).allSatisfy { abs($0 - $1) <= 3 }, "\(full)")
        }

        /// The levels that ffmpeg 5.1 gives for these codes with zscale=t=linear:npl=203, zscale=p=bt709,
        /// tonemap=hable:desat=0 and zscale=t=bt709.
        @Test(arguments: [(16, [0, 37, 120, 156, 232, 255]), (18, [0, 48, 95, 111, 157, 231])])
        func `HDR is tone-mapped`(transfer: Int, expected: [Int]) throws {
            let codes: [UInt8] = [0, 64, 128, 148, 192, 255]
            let picture = try #require(TestHEIF.Picture(heif_compression_AV1, 384, 64, levels: codes))
            let thumbnail = try decoded(
                TestHEIF(
                    format: heif_compression_AV1, picture: picture,
                    properties: [
                        TestHEIF.extents(384, 64), TestHEIF.colors(9, transfer, 9, isFullRange: true),
                    ]), box: 384)
            let levels = (0..<6).map { Int(thumbnail.pixel(32 + 64 * $0, 32)[0]) }
            #expect(zip(levels, expected).allSatisfy { abs($0 - $1) <= 4 }, "\(levels)")
        }

        /// Display P3's red is outside of sRGB's gamut, its white is sRGB's.
        @Test func `a wide gamut without a profile becomes sRGB`() throws {
            let picture = try #require(TestHEIF.Picture(heif_compression_HEVC, 256, 192))
            func pixels(_ primaries: Int) throws -> DecodedThumbnail {
                try decoded(
                    TestHEIF(
                        picture: picture,
                        properties: [
                            TestHEIF.extents(256, 192), TestHEIF.colors(primaries, 13, 6, isFullRange: true),
                        ]))
            }
            #expect(try pixels(12).corners == Corner.stored)
            let gray = try #require(
                TestHEIF.Picture(heif_compression_HEVC, 256, 64, levels: [40, 100, 180, 240]))
            let thumbnail = try decoded(
                TestHEIF(
                    picture: gray,
                    properties: [TestHEIF.extents(256, 64), TestHEIF.colors(12, 13, 6, isFullRange: true)]))
            for (index, level) in [40, 100, 180, 240].enumerated() {
                let pixel = thumbnail.pixel(32 + 64 * index, 32)
                #expect(pixel.allSatisfy { abs(Int($0) - level) <= 3 }, "\(pixel)")
            }
        }
    }
}
