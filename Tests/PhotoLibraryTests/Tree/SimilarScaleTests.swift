import FileRequests
import Foundation
import LibraryFixtures
import LinuxIO
import TestSupport
import Testing
import VaultFormat

@testable import PhotoLibrary
@testable import VaultCatalogue

/// Groups of similar photos in a large library.
@Suite("The tree: similar photos of a large library") struct SimilarScaleTests {
    /// Processor time of this process.
    private var processorSeconds: Double { Double(clock()) / Double(CLOCKS_PER_SEC) }

    /// `OBSCURA_SIMILAR_PHOTOS` names another size of the library, and prints times.
    @Test func `the largest groups are found among all hashes`() throws {
        let asked = ProcessInfo.processInfo.environment["OBSCURA_SIMILAR_PHOTOS"].flatMap { Int($0) }
        let count = asked ?? 20_000
        let fixture = try Fixture(bytes: 256 << 20)
        try fixture.close()
        try fixture.reopen { $0.views = true }
        let first: UInt64 = 1 << 20
        var random = RandomSource(5)
        var hash = random.next()
        var pairs = 0
        let statement = "INSERT INTO likeness VALUES(?, ?)"
        for start in stride(from: 0, to: count, by: 8192) {
            try fixture.library.session.change { change throws(FileError) in
                let insert = change.tree.tables.connection.prepare(statement)
                for block in stride(from: start, to: min(start + 8192, count), by: 64) {
                    var bytes: [UInt8] = []
                    for index in block..<block + 64 {
                        // Each twentieth differs from the one before in up to three bits.
                        if index % 20 == 19 {
                            for _ in 0..<3 { hash ^= 1 << (random.next() % 64) }
                            pairs += 1
                        } else {
                            hash = random.next()
                        }
                        bytes += withUnsafeBytes(of: hash.littleEndian) { Array($0) }
                    }
                    insert.bind(1, (first + UInt64(block)) / 64)
                    insert.bind(2, bytes)
                    try insert.run()
                }
                // As many have no rows in the other tables: only hashes count here.
                change.tree.views.noteChange()
            }
        }
        try fixture.library.flushAll()
        let limit = fixture.library.options.limits.similarGroups
        for attempt in ["first", "again"] {
            let (start, spent) = (ContinuousClock().now, processorSeconds)
            let names = try fixture.list("views/similar")
            if asked != nil {
                print(
                    "\(count) photos, \(attempt): \(ContinuousClock().now - start), \(processorSeconds - spent) s busy"
                )
            }
            #expect(names.count == min(pairs, limit))
        }
        // The tables name no such inodes: no check of them.
        fixture.closeAnyhow()
    }
}
