import LibraryFixtures
import PhotoImaging
import PhotoLibrary
import TestSupport
import Testing
import VaultCatalogue

/// Photos that only installed programs can decode.
@Suite("Thumbnails: installed programs") struct InstalledThumbnailerTests {
    private let video = [0, 0, 0, 16] + Array("ftypisom".utf8) + [0, 0, 0, 0] + Array("a video".utf8)

    @Test func `a photo that no installed program takes is tried again`() throws {
        let (fixture, maker) = try Fixture.withStandIn()
        try fixture.put("albums/a.mp4", video)
        let ino = try fixture.ino("albums/a.mp4")
        #expect(try fixture.ls("albums/.thumbs") == ["fast"])
        #expect(!fixture.exists("albums/.thumbs/a.mp4.jpg"))
        #expect(!fixture.exists("albums/.thumbs/stack.jpg"))
        #expect(maker.orders.isEmpty)
        #expect(try fixture.thumbnailRows(of: ino).isEmpty)

        maker.decodableTypes.insert(.mp4)
        #expect(try fixture.ls("albums/.thumbs") == ["a.mp4.jpg", "fast"])
        let picture = try fixture.get("albums/.thumbs/a.mp4.jpg")
        #expect(maker.orders.map(\.source) == [video])
        #expect(try fixture.thumbnailRows(of: ino).map(\.length) == [Int64(picture.count)])

        // A picture that was made stays.
        maker.decodableTypes.remove(.mp4)
        #expect(try fixture.ls("albums/.thumbs") == ["a.mp4.jpg", "fast"])
        #expect(try fixture.get("albums/.thumbs/a.mp4.jpg") == picture)
    }

    @Test func `a photo that no program could decode is remembered`() throws {
        let (fixture, maker) = try Fixture.withStandIn()
        maker.decodableTypes.insert(.mp4)
        try fixture.put("albums/a.mp4", video + Array("undecodable".utf8))
        #expect(!fixture.exists("albums/.thumbs/a.mp4.jpg"))
        #expect(!fixture.exists("albums/.thumbs/512/a.mp4.jpg"))
        #expect(maker.orders.count == 1)
        #expect(try fixture.ls("albums/.thumbs") == ["fast"])
        #expect(try fixture.thumbnailRows(of: fixture.ino("albums/a.mp4")).map(\.length) == [-1])
    }
}
