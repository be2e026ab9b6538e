import CTurboJPEG
import Foundation
import TestThreads
import Testing

@testable import PhotoImaging

/// One after another: they count processes and descriptors.
@Suite("Decoders: obscura-worker", .serialized, .waiting) struct WorkerTests {}

extension WorkerTests {
    @Suite("Decoders: JPEG") struct PictureTests {
        let workers = makeWorkers()

        private func decoded(_ picture: TestPicture, box: Int = 256) throws -> DecodedThumbnail {
            try #require(DecodedThumbnail(try workers.thumbnail(picture.jpeg, box: box)))
        }

        @Test(arguments: [
            (400, 300, 256, 256, 192), (300, 400, 256, 192, 256), (4000, 3000, 256, 256, 192),
            (256, 256, 256, 256, 256), (257, 257, 256, 256, 256), (100, 50, 256, 100, 50), (1, 1, 256, 1, 1),
            (6000, 4, 256, 256, 1), (3, 6000, 256, 1, 256), (65000, 1, 256, 256, 1), (1, 65000, 256, 1, 256),
            (1000, 999, 100, 100, 100), (1003, 701, 512, 512, 358), (2000, 1500, 1, 1, 1),
            (1500, 1100, 1024, 1024, 751), (511, 511, 2, 2, 2),
        ])
        func `a picture fits the box`(width: Int, height: Int, box: Int, wide: Int, high: Int) throws {
            let thumbnail = try decoded(TestPicture(width: width, height: height), box: box)
            #expect(thumbnail.size == PixelSize(width: wide, height: high))
        }

        @Test func `a picture fits a box that is not square`() throws {
            let source = MemorySource(bytes: TestPicture(width: 400, height: 300, orientation: 6).jpeg)
            let size = PictureSize(width: 200, height: 100)
            let jpeg = try workers.makeThumbnail(of: source, type: .jpeg, size: size)
            #expect(DecodedThumbnail(jpeg)?.size == PixelSize(width: 75, height: 100))
        }

        /// The tag says where the stored picture's first row and first column are seen (CIPA DC-008).
        @Test(arguments: [
            (1, "top", "left"), (2, "top", "right"), (3, "bottom", "right"), (4, "bottom", "left"),
            (5, "left", "top"), (6, "right", "top"), (7, "right", "bottom"), (8, "left", "bottom"),
        ])
        func `a turned picture is upright`(value: UInt16, firstRow: String, firstColumn: String) throws {
            let thumbnail = try decoded(TestPicture(width: 400, height: 300, orientation: value))
            let isTransposed = value >= 5
            #expect(
                thumbnail.size == PixelSize(width: isTransposed ? 192 : 256, height: isTransposed ? 256 : 192)
            )
            let opposite = ["top": "bottom", "bottom": "top", "left": "right", "right": "left"]
            for (row, colors) in Corner.stored.enumerated() {
                for (column, color) in colors.enumerated() {
                    let sides = [
                        row == 0 ? firstRow : opposite[firstRow]!,
                        column == 0 ? firstColumn : opposite[firstColumn]!,
                    ]
                    let seen = thumbnail.corners[sides.contains("top") ? 0 : 1][
                        sides.contains("left") ? 0 : 1]
                    #expect(seen == color)
                }
            }
        }

        @Test(arguments: [0, 9, 65535] as [UInt16])
        func `an invalid orientation is none`(value: UInt16) throws {
            let thumbnail = try decoded(TestPicture(orientation: value))
            #expect(thumbnail.corners == Corner.stored)
        }

        @Test func `the first of two orientations counts`() throws {
            let picture = TestPicture(orientation: 6, segments: TestPicture.exif(3))
            #expect(try decoded(picture).corners == [[.blue, .red], [.white, .green]])
        }

        @Test func `a profile is kept`() throws {
            let parts = (1...3).map {
                TestPicture.profilePart(
                    $0, of: 3, byteCount: $0 == 3 ? 1234 : 65519, profileBytes: 2 * 65519 + 1234)
            }
            // Out of order in the file, in order in the thumbnail.
            let jpeg = try workers.thumbnail(TestPicture(segments: parts[1] + parts[0] + parts[2]).jpeg)
            let thumbnail = try #require(DecodedThumbnail(jpeg))
            #expect(thumbnail.corners == Corner.stored)
            #expect(Data(jpeg).range(of: Data(parts[0] + parts[1] + parts[2]))?.lowerBound == 20)
        }

        /// Profiles that are shorter than they declare, that are for other channels, or that have half a header.
        @Test(arguments: [(300, 301, "RGB "), (300, 3144, "RGB "), (300, 300, "CMYK"), (100, 100, "RGB ")])
        func `a profile that is cut short or not the picture's is dropped`(
            byteCount: Int, claimed: Int, space: String
        ) throws {
            func profiled(_ part: [UInt8]) throws -> Bool {
                let jpeg = try workers.thumbnail(TestPicture(segments: part).jpeg)
                #expect(try #require(DecodedThumbnail(jpeg)).corners == Corner.stored)
                return Data(jpeg).range(of: Data("ICC_PROFILE".utf8)) != nil
            }
            #expect(try profiled(TestPicture.profilePart(1, of: 1, byteCount: 300)))
            #expect(
                try !profiled(
                    TestPicture.profilePart(
                        1, of: 1, byteCount: byteCount, profileBytes: claimed, space: space)))
        }

        @Test func `a profile with a part missing is dropped`() throws {
            let part = TestPicture.profilePart(1, of: 2, byteCount: 100)
            let jpeg = try workers.thumbnail(TestPicture(segments: part).jpeg)
            #expect(Data(jpeg).range(of: Data("ICC_PROFILE".utf8)) == nil)
        }

        @Test func `inks become colours without their profile`() throws {
            let part = TestPicture.profilePart(1, of: 1, byteCount: 100)
            let jpeg = try workers.thumbnail(TestPicture(kind: .cmyk, segments: part).jpeg)
            #expect(try #require(DecodedThumbnail(jpeg)).corners == Corner.stored)
            #expect(Data(jpeg).range(of: Data("ICC_PROFILE".utf8)) == nil)
        }

        @Test func `gray stays gray`() throws {
            let thumbnail = try decoded(TestPicture(kind: .gray, orientation: 2))
            #expect(thumbnail.isGray)
            #expect(thumbnail.pixel(64, 48)[0] < 10)  // mirrored: green's 0 is on the left
            #expect(thumbnail.pixel(192, 48)[0] > 245)
        }

        @Test(arguments: [TJSAMP_444, TJSAMP_422, TJSAMP_440, TJSAMP_411].map(\.rawValue))
        func `all subsamplings`(value: UInt32) throws {
            #expect(try decoded(TestPicture(subsampling: TJSAMP(value))).corners == Corner.stored)
        }

        @Test func `progressive JPEG`() throws {
            #expect(
                try decoded(TestPicture(width: 1600, height: 1200, isProgressive: true)).corners
                    == Corner.stored)
        }

        /// Lines one pixel wide must become an even grey, not a pattern.
        @Test func `nothing aliases`() throws {
            let picture = TestPicture(width: 700, height: 500, kind: .gray)
            let lines = (0..<700 * 500).map { $0 % 2 == 0 ? UInt8(255) : 0 }
            let jpeg = try workers.thumbnail(picture.encode(lines))
            let thumbnail = try #require(DecodedThumbnail(jpeg))
            let inner = (8..<248).map { Int(thumbnail.pixel($0, 90)[0]) }
            #expect(inner.allSatisfy { abs($0 - 128) < 12 })
        }

        @Test(arguments: [false, true])
        func `a truncated picture is decoded as far as it goes`(isProgressive: Bool) throws {
            let jpeg = TestPicture(width: 1600, height: 1200, isProgressive: isProgressive).jpeg
            let thumbnail = try decodedPrefix(of: jpeg, part: 0.8)
            #expect(thumbnail.size == PixelSize(width: 256, height: 192))
            #expect(thumbnail.corners[0] == Corner.stored[0])
        }

        private func decodedPrefix(of jpeg: [UInt8], part: Double) throws -> DecodedThumbnail {
            let prefix = Array(jpeg.prefix(Int(Double(jpeg.count) * part)))
            return try #require(DecodedThumbnail(try workers.thumbnail(prefix)))
        }

        @Test func `every short prefix is answered`() throws {
            let jpeg = TestPicture(width: 64, height: 64, orientation: 6).jpeg
            for count in stride(from: 1, to: jpeg.count, by: 13) {
                _ = try? workers.thumbnail(Array(jpeg.prefix(count)))
            }
            #expect(try decoded(TestPicture()).corners == Corner.stored)
        }

        @Test func `garbage is refused`() throws {
            var random = SystemRandomNumberGenerator()
            let noise = (0..<10_000).map { _ in UInt8.random(in: 0...255, using: &random) }
            for bytes in [
                [], [0], Array("not a picture".utf8), [0xFF, 0xD8], [0xFF, 0xD8, 0xFF] + noise, noise,
            ] {
                #expect(throws: ThumbnailError.undecodable) { try workers.thumbnail(bytes) }
            }
        }

        @Test(arguments: [(60_000, 60_000), (65_535, 65_535), (0, 100)])
        func `an impossible size is refused`(width: Int, height: Int) throws {
            var jpeg = TestPicture(width: 64, height: 64).jpeg
            let frame = try #require(Data(jpeg).range(of: Data([0xFF, 0xC0]))).lowerBound
            jpeg.replaceSubrange(
                frame + 5..<frame + 9,
                with: [UInt8(height >> 8), UInt8(height & 0xFF), UInt8(width >> 8), UInt8(width & 0xFF)])
            #expect(throws: ThumbnailError.undecodable) { try workers.thumbnail(jpeg) }
        }

        /// 19,000 × 19,000 progressive pixels need 1 GB of coefficients: more than the worker may have.
        @Test func `a picture beyond the memory limit is refused`() throws {
            var jpeg = TestPicture(width: 64, height: 64, isProgressive: true).jpeg
            let frame = try #require(Data(jpeg).range(of: Data([0xFF, 0xC2]))).lowerBound
            jpeg.replaceSubrange(frame + 5..<frame + 9, with: [0x4A, 0x38, 0x4A, 0x38])
            #expect(throws: ThumbnailError.undecodable) { try workers.thumbnail(jpeg) }
            #expect(try decoded(TestPicture()).corners == Corner.stored)
        }

        @Test func `twelve bits a sample are refused`() throws {
            var jpeg = TestPicture(width: 64, height: 64).jpeg
            let frame = try #require(Data(jpeg).range(of: Data([0xFF, 0xC0]))).lowerBound
            jpeg[frame + 4] = 12
            #expect(throws: ThumbnailError.undecodable) { try workers.thumbnail(jpeg) }
        }

        @Test func `other formats, and boxes beyond the limits, are refused`() throws {
            let source = MemorySource(bytes: TestPicture().jpeg)
            #expect(throws: ThumbnailError.undecodable) {
                try workers.makeThumbnail(of: source, type: .mp4, box: 256)
            }
            for box in [0, -1, 4097, .max] {
                #expect(throws: ThumbnailError.undecodable) {
                    try workers.makeThumbnail(of: source, type: .jpeg, box: box)
                }
            }
        }

        @Test func `a source that fails says nothing about the picture`() {
            #expect(throws: ThumbnailError.workerFailed) {
                try workers.makeThumbnail(of: FailingSource(), type: .jpeg, box: 256)
            }
        }
    }
}
