import TestFixtures
import Testing

@testable import PhotoImaging

/// Pictures of many tiles: phones of 200 megapixels code them so, and write the list of the items last.
@Suite("Days: pictures of many tiles") struct TiledPictureTests {
    /// A HEIC with Exif and the items' list behind the coded tiles, too far for the first read.
    private func file(tileCount: Int, hasWideNumbers: Bool = false) -> [UInt8] {
        let exif = [0, 0, 0, 6] + Array("Exif\0\0".utf8) + Picture.camera().bytes
        let start = Picture.ftyp("heic", ["mif1"])
        let tiles = [UInt8](repeating: 0x55, count: 200_000)
        let data = Picture.box("mdat", tiles + exif)
        let (grid, metadata) = (tileCount + 1, tileCount + 2)

        func box(_ type: String, _ fill: (inout ByteBuilder) -> Void) -> [UInt8] {
            var out = ByteBuilder()
            fill(&out)
            return Picture.box(type, out.bytes)
        }
        func number(_ value: Int, in out: inout ByteBuilder) {
            if hasWideNumbers { out.u32(value) } else { out.u16(value) }
        }
        let information = box("iinf") { out in
            out.u32(0)
            out.u16(metadata)
            for id in 1...metadata {
                let type = id == grid ? "grid" : id == metadata ? "Exif" : "hvc1"
                out.add(
                    box("infe") { entry in
                        entry.u32((hasWideNumbers ? 3 : 2) << 24)
                        number(id, in: &entry)
                        entry.u16(0)
                        entry.add(type + "\0")
                    })
            }
        }
        let references = box("iref") { out in
            out.u32(hasWideNumbers ? 1 << 24 : 0)
            out.add(
                box("dimg") { entry in
                    number(grid, in: &entry)
                    entry.u16(tileCount)
                    for id in 1...tileCount { number(id, in: &entry) }
                })
        }
        let sizes = [(512, 512), (16320, 12240)].map { size in
            box("ispe") { out in
                for value in [0, size.0, size.1] { out.u32(value) }
            }
        }
        let properties = sizes[0] + sizes[1] + Picture.box("irot", [3])
        let associations = box("ipma") { out in
            out.u32(hasWideNumbers ? 1 << 24 : 0)
            out.u32(grid)
            for id in 1...grid {
                number(id, in: &out)
                out.add(id == grid ? [2, 2, 3] : [1, 1])
            }
        }
        let locations = box("iloc") { out in
            out.add([UInt8(hasWideNumbers ? 2 : 1), 0, 0, 0, 0x44, 0])
            number(metadata, in: &out)
            for id in 1...metadata {
                number(id, in: &out)
                for value in [0, 0, 1] { out.u16(value) }
                out.u32(start.count + 8 + (id == metadata ? tiles.count : 0))
                out.u32(id == metadata ? exif.count : 256)
            }
        }
        let primary = box("pitm") { out in
            out.u32(hasWideNumbers ? 1 << 24 : 0)
            number(grid, in: &out)
        }
        let meta =
            Picture.box("hdlr", [UInt8](repeating: 0, count: 24)) + primary + information + references
            + Picture.box("iprp", Picture.box("ipco", properties) + associations) + locations
        return start + data + Picture.box("meta", [0, 0, 0, 0] + meta)
    }

    /// Reads are limited: looking for the properties of each tile used them up before the date was reached. So were the
    /// boxes that were looked at: 1,024.
    @Test(arguments: [1, 48, 768, 2000, 10_000], [false, true])
    func `the date and the size do not depend on the number of tiles`(tileCount: Int, hasWideNumbers: Bool)
        throws
    {
        let bytes = file(tileCount: tileCount, hasWideNumbers: hasWideNumbers)
        let facts = try #require(readFacts(MemoryByteSource(bytes)))
        #expect(facts.type == .heic && facts.orientation == 6)
        #expect(facts.width == 16320 && facts.height == 12240)
        let date = facts.dates.first { $0.source == .dateTimeOriginal }
        #expect(date?.time == civil(2017, 2, 18, 9, 41, 27, 250_000_000))
        let geometry = HEIFGeometry(MemoryByteSource(bytes))
        #expect(!geometry.hasTransformedTiles(UInt32(tileCount + 1)))
    }
}
