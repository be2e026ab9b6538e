import PhotoImaging
import TestSupport
import Testing
import VaultCatalogue

@testable import PhotoLibrary

/// Photos of which no picture can be made but by what is installed on the machine.
@Suite struct InstalledThumbnailerTests {
    private let video = [0, 0, 0, 16] + Array("ftypisom".utf8) + [0, 0, 0, 0] + Array("a video".utf8)

    @Test func thatNothingIsInstalledIsNotRemembered() throws {
        let (rig, maker) = try Rig.withStandIn()
        try rig.put("albums/a.mp4", video)
        let ino = try rig.ino("albums/a.mp4")
        #expect(try rig.ls("albums/.thumbs") == ["fast"])
        #expect(!rig.exists("albums/.thumbs/a.mp4.jpg"))
        #expect(!rig.exists("albums/.thumbs/stack.jpg"))
        #expect(maker.orders.isEmpty)
        #expect(try rig.thumbnailRows(of: ino).isEmpty)

        maker.picturedTypes.insert(.mp4)
        #expect(try rig.ls("albums/.thumbs") == ["a.mp4.jpg", "fast"])
        let picture = try rig.get("albums/.thumbs/a.mp4.jpg")
        #expect(maker.orders.map(\.source) == [video])
        #expect(try rig.thumbnailRows(of: ino).map(\.length) == [Int64(picture.count)])

        // What was made is there for good.
        maker.picturedTypes.remove(.mp4)
        #expect(try rig.ls("albums/.thumbs") == ["a.mp4.jpg", "fast"])
        #expect(try rig.get("albums/.thumbs/a.mp4.jpg") == picture)
    }

    @Test func whatNoneCouldDecodeIsRemembered() throws {
        let (rig, maker) = try Rig.withStandIn()
        maker.picturedTypes.insert(.mp4)
        try rig.put("albums/a.mp4", video + Array("undecodable".utf8))
        #expect(!rig.exists("albums/.thumbs/a.mp4.jpg"))
        #expect(!rig.exists("albums/.thumbs/512/a.mp4.jpg"))
        #expect(maker.orders.count == 1)
        #expect(try rig.ls("albums/.thumbs") == ["fast"])
        #expect(try rig.thumbnailRows(of: rig.ino("albums/a.mp4")).map(\.length) == [-1])
    }
}
