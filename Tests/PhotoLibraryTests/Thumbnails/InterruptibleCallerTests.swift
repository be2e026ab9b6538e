import Foundation
import LibraryFixtures
import LinuxIO
import TestSupport
import Testing

@testable import FileRequests
@testable import PhotoLibrary

/// Callers that stop waiting for a picture.
@Suite("Thumbnails: requests that are interrupted") struct InterruptibleCallerTests {
    private typealias Found = Result<Int, FileError>

    private func ask(_ fixture: Fixture, _ photo: UInt64, _ cancellation: Cancellation?) -> Background<Found>
    {
        Background {
            Result { () throws(FileError) in
                try fixture.thumbnails.thumbnail(of: photo, .standard, for: .interactive(cancellation))
                    .byteCount
            }
        }
    }

    @Test func `an interrupted caller gets its error, and the decoding is cancelled`() throws {
        let (fixture, maker) = try Fixture.withStandIn()
        let photo = try fixture.put("albums/a.jpg", jpeg())
        maker.holdUp()
        let cancellation = Cancellation()
        let asked = ask(fixture, photo, cancellation)
        try #require(eventually { maker.orders.count == 1 })
        cancellation.cancel()
        #expect(asked.result() == .failure(.interrupted))
        try #require(eventually { maker.cancellations == 1 })
        // Nothing is remembered of it.
        #expect(try fixture.thumbnailRows(of: photo).isEmpty)
        // A new caller does not get the cancelled result, whether that has ended or not.
        let next = ask(fixture, photo, Cancellation())
        try #require(eventually { maker.orders.count == 2 })
        maker.letGo()
        #expect(throws: Never.self) { try next.result().get() }
        #expect(try fixture.thumbnailRows(of: photo).count == 1)
        // Cancelled before the request; but a kept picture is served.
        #expect(
            try fixture.thumbnails.thumbnail(of: photo, .standard, for: .interactive(cancellation)).byteCount
                > 0
        )
    }

    @Test func `another caller that waits for the picture gets it`() throws {
        let (fixture, maker) = try Fixture.withStandIn()
        let photo = try fixture.put("albums/a.jpg", jpeg())
        maker.holdUp()
        let cancellations = (0..<3).map { _ in Cancellation() }
        let first = ask(fixture, photo, cancellations[0])
        try #require(eventually { maker.orders.count == 1 })
        let others = cancellations.dropFirst().map { ask(fixture, photo, $0) }
        try #require(eventually { fixture.library.virtual?.service.waiterCount == 3 })
        // The one on whose behalf it was begun, and one of the others.
        cancellations[0].cancel()
        #expect(first.result() == .failure(.interrupted))
        cancellations[1].cancel()
        #expect(others[0].result() == .failure(.interrupted))
        maker.letGo()
        #expect(throws: Never.self) { try others[1].result().get() }
        #expect(maker.orders.count == 1 && maker.cancellations == 0)
    }

    @Test func `a composition is cancelled with all that is made for it`() throws {
        let (fixture, maker) = try Fixture.withStandIn()
        for number in 1...5 { try fixture.put("albums/\(number).jpg", jpeg(more: number)) }
        let thumbs = try fixture.ino("albums/.thumbs")
        maker.holdUp()
        let cancellation = Cancellation()
        let asked = Background<Result<UInt64, FileError>> {
            Result { () throws(FileError) in
                try fixture.library.lookup(thumbs, "sheet.jpg", fixture.caller, unless: cancellation)
                    .attributes.size
            }
        }
        try #require(eventually { maker.orders.count == 2 })
        cancellation.cancel()
        #expect(asked.result() == .failure(.interrupted))
        try #require(eventually { maker.cancellations == 2 })
        maker.letGo()
        #expect(fixture.exists("albums/.thumbs/sheet.jpg"))
        // The first one's work was not continued.
        #expect(maker.orders.count == 7 && maker.compositions == 1)
    }

    @Test func `no caller waits behind pictures that are made ahead`() throws {
        let (fixture, maker) = try Fixture.withStandIn(settleMilliseconds: 0) { $0.workerCount = 1 }
        maker.holdUp()
        let photo = try fixture.put("albums/a.jpg", jpeg())
        try #require(eventually { maker.orders.count == 1 })
        let asked = ask(fixture, photo, nil)
        try #require(eventually { maker.orders.count == 2 && maker.cancellations == 1 })
        maker.letGo()
        #expect(throws: Never.self) { try asked.result().get() }
        #expect(try fixture.thumbnailRows(of: photo).count == 1)
    }

    @Test func `closing waits for cancelled requests`() throws {
        let (fixture, maker) = try Fixture.withStandIn()
        let photo = try fixture.put("albums/a.jpg", jpeg())
        maker.holdUp()
        let asked = ask(fixture, photo, Cancellation())
        try #require(eventually { maker.orders.count == 1 })
        try fixture.close()
        #expect(asked.result() == .failure(.noEntry))
    }
}
