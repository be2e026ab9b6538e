import Foundation
import Testing

@testable import PhotoImaging

extension WorkerTests {
    /// Stacks and contact sheets.
    @Suite("Decoders: covers and contact sheets") struct CompositionTests {
        let workers = makeWorkers()

        private func thumbnails(_ count: Int) -> [[UInt8]] {
            (0..<count).map { index in
                index % 2 == 0
                    ? TestPicture(width: 256, height: 192).jpeg : TestPicture(width: 192, height: 256).jpeg
            }
        }

        private func stack(_ pictures: [[UInt8]], _ width: Int, _ height: Int) throws -> DecodedThumbnail {
            let size = PictureSize(width: width, height: height)
            return try #require(DecodedThumbnail(try workers.composeStack(pictures, size: size)))
        }

        /// Nothing is clipped: the outermost pixels stay white, but for what JPEG makes of edges near them.
        @Test(arguments: [(256, 256, 5), (256, 256, 1), (128, 96, 4), (300, 512, 7), (64, 64, 5)])
        func `a cover leaves a margin`(width: Int, height: Int, count: Int) throws {
            let found = try stack(thumbnails(count), width, height)
            #expect(found.size == PixelSize(width: width, height: height))
            let rim =
                (0..<width).flatMap { [found.pixel($0, 0), found.pixel($0, height - 1)] }
                + (0..<height).flatMap { [found.pixel(0, $0), found.pixel(width - 1, $0)] }
            #expect(rim.allSatisfy { $0.allSatisfy { $0 >= 240 } })
        }

        /// The first picture lies on top, straight, its colours where they were, with a white border and a
        /// shadow.
        @Test func `a cover shows the first photo`() throws {
            let found = try stack(thumbnails(1), 256, 256)
            #expect(found.corners == Corner.stored)
            // Going left from the middle of red's edge: red, border, shadow, white.
            let y = 100
            let red = try #require((0..<128).first { found.pixel($0, y)[1] < 60 })
            #expect(found.pixel(red - 3, y).allSatisfy { $0 > 235 })
            #expect((0..<red).contains { found.pixel($0, y)[0] < 225 })
            let below = try #require((0..<128).last { found.pixel(128 - 20, 255 - $0)[1] > 250 })
            #expect(below > 0)
        }

        @Test func `a cover leaves out photos that cannot be decoded`() throws {
            let pictures = thumbnails(1)
            #expect(try stack([[1, 2, 3]] + pictures, 256, 256).rgb.count == 256 * 256 * 3)
            #expect(throws: ThumbnailError.undecodable) { try stack([], 256, 256) }
            #expect(throws: ThumbnailError.undecodable) { try stack([[1, 2, 3], []], 256, 256) }
            #expect(try stack(pictures, 1, 1).size == PixelSize(width: 1, height: 1))
        }

        private func sheet(_ labels: [String], title: String = "May") throws -> DecodedThumbnail {
            let pictures = zip(thumbnails(labels.count), labels).map { (jpeg: $0, label: $1) }
            return try #require(DecodedThumbnail(try workers.composeSheet(pictures, title: title)))
        }

        @Test func `a contact sheet is an even grid`() throws {
            let found = try sheet(["a.jpg", "b.jpg", "c.jpg", "d.jpg", "e.jpg"])
            let layout = SheetLayout(count: 5)
            #expect(found.size == layout.size && layout.columns == 3 && layout.rows == 2)
            for index in 0..<5 {
                let (x, y) = layout.origin(of: index)
                // Red in the upper left of each, whichever way it lies.
                let pixel = found.pixel(x + 60, y + 60)
                #expect(pixel[0] > 200 && pixel[1] < 60)
            }
            let (x, y) = layout.origin(of: 5)
            #expect(found.pixel(x + 60, y + 60).allSatisfy { $0 > 245 })
        }

        @Test func `contact sheets fit the limits`() {
            for count in 0...CompositionRequest.sheetTilesMax {
                let layout = SheetLayout(count: count)
                #expect(layout.columns * layout.rows >= count)
                #expect(max(layout.size.width, layout.size.height) <= WorkerProtocol.boxPixelsMax)
            }
        }

        @Test func `a contact sheet of no photos`() {
            #expect(throws: ThumbnailError.undecodable) { try sheet([]) }
        }
    }
}
