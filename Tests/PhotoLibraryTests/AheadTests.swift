import Foundation
import LinuxIO
import PhotoImaging
import TestSupport
import Testing

@testable import PhotoLibrary

/// Thumbnails that are made before anybody asks.
@Suite struct AheadTests {
    @Test func newPhotosGetTheirsTheNewestFirst() throws {
        let (rig, maker) = try Rig.withStandIn(settleMilliseconds: 0)
        maker.holdUp()
        try rig.put("albums/1.jpg", jpeg(more: 1))
        try #require(eventually { maker.orders.count == 1 })
        for number in 2...3 { try rig.put("albums/\(number).jpg", jpeg(more: number)) }
        maker.letGo()
        try #require(eventually { maker.orders.count == 3 })
        #expect(maker.orders.map(\.source) == [1, 3, 2].map { jpeg(more: $0) })
        #expect(maker.orders.allSatisfy { $0.size == PictureSize(fitting: 256) && $0.format == .jpeg })
        for number in 1...3 { _ = try rig.get("albums/.thumbs/\(number).jpg") }
        #expect(maker.orders.count == 3)
        // Other bytes, another picture.
        try rig.put("albums/1.jpg", jpeg(more: 9))
        try #require(eventually { maker.orders.count == 4 })
    }

    @Test func theyWaitUntilWritesHaveSettledAndRequestsHaveStopped() {
        let pause = QuietClock.pauseMilliseconds
        var clock = QuietClock(settleMilliseconds: 4000)
        #expect(clock.due(lastWrite: 1000, requests: 5, now: 1500) == 5000)
        #expect(clock.due(lastWrite: 4000, requests: 5, now: 5000) == 8000)
        #expect(clock.due(lastWrite: 4000, requests: 6, now: 8000) == 8000 + pause)
        #expect(clock.due(lastWrite: 4000, requests: 7, now: 8000 + pause) == 8000 + 2 * pause)
        #expect(clock.due(lastWrite: 4000, requests: 7, now: 8000 + 2 * pause) == 8000 + 2 * pause)
    }

    @Test func noneAreMadeWhereThereIsNoPlaceForThem() throws {
        for change: (inout LibraryOptions) -> Void in [
            { $0.thumbnails = .off }, { $0.settleMilliseconds = 1 << 40 },
        ] {
            let (rig, maker) = try Rig.withStandIn(settleMilliseconds: 0, change)
            try rig.put("albums/a.jpg", jpeg())
            usleep(400_000)
            #expect(maker.orders.isEmpty)
            try rig.close()
        }
    }

    @Test func closingWaitsForNone() throws {
        let (rig, maker) = try Rig.withStandIn(settleMilliseconds: 0)
        maker.holdUp()
        for number in 1...50 { try rig.put("albums/\(number).jpg", jpeg(more: number)) }
        try #require(eventually { !maker.orders.isEmpty })
        try rig.close()
        #expect(maker.orders.count <= 2)
        try rig.reopen()
        #expect(rig.exists("albums/.thumbs/1.jpg"))
    }
}
