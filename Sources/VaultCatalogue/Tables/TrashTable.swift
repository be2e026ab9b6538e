public import CatalogueRows
public import FileRequests

/// A row of table `trash`; see `Schema`.
public struct TrashRow: Sendable, Equatable {
    public var ino: UInt64
    /// The ID of the entry that was moved to the trash; or 0 for a photo that was removed from moments, with any
    /// names in the trash.
    public var id: UInt64
    /// Time of the removal, by the wall clock: seconds since 1970.
    public var since: Int64
    /// When it was first seen to be older than the trash's limit; nil until then.
    public var noted: Int64?
    /// The photo's name in its day. For a sidecar: the inodes of the photos that it described in their day, in decimal
    /// digits, with spaces between them; 0 for none. Early releases left it empty.
    public var name: [UInt8]

    public init(ino: UInt64, id: UInt64, since: Int64, name: [UInt8] = []) {
        (self.ino, self.id, self.since, self.name) = (ino, id, since, name)
    }

    /// The row of an entry.
    public init(ino: UInt64, id: UInt64, since: Int64, describing photos: [UInt64]) {
        let numbers = photos.prefix(Self.describedMax).map(String.init)
        self.init(ino: ino, id: id, since: since, name: Array(numbers.joined(separator: " ").utf8))
    }

    /// The photos that an entry described as a sidecar.
    public var described: [UInt64] {
        guard id != 0, name.count <= Self.describedMax * (Self.digitsMax + 1) else { return [] }
        return name.split(separator: UInt8(ascii: " ")).compactMap {
            UInt64(String(decoding: $0, as: UTF8.self))
        }.filter { $0 != 0 }
    }

    /// Whether it is an entry of an early release, which recorded no photos.
    public var isOfEarlyRelease: Bool { id != 0 && name.isEmpty }

    /// More photos beside one sidecar are not recorded.
    private static let describedMax = 16
    private static let digitsMax = 20

    init(_ row: Statement) {
        ino = row.count(0)
        id = row.count(1)
        since = row.integer(2, in: times)
        noted = row.isNull(3) ? nil : row.integer(3, in: times)
        name = row.bytes(4)
    }
}

/// Seconds since 1970 whose sums do not overflow.
private let times: ClosedRange<Int64> = -(1 << 61)...1 << 61

private struct TrashStatements {
    let find: Statement
    let store: Statement
    let delete: Statement
    let move: Statement
    let photoCount: Statement
    let photoBytes: Statement
    let oldestPhotos: Statement
    let note: Statement
    let takeBack: Statement
    let due: Statement
    let redate: Statement
    let markDated: Statement
    let names: Statement
    let addName: Statement
    let deleteNames: Statement
    let companion: Statement

    init(_ connection: Connection) {
        find = connection.prepare("SELECT * FROM trash WHERE ino=? AND id=?")
        store = connection.prepare("REPLACE INTO trash VALUES(?,?,?,NULL,?)")
        delete = connection.prepare("DELETE FROM trash WHERE ino=? AND id=?")
        move = connection.prepare("UPDATE trash SET id=?3 WHERE ino=?1 AND id=?2")
        photoCount = connection.prepare("SELECT count(*) FROM trash WHERE id=0")
        photoBytes = connection.prepare(
            "SELECT sum(min(max(allocated, 0), 1 << 40)) FROM trash JOIN inode ON inode.ino=trash.ino WHERE trash.id=0"
        )
        oldestPhotos = connection.prepare(
            "SELECT * FROM trash WHERE id=0 AND (since, ino)>(?,?) ORDER BY since, ino LIMIT ?")
        note = connection.prepare("UPDATE trash SET noted=?2 WHERE since<=?1 AND noted IS NULL")
        takeBack = connection.prepare(
            "UPDATE trash SET noted=NULL WHERE noted IS NOT NULL AND (noted>?1 OR since>?2)")
        due = connection.prepare(
            "SELECT * FROM trash WHERE noted<=?1 AND (ino, id)>(?2,?3) ORDER BY ino, id LIMIT ?4")
        redate = connection.prepare(
            "UPDATE trash SET since=?3, noted=NULL WHERE since BETWEEN ?1 AND ?2")
        markDated = connection.prepare(
            "INSERT OR IGNORE INTO unrecorded SELECT DISTINCT ino FROM trash WHERE since BETWEEN ? AND ?")
        names = connection.prepare(
            "SELECT parent, id, name, ino, member FROM trash_name WHERE photo=? ORDER BY id")
        addName = connection.prepare("INSERT INTO trash_name VALUES(?,?,?,?,?,?)")
        deleteNames = connection.prepare("DELETE FROM trash_name WHERE photo=?")
        companion = connection.prepare("SELECT 1 FROM trash_name WHERE ino=? LIMIT 1")
    }
}

/// The contents of the trash, and their age.
public final class TrashTable {
    private let statements: TrashStatements

    init(_ connection: Connection) { statements = TrashStatements(connection) }

    public func row(_ ino: UInt64, _ id: UInt64) throws(FileError) -> TrashRow? {
        statements.find.bind(1, ino)
        statements.find.bind(2, id)
        return try statements.find.one { TrashRow($0) }
    }

    /// Inserts or replaces the row, with `noted` unset.
    public func store(_ row: TrashRow) throws(FileError) {
        statements.store.bind(1, row.ino)
        statements.store.bind(2, row.id)
        statements.store.bind(3, row.since)
        statements.store.bind(4, row.name)
        try statements.store.run()
    }

    public func delete(_ ino: UInt64, _ id: UInt64) throws(FileError) {
        statements.delete.bind(1, ino)
        statements.delete.bind(2, id)
        try statements.delete.run()
    }

    /// Gives a row the new ID of an entry that was renamed within the trash: its age stays.
    public func move(_ ino: UInt64, _ id: UInt64, to newID: UInt64) throws(FileError) {
        statements.move.bind(1, ino)
        statements.move.bind(2, id)
        statements.move.bind(3, newID)
        try statements.move.run()
    }

    /// The number of photos in the trash that were removed from moments.
    public func photoCount() throws(FileError) -> Int64 {
        try statements.photoCount.one { $0.integer(0) } ?? 0
    }

    /// Plaintext bytes of these photos. Walks them all. Reads stored rows only.
    public func photoBytes() throws(FileError) -> UInt64 {
        try statements.photoBytes.one { $0.unsigned(0) } ?? 0
    }

    /// Photos that were removed from moments, the oldest first, after a row; at most `limit`.
    public func oldestPhotos(after last: TrashRow?, limit: Int) throws(FileError) -> [TrashRow] {
        statements.oldestPhotos.bind(1, last?.since ?? Int64.min)
        statements.oldestPhotos.bind(2, last?.ino ?? 0)
        statements.oldestPhotos.bind(3, Int64(limit))
        return try statements.oldestPhotos.all { statement in
            let row = TrashRow(statement)
            statement.require(last.map { (row.since, row.ino) > ($0.since, $0.ino) } ?? true)
            return row
        }
    }

    // MARK: Age

    /// Notes, as of `now`, all rows that are in the trash since `limit` or longer and are not noted yet.
    public func note(since limit: Int64, now: Int64) throws(FileError) {
        statements.note.bind(1, limit)
        statements.note.bind(2, now)
        try statements.note.run()
    }

    /// Removes notes that were made later than `now`, or of rows that came after `limit`.
    public func clearNotes(now: Int64, since limit: Int64) throws(FileError) {
        statements.takeBack.bind(1, now)
        statements.takeBack.bind(2, limit)
        try statements.takeBack.run()
    }

    /// Rows that were noted at `time` or before, after a row; at most `limit`.
    public func due(
        notedBy time: Int64, after last: TrashRow?, limit: Int
    ) throws(FileError) -> [TrashRow] {
        statements.due.bind(1, time)
        statements.due.bind(2, last?.ino ?? 0)
        statements.due.bind(3, last?.id ?? 0)
        statements.due.bind(4, Int64(limit))
        return try statements.due.all { statement in
            let row = TrashRow(statement)
            statement.require(last.map { (row.ino, row.id) > ($0.ino, $0.id) } ?? true)
            return row
        }
    }

    /// Gives all rows between two times, which are from a clock that was wrong, another time.
    public func redate(from first: Int64, through last: Int64, to now: Int64) throws(FileError) {
        statements.markDated.bind(1, first)
        statements.markDated.bind(2, last)
        try statements.markDated.run()
        statements.redate.bind(1, first)
        statements.redate.bind(2, last)
        statements.redate.bind(3, now)
        try statements.redate.run()
    }

    // MARK: Former names in albums

    /// Stores a name that a photo, or a copy of it, had in an album.
    public func addName(_ row: DentryRow, of photo: UInt64) throws(FileError) {
        statements.addName.bind(1, photo)
        statements.addName.bind(2, row.id)
        statements.addName.bind(3, row.parent)
        statements.addName.bind(4, row.name)
        statements.addName.bind(5, row.ino)
        statements.addName.bind(6, row.member)
        try statements.addName.run()
    }

    /// The stored names of a photo and its copies, oldest first.
    public func names(of photo: UInt64) throws(FileError) -> [DentryRow] {
        statements.names.bind(1, photo)
        return try statements.names.all {
            DentryRow(
                parent: $0.count(0), id: $0.count(1), name: $0.name(2), ino: $0.count(3),
                member: $0.integer(4))
        }
    }

    /// Whether a name of the file is stored with a photo. Walks all stored names.
    public func isCompanion(_ ino: UInt64) throws(FileError) -> Bool {
        statements.companion.bind(1, ino)
        return try statements.companion.one { $0.integer(0) } != nil
    }

    public func deleteNames(of photo: UInt64) throws(FileError) {
        statements.deleteNames.bind(1, photo)
        try statements.deleteNames.run()
    }
}
