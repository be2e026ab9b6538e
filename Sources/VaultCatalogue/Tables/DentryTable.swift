public import CatalogueRows
public import FileRequests

/// A photo or a copy of one in a directory; see `DentryTable.newestPhotos`.
public struct PlacedPhoto: Sendable, Equatable {
    public var name: [UInt8]
    /// The inode that has the name.
    public var ino: UInt64
    /// The photo that it is or stands for.
    public var photo: UInt64
}

private struct DentryStatements {
    let find: Statement
    let insert: Statement
    let delete: Statement
    let retarget: Statement
    let enrol: Statement
    let ofInode: Statement
    let list: Statement
    let listInodes: Statement
    let listPhotos: Statement
    let anyPhoto: Statement
    let emptyDays: Statement
    let beginning: Statement
    let newestPhotos: Statement

    init(_ connection: Connection) {
        let isPhoto =
            "(EXISTS(SELECT 1 FROM photo WHERE photo.ino=dentry.ino) "
            + "OR EXISTS(SELECT 1 FROM copy WHERE copy.ino=dentry.ino))"
        find = connection.prepare("SELECT id, ino, member FROM dentry WHERE parent=? AND name=?")
        insert = connection.prepare("INSERT INTO dentry VALUES(?,?,?,?,?)")
        delete = connection.prepare("DELETE FROM dentry WHERE parent=? AND id=?")
        retarget = connection.prepare("UPDATE dentry SET ino=?3 WHERE parent=?1 AND id=?2")
        enrol = connection.prepare(
            "UPDATE dentry SET member=1 WHERE parent=? AND ino IN (SELECT ino FROM photo)")
        ofInode = connection.prepare(
            "SELECT parent, id, name, member FROM dentry WHERE ino=? ORDER BY id")
        list = connection.prepare("SELECT id, name, ino FROM dentry WHERE parent=? AND id>? ORDER BY id")
        listInodes = connection.prepare(
            "SELECT dentry.id, dentry.name, dentry.ino, \(InodeRow.columns) FROM dentry "
                + "LEFT JOIN inode ON inode.ino=dentry.ino WHERE dentry.parent=? AND dentry.id>? "
                + "ORDER BY dentry.id"
        )
        listPhotos = connection.prepare(
            "SELECT id, name, ino FROM dentry WHERE parent=? AND id>? AND \(isPhoto) ORDER BY id")
        anyPhoto = connection.prepare(
            "SELECT 1 FROM dentry WHERE parent=? AND \(isPhoto) LIMIT 1")
        beginning = connection.prepare(
            "SELECT id, name, ino FROM dentry WHERE parent=? AND name>=? AND name<? ORDER BY name LIMIT ?")
        emptyDays = connection.prepare(
            "SELECT dentry.id, dentry.name, dentry.ino, "
                + "inode.size=0 AND inode.day<>0 AND (inode.flags & 1)=0 FROM dentry "
                + "JOIN inode ON inode.ino=dentry.ino WHERE dentry.parent=? AND dentry.id>? "
                + "ORDER BY dentry.id LIMIT ?")
        newestPhotos = connection.prepare(
            "SELECT placed.name, placed.ino, photo.ino FROM "
                + "(SELECT id, name, ino FROM dentry WHERE parent=?1 ORDER BY id DESC LIMIT ?2) AS placed "
                + "LEFT JOIN copy ON copy.ino=placed.ino "
                + "JOIN photo ON photo.ino=coalesce(copy.photo, placed.ino) "
                + "ORDER BY photo.captured DESC, photo.captured_ns DESC, placed.id DESC LIMIT ?3")
    }
}

/// Table `dentry`: the names of inodes in directories.
public final class DentryTable {
    private let statements: DentryStatements

    init(_ connection: Connection) { statements = DentryStatements(connection) }

    /// The entry of that name, or nil.
    public func entry(
        _ parent: UInt64, _ name: [UInt8]
    ) throws(FileError) -> (id: UInt64, ino: UInt64, isMember: Bool)? {
        statements.find.bind(1, parent)
        statements.find.bind(2, name)
        return try statements.find.one { row in
            let found = DentryRow(
                parent: parent, id: row.count(0), name: name, ino: row.count(1), member: row.integer(2))
            return (found.id, found.ino, found.isMember)
        }
    }

    /// Adds an entry; there must be none of that name.
    public func insert(_ row: DentryRow) throws(FileError) {
        statements.insert.bind(1, row.parent)
        statements.insert.bind(2, row.id)
        statements.insert.bind(3, row.name)
        statements.insert.bind(4, row.ino)
        statements.insert.bind(5, row.member)
        try statements.insert.run()
    }

    public func delete(_ parent: UInt64, _ id: UInt64) throws(FileError) {
        statements.delete.bind(1, parent)
        statements.delete.bind(2, id)
        try statements.delete.run()
    }

    /// Makes the entry name another inode.
    public func retarget(_ parent: UInt64, _ id: UInt64, to ino: UInt64) throws(FileError) {
        statements.retarget.bind(1, parent)
        statements.retarget.bind(2, id)
        statements.retarget.bind(3, ino)
        try statements.retarget.run()
    }

    /// Makes all photos' names in a directory memberships.
    public func makeMembers(in parent: UInt64) throws(FileError) {
        statements.enrol.bind(1, parent)
        try statements.enrol.run()
    }

    /// Every name of an inode, oldest first.
    public func names(of ino: UInt64) throws(FileError) -> [DentryRow] {
        statements.ofInode.bind(1, ino)
        return try statements.ofInode.all {
            DentryRow(
                parent: $0.count(0), id: $0.count(1), name: $0.name(2), ino: ino, member: $0.integer(3))
        }
    }

    /// The entries of a directory after a cookie, in the cookies' order, until `visit` returns false.
    public func each(
        in parent: UInt64, after cookie: UInt64, _ visit: (DentryRow) -> Bool
    ) throws(FileError) {
        statements.list.bind(1, parent)
        statements.list.bind(2, cookie)
        try statements.list.each { visit(listed($0, in: parent, after: cookie)) }
    }

    private func listed(_ row: Statement, in parent: UInt64, after cookie: UInt64) -> DentryRow {
        DentryRow(parent: parent, id: row.count(0, above: cookie), name: row.name(1), ino: row.count(2))
    }

    /// As `eachDentry`, with the inodes' rows. A row is nil if the inode is not stored yet.
    public func eachWithInode(
        in parent: UInt64, after cookie: UInt64, _ visit: (DentryRow, InodeRow?) -> Bool
    ) throws(FileError) {
        statements.listInodes.bind(1, parent)
        statements.listInodes.bind(2, cookie)
        try statements.listInodes.each {
            visit(listed($0, in: parent, after: cookie), $0.isNull(3) ? nil : InodeRow($0, from: 3))
        }
    }

    /// As `eachDentry`, but only photos and copies of photos.
    public func eachPhoto(
        in parent: UInt64, after cookie: UInt64, _ visit: (DentryRow) -> Bool
    ) throws(FileError) {
        statements.listPhotos.bind(1, parent)
        statements.listPhotos.bind(2, cookie)
        try statements.listPhotos.each { visit(listed($0, in: parent, after: cookie)) }
    }

    /// Whether the directory has a photo, or a copy of one.
    public func hasPhotos(_ parent: UInt64) throws(FileError) -> Bool {
        statements.anyPhoto.bind(1, parent)
        return try statements.anyPhoto.one { _ in true } ?? false
    }

    /// The entries whose names have this prefix, at most `limit`. The prefix must not be empty or end in 0xFF.
    public func names(
        in parent: UInt64, beginning prefix: [UInt8], limit: Int
    ) throws(FileError) -> [DentryRow] {
        statements.beginning.bind(1, parent)
        statements.beginning.bind(2, prefix)
        statements.beginning.bind(3, Self.end(ofPrefix: prefix))
        statements.beginning.bind(4, Int64(limit))
        return try statements.beginning.all {
            DentryRow(parent: parent, id: $0.count(0), name: $0.name(1), ino: $0.count(2))
        }
    }

    /// The first name behind all that have this prefix.
    static func end(ofPrefix prefix: [UInt8]) -> [UInt8] {
        var end = prefix
        end[end.count - 1] += 1
        return end
    }

    /// Which of some days in `moments`, those after an entry's id, are empty and were not made by mkdir. Reads stored
    /// rows only.
    ///
    /// - Returns: also the id of the last day that was looked at; nil if there is none.
    public func emptyDays(
        in moments: UInt64, after id: UInt64, among count: Int
    ) throws(FileError) -> (days: [DentryRow], last: UInt64?) {
        statements.emptyDays.bind(1, moments)
        statements.emptyDays.bind(2, id)
        statements.emptyDays.bind(3, Int64(count))
        let rows = try statements.emptyDays.all {
            (
                day: DentryRow(parent: moments, id: $0.count(0), name: $0.name(1), ino: $0.count(2)),
                isEmpty: $0.integer(3) != 0
            )
        }
        // In a damaged table they may be out of order: a caller would begin again.
        if let last = rows.last?.day.id, last <= id { throw .damaged }
        return (rows.filter(\.isEmpty).map(\.day), rows.last?.day.id)
    }

    /// The photos of a directory that were taken last, the newest first, at most `limit`. Only the `among` names that
    /// were added to the directory last are examined.
    public func newestPhotos(
        in parent: UInt64, among: Int, limit: Int
    ) throws(FileError) -> [PlacedPhoto] {
        statements.newestPhotos.bind(1, parent)
        statements.newestPhotos.bind(2, Int64(among))
        statements.newestPhotos.bind(3, Int64(limit))
        return try statements.newestPhotos.all {
            PlacedPhoto(name: $0.name(0), ino: $0.count(1), photo: $0.count(2))
        }
    }
}
