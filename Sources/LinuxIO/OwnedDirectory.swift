import CShims
public import Glibc

/// A directory outside the vault that belongs to one user, and the way to everything below it.
///
/// Everything is opened by its name in a directory that is already open: with openat2(2) and RESOLVE_BENEATH,
/// RESOLVE_NO_SYMLINKS, RESOLVE_NO_MAGICLINKS and RESOLVE_NO_XDEV or, where the kernel refuses openat2, with
/// O_NOFOLLOW and a comparison of the mounts. So no symbolic link and no mount leads elsewhere, and another process
/// that moves files meanwhile can only make the caller miss some. The owner is checked on the descriptor. Nothing is
/// changed by a path.
public final class OwnedDirectory: Sendable {
    /// For the calls of this library. Opened with O_PATH.
    public let descriptor: Int32
    /// As it was opened.
    public let status: stat
    private let bounds: Bounds

    /// Applies to a directory and to everything below it.
    private struct Bounds: Sendable {
        /// Nil: any.
        var owner: uid_t?
        var device: dev_t
        /// Of the mount; nil if the kernel does not tell.
        var mount: Int64?
        var usesBeneath: Bool
    }

    /// Whether the kernel, and a filter of system calls, permit openat2(2).
    public static let hasBeneath: Bool = {
        let found = obscura_open_beneath(AT_FDCWD, ".", obscura_path_only | O_CLOEXEC)
        if found >= 0 { close(found) }
        return found >= 0
    }()

    private init(_ descriptor: Int32, _ status: stat, _ bounds: Bounds) {
        self.descriptor = descriptor
        self.status = status
        self.bounds = bounds
    }

    deinit { close(descriptor) }

    /// The ID of its mount, as in mountinfo; nil if the kernel does not tell.
    var mount: Int64? { bounds.mount }

    /// Opens a directory by an absolute path that the system or the user's environment names, such as a home
    /// directory. Links in this path are followed.
    ///
    /// - Parameters:
    ///   - owner: of everything below it; nil: any.
    ///   - isOwned: whether the directory itself must be the owner's; false for the top of a filesystem.
    ///   - usesBeneath: for tests of kernels without openat2(2).
    public convenience init(
        _ path: [UInt8], of owner: uid_t?, isOwned: Bool = true, usesBeneath: Bool = hasBeneath
    ) throws(Errno) {
        guard path.first == UInt8(ascii: "/"), !path.contains(0) else { throw Errno(EINVAL) }
        let flags = obscura_path_only | O_DIRECTORY | O_CLOEXEC
        let opened = try retryingInterrupts { withBytes(path) { obscura_openat(AT_FDCWD, $0, flags, 0) } }
        try self.init(taking: opened, of: owner, isOwned: isOwned, usesBeneath: usesBeneath)
    }

    /// Takes a descriptor of a directory, and closes it even on failure.
    public convenience init(
        taking opened: Int32, of owner: uid_t?, isOwned: Bool = true, usesBeneath: Bool = hasBeneath
    ) throws(Errno) {
        var found = stat()
        guard fstat(opened, &found) == 0, !isOwned || owner == nil || found.st_uid == owner else {
            close(opened)
            throw .accessDenied
        }
        let mount = obscura_mount_id(opened)
        self.init(
            opened, found,
            Bounds(
                owner: owner, device: found.st_dev, mount: mount < 0 ? nil : mount, usesBeneath: usesBeneath))
    }

    // MARK: Opening

    /// A directory in this one. Throws ELOOP or ENOTDIR for anything else under the name, EXDEV for another mount, and
    /// EACCES for another owner.
    ///
    /// - Parameter isOwned: false for a directory of all users, whose entries are the owner's all the same.
    public func directory(_ name: [UInt8], isOwned: Bool = true) throws(Errno) -> OwnedDirectory {
        let flags = obscura_path_only | O_DIRECTORY
        let (opened, found) = try open(name, flags, isOwned: isOwned)
        return OwnedDirectory(opened, found, bounds)
    }

    /// The directory that these names lead to, one in another.
    public func directory(below names: [[UInt8]]) throws(Errno) -> OwnedDirectory {
        var found = self
        for name in names { found = try found.directory(name) }
        return found
    }

    /// A regular file in this directory. Throws EINVAL for another type, else as `directory(_:isOwned:)`.
    public func file(_ name: [UInt8], writable: Bool = false) throws(Errno) -> OwnedFile {
        // A device or a FIFO is not even opened, unless it takes the name after this.
        guard try status(name).isFile else { throw Errno(EINVAL) }
        // Only the owner may leave the access time.
        let access = writable ? O_RDWR : O_RDONLY | (bounds.owner == nil ? 0 : obscura_no_access_time)
        let (opened, found) = try open(name, access | O_NONBLOCK | O_NOCTTY, isOwned: true)
        let file = OwnedFile(opened, found)
        guard found.isFile else { throw Errno(EINVAL) }
        return file
    }

    /// A descriptor of this directory that can be read.
    public func readable() throws(Errno) -> Int32 {
        let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC
        return try retryingInterrupts { obscura_openat(descriptor, ".", flags, 0) }
    }

    private func open(_ name: [UInt8], _ flags: Int32, isOwned: Bool) throws(Errno) -> (Int32, stat) {
        try check(name)
        let flags = flags | O_NOFOLLOW | O_CLOEXEC
        let opened = try retryingInterrupts {
            withBytes(name) {
                bounds.usesBeneath
                    ? obscura_open_beneath(descriptor, $0, flags) : obscura_openat(descriptor, $0, flags, 0)
            }
        }
        var found = stat()
        let isKnown = fstat(opened, &found) == 0
        guard isKnown, !isOwned || bounds.owner == nil || found.st_uid == bounds.owner else {
            close(opened)
            throw .accessDenied
        }
        guard bounds.usesBeneath || isOnThisMount(opened, found) else {
            close(opened)
            throw Errno(EXDEV)
        }
        return (opened, found)
    }

    private func isOnThisMount(_ opened: Int32, _ found: stat) -> Bool {
        guard let mount = bounds.mount else { return found.st_dev == bounds.device }
        return obscura_mount_id(opened) == mount
    }

    /// Throws EINVAL for a name that leads out of the directory, or that no file can have.
    private func check(_ name: [UInt8]) throws(Errno) {
        guard isPlainName(name) else { throw Errno(EINVAL) }
    }

    // MARK: Reading

    /// The names in this directory, sorted by their bytes. Throws EFBIG if there are more than `countMax`.
    public func names(countMax: Int = .max) throws(Errno) -> [[UInt8]] {
        // fdopendir takes ownership of its descriptor, so it gets one of its own.
        let own = try readable()
        guard let stream = fdopendir(own) else {
            let error = Errno.last
            close(own)
            throw error
        }
        defer { closedir(stream) }
        var names: [[UInt8]] = []
        errno = 0
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) {
                    Array(UnsafeRawBufferPointer(start: $0, count: strlen($0)))
                }
            }
            if isPlainName(name) { names.append(name) }
            guard names.count <= countMax else { throw .fileTooLarge }
            errno = 0
        }
        guard errno == 0 else { throw .last }
        return names.sorted { $0.lexicographicallyPrecedes($1) }
    }

    /// The status of a name, without following a link.
    public func status(_ name: [UInt8]) throws(Errno) -> stat {
        try check(name)
        var found = stat()
        _ = try retryingInterrupts {
            withBytes(name) { fstatat(descriptor, $0, &found, AT_SYMLINK_NOFOLLOW) }
        }
        return found
    }

    /// readlinkat(2).
    public func linkTarget(_ name: [UInt8]) throws(Errno) -> [UInt8] {
        try check(name)
        var target = [CChar](repeating: 0, count: 4096)
        let count = try retryingInterrupts {
            withBytes(name) { readlinkat(descriptor, $0, &target, target.count) }
        }
        return target.prefix(count).map { UInt8(bitPattern: $0) }
    }

    /// The bytes of a regular file; nil if it cannot be opened, or is larger than `countMax`.
    public func contents(_ name: [UInt8], countMax: Int) -> (bytes: [UInt8], status: stat)? {
        guard let file = try? file(name), let bytes = file.contents(countMax: countMax) else { return nil }
        return (bytes, file.status)
    }
}

/// A regular file of one user, opened by `OwnedDirectory`.
public final class OwnedFile: Sendable {
    public let descriptor: Int32
    /// As it was opened.
    public let status: stat

    init(_ descriptor: Int32, _ status: stat) {
        self.descriptor = descriptor
        self.status = status
    }

    deinit { close(descriptor) }

    /// All bytes; nil on an error, and if there are more than `countMax`.
    public func contents(countMax: Int) -> [UInt8]? {
        guard status.st_size <= countMax else { return nil }
        // One byte more shows that it has grown.
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size) + 1)
        let count = try? LinuxCalls.shared.readFully(descriptor, at: 0, into: &bytes)
        guard let count, count < bytes.count else { return nil }
        return Array(bytes.prefix(count))
    }
}

/// Whether a directory can have an entry of this name: the kernel hands on no other.
public func isPlainName(_ name: [UInt8]) -> Bool {
    !name.isEmpty && name.count <= Int(NAME_MAX) && !name.contains(0) && !name.contains(UInt8(ascii: "/"))
        && name != [UInt8(ascii: ".")] && name != Array("..".utf8)
}

extension stat {
    var isFile: Bool { st_mode & mode_t(S_IFMT) == mode_t(S_IFREG) }

    /// Whether both are of one file with the same type.
    func isSameFile(as other: stat) -> Bool {
        st_dev == other.st_dev && st_ino == other.st_ino
            && st_mode & mode_t(S_IFMT) == other.st_mode & mode_t(S_IFMT)
    }

    /// Whether both are of one file that was not written to in between. Being renamed does not count.
    func isUnchanged(since other: stat) -> Bool {
        isSameFile(as: other) && st_size == other.st_size && st_mtim.tv_sec == other.st_mtim.tv_sec
            && st_mtim.tv_nsec == other.st_mtim.tv_nsec
    }
}

/// Runs `body` with bytes as a C string.
func withBytes<R>(_ bytes: [UInt8], _ body: (UnsafePointer<CChar>) -> R) -> R {
    (bytes + [0]).withUnsafeBytes { raw in
        raw.withMemoryRebound(to: CChar.self) { body($0.baseAddress!) }
    }
}
