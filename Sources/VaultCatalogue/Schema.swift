import CSQLite
import FileRequests
import VaultFormat

/// The tables, and the steps by which catalogues of older versions come to them. IDs (inode, content, dentry) are never
/// reused.
///
/// - `inode`: one row per file, directory, link or node. Times are seconds and nanoseconds. `content` names the extents
///   of a regular file, `allocated` counts their plaintext bytes, `version` grows with every change of the bytes. For a
///   directory `size` counts its entries, `parent` is its parent directory and `day` its date as YYYYMMDD if it is a
///   day of moments, else 0.
/// - `dentry`: names in directories. `id` is the readdir cookie. `member` is 1 if the name puts a photo of moments into
///   an album, 2 if it is a hard link of a photo's name in an album, 0 for an ordinary name.
/// - `extent`: runs of sealed chunks (`ExtentRun`). Its index by sector, like that of `identity`, tells before a write
///   whether the sectors are in use. Rows of a snapshot (`SnapshotID`) name sectors that its source and its other
///   snapshots may name too.
/// - `photo`: one row per inode that is a photo. `captured` is the wall clock as seconds since 1970 on that same clock.
///   `source` may end with the zone by which it was made local.
///   `former` is the name that it was renamed from in its day, as long as it may be a backup of that name.
///   `fingerprint` is computed from the bytes: equal bytes have equal fingerprints. `camera`, `kind`, `rating` and
///   `arrived` put it into views; `name` is its name in all of them, which no other photo has, or NULL if it is in
///   none. `group_id` is the identifier of a Live Photo or a burst, or NULL.
/// - `copy`: inodes that are copies of another inode's photo. `share`: contents that several inodes have, and their
///   number.
/// - `thumbnail`: sealed pictures of photos, made from `version`: as large as fits in `width` by `height` pixels, or
///   filling them if `fill` is 1; `format` is 0 for JPEG, 1 for PNG. `length` -1 records that none can be made.
/// - `thumbnail_pending`: ranges of inode numbers, `first` inclusive, `end` exclusive, whose photos may lack a standard
///   thumbnail. Ranges do not overlap. All photos from `counter.pictured` on may lack one too, without a range here.
/// - `likeness`: hashes of photos' standard thumbnails, 8 bytes each: those of inodes 64 b to 64 b + 63 in block b. See
///   `LikenessTable`.
/// - `position`: where photos were taken, 8 bytes each, in blocks as those of `likeness`. See `PositionTable`.
/// - `counter`: the next IDs, and totals: bytes of all photos, and bytes that their pictures take.
/// - `orphan`: inodes without a name that are still in use. `classification_pending`: directories renamed from a
///   working name, whose files await classification; files that were synced before they were closed.
/// - `trash`: contents of the trash, and the time of their removal (`since`). `id` is that of an entry of the inode, or
///   0 for a photo that was removed from moments, where its name was `name`. `name` of a sidecar: the inodes of the
///   photos that it described in the day that it was removed from alone, in decimal, with spaces between; 0 for none;
///   empty if an early release removed it. `noted` is the time when it was first seen to be too old.
/// - `trash_name`: the names in albums that a photo lost when it was removed from moments: its own and those of its
///   copies, which have none until these are restored; and the names of its sidecars and its Live Photo's video, which
///   come back with it if they lie in the trash.
/// - `identity`: the location of the identity record of an inode, or of a block of `retired`; `unrecorded`: those whose
///   record must be written. `retired`: retired numbers, so that older records of them are ignored: bit i of block b
///   stands for number 2048 b + i, of inodes, or, if 2^40 is added to the block's number, of contents. The record of a
///   block has the block's number plus 2^62. `recorder`: the mount that wrote records last, and the commit.
struct Schema: Sendable {
    /// The tables and indexes of the newest version, with the rows of a new catalogue.
    var statements = newest
    var migrations = Migration.all

    static let current = Schema()

    /// The newest version: the one that writing leaves.
    var version: Int { migrations.last?.version ?? 1 }

    private static let newest = """
        CREATE TABLE inode(
            ino INTEGER PRIMARY KEY, mode INTEGER NOT NULL, uid INTEGER NOT NULL, gid INTEGER NOT NULL,
            rdev INTEGER NOT NULL, nlink INTEGER NOT NULL, size INTEGER NOT NULL, allocated INTEGER NOT NULL,
            content INTEGER NOT NULL, version INTEGER NOT NULL, parent INTEGER NOT NULL, day INTEGER NOT NULL,
            flags INTEGER NOT NULL, atime INTEGER NOT NULL, atime_ns INTEGER NOT NULL, mtime INTEGER NOT NULL,
            mtime_ns INTEGER NOT NULL, ctime INTEGER NOT NULL, ctime_ns INTEGER NOT NULL) STRICT;
        CREATE TABLE dentry(
            parent INTEGER NOT NULL, id INTEGER NOT NULL, name BLOB NOT NULL, ino INTEGER NOT NULL,
            member INTEGER NOT NULL, PRIMARY KEY(parent, id)) STRICT, WITHOUT ROWID;
        CREATE UNIQUE INDEX dentry_name ON dentry(parent, name);
        CREATE INDEX dentry_ino ON dentry(ino);
        CREATE TABLE extent(
            content INTEGER NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL,
            sector INTEGER NOT NULL, generation INTEGER NOT NULL, epoch INTEGER NOT NULL,
            PRIMARY KEY(content, offset)) STRICT, WITHOUT ROWID;
        CREATE INDEX extent_sector ON extent(sector, length);
        CREATE TABLE symlink(ino INTEGER PRIMARY KEY, target BLOB NOT NULL) STRICT;
        CREATE TABLE xattr(
            ino INTEGER NOT NULL, name BLOB NOT NULL, value BLOB NOT NULL,
            PRIMARY KEY(ino, name)) STRICT, WITHOUT ROWID;
        CREATE TABLE photo(
            ino INTEGER PRIMARY KEY, day INTEGER NOT NULL, pinned INTEGER NOT NULL, captured INTEGER NOT NULL,
            captured_ns INTEGER NOT NULL, source BLOB NOT NULL, media INTEGER NOT NULL,
            width INTEGER NOT NULL, height INTEGER NOT NULL, orientation INTEGER NOT NULL,
            undated INTEGER NOT NULL, former BLOB, fingerprint INTEGER NOT NULL, camera BLOB,
            kind INTEGER NOT NULL, rating INTEGER NOT NULL, arrived INTEGER NOT NULL, name BLOB,
            group_id BLOB) STRICT;
        CREATE INDEX photo_fingerprint ON photo(fingerprint);
        CREATE INDEX photo_group ON photo(group_id, ino) WHERE group_id IS NOT NULL;
        CREATE INDEX photo_name ON photo(name) WHERE name IS NOT NULL;
        CREATE INDEX photo_day ON photo(day, ino) WHERE name IS NOT NULL;
        CREATE INDEX photo_camera ON photo(camera, ino) WHERE name IS NOT NULL AND camera IS NOT NULL;
        CREATE INDEX photo_kind ON photo(kind, ino) WHERE name IS NOT NULL AND kind > 0;
        CREATE INDEX photo_rating ON photo(rating, ino) WHERE name IS NOT NULL AND rating > 0;
        CREATE INDEX photo_arrived ON photo(arrived, ino) WHERE name IS NOT NULL;
        CREATE TABLE copy(ino INTEGER PRIMARY KEY, photo INTEGER NOT NULL) STRICT;
        CREATE INDEX copy_photo ON copy(photo);
        CREATE TABLE share(content INTEGER PRIMARY KEY, users INTEGER NOT NULL) STRICT;
        CREATE TABLE thumbnail(
            ino INTEGER NOT NULL, width INTEGER NOT NULL, height INTEGER NOT NULL, fill INTEGER NOT NULL,
            format INTEGER NOT NULL, content INTEGER NOT NULL, length INTEGER NOT NULL,
            version INTEGER NOT NULL,
            PRIMARY KEY(ino, width, height, fill, format)) STRICT, WITHOUT ROWID;
        CREATE TABLE thumbnail_pending(first INTEGER PRIMARY KEY, end INTEGER NOT NULL) STRICT;
        CREATE TABLE likeness(block INTEGER PRIMARY KEY, hashes BLOB NOT NULL) STRICT;
        CREATE TABLE position(block INTEGER PRIMARY KEY, points BLOB NOT NULL) STRICT;
        CREATE TABLE orphan(ino INTEGER PRIMARY KEY) STRICT;
        CREATE TABLE classification_pending(ino INTEGER PRIMARY KEY) STRICT;
        CREATE TABLE trash(
            ino INTEGER NOT NULL, id INTEGER NOT NULL, since INTEGER NOT NULL, noted INTEGER,
            name BLOB NOT NULL, PRIMARY KEY(ino, id)) STRICT, WITHOUT ROWID;
        CREATE INDEX trash_since ON trash(since, ino);
        CREATE INDEX trash_noted ON trash(noted) WHERE noted IS NOT NULL;
        CREATE TABLE trash_name(
            photo INTEGER NOT NULL, id INTEGER NOT NULL, parent INTEGER NOT NULL, name BLOB NOT NULL,
            ino INTEGER NOT NULL, member INTEGER NOT NULL, PRIMARY KEY(photo, id)) STRICT, WITHOUT ROWID;
        CREATE TABLE identity(
            id INTEGER PRIMARY KEY, length INTEGER NOT NULL, sector INTEGER NOT NULL,
            generation INTEGER NOT NULL, epoch INTEGER NOT NULL) STRICT;
        CREATE INDEX identity_sector ON identity(sector, length);
        CREATE TABLE unrecorded(id INTEGER PRIMARY KEY) STRICT;
        CREATE TABLE retired(block INTEGER PRIMARY KEY, bits BLOB NOT NULL) STRICT;
        CREATE TABLE recorder(
            id INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, generation INTEGER NOT NULL) STRICT;
        CREATE TABLE counter(
            id INTEGER PRIMARY KEY, ino INTEGER NOT NULL, content INTEGER NOT NULL,
            dentry INTEGER NOT NULL, pictured INTEGER NOT NULL, photo_bytes INTEGER NOT NULL,
            picture_bytes INTEGER NOT NULL) STRICT;
        INSERT INTO counter VALUES(1, 16, 16, 16, 16, 0, 0);
        """

    /// How a database is opened.
    enum Access {
        /// As it is: nothing is written. Older tables must be as the newest but for indexes.
        case reading
        /// Changes stay in memory: older tables are brought up to date, without indexes.
        case overlay
        case writing
    }

    /// Creates the tables in an empty database, brings those of an older version up to date, in one transaction, or
    /// checks those of this version. Throws `newer` if the version is not known, and `damaged` if the database has
    /// other tables than its version, or anything else that is not in `statements`, such as triggers.
    ///
    /// - Returns: whether an older version was brought up to date.
    @discardableResult
    func prepare(_ connection: Connection, _ access: Access) throws(CatalogueError) -> Bool {
        let newer = try opening { () throws(FileError) in try newerVersion(of: connection) }
        if let newer { throw .newer(newer) }
        return try opening { () throws(FileError) in try prepareKnown(connection, access) }
    }

    /// The version of the tables if this release does not know it.
    private func newerVersion(of connection: Connection) throws(FileError) -> NewerVersion? {
        let found = try Self.version(of: connection)
        guard found > version else { return nil }
        let release = try connection.prepare("PRAGMA application_id").one {
            Release(number: UInt32(truncatingIfNeeded: $0.integer(0)))
        }
        return NewerVersion(.catalogue, version: found, release: release ?? .unknown)
    }

    private func prepareKnown(_ connection: Connection, _ access: Access) throws(FileError) -> Bool {
        let found = try Self.version(of: connection)
        if found == version {
            try requireShape(connection)
            return false
        }
        guard found > 0 else {
            guard found == 0 else { throw .damaged }
            try inTransaction(connection) { () throws(FileError) in try connection.execute(statements) }
            return false
        }
        let steps = migrations.filter { $0.version > found }
        if access == .reading {
            try requireShape(connection, lacking: steps.flatMap(\.statements))
            return false
        }
        try requirePlainTables(connection)
        try inTransaction(connection) { () throws(FileError) in
            for step in steps { try take(step, connection, withIndexes: access == .writing) }
            try requireShape(
                connection, lacking: access == .writing ? [] : steps.flatMap(\.statements))
        }
        return true
    }

    static func version(of connection: Connection) throws(FileError) -> Int {
        try connection.prepare("PRAGMA user_version").one { Int($0.integer(0)) } ?? 0
    }

    /// Whether a reader must see the tables changed to find in them what the newest version has.
    ///
    /// - Parameter version: read only if there are changes at all.
    func changesTables(since version: @autoclosure () -> Int) -> Bool {
        guard let last = migrations.last(where: \.changesTables)?.version else { return false }
        return 1..<last ~= version()
    }

    /// Runs `body`, and notes the newest version. An error leaves the database as it was.
    private func inTransaction(
        _ connection: Connection, _ body: () throws(FileError) -> Void
    ) throws(FileError) {
        try connection.execute("BEGIN")
        do throws(FileError) {
            try body()
            try connection.execute("PRAGMA user_version = \(version)")
            let release = migrations.last?.release ?? .unknown
            try connection.execute("PRAGMA application_id = \(Int32(bitPattern: release.number))")
            try connection.execute("COMMIT")
        } catch {
            // SQLite may have rolled back by itself; then this fails, and changes nothing.
            try? connection.execute("ROLLBACK")
            throw error
        }
    }

    private func take(
        _ step: Migration, _ connection: Connection, withIndexes: Bool
    ) throws(FileError) {
        for statement in step.statements {
            if Migration.makesIndex(statement) {
                let isThere = try Self.shape(of: connection).contains(Self.words(statement.utf8))
                if !withIndexes || isThere { continue }
            }
            try connection.execute(statement)
        }
        try step.transform?(connection)
    }

    // MARK: Shape

    /// Throws `damaged` if the database has anything but these tables and indexes.
    ///
    /// - Parameter lacking: statements of indexes that may be missing.
    private func requireShape(_ connection: Connection, lacking: [String] = []) throws(FileError) {
        let found = try Self.shape(of: connection)
        let ours = Set(
            statements.utf8.split(separator: UInt8(ascii: ";")).map { Self.words($0) }
                .filter { $0.first == "CREATE" })
        let mayLack = Set(lacking.filter(Migration.makesIndex).map { Self.words($0.utf8) })
        guard found.isSubset(of: ours), ours.subtracting(found).isSubset(of: mayLack) else { throw .damaged }
    }

    /// Throws `damaged` if the database has anything but tables and indexes: a trigger would run while it is changed.
    private func requirePlainTables(_ connection: Connection) throws(FileError) {
        for words in try Self.shape(of: connection) {
            guard words.count > 2, words[0] == "CREATE", ["TABLE", "INDEX", "UNIQUE"].contains(words[1])
            else {
                throw .damaged
            }
        }
    }

    /// The statements of everything in the database, as words.
    private static func shape(of connection: Connection) throws(FileError) -> Set<[String]> {
        let query = connection.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
        return Set(try query.all { words($0.bytes(0)) })
    }

    /// A statement's words, without its layout. Splits bytes: splitting characters was a fifth of a small check.
    private static func words(_ statement: some Collection<UInt8>) -> [String] {
        statement.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\n") }
            .map { String(decoding: $0, as: UTF8.self) }
    }
}
