import LibraryFixtures
import PhotoImaging
import TestSupport
import Testing
import VaultCatalogue

@testable import PhotoLibrary

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

    /// The machine may have been too busy.
    @Test func `a photo on which a program hangs is tried once in each mount`() throws {
        let (fixture, maker) = try Fixture.withStandIn()
        maker.decodableTypes.insert(.mp4)
        maker.hanging = [video]
        try fixture.put("albums/a.mp4", video)
        for _ in 0..<3 { #expect(!fixture.exists("albums/.thumbs/a.mp4.jpg")) }
        #expect(maker.orders.count == 1)
        #expect(try fixture.thumbnailRows(of: fixture.ino("albums/a.mp4")).isEmpty)
        let next = StandInMaker()
        next.decodableTypes.insert(.mp4)
        try fixture.close()
        try fixture.reopen { $0.pictureMaker = next }
        #expect(fixture.exists("albums/.thumbs/a.mp4.jpg"))
    }
}
