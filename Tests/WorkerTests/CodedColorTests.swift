import CHEIF
import Testing

@testable import PhotoImaging

extension WorkerTests {
    /// Files whose bitstream alone tells the colours: heif-enc of Debian 12 writes such.
    @Suite("Decoders: colours that the bitstream tells") struct CodedColorTests {
        let workers = makeWorkers()

        private func decoded(_ file: TestHEIF, box: Int = 384) throws -> DecodedThumbnail {
            try workers.decoded(file.bytes, file.type, box: box)
        }

        /// What the file itself says of its colours.
        enum Box: CaseIterable {
            case none, unspecified, unspecifiedOfLimitedRange

            var properties: [[UInt8]] {
                switch self {
                case .none: []
                case .unspecified: [TestHEIF.colors(2, 2, 2, isFullRange: true)]
                case .unspecifiedOfLimitedRange: [TestHEIF.colors(2, 2, 2, isFullRange: false)]
                }
            }
        }

        /// The levels are those of ffmpeg, as where the file tells the code points.
        @Test(arguments: [heif_compression_HEVC, heif_compression_AV1], [Box.none, .unspecified])
        func `HDR is tone-mapped`(format: heif_compression_format, box: Box) throws {
            for (transfer, expected) in [
                (16, [0, 37, 120, 156, 232, 255]), (18, [0, 48, 95, 111, 157, 231]),
            ] {
                let levels: [UInt8] = [0, 64, 128, 148, 192, 255]
                for columns in [levels.map { [$0] }, levels.map { [$0, 128, 128] }] {
                    let picture = try #require(
                        TestHEIF.Picture(
                            format, 384, 64, columns: columns, primaries: 9, transfer: UInt32(transfer),
                            matrix: 9, isFullRange: true))
                    let thumbnail = try decoded(
                        TestHEIF(
                            format: format, picture: picture,
                            properties: [TestHEIF.extents(384, 64)] + box.properties))
                    let found = (0..<6).map { Int(thumbnail.pixel(32 + 64 * $0, 32)[0]) }
                    #expect(zip(found, expected).allSatisfy { abs($0 - $1) <= 4 }, "\(transfer): \(found)")
                }
            }
        }

        /// Video's matrix and range, not JPEG's. By ITU-R BT.709, 3.
        @Test(arguments: [heif_compression_HEVC, heif_compression_AV1], Box.allCases)
        func `the matrix and the range count`(format: heif_compression_format, box: Box) throws {
            let columns: [[UInt8]] = [
                [16, 128, 128], [126, 100, 150], [100, 160, 90], [180, 120, 140], [235, 128, 128],
            ]
            let picture = try #require(
                TestHEIF.Picture(
                    format, 320, 64, columns: columns, primaries: 1, transfer: 13, matrix: 1,
                    isFullRange: false))
            let file = TestHEIF(
                format: format, picture: picture,
                properties: [TestHEIF.extents(320, 64)] + box.properties)
            let thumbnail = try decoded(file)
            for (index, column) in columns.enumerated() {
                let luma = (Double(column[0]) - 16) / 219
                let blue = (Double(column[1]) - 128) / 224
                let red = (Double(column[2]) - 128) / 224
                let expected = [
                    luma + 1.5748 * red, luma - 0.1873 * blue - 0.4681 * red, luma + 1.8556 * blue,
                ].map { Int(($0 * 255).rounded()) }
                let found = thumbnail.pixel(32 + 64 * index, 32).prefix(3).map { Int($0) }
                #expect(zip(found, expected).allSatisfy { abs($0 - $1) <= 5 }, "\(found), not \(expected)")
            }
            // The file's own word comes first.
            var told = file
            told.properties = [TestHEIF.extents(320, 64), TestHEIF.colors(1, 13, 6, isFullRange: true)]
            let black = try decoded(told).pixel(32, 32)
            #expect(abs(Int(black[0]) - 16) <= 3, "\(black)")
        }

        @Test(arguments: [heif_compression_HEVC, heif_compression_AV1], Box.allCases)
        func `grey of limited range`(format: heif_compression_format, box: Box) throws {
            let picture = try #require(
                TestHEIF.Picture(
                    format, 256, 64, columns: [[16], [126], [235], [64]], primaries: 1, transfer: 13,
                    matrix: 6, isFullRange: false))
            let thumbnail = try decoded(
                TestHEIF(
                    format: format, picture: picture,
                    properties: [TestHEIF.extents(256, 64)] + box.properties))
            let levels = (0..<4).map { Int(thumbnail.pixel(32 + 64 * $0, 32)[0]) }
            #expect(zip(levels, [0, 128, 255, 56]).allSatisfy { abs($0 - $1) <= 3 }, "\(levels)")
        }

        /// libheif would expand a range that is full: no picture rather than a wrong one.
        @Test(arguments: [heif_compression_HEVC, heif_compression_AV1])
        func `a box of limited range on a bitstream of full range`(format: heif_compression_format) throws {
            let picture = try #require(
                TestHEIF.Picture(
                    format, 128, 64, columns: [[40, 128, 128]], primaries: 9, transfer: 16, matrix: 9,
                    isFullRange: true))
            let properties = [TestHEIF.extents(128, 64), TestHEIF.colors(2, 2, 2, isFullRange: false)]
            let file = TestHEIF(format: format, picture: picture, properties: properties)
            #expect(throws: (any Error).self) { try decoded(file) }
        }

        /// Files of old encoders whose boxes specify the range alone: other programs take the box's, too.
        @Test func `the range of a box counts where nobody specifies the matrix`() throws {
            let picture = try #require(
                TestHEIF.Picture(
                    heif_compression_AV1, 256, 64, columns: [[16], [126], [235], [64]], primaries: 2,
                    transfer: 2, matrix: 2, isFullRange: false))
            let thumbnail = try decoded(
                TestHEIF(
                    format: heif_compression_AV1, picture: picture,
                    properties: [TestHEIF.extents(256, 64), TestHEIF.colors(2, 2, 2, isFullRange: true)]))
            let levels = (0..<4).map { Int(thumbnail.pixel(32 + 64 * $0, 32)[0]) }
            #expect(zip(levels, [16, 126, 235, 64]).allSatisfy { abs($0 - $1) <= 3 }, "\(levels)")
        }

        /// heif-enc writes such files of full range.
        @Test func `a parameter set that tells no colours is not believed to be of limited range`() throws {
            let picture = try #require(
                TestHEIF.Picture(heif_compression_HEVC, 256, 64, levels: [16, 126, 235, 64]))
            let file = TestHEIF(picture: picture, properties: [TestHEIF.extents(256, 64)])
            let told = HEIFGeometry(MemoryByteSource(file.bytes)).codedColors(1)
            #expect(told?.isFullRange != false)
            let thumbnail = try decoded(file)
            let levels = (0..<4).map { Int(thumbnail.pixel(32 + 64 * $0, 32)[0]) }
            #expect(zip(levels, [16, 126, 235, 64]).allSatisfy { abs($0 - $1) <= 3 }, "\(levels)")
        }

        /// Nothing of a header that ends early is believed, and no byte of it ends the reader.
        @Test(arguments: [heif_compression_HEVC, heif_compression_AV1])
        func `headers that are cut or changed`(format: heif_compression_format) throws {
            let picture = try #require(
                TestHEIF.Picture(
                    format, 64, 64, columns: [[100, 128, 128]], primaries: 9, transfer: 16, matrix: 9,
                    isFullRange: true))
            func colors(_ picture: TestHEIF.Picture) -> CodedColors? {
                let file = TestHEIF(format: format, picture: picture, properties: [TestHEIF.extents(64, 64)])
                return HEIFGeometry(MemoryByteSource(file.bytes)).codedColors(1)
            }
            let whole = try #require(colors(picture))
            #expect((whole.primaries, whole.transfer, whole.matrix) == (9, 16, 9))
            #expect(whole.isFullRange && whole.chroma == 1)
            for index in picture.configuration.indices.dropFirst(8) {
                for bit in 0..<8 {
                    var changed = picture
                    changed.configuration[index] ^= 1 << bit
                    _ = colors(changed)
                }
                var cut = picture
                cut.configuration = TestHEIF.box(
                    format == heif_compression_AV1 ? "av1C" : "hvcC", Array(picture.configuration[8..<index]))
                cut.data = []
                if let found = colors(cut) { #expect(found == whole) }
            }
            // The header stands before the picture only.
            if format == heif_compression_AV1 {
                var bare = picture
                bare.configuration = TestHEIF.box("av1C", Array(picture.configuration[8..<12]))
                #expect(colors(bare) == whole)
            }
        }
    }
}
