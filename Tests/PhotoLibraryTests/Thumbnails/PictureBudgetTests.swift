import Foundation
import LibraryFixtures
import TestSupport
import Testing
import VaultCatalogue
import VaultFormat

@testable import FileRequests
@testable import PhotoLibrary
@testable import VaultStore

/// The room of kept pictures, compared with their photos.
@Suite("Thumbnails: the room they take") struct PictureBudgetTests {
    struct Kind: Sendable, CustomStringConvertible {
        let description: String
        /// Photos of so many bytes each.
        let counts: [(photos: Int, bytes: Int)]
        /// How many pictures are kept at least, and at most.
        let kept: ClosedRange<Int>
    }

    /// A picture of 3000 bytes takes 7 sectors, and 256 bytes for its rows.
    private static let pictureBytes = 3000
    private static let pictureCost = 7 * 512 + 256

    static let kinds = [
        // Each pays for its own.
        Kind(description: "large", counts: [(30, 300_000)], kept: 30...30),
        // All together pay for a fourth of these, and a handful.
        Kind(description: "small", counts: [(150, 60_000)], kept: 50...53),
        // The share that large photos do not need serves small ones.
        Kind(description: "mixed", counts: [(20, 600_000), (30, 20_000)], kept: 50...50),
        Kind(description: "few", counts: [(5, 400)], kept: 5...5),
    ]

    private func make(_ kind: Kind) throws -> Fixture {
        let (fixture, maker) = try Fixture.withStandIn()
        maker.paddingBytes = Self.pictureBytes - 60
        for (index, (count, bytes)) in kind.counts.enumerated() {
            try fixture.mkdir("albums/\(index)")
            for number in 0..<count {
                try fixture.put(
                    "albums/\(index)/\(index)-\(number).jpg",
                    jpeg(more: index * 1000 + number) + noise(bytes - 320, seed: number + 1))
            }
        }
        // The share of photos counts from their commit on.
        _ = try kept(fixture)
        return fixture
    }

    private func askForAll(_ fixture: Fixture, _ kind: Kind) throws {
        for index in kind.counts.indices {
            for name in try fixture.ls("albums/\(index)") {
                _ = try fixture.stat("albums/\(index)/.thumbs/\(name)")
            }
        }
    }

    /// Sectors that pictures have, in bytes, and of which photos; and the bytes of all photos.
    private func kept(_ fixture: Fixture) throws -> (bytes: UInt64, photos: [UInt64], of: UInt64) {
        try fixture.library.session.locked { tree throws(FileError) in
            try tree.storeChanges()
            let photos = try tree.tables.thumbnails.photos(after: 0, limit: 10_000)
            var bytes: UInt64 = 0
            for photo in photos {
                for row in try tree.tables.thumbnails.rows(of: photo) {
                    let runs = try tree.tables.extents.runs(of: row.content)
                    bytes += runs.reduce(0) { $0 + UInt64($1.sectorCount * 512) }
                }
            }
            return (bytes, photos, tree.counters.photoBytes)
        }
    }

    private func expectWithinBudget(_ fixture: Fixture, _ comment: Comment? = nil) throws {
        let kept = try kept(fixture)
        #expect(kept.bytes <= kept.of * 15 / 1000 + 65_536, comment)
    }

    @Test(arguments: kinds) func `all pictures together take a few per mille`(kind: Kind) throws {
        let fixture = try make(kind)
        try askForAll(fixture, kind)
        try expectWithinBudget(fixture)
        let first = try kept(fixture).photos
        #expect(kind.kept.contains(first.count), "\(first.count)")
        // None is dropped for another's sake: those that are kept stay the same, however often all are asked for.
        try fixture.close()
        let maker = StandInMaker()
        maker.paddingBytes = Self.pictureBytes - 60
        try fixture.reopen { $0.pictureMaker = maker }
        try askForAll(fixture, kind)
        #expect(try kept(fixture).photos == first)
        try fixture.remount()
    }

    @Test func `larger photos that come later get their pictures`() throws {
        let small = Kind(description: "", counts: [(60, 60_000), (10, 300_000)], kept: 0...0)
        let fixture = try make(small)
        for name in try fixture.ls("albums/0") { _ = try fixture.stat("albums/0/.thumbs/\(name)") }
        for name in try fixture.ls("albums/1") { _ = try fixture.stat("albums/1/.thumbs/\(name)") }
        for name in try fixture.ls("albums/1") {
            #expect(try fixture.thumbnailRows(of: fixture.ino("albums/1/\(name)")).count == 1)
        }
    }

    /// Pictures beyond the share are dropped by the background thumbnailer when large photos go.
    @Test func `the total holds when photos are removed`() throws {
        let mixed = Kind(description: "", counts: [(40, 20_000), (20, 600_000)], kept: 0...0)
        let fixture = try make(mixed)
        try askForAll(fixture, mixed)
        for name in try fixture.ls("albums/1").dropLast() { try fixture.rm("moments/2024-05-01/\(name)") }
        let name = try #require(try fixture.ls("albums/1").first)
        let last = try fixture.ino("albums/1/\(name)")
        let before = try kept(fixture)
        #expect(before.bytes > before.of * 15 / 1000 + 65_536)
        try fixture.close()
        let maker = StandInMaker()
        try fixture.reopen {
            $0.pictureMaker = maker
            $0.settleMilliseconds = 0
        }
        try #require(eventually { maker.rests == 1 })
        try expectWithinBudget(fixture)
        // The oldest went, no more than had to, and not the one that pays for itself.
        let after = try kept(fixture)
        #expect(after.photos.contains(last))
        #expect(after.photos == Array(before.photos.suffix(after.photos.count)))
        #expect(after.bytes + 2 * UInt64(Self.pictureCost) > after.of * 15 / 1000 + 65_536 * 3 / 4)
        #expect(maker.orders.isEmpty)
        try fixture.remount()
    }

    @Test func `pictures that would not be kept are not made ahead`() throws {
        let small = Kind(description: "", counts: [(150, 60_000)], kept: 0...0)
        let fixture = try make(small)
        try fixture.close()
        let maker = StandInMaker()
        maker.paddingBytes = Self.pictureBytes - 60
        try fixture.reopen {
            $0.pictureMaker = maker
            $0.settleMilliseconds = 0
        }
        try #require(eventually { maker.rests == 1 })
        #expect(try maker.orders.count == kept(fixture).photos.count)
        #expect((40...53).contains(maker.orders.count), "\(maker.orders.count)")
        try expectWithinBudget(fixture)
    }

    @Test func `a session with views makes each of them once, to hash it`() throws {
        let small = Kind(description: "", counts: [(150, 60_000)], kept: 0...0)
        let fixture = try make(small)
        func session(views: Bool) throws -> StandInMaker {
            try fixture.close()
            let maker = StandInMaker()
            maker.paddingBytes = Self.pictureBytes - 60
            try fixture.reopen {
                $0.pictureMaker = maker
                $0.settleMilliseconds = 0
                $0.views = views
            }
            return maker
        }
        let first = try session(views: false)
        try #require(eventually { first.rests == 1 })
        let count = try kept(fixture).photos.count
        #expect(first.hashed == count && count < 150)
        let second = try session(views: true)
        try #require(eventually { second.rests == 1 })
        #expect(second.orders.count == 150 - count && second.hashed == 150 - count)
        try expectWithinBudget(fixture)
        let third = try session(views: true)
        try fixture.put("albums/new.jpg", jpeg(more: 999))
        try #require(eventually { third.rests >= 1 && third.hashed == 1 })
        #expect(third.orders.map(\.source) == [jpeg(more: 999)])
    }

    @Test func `a share is fifteen per mille`() {
        let expected: [(UInt64, UInt64)] = [
            (0, 0), (66, 0), (67, 1), (1000, 15), (1999, 29), (1 << 62, 69_175_290_276_410_818),
        ]
        for (bytes, share) in expected {
            #expect(PictureBudget.share(of: bytes) == share)
        }
    }
}
