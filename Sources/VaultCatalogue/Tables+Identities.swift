public import VaultFormat

/// Identity records: their locations, and the marks of those to be written.
struct IdentityStatements {
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

extension Tables {
    /// The location of the record with that number, as a run of one extent; nil if none was written.
    public func identity(_ id: UInt64) throws(CatalogueError) -> ExtentRun? {
        identities.find.bind(1, id)
        return try identities.find.one(Self.identityRun)
    }

    /// Records with numbers above `last`, in order, at most `limit`, and their locations.
    public func identities(
        after last: UInt64, limit: Int
    ) throws(CatalogueError) -> [(id: UInt64, run: ExtentRun)] {
        identities.list.bind(1, last)
        identities.list.bind(2, Int64(limit))
        return try identities.list.all { ($0.unsigned(4, above: last), Self.identityRun($0)) }
    }

    private static func identityRun(_ row: Statement) -> ExtentRun {
        ExtentRun(
            offset: 0, length: UInt64(row.integer(0, in: 1...1 << 17)), sector: row.count(1),
            generation: row.unsigned(2),
            epoch: row.unsigned(3))
    }

    /// Inserts or replaces the location of a record.
    public func storeIdentity(_ id: UInt64, _ run: ExtentRun) throws(CatalogueError) {
        identities.store.bind(1, id)
        identities.store.bind(2, run.length)
        identities.store.bind(3, run.sector)
        identities.store.bind(4, run.generation)
        identities.store.bind(5, run.epoch)
        try identities.store.run()
    }

    public func deleteIdentity(_ id: UInt64) throws(CatalogueError) {
        identities.delete.bind(1, id)
        try identities.delete.run()
    }

    /// Marks the record with that number to be written again.
    public func markUnrecorded(_ id: UInt64) throws(CatalogueError) {
        identities.mark.bind(1, id)
        try identities.mark.run()
    }

    public func unmarkUnrecorded(_ id: UInt64) throws(CatalogueError) {
        identities.unmark.bind(1, id)
        try identities.unmark.run()
    }

    /// Numbers above `last` whose records are to be written, in order, at most `limit`.
    public func unrecorded(after last: UInt64, limit: Int) throws(CatalogueError) -> [UInt64] {
        identities.marked.bind(1, last)
        identities.marked.bind(2, Int64(limit))
        return try identities.marked.all { $0.unsigned(0, above: last) }
    }

    /// Epoch and generation of the newest records; zeros if there are none.
    public func recorder() throws(CatalogueError) -> (epoch: UInt64, generation: UInt64) {
        try identities.recorder.one { ($0.unsigned(0), $0.unsigned(1)) } ?? (0, 0)
    }

    public func storeRecorder(epoch: UInt64, generation: UInt64) throws(CatalogueError) {
        identities.storeRecorder.bind(1, epoch)
        identities.storeRecorder.bind(2, generation)
        try identities.storeRecorder.run()
    }

    /// The bits of the retired numbers in a block; nil if none are retired.
    public func retired(block: UInt64) throws(CatalogueError) -> [UInt8]? {
        identities.retired.bind(1, block)
        return try identities.retired.one { $0.bytes(0) }
    }

    public func storeRetired(block: UInt64, _ bits: [UInt8]) throws(CatalogueError) {
        identities.storeRetired.bind(1, block)
        identities.storeRetired.bind(2, bits)
        try identities.storeRetired.run()
    }
}
