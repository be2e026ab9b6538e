import FileRequests
import Testing

@testable import VaultCatalogue

/// A statement that would never end is damage; the work of a sound database is not.
@Suite("Damage: statements without an end") struct WorkLimitTests {
    private static let endless = """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n
        """

    private func connection(pages: UInt32) throws -> Connection {
        try Connection(path: ":memory:", vfs: nil, readOnly: false, pageCount: { pages })
    }

    @Test func `endless work ends`() throws {
        let connection = try connection(pages: 10)
        let query = connection.prepare(Self.endless)
        for _ in 0..<2 { #expect(throws: FileError.damaged) { _ = try query.one { $0.integer(0) } } }
        #expect(throws: FileError.damaged) { try connection.execute(Self.endless) }
    }

    /// Of a database of many pages more work is to be expected, and each statement is counted anew.
    @Test func `much work is done`() throws {
        let connection = try connection(pages: 4000)
        let query = connection.prepare(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 9000000) SELECT count(*) FROM n"
        )
        for _ in 0..<2 { #expect(try query.one { $0.integer(0) } == 9_000_000) }
    }
}
