public import CatalogueRows

extension PhotoRow {
    init(_ row: Statement) {
        self.init(ino: row.count(0), day: row.integer(1, in: InodeRow.days))
        isPinned = row.integer(2) != 0
        captured = row.integer(3, in: Self.times)
        capturedNanoseconds = row.integer(4, in: 0...999_999_999)
        source = row.bytes(5)
        media = row.integer(6)
        width = row.integer(7, in: Self.lengths)
        height = row.integer(8, in: Self.lengths)
        orientation = row.integer(9, in: Self.orientations)
        isDatedByMtime = row.integer(10) != 0
        former = row.isNull(11) ? nil : row.name(11)
        fingerprint = row.unsigned(12)
        camera = row.isNull(13) ? nil : row.name(13)
        kind = row.integer(14, in: Self.kinds)
        rating = row.integer(15, in: Self.ratings)
        arrived = row.count(16)
        group = row.isNull(18) ? nil : row.bytes(18)
    }
}

struct PhotoStatements {
    let find: Statement
    let store: Statement
    let delete: Statement
    let count: Statement
    let alike: Statement
    let redate: Statement
    let ofGroup: Statement

    init(_ connection: Connection) {
        find = connection.prepare("SELECT * FROM photo WHERE ino=?")
        let columns = [
            "ino", "day", "pinned", "captured", "captured_ns", "source", "media", "width", "height",
            "orientation", "undated", "former", "fingerprint", "camera", "kind", "rating", "group_id",
        ]
        let changes = columns.dropFirst().map { "\($0)=excluded.\($0)" }.joined(separator: ", ")
        let values = columns.map { _ in "?" }.joined(separator: ",")
        store = connection.prepare(
            "INSERT INTO photo(\(columns.joined(separator: ", ")), arrived, name) "
                + "VALUES(\(values), CASE ?18 WHEN 0 THEN ?1 ELSE ?18 END, NULL) ON CONFLICT(ino) DO UPDATE SET "
                + "\(changes), arrived=CASE ?18 WHEN 0 THEN arrived ELSE ?18 END")
        delete = connection.prepare("DELETE FROM photo WHERE ino=?")
        count = connection.prepare("SELECT count(*) FROM photo WHERE ino > 0")
        alike = connection.prepare("SELECT ino FROM photo WHERE fingerprint=? ORDER BY ino LIMIT ?")
        ofGroup = connection.prepare("SELECT ino FROM photo WHERE group_id=? ORDER BY ino LIMIT ?")
        redate = connection.prepare(
            "UPDATE photo SET day=?2, pinned=1, captured=?3 + ((captured % 86400) + 86400) % 86400, "
                + "source=?4 WHERE ino IN (SELECT ino FROM dentry WHERE parent=?1)")
    }
}

extension Tables {
    public func photo(_ ino: UInt64) throws(CatalogueError) -> PhotoRow? {
        photos.find.bind(1, ino)
        return try photos.find.one { PhotoRow($0) }
    }

    /// Inserts or replaces the row, except its name in views. A row that does not know when its photo arrived leaves
    /// that as it is.
    public func store(_ row: PhotoRow) throws(CatalogueError) {
        let store = photos.store
        store.bind(1, row.ino)
        store.bind(2, row.day)
        store.bind(3, row.isPinned ? 1 : 0 as Int64)
        store.bind(4, row.captured)
        store.bind(5, row.capturedNanoseconds)
        store.bind(6, row.source)
        store.bind(7, row.media)
        store.bind(8, row.width)
        store.bind(9, row.height)
        store.bind(10, row.orientation)
        store.bind(11, row.isDatedByMtime ? 1 : 0 as Int64)
        store.bind(12, row.former)
        store.bind(13, row.fingerprint)
        store.bind(14, row.camera)
        store.bind(15, row.kind)
        store.bind(16, row.rating)
        store.bind(17, row.group)
        store.bind(18, row.arrived)
        try store.run()
    }

    public func deletePhoto(_ ino: UInt64) throws(CatalogueError) {
        photos.delete.bind(1, ino)
        try photos.delete.run()
    }

    /// Pins all photos of a directory to a day that begins `midnight` seconds after 1970 on its own clock;
    /// their times of day stay.
    public func redatePhotos(
        in parent: UInt64, to day: Int64, midnight: Int64, source: [UInt8]
    ) throws(CatalogueError) {
        photos.redate.bind(1, parent)
        photos.redate.bind(2, day)
        photos.redate.bind(3, midnight)
        photos.redate.bind(4, source)
        try photos.redate.run()
    }

    /// How many photos there are. Walks an index: for `status`, not for requests.
    public func photoCount() throws(CatalogueError) -> Int64 {
        try photos.count.one { $0.integer(0) } ?? 0
    }

    /// Photos with that identifier of a Live Photo or a burst, the oldest first, at most `limit`. Also those in the
    /// trash.
    public func photos(group: [UInt8], limit: Int) throws(CatalogueError) -> [UInt64] {
        photos.ofGroup.bind(1, group)
        photos.ofGroup.bind(2, Int64(limit))
        return try photos.ofGroup.all { $0.count(0) }
    }

    /// Photos of that fingerprint, the oldest first, at most `limit`.
    public func photos(fingerprint: UInt64, limit: Int) throws(CatalogueError) -> [UInt64] {
        photos.alike.bind(1, fingerprint)
        photos.alike.bind(2, Int64(limit))
        return try photos.alike.all { $0.count(0) }
    }
}
