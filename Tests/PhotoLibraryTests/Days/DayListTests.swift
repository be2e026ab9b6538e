import FileRequests
import LibraryFixtures
import PhotoLibrary
import TestSupport
import Testing

@testable import VaultCatalogue

/// Lists of `moments`. The rows of a large library's days lie in as many pages.
@Suite("Days: lists of them") struct DayListTests {
    private let fixture: Fixture
    private static let names = (1...9).map { "2024-05-0\($0)" }

    init() throws {
        fixture = try Fixture()
        for (number, name) in Self.names.enumerated() {
            try fixture.put("albums/\(name).jpg", jpeg(name, more: number))
        }
    }

    private func names(plus: Bool) throws -> [String] {
        let entries = try fixture.list("moments", plus: plus)
        #expect(entries.allSatisfy { $0.mode & fileTypeMask == directoryType })
        return entries.map(\.name.description)
    }

    @Test func `a list of names reads no row of a day`() throws {
        try fixture.close()
        try fixture.reopen()
        func execute(_ statements: String...) throws {
            try fixture.library.session.change { change throws(FileError) in
                for statement in statements { try change.tree.tables.connection.execute(statement) }
            }
        }
        try execute(
            "CREATE TEMP TABLE kept AS SELECT * FROM inode WHERE day<>0", "DELETE FROM inode WHERE day<>0")
        #expect(try names(plus: false) == Self.names && names(plus: true) == [])
        // Nor does the search for empty days need one.
        try fixture.library.session.dropEmptyDays { false }
        try execute("INSERT INTO inode SELECT * FROM kept", "DROP TABLE kept")
        #expect(try names(plus: true) == Self.names)
        try fixture.close()
    }

    /// An empty day is left out, also if it empties or is made by hand while nothing is written yet.
    @Test(arguments: [false, true]) func `a list of names has no empty day`(plus: Bool) throws {
        for name in Self.names.prefix(2) { try fixture.rm("moments/\(name)/\(name).jpg") }
        #expect(try names(plus: plus) == Array(Self.names.dropFirst(2)))
        try fixture.mkdir("moments/2024-05-31")
        #expect(try names(plus: plus) == Self.names.dropFirst(2) + ["2024-05-31"])
        try fixture.library.session.dropEmptyDays { false }
        #expect(try names(plus: plus) == Self.names.dropFirst(2) + ["2024-05-31"])
    }
}
