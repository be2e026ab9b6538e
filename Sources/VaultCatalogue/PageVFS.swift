import CSQLite
import Glibc
import LinuxIO
import VaultFormat
import VaultStore

/// SQLite's file system for databases that live in a `PageStorage` (sqlite.org/vfs.html).
///
/// A database is opened under a name registered here. Writes are staged in the storage and cannot fail; nothing is
/// synced, because the committer publishes staged pages. There is no journal file: a transaction exists only once its
/// root does.
enum PageVFS {
    static let name = "obscura"

    /// The storages of open databases, by name.
    private final class Registry: @unchecked Sendable {
        private let lock = Lock()
        private var storages: [String: any PageStorage] = [:]
        private var next = 0

        func add(_ storage: any PageStorage) -> String {
            lock.withLock {
                next += 1
                storages["catalogue-\(next)"] = storage
                return "catalogue-\(next)"
            }
        }

        func take(_ name: String) -> (any PageStorage)? {
            lock.withLock { storages.removeValue(forKey: name) }
        }
    }

    private static let registry = Registry()

    /// Registers `storage`, which can be opened once, under the name returned.
    static func register(_ storage: any PageStorage) -> String {
        precondition(isRegistered)
        return registry.add(storage)
    }

    // Extended result codes, which C writes as macros with a shift: sqlite.org/rescode.html.
    private static let ioErrorRead = SQLITE_IOERR | 1 << 8
    private static let ioErrorShortRead = SQLITE_IOERR | 2 << 8
    private static let ioErrorWrite = SQLITE_IOERR | 3 << 8

    /// An open file as SQLite sees it: its base struct, then our object.
    private struct File {
        var base: sqlite3_file
        var storage: Unmanaged<Holder>?
    }

    /// `Unmanaged` holds a class, but no existential.
    private final class Holder {
        let storage: any PageStorage
        /// Nil where nothing is gained by asking for pages ahead.
        private var walks: TreeWalks?

        init(_ storage: any PageStorage) {
            self.storage = storage
            if storage.readsTakeRoundTrips { walks = TreeWalks() }
        }

        /// Notes that SQLite has read a page.
        func noteRead(_ index: Int, _ page: UnsafeRawBufferPointer) {
            guard let found = walks?.read(UInt32(index), page) else { return }
            for next in found { storage.willReadPages(next.soon, later: next.later) }
        }

        func noteWritten(_ index: Int) { walks?.wrote(UInt32(index)) }
    }

    private static func holder(_ file: UnsafeMutablePointer<sqlite3_file>?) -> Holder {
        guard
            let holder = UnsafeMutableRawPointer(file)?.assumingMemoryBound(to: File.self).pointee.storage
        else { preconditionFailure("SQLite uses only files that were opened") }
        return holder.takeUnretainedValue()
    }

    private static func storage(_ file: UnsafeMutablePointer<sqlite3_file>?) -> any PageStorage {
        holder(file).storage
    }

    // MARK: The file system

    private static let isRegistered: Bool = {
        let vfs = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
        vfs.initialize(to: sqlite3_vfs())
        vfs.pointee.iVersion = 1
        vfs.pointee.szOsFile = Int32(MemoryLayout<File>.size)
        vfs.pointee.mxPathname = 64
        // SQLite keeps the name: it lives as long as the process.
        vfs.pointee.zName = UnsafePointer(strdup(name))
        vfs.pointee.xOpen = { _, path, file, flags, outFlags in
            PageVFS.open(path, file, flags, outFlags)
        }
        vfs.pointee.xDelete = { _, _, _ in SQLITE_OK }
        vfs.pointee.xAccess = { _, _, _, result in
            result?.pointee = 0
            return SQLITE_OK
        }
        vfs.pointee.xFullPathname = { _, path, count, out in
            guard let path, let out, strlen(path) < Int(count) else { return SQLITE_CANTOPEN }
            strcpy(out, path)
            return SQLITE_OK
        }
        vfs.pointee.xRandomness = { _, count, out in
            // Used for names of temporary files only, of which there are none.
            if let out { memset(out, 0, Int(count)) }
            return count
        }
        vfs.pointee.xSleep = { _, microseconds in microseconds }
        vfs.pointee.xCurrentTime = { _, out in
            out?.pointee = 2_440_587.5 + Double(Timestamp.now().seconds) / 86_400
            return SQLITE_OK
        }
        vfs.pointee.xGetLastError = { _, _, _ in 0 }
        return sqlite3_vfs_register(vfs, 0) == SQLITE_OK
    }()

    private static func open(
        _ path: UnsafePointer<CChar>?, _ file: UnsafeMutablePointer<sqlite3_file>?, _ flags: Int32,
        _ outFlags: UnsafeMutablePointer<Int32>?
    ) -> Int32 {
        guard let file else { return SQLITE_CANTOPEN }
        file.pointee.pMethods = nil
        guard flags & SQLITE_OPEN_MAIN_DB != 0, let path, let storage = registry.take(String(cString: path))
        else { return SQLITE_CANTOPEN }
        let own = UnsafeMutableRawPointer(file).assumingMemoryBound(to: File.self)
        own.pointee.storage = Unmanaged.passRetained(Holder(storage))
        own.pointee.base.pMethods = UnsafePointer(methods)
        outFlags?.pointee = flags
        return SQLITE_OK
    }

    // MARK: The file

    nonisolated(unsafe) private static let methods: UnsafeMutablePointer<sqlite3_io_methods> = {
        let methods = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
        methods.initialize(to: sqlite3_io_methods())
        methods.pointee.iVersion = 1
        methods.pointee.xClose = { file in
            let own = UnsafeMutableRawPointer(file)?.assumingMemoryBound(to: File.self)
            own?.pointee.storage?.release()
            own?.pointee.storage = nil
            return SQLITE_OK
        }
        methods.pointee.xRead = { file, out, count, offset in
            guard let out else { return SQLITE_MISUSE }
            let bytes = UnsafeMutableRawBufferPointer(start: out, count: Int(count))
            return PageVFS.read(PageVFS.holder(file), bytes, Int(offset))
        }
        methods.pointee.xWrite = { file, source, count, offset in
            guard let source, Int(count) == Geometry.pageBytes, Int(offset) % Geometry.pageBytes == 0 else {
                return PageVFS.ioErrorWrite
            }
            // Larger than a map allows.
            guard Int(offset) / Geometry.pageBytes < MapLayout.pagesMax else { return SQLITE_FULL }
            let bytes = UnsafeRawBufferPointer(start: source, count: Int(count))
            let (holder, index) = (PageVFS.holder(file), Int(offset) / Geometry.pageBytes)
            holder.storage.stagePage(UInt32(index), bytes)
            holder.noteWritten(index)
            return SQLITE_OK
        }
        methods.pointee.xTruncate = { file, size in
            PageVFS.storage(file).truncatePages(to: UInt32(clamping: Int(size) / Geometry.pageBytes))
            return SQLITE_OK
        }
        methods.pointee.xSync = { _, _ in SQLITE_OK }
        methods.pointee.xFileSize = { file, size in
            size?.pointee = Int64(PageVFS.storage(file).pageCount) * Int64(Geometry.pageBytes)
            return SQLITE_OK
        }
        methods.pointee.xLock = { _, _ in SQLITE_OK }
        methods.pointee.xUnlock = { _, _ in SQLITE_OK }
        methods.pointee.xCheckReservedLock = { _, result in
            result?.pointee = 0
            return SQLITE_OK
        }
        methods.pointee.xFileControl = { _, _, _ in SQLITE_NOTFOUND }
        methods.pointee.xSectorSize = { _ in Int32(Geometry.pageBytes) }
        methods.pointee.xDeviceCharacteristics = { _ in 0 }
        return methods
    }()

    /// Reads any range within one page; SQLite reads less than a page only of the first one.
    private static func read(
        _ holder: Holder, _ bytes: UnsafeMutableRawBufferPointer, _ offset: Int
    ) -> Int32 {
        let storage = holder.storage
        let page = offset / Geometry.pageBytes
        let within = offset % Geometry.pageBytes
        guard within + bytes.count <= Geometry.pageBytes else { return PageVFS.ioErrorRead }
        guard page < storage.pageCount else {
            bytes.zero()
            return PageVFS.ioErrorShortRead
        }
        do throws(StoreError) {
            if bytes.count == Geometry.pageBytes {
                try storage.readPage(UInt32(page), into: bytes)
                holder.noteRead(page, UnsafeRawBufferPointer(bytes))
            } else {
                let whole = UnsafeMutableRawBufferPointer.allocate(
                    byteCount: Geometry.pageBytes, alignment: 16)
                defer { whole.deallocate() }
                try storage.readPage(UInt32(page), into: whole)
                bytes.copyMemory(from: UnsafeRawBufferPointer(whole.slice(within, bytes.count)))
            }
            return SQLITE_OK
        } catch {
            bytes.zero()
            return PageVFS.ioErrorRead
        }
    }
}
