import Foundation
import LibraryFixtures
import LinuxIO
import PhotoImaging
import TestSupport
import Testing
import VaultCatalogue

@testable import FileRequests
@testable import PhotoLibrary
@testable import VaultStore

/// Which pictures are made, from which source, how often, and which are kept.
@Suite("Thumbnails: made once and kept") struct ThumbnailMakingTests {
    @Test func `each picture is made once`() throws {
        let (fixture, maker) = try Fixture.withStandIn()
        try fixture.put("albums/a.jpg", jpeg())
        for _ in 0..<3 {
            _ = try fixture.get("albums/.thumbs/a.jpg")
            _ = try fixture.get("moments/2024-05-01/.thumbs/512/a.jpg")
        }
        #expect(maker.orders.map(\.size) == [PictureSize(fitting: 256), PictureSize(fitting: 512)])
    }

    @Test func `callers at the same time share one decode`() throws {
        let (fixture, maker) = try Fixture.withStandIn()
        try fixture.put("albums/a.jpg", jpeg())
        let photo = try fixture.ino("albums/a.jpg")
        maker.holdUp()
        let cancellations = (0..<4).map { _ in
            Background {
                (try? fixture.thumbnails.thumbnail(of: photo, .sized(PictureSize(fitting: 512))).byteCount)
                    ?? 0
            }
        }
        try #require(eventually { !maker.orders.isEmpty })
        maker.letGo()
        let found = cancellations.map { $0.result() }
        #expect(Set(found).count == 1 && found[0] > 0)
        #expect(maker.orders.count == 1)
    }

    @Test func `a smaller one is made of a larger one`() throws {
        let (fixture, maker) = try Fixture.withStandIn()
        let photo = jpeg()
        try fixture.put("albums/a.jpg", photo)
        let standard = try fixture.get("albums/.thumbs/a.jpg")
        _ = try fixture.get("albums/.thumbs/100/a.jpg")
        #expect(maker.orders.last?.source == standard)
        // Not of one that is smaller on one side, nor where it is cropped, nor anything larger.
        for name in ["300x100", "64x64-fill", "512"] {
            _ = try fixture.get("albums/.thumbs/\(name)/a.jpg")
            #expect(maker.orders.last?.source == photo, "\(name)")
        }
        let large = try fixture.get("albums/.thumbs/512/a.jpg")
        _ = try fixture.get("albums/.thumbs/300/a.jpg")
        #expect(maker.orders.last?.source == large)
        let count = maker.orders.count
        _ = try fixture.get("albums/.thumbs/512/a.jpg")
        #expect(maker.orders.count == count)
    }

    @Test func `the standard one is kept, others if they are small beside the photo`() throws {
        let (fixture, maker) = try Fixture.withStandIn()
        let kinds = ["256", "128", "512", "1024", "300"]
        // Its share pays for three pictures of a sector each, and their rows.
        try fixture.put("albums/large.jpg", jpeg() + noise(160_000))
        try fixture.put("albums/small.jpg", jpeg(more: 1))
        maker.paddingBytes = 150
        for kind in kinds {
            _ = try fixture.get("albums/.thumbs/\(kind)/large.jpg")
            _ = try fixture.get("albums/.thumbs/\(kind)/small.jpg")
        }
        let kept = try ["large.jpg", "small.jpg"].map { name in
            let ino = try fixture.ino("albums/" + name)
            return try fixture.thumbnailRows(of: ino).map(\.width).sorted()
        }
        #expect(kept == [[128, 256, 512], [256]])
        try fixture.remount()
        try fixture.rm("moments/2024-05-01/large.jpg")
        try fixture.rm("moments/2024-05-01/small.jpg")
        #expect(fixture.usedBytes == 0)
        try fixture.expectNothingLeft()
    }

    @Test func `a photo that cannot be decoded is tried once for all sizes`() throws {
        let (fixture, maker) = try Fixture.withStandIn()
        try fixture.put("albums/a.jpg", undecodable)
        for name in ["512/a.jpg", "a.jpg", "128/a.jpg", "fast/a.jpg", "stack.jpg", "sheet.jpg"] {
            #expect(!fixture.exists("albums/.thumbs/" + name))
        }
        #expect(maker.orders.count == 1)
        // Other bytes are tried again.
        try fixture.put("albums/a.jpg", jpeg(more: 1))
        #expect(fixture.exists("albums/.thumbs/512/a.jpg"))
    }

    /// As of a picture that only fits in a worker's memory when it is made small at once.
    @Test func `a picture that is kept is not lost for a larger one`() throws {
        let (fixture, maker) = try Fixture.withStandIn()
        maker.sideMax = 256
        try fixture.put("albums/a.jpg", jpeg())
        _ = try fixture.get("albums/.thumbs/a.jpg")
        for _ in 0..<2 { #expect(!fixture.exists("albums/.thumbs/1024/a.jpg")) }
        #expect(maker.orders.count == 2)
        #expect(fixture.exists("albums/.thumbs/a.jpg"))
        try fixture.remount()
        #expect(fixture.exists("albums/.thumbs/a.jpg"))
    }

    /// The copy in a HEIC serves small pictures alone.
    @Test func `a large picture of a HEIC says nothing of its small ones`() throws {
        let (fixture, maker) = try Fixture.withStandIn()
        maker.sideMax = 256
        try fixture.put("albums/a.heic", [0, 0, 0, 16] + Array("ftypheic".utf8) + [0, 0, 0, 0])
        for _ in 0..<2 { #expect(!fixture.exists("albums/.thumbs/1024/a.heic.jpg")) }
        #expect(maker.orders.count == 1)
        #expect(fixture.exists("albums/.thumbs/a.heic.jpg"))
    }

    @Test func `a read-only mount remembers for as long as it lasts`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/a.jpg", undecodable)
        try fixture.close()
        let maker = StandInMaker()
        try fixture.reopen {
            $0.readOnly = true
            $0.pictureMaker = maker
        }
        for _ in 0..<3 {
            for name in ["a.jpg", "stack.jpg", "sheet.jpg"] {
                #expect(!fixture.exists("albums/.thumbs/" + name))
            }
        }
        #expect(maker.orders.count == 1)
    }

    private var undecodable: [UInt8] {
        var bytes = jpeg()
        bytes.insert(contentsOf: [0xFF, 0xFE, 0, 13] + Array("undecodable".utf8), at: 2)
        return bytes
    }

    /// A composition that failed is not tried again before something changed.
    @Test func `a failed composition is remembered until its photos change`() throws {
        let (fixture, maker) = try Fixture.withStandIn()
        maker.failsCompositions = true
        try fixture.put("albums/a.jpg", jpeg())
        for _ in 0..<3 { #expect(!fixture.exists("albums/.thumbs/stack.jpg")) }
        #expect(maker.compositions == 1)
        maker.failsCompositions = false
        #expect(!fixture.exists("albums/.thumbs/stack.jpg"))
        try fixture.put("albums/b.jpg", jpeg(more: 1))
        #expect(fixture.exists("albums/.thumbs/stack.jpg"))
        #expect(maker.compositions == 2)
        // Where no photo is, nothing is asked for.
        try fixture.mkdir("albums/none")
        #expect(!fixture.exists("albums/none/.thumbs/stack.jpg"))
        #expect(maker.compositions == 2)
    }

    @Test func `an edit shows at the next stat and gives the room back`() throws {
        let (fixture, _) = try Fixture.withStandIn()
        try fixture.put("albums/a.jpg", jpeg())
        let kinds = ["", "512/", "64x48-fill/", "fast/"]
        let before = try kinds.map { try fixture.get("albums/.thumbs/\($0)a.jpg") }
        let ino = try fixture.ino("albums/a.jpg")
        let handle = try fixture.open("albums/a.jpg")
        try fixture.write(handle, jpeg(more: 5))
        try fixture.close(handle)
        #expect(try fixture.thumbnailRows(of: ino).isEmpty)
        for (kind, old) in zip(kinds, before) {
            let path = "albums/.thumbs/\(kind)a.jpg"
            #expect(try fixture.stat(path).size == UInt64(fixture.get(path).count))
            #expect(try fixture.get(path) != old, "\(kind)")
        }
    }

    @Test func `renaming, re-dating and removing keep or drop a picture`() throws {
        let (fixture, _) = try Fixture.withStandIn()
        try fixture.put("albums/a.jpg", jpeg())
        let picture = try fixture.get("albums/.thumbs/512/a.jpg")
        try fixture.mv("albums/a.jpg", "albums/b.jpg")
        #expect(!fixture.exists("albums/.thumbs/512/a.jpg"))
        #expect(try fixture.get("albums/.thumbs/512/b.jpg") == picture)
        try fixture.mkdir("moments/2020-01-02")
        try fixture.mv("moments/2024-05-01/b.jpg", "moments/2020-01-02/a.jpg")
        #expect(try fixture.get("moments/2020-01-02/.thumbs/512/a.jpg") == picture)
        try fixture.utimes("albums/b.jpg", modified: 1_400_000_000)
        #expect(try fixture.stat("albums/.thumbs/512/b.jpg").modified == Timestamp(seconds: 1_400_000_000))
        try fixture.rm("moments/2020-01-02/a.jpg")
        #expect(!fixture.exists("albums/.thumbs"))
        #expect(!fixture.exists(".thumbs/moments/2020-01-02/512/a.jpg"))
    }

    @Test func `a photo that changes while its picture is made is decoded again`() throws {
        let (fixture, maker) = try Fixture.withStandIn()
        try fixture.put("albums/a.jpg", jpeg())
        let photo = try fixture.ino("albums/a.jpg")
        maker.holdUp()
        let cancellation = Background {
            (try? fixture.thumbnails.thumbnailBytes(of: photo, .standard)) ?? []
        }
        try #require(eventually { !maker.orders.isEmpty })
        try fixture.put("albums/a.jpg", jpeg(more: 5))
        maker.letGo()
        let bytes = cancellation.result()
        #expect(maker.orders.count == 2)
        #expect(maker.orders.last?.source == jpeg(more: 5))
        #expect(try fixture.get("albums/.thumbs/a.jpg") == bytes)
    }

    @Test func `the last room is left to photos`() throws {
        let (fixture, _) = try Fixture.withStandIn()
        try fixture.put("albums/a.jpg", jpeg())
        var number = 0
        while fixture.space.sectors.capacity.available >= fixture.space.sectors.capacity.total / 32 {
            try fixture.put("albums/\(number).bin", noise(1 << 20, seed: number + 1))
            number += 1
        }
        let picture = try fixture.get("albums/.thumbs/a.jpg")
        #expect(try fixture.thumbnailRows(of: fixture.ino("albums/a.jpg")).isEmpty)
        for done in 0..<number { try fixture.rm("albums/\(done).bin") }
        try fixture.library.fsyncDirectory(fixture.library.openDirectory(1))
        _ = try fixture.get("albums/.thumbs/512/a.jpg")
        #expect(try fixture.get("albums/.thumbs/a.jpg") == picture)
    }

    @Test func `a read-only mount shows pictures and keeps none`() throws {
        let (fixture, _) = try Fixture.withStandIn()
        try fixture.put("albums/a.jpg", jpeg())
        try fixture.close()
        let maker = StandInMaker()
        try fixture.reopen {
            $0.readOnly = true
            $0.pictureMaker = maker
        }
        for _ in 0..<2 { _ = try fixture.get("albums/.thumbs/a.jpg") }
        #expect(maker.orders.count == 1)
    }

    @Test func `the directory has a stack and a sheet of its newest`() throws {
        let (fixture, maker) = try Fixture.withStandIn()
        try fixture.mkdir("albums/Trip")
        for number in 1...7 {
            try fixture.put("albums/Trip/\(number).jpg", jpeg("2024-05-0\(number)", more: number))
        }
        try fixture.put("albums/Trip/notes.txt", [1])
        let stack = try fixture.get("albums/Trip/.thumbs/stack.jpg")
        let newest = try fixture.get("albums/Trip/.thumbs/7.jpg")
        #expect(String(decoding: stack, as: UTF8.self) == "stack of 5 \(newest.hashValue)")
        let sheet = try fixture.get("albums/Trip/.thumbs/sheet.jpg")
        #expect(
            String(decoding: sheet, as: UTF8.self)
                == "sheet Trip: 7.jpg 6.jpg 5.jpg 4.jpg 3.jpg 2.jpg 1.jpg")
        #expect(try fixture.stat(".thumbs/albums/Trip/sheet.jpg").size == UInt64(sheet.count))
        #expect(maker.compositions == 2)
        try fixture.mv("albums/Trip/7.jpg", "albums/Trip/new.jpg")
        try fixture.rm("albums/Trip/6.jpg")
        try fixture.put("albums/Trip/5.jpg", jpeg("2023-01-01", more: 50))
        #expect(
            String(decoding: try fixture.get("albums/Trip/.thumbs/sheet.jpg"), as: UTF8.self)
                == "sheet Trip: new.jpg 4.jpg 3.jpg 2.jpg 1.jpg 5.jpg")
        // A photo of that name comes first.
        try fixture.put("albums/Trip/stack.jpg", jpeg(more: 99))
        #expect(try fixture.get("albums/Trip/.thumbs/stack.jpg").starts(with: [0xFF, 0xD8]))
    }
}
