public import FileRequests
import LinuxIO
public import VaultFormat
public import VaultStore

/// The catalogue of one space: a SQLite connection, its lock and one long-lived transaction.
///
/// All changes between two calls of `commitTransaction` become one SQLite transaction, and so one root.
public final class Catalogue: ExtentRows, @unchecked Sendable {
    /// Bytes at the end of each page that belong to the store: nonce and tag.
    public static let reservedBytesPerPage = 40
    static let pageBytes = 4096

    let lock = Lock()
    // Both only under the lock.
    private let connection: Connection
    private let tables: Tables
    /// Whether opening brought an older version up to date, which the next commit publishes.
    public let isUpdated: Bool

    /// Opens the catalogue in the pages of `storage`. For writing, creates its tables if it is empty, and brings those
    /// of an older version up to date. Throws `newer` for those of a later release.
    public convenience init(
        storage: any PageStorage, readOnly: Bool = false,
        cacheKibibytes: Int = Limits.production.catalogueCacheKibibytes
    ) throws(CatalogueError) {
        try self.init(storage: storage, readOnly: readOnly, cacheKibibytes: cacheKibibytes, .current)
    }

    convenience init(
        storage: any PageStorage, readOnly: Bool,
        cacheKibibytes: Int = Limits.production.catalogueCacheKibibytes, _ schema: Schema
    ) throws(CatalogueError) {
        var (storage, access) = (storage, readOnly ? Schema.Access.reading : .writing)
        if readOnly, schema.changesTables(since: Self.storedVersion(storage)) {
            (storage, access) = (PageOverlay(storage), .overlay)
        }
        let pages = storage
        try self.init(
            path: PageVFS.register(pages), vfs: PageVFS.name, access, cacheKibibytes: cacheKibibytes,
            pageCount: { pages.pageCount }, schema)
    }

    /// The version in the first page; 0 if that cannot be read: then opening the database fails.
    private static func storedVersion(_ storage: any PageStorage) -> Int {
        guard storage.pageCount > 0 else { return 0 }
        return withUnsafeTemporaryAllocation(byteCount: pageBytes, alignment: 16) { page in
            guard (try? storage.readPage(0, into: page)) != nil else { return 0 }
            return Int(Int32(bigEndian: page.loadUnaligned(fromByteOffset: versionOffset, as: Int32.self)))
        }
    }

    /// Of `user_version` in a database: sqlite.org/fileformat.html, *The Database Header*.
    private static let versionOffset = 60

    /// Opens the database `path` through the SQLite VFS named `vfs` (nil: the system's, for tests; the path may then be
    /// ":memory:"), and creates its tables if it is empty.
    public convenience init(
        path: String, vfs: String? = nil, readOnly: Bool = false,
        cacheKibibytes: Int = Limits.production.catalogueCacheKibibytes,
        pageCount: @escaping () -> UInt32 = { 0 }
    ) throws(CatalogueError) {
        try self.init(
            path: path, vfs: vfs, readOnly ? .reading : .writing, cacheKibibytes: cacheKibibytes,
            pageCount: pageCount, .current)
    }

    private init(
        path: String, vfs: String?, _ access: Schema.Access, cacheKibibytes: Int,
        pageCount: @escaping () -> UInt32, _ schema: Schema
    ) throws(CatalogueError) {
        let connection = try opening { () throws(FileError) in
            try Self.connect(
                path: path, vfs: vfs, access, cacheKibibytes: cacheKibibytes, pageCount: pageCount)
        }
        isUpdated = try schema.prepare(connection, access) && access == .writing
        (self.connection, tables) = (connection, Tables(connection))
        try opening { () throws(FileError) in
            if access == .overlay { try connection.execute("PRAGMA query_only=ON") }
            try connection.execute("BEGIN")
        }
    }

    private static func connect(
        path: String, vfs: String?, _ access: Schema.Access, cacheKibibytes: Int,
        pageCount: @escaping () -> UInt32
    ) throws(FileError) -> Connection {
        let connection = try Connection(
            path: path, vfs: vfs, readOnly: access == .reading, pageCount: pageCount)
        try connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        try connection.execute("PRAGMA journal_mode=MEMORY")
        try connection.execute("PRAGMA synchronous=OFF")
        try connection.execute("PRAGMA temp_store=MEMORY")
        try connection.execute("PRAGMA page_size=\(pageBytes)")
        try connection.execute("PRAGMA cache_size=-\(cacheKibibytes)")
        // Freed pages become zeros, and these take no slots.
        try connection.execute("PRAGMA secure_delete=ON")
        // Untrusted: anyone who knows the password may have written it.
        try connection.execute("PRAGMA cell_size_check=ON")
        try connection.execute("PRAGMA trusted_schema=OFF")
        if access != .reading { try connection.reserveBytes(Int32(reservedBytesPerPage)) }
        return connection
    }

    /// Runs `body` on the tables, with the lock held and inside the transaction. The tables must not be used without
    /// the lock.
    @inline(__always)
    public func locked<R, E: Error>(_ body: (Tables) throws(E) -> R) throws(E) -> R {
        lock.lock()
        defer { lock.unlock() }
        return try body(tables)
    }

    /// Ends the transaction and begins the next, in one critical section with `before`, which writes changes that are
    /// still in memory, and `freeze`, which takes the store's state of this very moment.
    public func commitTransaction<F>(
        before: (Tables) throws(FileError) -> Void, freeze: () -> F
    ) throws(FileError) -> F {
        lock.lock()
        defer { lock.unlock() }
        try before(tables)
        try connection.execute("COMMIT")
        let frozen = freeze()
        try connection.execute("BEGIN")
        return frozen
    }

    /// Whether a run lies in any of these sectors; see `ExtentTable.isAnyNamed`. Takes the lock.
    public func isReferenced(_ sectors: Range<UInt64>) throws(StoreError) -> Bool {
        do throws(FileError) {
            return try locked { tables throws(FileError) in try tables.extents.isAnyNamed(sectors) }
        } catch { throw .damaged }
    }

    /// See `RunQueries.first`. Takes the lock.
    public func firstRuns(in sectors: Range<UInt64>, limit: Int) throws(StoreError) -> [CheckedRun] {
        do throws(FileError) {
            return try locked { tables throws(FileError) in
                try tables.runs.first(in: sectors, limit: limit)
            }
        } catch { throw .damaged }
    }

    /// False after an error so grave that SQLite rolled the transaction back: memory then no longer matches the tables,
    /// and nothing more may be written.
    public var isIntact: Bool { lock.withLock { connection.isInTransaction } }
}
