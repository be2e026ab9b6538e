import TestFixtures
import Testing

@testable import PhotoImaging

@Suite("Thumbnails: the preview that a camera embeds") struct EmbeddedPreviewTests {
    /// A JPEG with a thumbnail in its EXIF.
    private func jpeg(_ width: Int, _ height: Int, preview: [UInt8]) -> [UInt8] {
        let exif = TIFFBuilder(
            main: [.short(0x0112, 6)],
            next: [.data(0x0201, index: 0), .long(0x0202, preview.count)], data: [preview])
        return Picture.jpeg([Picture.exifSegment(exif.bytes)], width: width, height: height)
    }

    private func preview(_ width: Int, _ height: Int) -> [UInt8] {
        Picture.jpeg([Picture.segment(0xFE, [UInt8](repeating: 7, count: 80))], width: width, height: height)
    }

    /// A preview of another aspect ratio is not the photo: it was cropped since, or has bars.
    @Test(arguments: [
        (4000, 3000, 160, 120, true), (6000, 4000, 160, 107, true), (4032, 2268, 320, 180, true),
        (600, 600, 181, 256, false), (6000, 4000, 160, 120, false), (3000, 4000, 160, 120, false),
        (4000, 2250, 160, 120, false), (3000, 3000, 160, 120, false),
    ])
    func `a preview has the aspect ratio of its picture`(
        width: Int, height: Int, wide: Int, high: Int, isUsed: Bool
    ) throws {
        let small = preview(wide, high)
        let bytes = jpeg(width, height, preview: small)
        let range = embeddedPreview(in: MemoryByteSource(bytes))
        #expect((range != nil) == isUsed)
        if let range { #expect(Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)]) == small) }
    }

    /// A thumbnail with bars is passed over for the preview that the pictures of a raw file are made of.
    @Test(arguments: [(160, 120, 160, 107, false), (160, 107, 160, 107, true)])
    func `the smallest preview of a raw without bars`(
        wide: Int, high: Int, width: Int, height: Int, isSmallest: Bool
    ) throws {
        let small = preview(wide, high)
        let large = Picture.jpeg(
            [Picture.segment(0xFE, [UInt8](repeating: 7, count: 900))], width: 1620, height: 1080)
        let raw = TIFFBuilder(
            main: [.short(0x0112, 6), .subs(1), .raw(0xC612, type: 1, [1, 4, 0, 0])],
            next: [.data(0x0201, index: 0), .long(0x0202, small.count)],
            subs: [[.long(0x00FE, 1), .data(0x0201, index: 1), .long(0x0202, large.count)]],
            data: [small, large])
        let range = try #require(embeddedPreview(in: MemoryByteSource(raw.bytes)))
        #expect(range.count == (isSmallest ? small.count : large.count))
    }

    /// The size that counts is that of the crop, before the picture is turned.
    @Test func `a preview of a cropped HEIC`() throws {
        func crop(_ width: Int, _ height: Int) -> [UInt8] {
            var out = ByteBuilder()
            for value in [width, 1, height, 1, 0, 1, 0, 1] { out.u32(value) }
            return Picture.box("clap", out.bytes)
        }
        func hasPreview(_ transforms: [[UInt8]], _ preview: [UInt8]) -> Bool {
            let exif = TIFFBuilder(
                next: [.data(0x0201, index: 0), .long(0x0202, preview.count)], data: [preview])
            let bytes = Picture.heif("heic", exif: exif.bytes, xmp: [], transforms: transforms)
            return embeddedPreview(in: MemoryByteSource(bytes)) != nil
        }
        let turn = Picture.box("irot", [3])
        #expect(hasPreview([], preview(160, 120)))
        #expect(hasPreview([turn], preview(160, 120)))
        #expect(!hasPreview([turn], preview(120, 160)))
        #expect(!hasPreview([crop(3000, 3000)], preview(160, 120)))
        #expect(hasPreview([crop(3000, 3000), turn], preview(120, 120)))
        #expect(hasPreview([turn, crop(3024, 2016)], preview(160, 240)))
        #expect(!hasPreview([turn, crop(3024, 2016)], preview(240, 160)))
        #expect(!hasPreview([turn, crop(3024, 2016)], preview(160, 120)))
    }
}
