public import FileRequests
public import VaultFormat

/// Identity records: their locations, and the marks of those to be written.
private struct IdentityStatements {
    let find: Statement
    let list: Statement
    let store: Statement
    let delete: Statement
    let mark: Statement
    let unmark: Statement
    let marked: Statement
    let retired: Statement
    let storeRetired: Statement
    let recorder: Statement
    let storeRecorder: Statement

    init(_ connection: Connection) {
        find = connection.prepare("SELECT length, sector, generation, epoch FROM identity WHERE id=?")
        list = connection.prepare(
            "SELECT length, sector, generation, epoch, id FROM identity WHERE id>? ORDER BY id LIMIT ?")
        store = connection.prepare("REPLACE INTO identity VALUES(?,?,?,?,?)")
        delete = connection.prepare("DELETE FROM identity WHERE id=?")
        mark = connection.prepare("INSERT OR IGNORE INTO unrecorded VALUES(?)")
        unmark = connection.prepare("DELETE FROM unrecorded WHERE id=?")
        marked = connection.prepare("SELECT id FROM unrecorded WHERE id>? ORDER BY id LIMIT ?")
        retired = connection.prepare("SELECT bits FROM retired WHERE block=?")
        storeRetired = connection.prepare("REPLACE INTO retired VALUES(?,?)")
        recorder = connection.prepare("SELECT epoch, generation FROM recorder WHERE id=1")
        storeRecorder = connection.prepare("REPLACE INTO recorder VALUES(1,?,?)")
    }
}

/// Tables `identity`, `unrecorded`, `recorder` and `retired`.
public final class IdentityTable {
    private let connection: Connection
    private let statements: IdentityStatements

    init(_ connection: Connection) {
        (self.connection, statements) = (connection, IdentityStatements(connection))
    }

    /// The location of the record with that number, as a run of one extent; nil if none was written.
    public func location(_ id: UInt64) throws(FileError) -> ExtentRun? {
        statements.find.bind(1, id)
        return try statements.find.one(Self.identityRun)
    }

    /// Records with numbers above `last`, in order, at most `limit`, and their locations.
    public func locations(
        after last: UInt64, limit: Int
    ) throws(FileError) -> [(id: UInt64, run: ExtentRun)] {
        statements.list.bind(1, last)
        statements.list.bind(2, Int64(limit))
        return try statements.list.all { ($0.unsigned(4, above: last), Self.identityRun($0)) }
    }

    /// The numbers of identity records in a range of sectors.
    public func numbers(in sectors: Range<UInt64>) throws(FileError) -> [UInt64] {
        let query = connection.prepare("SELECT id FROM identity WHERE sector>=? AND sector<?")
        query.bind(1, sectors.lowerBound)
        query.bind(2, sectors.upperBound)
        return try query.all { $0.unsigned(0) }
    }

    private static func identityRun(_ row: Statement) -> ExtentRun {
        ExtentRun(
            offset: 0, length: UInt64(row.integer(0, in: 1...1 << 17)), sector: row.count(1),
            generation: row.unsigned(2),
            epoch: row.unsigned(3))
    }

    /// Inserts or replaces the location of a record.
    public func store(_ id: UInt64, _ run: ExtentRun) throws(FileError) {
        statements.store.bind(1, id)
        statements.store.bind(2, run.length)
        statements.store.bind(3, run.sector)
        statements.store.bind(4, run.generation)
        statements.store.bind(5, run.epoch)
        try statements.store.run()
    }

    public func delete(_ id: UInt64) throws(FileError) {
        statements.delete.bind(1, id)
        try statements.delete.run()
    }

    /// Marks the record with that number to be written again.
    public func markUnrecorded(_ id: UInt64) throws(FileError) {
        statements.mark.bind(1, id)
        try statements.mark.run()
    }

    public func unmarkUnrecorded(_ id: UInt64) throws(FileError) {
        statements.unmark.bind(1, id)
        try statements.unmark.run()
    }

    /// Numbers above `last` whose records are to be written, in order, at most `limit`.
    public func unrecorded(after last: UInt64, limit: Int) throws(FileError) -> [UInt64] {
        statements.marked.bind(1, last)
        statements.marked.bind(2, Int64(limit))
        return try statements.marked.all { $0.unsigned(0, above: last) }
    }

    /// Epoch and generation of the newest records; zeros if there are none.
    public func recorder() throws(FileError) -> (epoch: UInt64, generation: UInt64) {
        try statements.recorder.one { ($0.unsigned(0), $0.unsigned(1)) } ?? (0, 0)
    }

    public func storeRecorder(epoch: UInt64, generation: UInt64) throws(FileError) {
        statements.storeRecorder.bind(1, epoch)
        statements.storeRecorder.bind(2, generation)
        try statements.storeRecorder.run()
    }

    /// The bits of the retired numbers in a block; nil if none are retired.
    public func retired(block: UInt64) throws(FileError) -> [UInt8]? {
        statements.retired.bind(1, block)
        return try statements.retired.one { $0.bytes(0) }
    }

    public func storeRetired(block: UInt64, _ bits: [UInt8]) throws(FileError) {
        statements.storeRetired.bind(1, block)
        statements.storeRetired.bind(2, bits)
        try statements.storeRetired.run()
    }
}
