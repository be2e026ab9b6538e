public import CatalogueRows
import LinuxIO

extension InodeRow {
    init(_ row: Statement, from column: Int32 = 0) {
        self.init(
            ino: row.count(column), mode: UInt32(row.integer(column + 1, in: 0...0o177777)),
            uid: UInt32(truncatingIfNeeded: row.integer(column + 2)),
            gid: UInt32(truncatingIfNeeded: row.integer(column + 3)), now: Self.time(row, column + 17))
        rdev = row.unsigned(column + 4)
        nlink = UInt32(row.integer(column + 5, in: 0...Int64(Int32.max)))
        size = UInt64(row.integer(column + 6, in: 0...Int64.max))
        allocated = row.count(column + 7)
        content = row.count(column + 8)
        revision = row.count(column + 9)
        parent = row.count(column + 10)
        day = row.integer(column + 11, in: Self.days)
        flags = InodeFlags(rawValue: row.integer(column + 12))
        accessed = Self.time(row, column + 13)
        modified = Self.time(row, column + 15)
    }

    private static func time(_ row: Statement, _ column: Int32) -> Timestamp {
        Timestamp(
            seconds: row.integer(column), nanoseconds: UInt32(row.integer(column + 1, in: 0...999_999_999)))
    }

    static let columns =
        "inode.ino, mode, uid, gid, rdev, nlink, size, allocated, content, version, inode.parent, day, "
        + "flags, atime, atime_ns, mtime, mtime_ns, ctime, ctime_ns"
}

/// The next IDs, and totals. One row, written with each transaction that changes one of them.
public struct Counters: Sendable, Equatable {
    public var ino: UInt64
    public var content: UInt64
    public var dentry: UInt64
    /// Photos with this inode number or a higher one may lack a standard picture.
    public var pictured: UInt64
    /// Bytes of all photos.
    public var photoBytes: UInt64 = 0
    /// Bytes that kept pictures of photos take in the space.
    public var pictureBytes: UInt64 = 0

    public init(ino: UInt64, content: UInt64, dentry: UInt64, pictured: UInt64) {
        self.ino = ino
        self.content = content
        self.dentry = dentry
        self.pictured = pictured
    }

    fileprivate init(_ row: Statement) {
        self.init(
            ino: row.count(0), content: row.count(1), dentry: row.count(2), pictured: row.count(3)
        )
        // Wrong totals are harmless, and a repair counts them again.
        photoBytes = UInt64(clamping: row.integer(4))
        pictureBytes = UInt64(clamping: row.integer(5))
    }
}

struct InodeStatements {
    let find: Statement
    let store: Statement
    let delete: Statement
    let counters: Statement
    let storeCounters: Statement
    let addOrphan: Statement
    let removeOrphan: Statement
    let orphans: Statement
    let addPendingClassification: Statement
    let removePendingClassification: Statement
    let pendingClassification: Statement

    init(_ connection: Connection) {
        find = connection.prepare("SELECT \(InodeRow.columns) FROM inode WHERE ino=?")
        store = connection.prepare(
            "REPLACE INTO inode VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")
        delete = connection.prepare("DELETE FROM inode WHERE ino=?")
        counters = connection.prepare(
            "SELECT ino, content, dentry, pictured, photo_bytes, picture_bytes FROM counter WHERE id=1")
        storeCounters = connection.prepare(
            "UPDATE counter SET ino=?, content=?, dentry=?, pictured=?, photo_bytes=?, picture_bytes=? "
                + "WHERE id=1")
        addOrphan = connection.prepare("INSERT OR IGNORE INTO orphan VALUES(?)")
        removeOrphan = connection.prepare("DELETE FROM orphan WHERE ino=?")
        orphans = connection.prepare("SELECT ino FROM orphan WHERE ino>? ORDER BY ino LIMIT ?")
        addPendingClassification = connection.prepare(
            "INSERT OR IGNORE INTO classification_pending VALUES(?)")
        removePendingClassification = connection.prepare("DELETE FROM classification_pending WHERE ino=?")
        pendingClassification = connection.prepare("SELECT ino FROM classification_pending")
    }
}

extension Tables {
    public func inode(_ ino: UInt64) throws(CatalogueError) -> InodeRow? {
        inodes.find.bind(1, ino)
        return try inodes.find.one { InodeRow($0) }
    }

    /// Inserts or replaces the row.
    public func store(_ row: InodeRow) throws(CatalogueError) {
        let store = inodes.store
        store.bind(1, row.ino)
        store.bind(2, Int64(row.mode))
        store.bind(3, Int64(row.uid))
        store.bind(4, Int64(row.gid))
        store.bind(5, row.rdev)
        store.bind(6, Int64(row.nlink))
        store.bind(7, row.size)
        store.bind(8, row.allocated)
        store.bind(9, row.content)
        store.bind(10, row.revision)
        store.bind(11, row.parent)
        store.bind(12, row.day)
        store.bind(13, row.flags.rawValue)
        store.bind(14, row.accessed.seconds)
        store.bind(15, Int64(row.accessed.nanoseconds))
        store.bind(16, row.modified.seconds)
        store.bind(17, Int64(row.modified.nanoseconds))
        store.bind(18, row.changed.seconds)
        store.bind(19, Int64(row.changed.nanoseconds))
        try store.run()
    }

    public func deleteInode(_ ino: UInt64) throws(CatalogueError) {
        inodes.delete.bind(1, ino)
        try inodes.delete.run()
    }

    public func counters() throws(CatalogueError) -> Counters {
        guard let found = try inodes.counters.one({ Counters($0) }) else { throw .damaged }
        return found
    }

    public func store(_ counters: Counters) throws(CatalogueError) {
        inodes.storeCounters.bind(1, counters.ino)
        inodes.storeCounters.bind(2, counters.content)
        inodes.storeCounters.bind(3, counters.dentry)
        inodes.storeCounters.bind(4, counters.pictured)
        inodes.storeCounters.bind(5, counters.photoBytes)
        inodes.storeCounters.bind(6, counters.pictureBytes)
        try inodes.storeCounters.run()
    }

    public func addOrphan(_ ino: UInt64) throws(CatalogueError) {
        inodes.addOrphan.bind(1, ino)
        try inodes.addOrphan.run()
    }

    public func removeOrphan(_ ino: UInt64) throws(CatalogueError) {
        inodes.removeOrphan.bind(1, ino)
        try inodes.removeOrphan.run()
    }

    /// At most `limit` orphans with ids above `last`.
    public func orphans(after last: UInt64, limit: Int) throws(CatalogueError) -> [UInt64] {
        inodes.orphans.bind(1, last)
        inodes.orphans.bind(2, Int64(limit))
        return try inodes.orphans.all { $0.count(0, above: last) }
    }

    public func addPendingClassification(_ ino: UInt64) throws(CatalogueError) {
        inodes.addPendingClassification.bind(1, ino)
        try inodes.addPendingClassification.run()
    }

    public func removePendingClassification(_ ino: UInt64) throws(CatalogueError) {
        inodes.removePendingClassification.bind(1, ino)
        try inodes.removePendingClassification.run()
    }

    public func pendingClassification() throws(CatalogueError) -> [UInt64] {
        try inodes.pendingClassification.all { $0.count(0) }
    }
}
