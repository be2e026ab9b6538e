import CHEIF
import CJXL
import Foundation
import Testing

@testable import PhotoImaging

extension WorkerTests {
    /// A hostile picture costs its own thumbnail and nothing else.
    @Suite("Decoders: hostile pictures") struct HostileDecodingTests {
        let workers = makeWorkers()

        private func thumbnail(_ bytes: [UInt8], _ type: MediaType) throws(ThumbnailError) -> [UInt8] {
            try workers.makeThumbnail(
                of: MemorySource(bytes: bytes), type: type, size: PictureSize(fitting: 64))
        }

        private func expectRefused(
            _ bytes: [UInt8], _ type: MediaType, sourceLocation: SourceLocation = #_sourceLocation
        ) {
            #expect(throws: ThumbnailError.undecodable, sourceLocation: sourceLocation) {
                try thumbnail(bytes, type)
            }
        }

        private func expectNextIsServed() throws {
            #expect(DecodedThumbnail(try workers.thumbnail(TestPicture().jpeg))?.corners == Corner.stored)
        }

        static let pictures: [(MediaType, @Sendable () -> [UInt8]?)] = [
            (.png, { TestPNG(width: 80, height: 60, kind: .colorWithAlpha).bytes }),
            (.png, { TestPNG(width: 80, height: 60, isInterlaced: true).bytes }),
            (.webp, { testWebP(80, 60) }),
            (.webp, { testWebP(80, 60, isLossless: true) }),
            (.gif, { testGIF(80, 60, hasHole: true) }),
            (.png, { describedPNG }),
            (.tiff, { TestTIFF(width: 80, height: 60).bytes }),
            (.tiff, { TestTIFF(width: 80, height: 60, isSigned: true).bytes }),
            (.tiff, { TestTIFF(width: 80, height: 60, hasHole: true, bits: 12).bytes }),
            (.tiff, { TestTIFF(width: 80, height: 60, bits: 32, isFloat: true, isSeparate: true).bytes }),
            (.heic, { testHEIF(heif_compression_HEVC, 80, 64) }),
            (.avif, { testHEIF(heif_compression_AV1, 80, 64) }),
            (.jxl, { TestJXL(width: 80, height: 60, channels: 4, hasContainer: true).bytes }),
            (.jxl, { TestJXL(width: 80, height: 60, isLossless: false).bytes }),
            (.jxl, { TestJXL(width: 80, height: 60, colors: hybrid, bits: 16, channels: 4).bytes }),
        ]

        private static let hybrid = TestJXL.Colors.points(JXL_PRIMARIES_2100, JXL_TRANSFER_FUNCTION_HLG)

        /// With the primaries and the power of light of another display than sRGB's.
        private static var describedPNG: [UInt8] {
            var bytes = TestPNG(width: 80, height: 60, kind: .deepColor).bytes
            for (type, values) in [
                ("gAMA", [100_000]),
                ("cHRM", [31270, 32900, 64000, 33000, 21000, 71000, 15000, 6000]),
            ] as [(String, [UInt32])] {
                let whole = Array(type.utf8) + values.flatMap(bigEndian)
                bytes.insert(
                    contentsOf: bigEndian(UInt32(values.count * 4)) + whole + checksum(whole[...]), at: 33)
            }
            return bytes
        }

        private static func bigEndian(_ value: UInt32) -> [UInt8] {
            [UInt8(value >> 24), UInt8(value >> 16 & 0xFF), UInt8(value >> 8 & 0xFF), UInt8(value & 0xFF)]
        }

        /// How often each picture is damaged: `OBSCURA_DAMAGED_PICTURES` asks for more.
        private static let damageCount =
            ProcessInfo.processInfo.environment["OBSCURA_DAMAGED_PICTURES"].flatMap { Int($0) } ?? 24

        @Test(arguments: pictures.indices)
        func `truncated pictures`(index: Int) throws {
            let (type, make) = Self.pictures[index]
            let bytes = try #require(make())
            for part in 1...24 { _ = try? thumbnail(Array(bytes.prefix(bytes.count * part / 25)), type) }
            expectRefused(Array(bytes.prefix(20)), type)
            try expectNextIsServed()
        }

        /// Some bytes changed, the same ones in every run.
        @Test(arguments: pictures.indices)
        func `damaged pictures`(index: Int) throws {
            let (type, make) = Self.pictures[index]
            let bytes = try #require(make())
            var state: UInt64 = 0x0B5C_0000 + UInt64(index)
            for _ in 0..<Self.damageCount {
                var changed = bytes
                for _ in 0..<4 {
                    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                    changed[Int(state >> 33) % bytes.count] = UInt8(truncatingIfNeeded: state >> 24)
                }
                _ = try? thumbnail(changed, type)
            }
            try expectNextIsServed()
        }

        @Test(arguments: pictures.indices)
        func `bytes of another format`(index: Int) throws {
            let (type, _) = Self.pictures[index]
            expectRefused(TestPicture().jpeg, type)
            expectRefused([0], type)
        }

        /// 60,000 by 60,000 pixels, claimed by a few bytes.
        @Test func `giant PNG`() throws {
            var bytes = TestPNG(width: 8, height: 8).bytes
            bytes.replaceSubrange(16..<24, with: [0, 0, 0xEA, 0x60, 0, 0, 0xEA, 0x60])
            bytes.replaceSubrange(29..<33, with: Self.checksum(bytes[12..<29]))
            expectRefused(bytes, .png)
            try expectNextIsServed()
        }

        @Test func `giant GIF`() throws {
            var bytes = testGIF(8, 8)
            // The frame's width and height stand behind its separator and two positions.
            let frame = try #require(bytes.lastIndex(of: 0x2C))
            bytes.replaceSubrange(frame + 5..<frame + 9, with: [0x60, 0xEA, 0x60, 0xEA])
            expectRefused(bytes, .gif)
            var screen = testGIF(8, 8)
            screen.replaceSubrange(6..<10, with: [0x60, 0xEA, 0x60, 0xEA])
            expectRefused(screen, .gif)
            try expectNextIsServed()
        }

        @Test func `giant TIFF`() throws {
            let bytes = TestTIFF(width: 8, height: 8).bytes
            let directory = 8 + 8 * 8 * 3
            var giant = bytes
            giant.replaceSubrange(directory + 10..<directory + 14, with: [0x60, 0xEA, 0, 0])
            giant.replaceSubrange(directory + 22..<directory + 26, with: [0x60, 0xEA, 0, 0])
            expectRefused(giant, .tiff)
            // The last directory is followed by itself.
            var endless = bytes
            endless.replaceSubrange(directory + 2 + 120..<directory + 126, with: [UInt8(directory), 0, 0, 0])
            _ = try thumbnail(endless, .tiff)
            try expectNextIsServed()
        }

        @Test func `giant WebP`() throws {
            // 16,383 by 16,383: the most that a lossless picture can claim.
            var bytes = testWebP(8, 8, isLossless: true)
            bytes.replaceSubrange(21..<25, with: [0xFE, 0xBF, 0xFF, 0x0F])
            expectRefused(bytes, .webp)
            try expectNextIsServed()
        }

        @Test(arguments: [(heif_compression_HEVC, MediaType.heic), (heif_compression_AV1, .avif)])
        func `giant HEIF`(format: heif_compression_format, type: MediaType) throws {
            var bytes = try #require(testHEIF(format, 64, 64))
            var position = 0
            while let found = Data(bytes)[position...].range(of: Data("ispe".utf8)) {
                bytes.replaceSubrange(
                    found.upperBound + 4..<found.upperBound + 12, with: [0, 0, 0xEA, 0x60, 0, 0, 0xEA, 0x60])
                position = found.upperBound
            }
            #expect(position > 0)
            expectRefused(bytes, type)
            try expectNextIsServed()
        }

        /// 50 KB that become 390 million pixels, all of them needed at once.
        @Test func `expanding PNG`() throws {
            let picture = TestPNG(width: 60_000, height: 6_500, kind: .gray, isInterlaced: true)
            let row = [UInt8](repeating: 0, count: 7_500)
            let bytes = picture.encode([[UInt8]](repeating: row, count: 6_500), bitDepth: 1)
            #expect(bytes.count < 1 << 20)
            let hasty = makeWorkers(deadlineMilliseconds: 300)
            // Slow machines do not finish it, fast ones may: nobody waits longer than the deadline.
            _ = try? hasty.makeThumbnail(
                of: MemorySource(bytes: bytes), type: .png, size: PictureSize(fitting: 64))
            try expectNextIsServed()
        }

        /// Extensions without end, and a frame whose pixels never come.
        @Test func `expanding GIF`() throws {
            let head = Array(testGIF(8, 8).prefix(25))
            let block = [UInt8](repeating: 0xFF, count: 256)
            let comment: [UInt8] = [0x21, 0xFE] + [[UInt8]](repeating: block, count: 4_000).joined()
            expectRefused(head + comment, .gif)
            expectRefused(head + [[UInt8]](repeating: [0x21, 0xFE, 1, 0, 0], count: 100_000).joined(), .gif)
            // 19,999 by 19,999, within the limits.
            expectRefused(head + [0x2C, 0, 0, 0, 0, 0x1F, 0x4E, 0x1F, 0x4E, 0, 2], .gif)
            try expectNextIsServed()
        }

        private static func checksum(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
            var crc: UInt32 = .max
            for byte in bytes {
                crc ^= UInt32(byte)
                for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0xEDB8_8320 : crc >> 1 }
            }
            return bigEndian(~crc)
        }
    }
}
