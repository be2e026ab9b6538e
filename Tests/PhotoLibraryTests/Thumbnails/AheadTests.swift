import Foundation
import LibraryFixtures
import LinuxIO
import PhotoImaging
import TestSupport
import Testing
import VaultCatalogue
import VaultFormat

@testable import FileRequests
@testable import PhotoLibrary

/// Thumbnails that are made before anybody asks.
@Suite("Thumbnails: made ahead") struct AheadTests {
    @Test func `new photos get their pictures, the newest first`() throws {
        let (fixture, maker) = try Fixture.withStandIn(settleMilliseconds: 0) { $0.workerCount = 1 }
        maker.holdUp()
        try fixture.put("albums/1.jpg", jpeg(more: 1))
        try #require(eventually { maker.orders.count == 1 })
        for number in 2...3 { try fixture.put("albums/\(number).jpg", jpeg(more: number)) }
        maker.letGo()
        // All are kept then: a request makes anew a picture that is still being made in the background.
        try #require(eventually { maker.rests == 1 })
        #expect(maker.orders.map(\.source) == [1, 3, 2].map { jpeg(more: $0) })
        #expect(maker.orders.allSatisfy { $0.size == PictureSize(fitting: 256) && $0.format == .jpeg })
        for number in 1...3 { _ = try fixture.get("albums/.thumbs/\(number).jpg") }
        #expect(maker.orders.count == 3)
        // Other bytes, another picture.
        try fixture.put("albums/1.jpg", jpeg(more: 9))
        try #require(eventually { maker.orders.count == 4 })
    }

    @Test func `pictures wait until writes have settled and requests have stopped`() {
        let pause = QuietClock.pauseMilliseconds
        var clock = QuietClock(settleMilliseconds: 4000)
        #expect(clock.due(lastWrite: 1000, requests: 5, now: 1500) == 5000)
        #expect(clock.due(lastWrite: 4000, requests: 5, now: 5000) == 8000)
        #expect(clock.due(lastWrite: 4000, requests: 6, now: 8000) == 8000 + pause)
        #expect(clock.due(lastWrite: 4000, requests: 7, now: 8000 + pause) == 8000 + 2 * pause)
        #expect(clock.due(lastWrite: 4000, requests: 7, now: 8000 + 2 * pause) == 8000 + 2 * pause)
    }

    @Test func `no pictures are made if the space cannot keep them`() throws {
        for change: (inout LibraryOptions) -> Void in [
            { $0.thumbnails = .off }, { $0.readOnly = true },
        ] {
            let fixture = try Fixture()
            try fixture.put("albums/a.jpg", jpeg())
            try fixture.close()
            let maker = StandInMaker()
            try fixture.reopen {
                $0.pictureMaker = maker
                $0.settleMilliseconds = 0
                change(&$0)
            }
            if !fixture.library.options.readOnly { try fixture.put("albums/b.jpg", jpeg(more: 1)) }
            // Its threads end when there is nothing more to make.
            fixture.library.virtual?.service.background.awaitEnd()
            #expect(maker.orders.isEmpty)
            try fixture.close()
        }
    }

    @Test func `closing waits for no picture`() throws {
        let (fixture, maker) = try Fixture.withStandIn(settleMilliseconds: 0) { $0.workerCount = 2 }
        maker.holdUp()
        for number in 1...50 { try fixture.put("albums/\(number).jpg", jpeg(more: number)) }
        try #require(eventually { !maker.orders.isEmpty })
        try fixture.close()
        #expect(maker.orders.count <= 2)
        try fixture.reopen()
        #expect(fixture.exists("albums/.thumbs/1.jpg"))
    }

    // MARK: From one session to the next

    /// Reopens the closed fixture so that pictures are made at once, one at a time; returns their maker.
    private func reopen(
        _ fixture: Fixture, workers: Int = 1, isHeldUp: Bool = false, postponed: Set<[UInt8]> = []
    ) throws -> StandInMaker {
        let maker = StandInMaker()
        maker.postponed = postponed
        if isHeldUp { maker.holdUp() }
        try fixture.reopen {
            $0.pictureMaker = maker
            $0.settleMilliseconds = 0
            $0.workerCount = workers
        }
        return maker
    }

    @Test(arguments: [1, 2]) func `pictures that use much processor time come last`(workers: Int) throws {
        let fixture = try Fixture()
        try fixture.close()
        try fixture.reopen { $0.thumbnails = .off }
        for number in 1...5 { try fixture.put("albums/\(number).jpg", jpeg(more: number)) }
        try fixture.close()
        let slow = [5, 3].map { jpeg(more: $0) }
        let maker = try reopen(fixture, workers: workers, postponed: Set(slow))
        fixture.library.virtual?.service.background.awaitEnd()
        let sources = maker.orders.map(\.source)
        #expect(Set(sources.prefix(5)) == Set((1...5).map { jpeg(more: $0) }))
        #expect(workers > 1 ? Set(sources.dropFirst(5)) == Set(slow) : Array(sources.dropFirst(5)) == slow)
        for number in 1...5 { _ = try fixture.get("albums/.thumbs/\(number).jpg") }
        #expect(maker.orders.count == 7)
        try fixture.close()
    }

    private func thumbnailPending(_ fixture: Fixture) throws -> Bool {
        try fixture.library.session.locked { tree throws(FileError) in
            try tree.pendingPictures.hasThumbnailPending()
        }
    }

    @Test func `the next mount makes the pictures that this one did not`() throws {
        let fixture = try Fixture()
        // As an import does: no thumbnails are made.
        try fixture.close()
        try fixture.reopen { $0.thumbnails = .off }
        for number in 1...5 { try fixture.put("albums/\(number).jpg", jpeg(more: number)) }
        try fixture.put("albums/notes.txt", [1])
        try fixture.close()
        let maker = try reopen(fixture)
        try #require(eventually { maker.rests == 1 })
        #expect(maker.orders.map(\.source) == (1...5).reversed().map { jpeg(more: $0) })
        #expect(try !thumbnailPending(fixture))
        try fixture.close()
        // Then there is nothing to do, and nothing is done.
        let writes = fixture.vault.calls.writeCount
        let next = try reopen(fixture)
        #expect(try !fixture.thumbnails.hasBackgroundThumbnails())
        for number in 1...5 { _ = try fixture.get("albums/.thumbs/\(number).jpg") }
        #expect(next.orders.isEmpty)
        try fixture.close()
        #expect(fixture.vault.calls.writeCount == writes)
    }

    /// More than are looked at in one go; a part of them is made in each of three sessions.
    @Test func `each session goes on where the last one stopped`() throws {
        let fixture = try Fixture()
        let count = 2 * Limits.production.backgroundThumbnails + 20
        // Large enough to pay for their pictures.
        for number in 0..<count {
            try fixture.put("albums/\(number).jpg", jpeg(more: number) + noise(60_000, seed: number + 1))
        }
        var made: [[UInt8]] = []
        var isDone = false
        for session in 0..<3 {
            try fixture.close()
            let maker = try reopen(fixture, workers: 2)
            try #require(eventually { maker.orders.count >= 60 || maker.rests == 1 })
            if session == 2 { try #require(eventually { maker.rests == 1 }) }
            try fixture.close()
            made += maker.orders.map(\.source)
            isDone = maker.rests == 1
            try fixture.reopen()
        }
        #expect(isDone)
        #expect(Set(made).count == count)
        // Those that were being made when a session ended are made again.
        #expect(made.count <= count + 2 * 2)
        for number in 0..<count {
            #expect(try fixture.thumbnailRows(of: fixture.ino("albums/\(number).jpg")).count == 1)
        }
    }

    @Test func `a photo that loses its picture later gets another`() throws {
        let fixture = try Fixture()
        for number in 1...4 { try fixture.put("albums/\(number).jpg", jpeg(more: number)) }
        try fixture.put("albums/.late", jpeg(more: 5))
        try fixture.close()
        var maker = try reopen(fixture)
        try #require(eventually { maker.rests == 1 })
        try fixture.close()
        // Nobody makes any while these change.
        try fixture.reopen { $0.thumbnails = .off }
        try fixture.put("albums/2.jpg", jpeg(more: 6))
        try fixture.mv("albums/.late", "albums/late.jpg")
        try fixture.rm("moments/2024-05-01/4.jpg")
        try fixture.close()
        maker = try reopen(fixture)
        try #require(eventually { maker.rests == 1 })
        #expect(maker.orders.map(\.source) == [jpeg(more: 5), jpeg(more: 6)])
    }

    /// A photo that changes after its turn, before the batch has ended.
    @Test func `a photo that changes after its turn gets another picture`() throws {
        let fixture = try Fixture()
        for number in 1...3 { try fixture.put("albums/\(number).jpg", jpeg(more: number)) }
        try fixture.close()
        let maker = try reopen(fixture, isHeldUp: true)
        let photo = try fixture.ino("albums/3.jpg")
        try #require(eventually { maker.orders.count == 1 })
        maker.letOneGo()
        try #require(eventually { maker.orders.count == 2 })
        #expect(try fixture.thumbnailRows(of: photo).count == 1)
        try fixture.put("albums/3.jpg", jpeg(more: 9))
        maker.letGo()
        try #require(eventually { maker.rests == 1 })
        #expect(try fixture.thumbnailRows(of: photo).count == 1)
        #expect(maker.orders.count == 4)
        #expect(try !thumbnailPending(fixture))
    }

    @Test func `a photo that cannot be decoded is not tried again`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/a.jpg", undecodableJPEG("2024-05-01"))
        try fixture.close()
        try fixture.reopen { $0.settleMilliseconds = 0 }
        let photo = try fixture.ino("albums/a.jpg")
        try #require(eventually { (try? fixture.thumbnailRows(of: photo).count) == 1 })
        try #require(eventually { (try? thumbnailPending(fixture)) == false })
        try fixture.close()
        let maker = try reopen(fixture)
        #expect(try !fixture.thumbnails.hasBackgroundThumbnails())
        #expect(maker.orders.isEmpty)
    }

    @Test func `as many pictures are made at a time as there are workers`() throws {
        let fixture = try Fixture()
        for number in 1...8 { try fixture.put("albums/\(number).jpg", jpeg(more: number)) }
        try fixture.close()
        let maker = try reopen(fixture, workers: 3, isHeldUp: true)
        try #require(eventually { maker.orders.count == 3 })
        maker.letGo()
        try #require(eventually { maker.rests == 1 })
        #expect(maker.orders.count == 8)
        #expect(maker.mostAtOnce == 3)
    }

    /// A mount's reads do not grow with the photos, whether they have pictures or wait for them.
    @Test(arguments: [false, true]) func `a mount finds photos without pictures, and does not read all`(
        areWaiting: Bool
    ) throws {
        let reads = try [40, 800].map { count in
            let fixture = try Fixture()
            for number in 0..<count { try fixture.put("albums/\(number).jpg", jpeg(more: number)) }
            if !areWaiting {
                try fixture.library.session.change { change in
                    change.tree.counters.pictured = change.tree.counters.ino
                }
            }
            try fixture.close()
            try fixture.reopen()
            let before = fixture.vault.calls.readCount
            #expect(try fixture.thumbnails.hasBackgroundThumbnails() == areWaiting)
            let last = try fixture.library.session.locked { tree in tree.counters.pictured }
            if areWaiting { #expect(last < 20) }
            return fixture.vault.calls.readCount - before
        }
        // A page on each level of a tree or two.
        #expect(reads[1] <= reads[0] + 4, "\(reads)")
    }
}
