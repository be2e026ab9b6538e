public import FileRequests

/// Mends rows that need more than statements: free names and numbers.
///
/// Under the catalogue's lock. None of it loses bytes; entries that have lost their place go to `albums/Recovered`.
public final class CatalogueMender {
    /// Makes a valid and free name from one that may be neither.
    public typealias NameChooser = (
        _ wanted: [UInt8], _ isFree: ([UInt8]) throws(FileError) -> Bool
    ) throws(FileError) -> [UInt8]

    let tables: Tables
    let chooseName: NameChooser
    /// `albums/Recovered`, once there is one.
    private var recovered: Int64?

    static let root: Int64 = 1
    static let moments: Int64 = 2
    static let albums: Int64 = 3

    public init(_ tables: Tables, chooseName: @escaping NameChooser) {
        self.tables = tables
        self.chooseName = chooseName
    }

    /// Mends the violations of a constraint, and marks the identity records that are outdated by it.
    ///
    /// - Parameter extents: mends violations that need the extents' bytes.
    public func mend(
        _ constraint: IntegrityConstraint, extents: () throws(FileError) -> Void
    ) throws(FileError) {
        // The repair of extents reads identity records, and marks those that it has outdated.
        if constraint.remedy != .extents { try mark(constraint) }
        switch constraint.remedy {
        case .none: break
        case .statements(let statements): for statement in statements { try execute(statement) }
        case .mender(let step): try take(step)
        case .extents: try extents()
        }
    }

    private func mark(_ constraint: IntegrityConstraint) throws(FileError) {
        let column = constraint.subject == .inode ? "ino" : "content"
        try execute(
            "INSERT OR IGNORE INTO unrecorded SELECT ino FROM inode "
                + "WHERE ino >= 16 AND \(column) IN (\(constraint.query))")
    }

    private func take(_ step: IntegrityConstraint.Remedy.Step) throws(FileError) {
        switch step {
        case .counters: try mendCounters()
        case .wellKnownDirectories: try mendWellKnownDirectories()
        case .inodeNumbers: try mendInodeNumbers()
        case .contentNumbers: try mendContentNumbers()
        case .nameNumbers: try mendNameNumbers()
        case .names: try mendNames()
        case .takenNames: try mendTakenNames()
        case .attributeNames: try mendAttributeNames()
        case .directories: try mendDirectories()
        case .strayNames: try mendStrayNames()
        case .nameless: try mendNameless()
        case .unreachable: try mendUnreachable()
        case .days: try mendDays()
        case .moments: try mendMoments()
        case .versions: try mendVersions()
        case .viewNames: try mendViewNames()
        }
    }

    // MARK: Rows

    func execute(_ statement: String) throws(FileError) { try tables.connection.execute(statement) }

    /// Runs a statement with numbers and bytes as its parameters.
    func execute(_ statement: String, _ values: [Value]) throws(FileError) {
        try prepared(statement, values).run()
    }

    func all<R>(
        _ query: String, _ values: [Value] = [], _ row: (Statement) -> R
    ) throws(FileError) -> [R] {
        try prepared(query, values).all(row)
    }

    /// The numbers in the first column.
    func numbers(_ query: String, _ values: [Value] = []) throws(FileError) -> [Int64] {
        try all(query, values) { $0.integer(0) }
    }

    private func prepared(_ text: String, _ values: [Value]) -> Statement {
        let statement = tables.connection.prepare(text)
        for (index, value) in values.enumerated() {
            switch value {
            case .number(let number): statement.bind(Int32(index + 1), number)
            case .bytes(let bytes): statement.bind(Int32(index + 1), bytes)
            }
        }
        return statement
    }

    enum Value {
        case number(Int64)
        case bytes([UInt8])
    }

    /// The next number of a kind: a column of `counter`.
    func next(_ column: String) throws(FileError) -> Int64 {
        guard let number = try numbers("SELECT \(column) FROM counter WHERE id = 1").first else {
            throw .damaged
        }
        try execute("UPDATE counter SET \(column) = ?1 WHERE id = 1", [.number(number &+ 1)])
        return number
    }

    /// Marks the record of an inode as outdated.
    func markRecord(_ ino: Int64) throws(FileError) {
        if ino >= 16 { try tables.identities.markUnrecorded(UInt64(ino)) }
    }

    // MARK: Names

    /// A free name in a directory, as close to the wanted one as possible.
    func freeName(_ wanted: [UInt8], in parent: Int64) throws(FileError) -> [UInt8] {
        try chooseName(wanted) { name throws(FileError) in
            try numbers(
                "SELECT 1 FROM dentry WHERE parent = ?1 AND name = ?2", [.number(parent), .bytes(name)]
            ).isEmpty
        }
    }

    func addName(_ wanted: [UInt8], of ino: Int64, in parent: Int64) throws(FileError) {
        let name = try freeName(wanted, in: parent)
        try execute(
            "INSERT INTO dentry VALUES(?1, ?2, ?3, ?4, 0)",
            [.number(parent), .number(try next("dentry")), .bytes(name), .number(ino)])
        try markRecord(ino)
    }

    /// Moves a name into another directory.
    func move(_ entry: Entry, to parent: Int64) throws(FileError) {
        try execute(
            "DELETE FROM dentry WHERE parent = ?1 AND id = ?2", [.number(entry.parent), .number(entry.id)])
        try addName(entry.name, of: entry.ino, in: parent)
    }

    /// A row of `dentry`, valid or not.
    struct Entry {
        var parent: Int64
        var id: Int64
        var name: [UInt8]
        var ino: Int64
    }

    /// Rows of `dentry` that meet a condition.
    func entries(where condition: String, _ values: [Value] = []) throws(FileError) -> [Entry] {
        try all("SELECT parent, id, name, ino FROM dentry WHERE \(condition) ORDER BY parent, id", values) {
            Entry(parent: $0.integer(0), id: $0.integer(1), name: $0.bytes(2), ino: $0.integer(3))
        }
    }

    private func mendNames() throws(FileError) {
        for entry in try entries(where: "NOT \(ConstraintSQL.isName("name"))") {
            let name = try freeName(try dayName(of: entry) ?? entry.name, in: entry.parent)
            try execute(
                "UPDATE dentry SET name = ?3 WHERE parent = ?1 AND id = ?2",
                [.number(entry.parent), .number(entry.id), .bytes(name)])
            try markRecord(entry.ino)
        }
    }

    /// The right name of a day of moments; nil for any other entry.
    private func dayName(of entry: Entry) throws(FileError) -> [UInt8]? {
        guard entry.parent == Self.moments else { return nil }
        return try all(
            "SELECT CAST(\(ConstraintSQL.dayName("day")) AS BLOB) FROM inode "
                + "WHERE ino = ?1 AND \(ConstraintSQL.isDay("day"))",
            [.number(entry.ino)]
        ) { $0.bytes(0) }.first
    }

    /// The directories in which these names will be used are unknown: each name is only made valid.
    private func mendTakenNames() throws(FileError) {
        for (table, key) in [("trash", "ino"), ("trash_name", "photo")] {
            let query =
                "SELECT \(key), id, name FROM \(table) WHERE NOT \(ConstraintSQL.isName("name"))"
                + (table == "trash" ? " AND id = 0" : "")
            for (number, id, name) in try all(query, [], { ($0.integer(0), $0.integer(1), $0.bytes(2)) }) {
                let chosen = try chooseName(name) { _ throws(FileError) in true }
                try execute(
                    "UPDATE \(table) SET name = ?3 WHERE \(key) = ?1 AND id = ?2",
                    [.number(number), .number(id), .bytes(chosen)])
            }
        }
    }

    private func mendAttributeNames() throws(FileError) {
        let rows = try all("SELECT ino, name FROM xattr WHERE NOT \(IntegrityConstraint.isAttributeName)") {
            ($0.integer(0), $0.bytes(1))
        }
        let prefix = Array("user.".utf8)
        for (ino, name) in rows {
            let rest = Array(
                (name.starts(with: prefix) ? name.dropFirst(prefix.count) : name[...]).prefix(200))
            let chosen = try chooseName(rest) { name throws(FileError) in
                try numbers(
                    "SELECT 1 FROM xattr WHERE ino = ?1 AND name = ?2", [.number(ino), .bytes(prefix + name)]
                ).isEmpty
            }
            try execute(
                "UPDATE xattr SET name = ?3 WHERE ino = ?1 AND name = ?2",
                [.number(ino), .bytes(name), .bytes(prefix + chosen)])
        }
    }

    // MARK: albums/Recovered

    /// The directory of entries that have lost their place.
    func recoveredDirectory() throws(FileError) -> Int64 {
        if let recovered { return recovered }
        let made = try makeDirectory(Array("Recovered".utf8), in: Self.albums)
        recovered = made
        return made
    }

    /// Makes a directory with the owner of its parent. Counts of links and entries are mended later.
    func makeDirectory(_ name: [UInt8], in parent: Int64, day: Int64 = 0) throws(FileError) -> Int64 {
        let ino = try next("ino")
        try execute(
            """
            INSERT INTO inode(\(Self.filledColumns))
            SELECT ?1, 16384 | (mode & 511), uid, gid, 0, 2, 0, 0, 0, 0, ino, ?3, 0,
                \(Self.now), 0, \(Self.now), 0, \(Self.now), 0 FROM inode WHERE ino = ?2
            """, [.number(ino), .number(parent), .number(day)])
        try addName(name, of: ino, in: parent)
        return ino
    }

    /// The columns of `inode` to which a mender gives values. Others have their defaults.
    static let filledColumns = """
        ino, mode, uid, gid, rdev, nlink, size, allocated, content, version, parent, day, flags,
        atime, atime_ns, mtime, mtime_ns, ctime, ctime_ns
        """

    private static let now = "CAST(strftime('%s', 'now') AS INTEGER)"

    /// Makes a file for a content that no file has; the next mount classifies it.
    public func recover(content: UInt64) throws(FileError) {
        let (ino, parent) = (try next("ino"), try recoveredDirectory())
        try execute(
            """
            INSERT INTO inode(\(Self.filledColumns))
            SELECT ?1, 32768 | 420, uid, gid, 0, 1, 0, 0, ?3, 1, 0, 0, 0,
                \(Self.now), 0, \(Self.now), 0, \(Self.now), 0 FROM inode WHERE ino = ?2
            """, [.number(ino), .number(parent), .number(Int64(bitPattern: content))])
        try execute(
            """
            UPDATE inode SET size = \(ConstraintSQL.storedEnd), allocated = \(ConstraintSQL.storedBytes) WHERE ino = ?1
            """, [.number(ino)])
        try addName(Array("content \(content)".utf8), of: ino, in: parent)
        try tables.pendingClassification.add(UInt64(ino))
    }
}
