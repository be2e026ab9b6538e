internal import CSQLite
internal import CShims
internal import Glibc
internal import LinuxIO

/// The files of a database in the directory of descriptor 3. SQLite, which knows files by their paths, gets them in
/// place of those: only files of this user that are no links, on the same filesystem, and have no second name.
final class DatabaseFiles {
    /// That SQLite opens.
    static let path = "/" + name
    fileprivate static let name = "database"
    private static let suffixes = ["-journal", "-wal", "-shm"]
    private static let directoryDescriptor: Int32 = 3
    /// Larger ones are not read.
    private static let copyBytesMax = 256 << 20

    private let directory: OwnedDirectory
    /// By name: files in memory in place of the real ones; nil: the real ones.
    private var copies: [String: Int32]?

    private init(_ directory: OwnedDirectory, copies: [String: Int32]?) {
        self.directory = directory
        self.copies = copies
    }

    private static func openDirectory() -> OwnedDirectory? {
        try? OwnedDirectory(taking: dup(directoryDescriptor), of: geteuid())
    }

    /// Nil if there is no database.
    static func real() -> DatabaseFiles? {
        guard let directory = openDirectory(), (try? directory.file(Array(name.utf8))) != nil else {
            return nil
        }
        return DatabaseFiles(directory, copies: nil)
    }

    /// Copies of the files as they are now, in memory.
    static func copied() -> DatabaseFiles? {
        guard let directory = openDirectory() else { return nil }
        var copies: [String: Int32] = [:]
        for name in [name, name + "-wal", name + "-journal"] {
            guard let (bytes, _) = directory.contents(Array(name.utf8), countMax: copyBytesMax) else {
                continue
            }
            let copy = shim_memfd_create("database", shim_MFD_CLOEXEC)
            guard copy >= 0, (try? LinuxCalls.shared.writeFully(copy, bytes, at: 0)) != nil else {
                return nil
            }
            copies[name] = copy
        }
        return copies[name] == nil ? nil : DatabaseFiles(directory, copies: copies)
    }

    // MARK: In place of system calls

    /// The files that SQLite's VFS opens. Set once, before the database is opened, by the only thread.
    nonisolated(unsafe) private static var served: DatabaseFiles?

    /// Has SQLite's own VFS call this in place of the system for every call with a path.
    func serve() -> Bool {
        DatabaseFiles.served = self
        guard let vfs = sqlite3_vfs_find("unix"), let set = vfs.pointee.xSetSystemCall else { return false }
        let open: @convention(c) (UnsafePointer<CChar>?, Int32, Int32) -> Int32 = { path, flags, mode in
            DatabaseFiles.answer(path) { files, name in files.open(name, flags, mode: mode) }
        }
        let access: @convention(c) (UnsafePointer<CChar>?, Int32) -> Int32 = { path, _ in
            DatabaseFiles.answer(path) { files, name in
                files.status(name) == nil ? DatabaseFiles.missing() : 0
            }
        }
        let look: @convention(c) (UnsafePointer<CChar>?, UnsafeMutablePointer<stat>?) -> Int32 = {
            path, found in
            DatabaseFiles.answer(path) { files, name in
                guard let status = files.status(name) else { return DatabaseFiles.missing() }
                found?.pointee = status
                return 0
            }
        }
        let remove: @convention(c) (UnsafePointer<CChar>?) -> Int32 = { path in
            DatabaseFiles.answer(path) { files, name in files.remove(name) }
        }
        let openDirectory: @convention(c) (UnsafePointer<CChar>?, UnsafeMutablePointer<Int32>?) -> Int32 = {
            _, opened in
            guard let own = try? DatabaseFiles.served?.directory.readable() else { return SQLITE_CANTOPEN }
            opened?.pointee = own
            return SQLITE_OK
        }
        let refuse: @convention(c) (UnsafePointer<CChar>?, UnsafeMutablePointer<CChar>?, Int) -> Int = {
            _, _, _ in
            errno = EINVAL
            return -1
        }
        func replace(_ name: String, _ call: sqlite3_syscall_ptr) -> Bool {
            set(vfs, name, call) == SQLITE_OK
        }
        return replace("open", unsafeBitCast(open, to: sqlite3_syscall_ptr.self))
            && replace("access", unsafeBitCast(access, to: sqlite3_syscall_ptr.self))
            && replace("stat", unsafeBitCast(look, to: sqlite3_syscall_ptr.self))
            && replace("lstat", unsafeBitCast(look, to: sqlite3_syscall_ptr.self))
            && replace("unlink", unsafeBitCast(remove, to: sqlite3_syscall_ptr.self))
            && replace("openDirectory", unsafeBitCast(openDirectory, to: sqlite3_syscall_ptr.self))
            && replace("readlink", unsafeBitCast(refuse, to: sqlite3_syscall_ptr.self))
    }

    /// Answers for one of the database's files; EACCES for any other path.
    private static func answer(
        _ path: UnsafePointer<CChar>?, _ body: (DatabaseFiles, String) -> Int32
    ) -> Int32 {
        let text = path.map { String(cString: $0) } ?? ""
        guard let served, text.hasPrefix(Self.path),
            ([""] + suffixes).contains(String(text.dropFirst(Self.path.count)))
        else {
            errno = EACCES
            return -1
        }
        return body(served, String(text.dropFirst()))
    }

    private static func missing() -> Int32 {
        errno = ENOENT
        return -1
    }

    private func status(_ name: String) -> stat? {
        guard let copies else { return try? directory.status(Array(name.utf8)) }
        var found = stat()
        guard let copy = copies[name], fstat(copy, &found) == 0 else { return nil }
        return found
    }

    private func open(_ name: String, _ flags: Int32, mode: Int32) -> Int32 {
        if copies != nil {
            if copies?[name] == nil, flags & O_CREAT != 0 {
                copies?[name] = shim_memfd_create("database", shim_MFD_CLOEXEC)
            }
            guard let copy = copies?[name] else { return Self.missing() }
            return dup(copy)
        }
        do throws(Errno) {
            let writable = flags & O_ACCMODE != O_RDONLY
            let file: OwnedFile
            do throws(Errno) { file = try directory.file(Array(name.utf8), writable: writable) } catch {
                guard error == .noEntry, flags & O_CREAT != 0 else { throw error }
                file = try directory.makeFile(
                    Array(name.utf8), mode: mode_t(truncatingIfNeeded: mode) & 0o777)
            }
            // Another name would change with it.
            guard file.status.st_nlink == 1 else { throw .accessDenied }
            return fcntl(file.descriptor, F_DUPFD_CLOEXEC, 0)
        } catch {
            errno = error.rawValue
            return -1
        }
    }

    private func remove(_ name: String) -> Int32 {
        if copies != nil {
            copies?[name] = nil
            return 0
        }
        guard name != Self.name, let file = try? directory.file(Array(name.utf8)),
            directory.remove(Array(name.utf8), ifSameAs: file.status)
        else { return Self.missing() }
        return 0
    }
}
