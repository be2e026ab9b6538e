import FileRequests
import VaultFormat

/// A step from one version of the tables to the next.
///
/// A step, once released, never changes: the golden vaults of the versions before it hold it to that.
struct Migration: Sendable {
    /// The version that this step leads to: one more than the step before.
    var version: Int
    /// The first release that knows that version.
    var release: Release
    /// SQL, a statement each. `CREATE INDEX` is left out where nothing is written, and where the index is there.
    var statements: [String] = []
    /// Changes rows, after the statements.
    var transform: (@Sendable (Connection) throws(FileError) -> Void)?

    /// All steps. To change the tables: change `Schema.statements`, add a step here, and a golden vault by
    /// `scripts/golden`.
    static let all: [Migration] = [
        // The first snapshot made it: programs that knew none would free sectors that one still names.
        Migration(version: 2, release: Release(major: 0, minor: 1)),
        // Catalogues may have snapshots, and always have the indexes by sector.
        Migration(
            version: 3, release: Release(major: 0, minor: 1),
            statements: [
                "CREATE INDEX extent_sector ON extent(sector, length)",
                "CREATE INDEX identity_sector ON identity(sector, length)",
            ]),
        // Photos have hashes of their standard thumbnails; those of all that are there are to be computed.
        Migration(
            version: 4, release: Release(major: 0, minor: 1),
            statements: [
                "CREATE TABLE likeness(block INTEGER PRIMARY KEY, hashes BLOB NOT NULL) STRICT",
                "DELETE FROM thumbnail_pending", "UPDATE counter SET pictured=16",
            ]),
        // Photos have their positions; the metadata of all that are there are to be read.
        Migration(
            version: 5, release: Release(major: 0, minor: 1),
            statements: [
                "CREATE TABLE position(block INTEGER PRIMARY KEY, points BLOB NOT NULL) STRICT",
                "DELETE FROM thumbnail_pending", "UPDATE counter SET pictured=16",
            ]),
    ]

    /// Whether a reader must see it done: an index alone changes no query's result.
    var changesTables: Bool { transform != nil || !statements.allSatisfy(Self.makesIndex) }

    static func makesIndex(_ statement: String) -> Bool { statement.hasPrefix("CREATE INDEX ") }
}
