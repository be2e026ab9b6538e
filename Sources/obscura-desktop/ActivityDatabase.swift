internal import CSQLite
internal import Glibc

/// The database in which kactivitymanagerd records the files and folders that KDE's programs used.
///
/// It is an SQLite database with a log beside it: removed records are overwritten in both.
private final class ActivityDatabase {
    private let database: OpaquePointer

    /// Each has the path, or the URI, in the same column.
    private static let tables = ["ResourceInfo", "ResourceEvent", "ResourceScoreCache", "ResourceLink"]
    private static let column = "targettedResource"
    private static let waitMilliseconds: Int32 = 3_000

    /// - Parameter files: the database and the files beside it; all of SQLite's files are these from now on.
    init?(_ files: DatabaseFiles) {
        guard files.serve() else { return nil }
        var opened: OpaquePointer?
        let path = DatabaseFiles.path
        guard sqlite3_open_v2(path, &opened, SQLITE_OPEN_READWRITE, nil) == SQLITE_OK, let opened else {
            sqlite3_close(opened)
            return nil
        }
        database = opened
        sqlite3_busy_timeout(database, Self.waitMilliseconds)
        guard run("PRAGMA trusted_schema = OFF"), run("PRAGMA temp_store = MEMORY"),
            run("PRAGMA secure_delete = ON")
        else { return nil }
    }

    deinit { sqlite3_close(database) }

    /// Prints every path or URI.
    func printResources() -> Bool {
        for table in Self.tables {
            // Another version may lack the table.
            guard let query = prepare("SELECT DISTINCT \(Self.column) FROM \(table)") else { continue }
            defer { sqlite3_finalize(query) }
            while sqlite3_step(query) == SQLITE_ROW {
                guard let text = sqlite3_column_text(query, 0) else { continue }
                let isWritten = text.withMemoryRebound(to: CChar.self, capacity: 1) { writeItem($0) }
                if !isWritten { return false }
            }
        }
        return true
    }

    func remove(_ resources: [[CChar]]) -> Bool {
        guard run("BEGIN IMMEDIATE") else { return false }
        for table in Self.tables {
            guard let query = prepare("DELETE FROM \(table) WHERE \(Self.column) = ?") else { continue }
            defer { sqlite3_finalize(query) }
            for resource in resources {
                let isDone = resource.withUnsafeBufferPointer {
                    sqlite3_bind_text(query, 1, $0.baseAddress, -1, nil) == SQLITE_OK
                        && sqlite3_step(query) == SQLITE_DONE
                }
                sqlite3_reset(query)
                if !isDone { return false }
            }
        }
        return run("COMMIT")
    }

    /// Empties the log, which still has the removed records. Waits for readers of the log.
    func emptyLog() -> Bool {
        sqlite3_wal_checkpoint_v2(database, nil, SQLITE_CHECKPOINT_TRUNCATE, nil, nil) == SQLITE_OK
    }

    private func run(_ statement: String) -> Bool {
        sqlite3_exec(database, statement, nil, nil, nil) == SQLITE_OK
    }

    private func prepare(_ statement: String) -> OpaquePointer? {
        var prepared: OpaquePointer?
        return sqlite3_prepare_v2(database, statement, -1, &prepared, nil) == SQLITE_OK ? prepared : nil
    }
}

/// Prints every path or URI, from a copy in memory: even a reader of a database changes the files beside it.
func printActivities() -> Bool {
    guard let files = DatabaseFiles.copied() else { return false }
    return ActivityDatabase(files)?.printResources() ?? false
}

/// Removes resources from the activity manager's database.
///
/// The activity manager itself forgets scores but not names, and its log cannot be emptied while it runs. So it is
/// ended, and started again if it ran.
func forgetActivities(_ resources: [[CChar]]) -> Bool {
    guard let files = DatabaseFiles.real() else { return false }
    let bus = SessionBus()
    let didRun = bus?.endActivityManager() ?? false
    defer { if didRun { bus?.startActivityManager() } }
    guard let database = ActivityDatabase(files), database.remove(resources) else { return false }
    return database.emptyLog()
}
