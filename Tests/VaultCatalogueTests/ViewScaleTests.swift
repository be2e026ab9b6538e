import CSQLite
import CatalogueRows
import Foundation
import Testing

@testable import VaultCatalogue

/// Work of the queries for views, which must not grow with the library.
@Suite("The tree: cost of views") struct ViewScaleTests {
    /// A catalogue of photos: one of 20 cameras each, of 30 years' days, some rated, some of a kind.
    private func catalogue(_ count: Int) throws -> Catalogue {
        let catalogue = try Catalogue(path: ":memory:", cacheKibibytes: 1 << 20)
        try catalogue.locked { tables in
            for number in 0..<count {
                let ino = UInt64(number + 16)
                let day = Int64(1990 + number % 30) * 10_000 + Int64(number / 30 % 12 + 1) * 100
                var row = PhotoRow(ino: ino, day: day + Int64(number / 360 % 28 + 1))
                row.camera = Array("Camera \(number % 20)".utf8)
                row.kind = number % 50 < 4 ? Int64(number % 50 + 1) : 0
                row.rating = Int64(number % 6)
                try tables.photos.store(row)
                try tables.views.setName(of: ino, Array("IMG_\(number).jpg".utf8))
            }
        }
        return catalogue
    }

    /// Instructions of SQLite's virtual machine so far: each row that is read takes some.
    private func instructions(_ tables: Tables) -> Int {
        var (sum, statement) = (0, sqlite3_next_stmt(tables.connection.handle, nil))
        while let next = statement {
            sum += Int(sqlite3_stmt_status(next, SQLITE_STMTSTATUS_VM_STEP, 0))
            statement = sqlite3_next_stmt(tables.connection.handle, next)
        }
        return sum
    }

    private static let keys: [ViewKey] = [
        .days(20_050_000...20_051_231), .days(20_050_300...20_050_331), .camera(Array("Camera 7".utf8)),
        .kind(2),
        .rating(4),
    ]

    /// One of each request: a page of a listing from its middle, a name, the lists of directories, the newest.
    private func requests(_ tables: Tables, _ count: Int) throws -> [(name: String, body: () throws -> Void)]
    {
        var all: [(name: String, body: () throws -> Void)] = []
        for key in Self.keys {
            let last = (day: Int64(20_050_301), ino: UInt64(count / 2))
            all.append(
                (
                    "a page of \(key)",
                    {
                        var left = 20
                        try tables.views.eachPhoto(in: key, after: last) { _ in
                            left -= 1
                            return left > 0
                        }
                    }
                ))
        }
        all.append(("a name", { _ = try tables.views.photo(inViewsAs: Array("IMG_\(count / 2).jpg".utf8)) }))
        all.append(("the newest", { _ = try tables.views.newestArrivals(limit: 500) }))
        let oldest = PhotoRow(ino: 16, day: 20_050_301)
        all.append(("no newest", { _ = try tables.views.isAmongNewestArrivals(oldest, limit: 500) }))
        all.append(
            (
                "the cameras",
                {
                    var last: [UInt8] = []
                    while let next = try tables.views.camera(after: last) { last = next }
                }
            ))
        all.append(
            (
                "the months",
                {
                    var last: Int64 = 0
                    while let next = try tables.views.dayWithPhotos(after: last) {
                        last = next / 100 * 100 + 99
                    }
                }
            ))
        return all
    }

    /// `OBSCURA_VIEW_PHOTOS` names another size of the large library, and prints times.
    @Test func `requests read as many rows in a large library as in a small one`() throws {
        let asked = ProcessInfo.processInfo.environment["OBSCURA_VIEW_PHOTOS"].flatMap { Int($0) }
        let sizes = [20_000, asked ?? 100_000]
        var counts: [[Int]] = []
        for size in asked == nil ? sizes : [1000] + sizes {
            let catalogue = try catalogue(size)
            try catalogue.locked { tables in
                var steps: [Int] = []
                for request in try requests(tables, size) {
                    let before = instructions(tables)
                    let clock = ContinuousClock().now
                    try request.body()
                    if asked != nil {
                        print("\(size) photos: \(request.name): \(ContinuousClock().now - clock)")
                    }
                    steps.append(instructions(tables) - before)
                }
                if asked != nil { print("\(size) photos: instructions \(steps)") }
                counts.append(steps)
            }
        }
        for (small, large) in zip(counts[counts.count - 2], counts[counts.count - 1]) {
            #expect(small > 0 && large <= small + small / 10)
        }
    }

    @Test func `a photo is among the newest if they list it`() throws {
        let catalogue = try catalogue(100)
        try catalogue.locked { tables in
            let newest = try tables.views.newestArrivals(limit: 10).map(\.ino)
            #expect(newest == (106...115).reversed())
            for ino in UInt64(16)..<116 {
                let row = try #require(try tables.photos.row(ino))
                #expect(try tables.views.isAmongNewestArrivals(row, limit: 10) == newest.contains(ino))
            }
        }
    }

    @Test func `a page of each view comes through its index`() throws {
        let catalogue = try catalogue(100)
        try catalogue.locked { tables in
            let statements = tables.views.statements
            for (statement, index) in [
                (statements.ofDay, "photo_day"), (statements.ofCamera, "photo_camera"),
                (statements.ofKind, "photo_kind"), (statements.ofRating, "photo_rating"),
                (statements.newest, "photo_arrived"), (statements.newer, "photo_arrived"),
                (statements.named, "photo_name"),
                (statements.nextDay, "photo_day"), (statements.nextCamera, "photo_camera"),
            ] {
                let text = String(cString: try #require(sqlite3_sql(statement.handle)))
                let plan = try tables.connection.prepare("EXPLAIN QUERY PLAN " + text).all {
                    String(decoding: $0.bytes(3), as: UTF8.self)
                }.joined(separator: "; ")
                #expect(
                    plan.contains("USING") && plan.contains(index) && !plan.contains("TEMP B-TREE"), "\(plan)"
                )
            }
        }
    }
}
