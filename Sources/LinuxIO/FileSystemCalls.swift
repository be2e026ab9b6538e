import CShims
import Glibc

/// The results of fstat(2) that the vault needs.
public struct FileStatus: Sendable, Equatable {
    public var device: UInt64
    public var inode: UInt64
    public var size: UInt64
    /// Disk blocks of 512 bytes.
    public var blocks: UInt64
    public var isDirectory: Bool
    public var isRegular: Bool
    public var modified: Timestamp

    public init(
        device: UInt64, inode: UInt64, size: UInt64, blocks: UInt64, isDirectory: Bool, isRegular: Bool,
        modified: Timestamp
    ) {
        self.device = device
        self.inode = inode
        self.size = size
        self.blocks = blocks
        self.isDirectory = isDirectory
        self.isRegular = isRegular
        self.modified = modified
    }

    init(_ status: stat) {
        let type = status.st_mode & mode_t(S_IFMT)
        self.init(
            device: UInt64(status.st_dev), inode: UInt64(status.st_ino), size: Quantity(status.st_size).value,
            blocks: Quantity(status.st_blocks).value, isDirectory: type == mode_t(S_IFDIR),
            isRegular: type == mode_t(S_IFREG), modified: Timestamp(status.st_mtim))
    }
}

/// Size and free space of the host filesystem in bytes, and its type's magic number (statfs(2)), from fstatfs(2).
public struct HostStatus: Sendable, Equatable {
    /// The available bytes of a host that does not report its size: some network and FUSE filesystems answer 0 of 0
    /// blocks. They refuse data that does not fit when it is written.
    public static let untoldBytes: UInt64 = 1 << 50

    /// Like every size from the host, at most `Quantity.max`, so that sums of several cannot overflow.
    public let totalBytes: UInt64
    public let availableBytes: UInt64
    public var typeMagic: UInt64

    public init(totalBytes: UInt64, availableBytes: UInt64, typeMagic: UInt64) {
        self.totalBytes = Quantity(totalBytes).value
        self.availableBytes = Quantity(availableBytes).value
        self.typeMagic = typeMagic
    }

    /// From the block counts of fstatvfs(3), which a host may have made up.
    init(_ status: statvfs, typeMagic: UInt64) {
        let block = Quantity(status.f_frsize)
        self.init(
            totalBytes: (Quantity(status.f_blocks) * block).value,
            availableBytes: status.f_blocks == 0
                ? Self.untoldBytes : (Quantity(status.f_bavail) * block).value,
            typeMagic: typeMagic)
    }
}

/// The system calls on a vault: the one seam where tests count, record and fail them.
///
/// Descriptors are plain numbers; the caller that opens one closes it. Every method retries EINTR itself and throws the
/// `Errno` of the call. Reads and writes may be short, as the kernel's are; `pread`'s 0 means end of file.
public protocol FileSystemCalls: AnyObject, Sendable {
    /// openat(2) with O_CLOEXEC added. `directory` may be AT_FDCWD.
    func open(_ directory: Int32, _ path: String, flags: Int32, mode: UInt32) throws(Errno) -> Int32
    func close(_ descriptor: Int32)
    func pread(_ descriptor: Int32, _ bytes: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(Errno)
        -> Int
    func pwrite(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(Errno) -> Int
    func dataSync(_ descriptor: Int32) throws(Errno)
    func sync(_ descriptor: Int32) throws(Errno)
    func truncate(_ descriptor: Int32, to size: UInt64) throws(Errno)
    /// posix_fallocate semantics without the emulation: EOPNOTSUPP where the host cannot.
    func allocate(_ descriptor: Int32, offset: UInt64, length: UInt64) throws(Errno)
    /// As `allocate` from 0 on, but does not change the file's size (FALLOC_FL_KEEP_SIZE).
    func reserve(_ descriptor: Int32, bytes: UInt64) throws(Errno)
    /// fallocate(2), FALLOC_FL_PUNCH_HOLE: the bytes read as zeros and take no disk. EOPNOTSUPP where the host cannot.
    func punchHole(_ descriptor: Int32, offset: UInt64, length: UInt64) throws(Errno)
    /// The first byte of a hole, or of data, at or after `offset`: SEEK_HOLE and SEEK_DATA of lseek(2). Throws ENXIO if
    /// there is none.
    func seek(_ descriptor: Int32, from offset: UInt64, hole: Bool) throws(Errno) -> UInt64
    func status(_ descriptor: Int32) throws(Errno) -> FileStatus
    func hostStatus(_ descriptor: Int32) throws(Errno) -> HostStatus
    /// Sets a file's mtime and ctime to now, as a write does, `count` times, or as often as 100 ms allow: utimensat(2).
    func touch(_ directory: Int32, _ path: String, count: Int) throws(Errno)
    func makeDirectory(_ directory: Int32, _ path: String, mode: UInt32) throws(Errno)
    func unlink(_ directory: Int32, _ path: String) throws(Errno)
    /// Renames a file within a directory. With `isExchange` both names must exist and are exchanged atomically
    /// (RENAME_EXCHANGE of renameat2(2)); else the new name must not exist (RENAME_NOREPLACE). Throws EINVAL where the
    /// host cannot.
    func rename(_ directory: Int32, _ from: String, _ to: String, isExchange: Bool) throws(Errno)
    /// Throws an error if this process cannot create names in a directory: faccessat(2) with W_OK and AT_EACCESS.
    func checkWritable(_ directory: Int32) throws(Errno)
    /// The names in a directory, without "." and "..", in no particular order.
    func list(_ directory: Int32) throws(Errno) -> [String]
    /// flock(2), exclusive and without waiting: throws EWOULDBLOCK if another holds it.
    func lock(_ descriptor: Int32) throws(Errno)
    /// Asks the kernel to read these bytes into the page cache soon (posix_fadvise(2), POSIX_FADV_WILLNEED). Only
    /// advice: it does not wait, and never fails.
    func readSoon(_ descriptor: Int32, offset: UInt64, length: UInt64)
    /// Asks the kernel to begin writing dirty pages of these bytes to the disk (sync_file_range(2),
    /// SYNC_FILE_RANGE_WRITE), up to the file's end if `length` is 0. Only advice, as `readSoon`.
    func writeSoon(_ descriptor: Int32, offset: UInt64, length: UInt64)
    /// Writes all of `bytes` to a file that is about to be synced: the kernel begins to write them to the disk at once.
    /// Where it can, it drops their whole pages from the page cache as soon as they are there.
    func writeBeforeSync(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64)
        throws(Errno)
    /// Turns off the kernel's read-ahead for a file (posix_fadvise(2), POSIX_FADV_RANDOM). Only advice, as `readSoon`.
    func readNothingAhead(_ descriptor: Int32)
    /// Asks the kernel to drop these bytes from the page cache (posix_fadvise(2), POSIX_FADV_DONTNEED), up to the
    /// file's end if `length` is 0. Only advice, as `readSoon`.
    func forget(_ descriptor: Int32, offset: UInt64, length: UInt64)
    /// The number of pages of a file in the page cache, cachestat(2). 0 where the kernel does not tell, and on tmpfs,
    /// where the cache is the file itself.
    func cachedPages(_ descriptor: Int32) -> Int
}

extension FileSystemCalls {
    public func readSoon(_ descriptor: Int32, offset: UInt64, length: UInt64) {}
    public func writeSoon(_ descriptor: Int32, offset: UInt64, length: UInt64) {}
    public func writeBeforeSync(
        _ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64
    ) throws(Errno) {
        try writeFully(descriptor, bytes, at: offset)
        writeSoon(descriptor, offset: offset, length: UInt64(bytes.count))
    }
    public func readNothingAhead(_ descriptor: Int32) {}
    public func forget(_ descriptor: Int32, offset: UInt64, length: UInt64) {}
    public func cachedPages(_ descriptor: Int32) -> Int { 0 }

    /// Opens a file and reads from the disk or the server, not from this kernel's page cache, as far as the host can
    /// tell the two apart. `bytes` and `offset` are whole pages of 4096 bytes. Returns how many bytes were read: fewer
    /// at the file's end.
    public func readPastCache(
        _ directory: Int32, _ path: String, _ bytes: UnsafeMutableRawBufferPointer, at offset: UInt64
    ) throws(Errno) -> Int {
        do throws(Errno) {
            let file = try openRegular(directory, path, flags: O_RDONLY | obscura_direct, mode: 0)
            defer { close(file) }
            return try readFully(file, bytes, at: offset)
        } catch  where error == Errno(EINVAL) {
            // No O_DIRECT, or none for pages of this size.
            let file = try openRegular(directory, path, flags: O_RDONLY, mode: 0)
            defer { close(file) }
            forget(file, offset: offset, length: UInt64(bytes.count))
            return try readFully(file, bytes, at: offset)
        }
    }

    /// Opens a regular file for writing whole pages past this kernel's page cache: O_DIRECT. Throws EINVAL if the host
    /// cannot, here or at the first write.
    public func openDirect(_ directory: Int32, _ path: String) throws(Errno) -> Int32 {
        try openRegular(directory, path, flags: O_RDWR | obscura_direct, mode: 0)
    }

    /// As `open`, but reading does not change the access time if the caller owns the file.
    private func openTraceless(
        _ directory: Int32, _ path: String, flags: Int32, mode: UInt32
    ) throws(Errno) -> Int32 {
        do throws(Errno) {
            return try open(directory, path, flags: flags | obscura_no_access_time, mode: mode)
        } catch  where error == Errno(EPERM) {
            return try open(directory, path, flags: flags, mode: mode)
        }
    }

    /// As `openTraceless`, for regular files only. Anything else under the name counts as missing and is not touched:
    /// no FIFO blocks us, no device notices. With O_CREAT it is in the way: EEXIST.
    public func openRegular(
        _ directory: Int32, _ path: String, flags: Int32, mode: UInt32
    ) throws(Errno) -> Int32 {
        let none: Errno = flags & O_CREAT != 0 ? .exists : .noEntry
        let descriptor: Int32
        do throws(Errno) {
            let flags = flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
            descriptor = try openTraceless(directory, path, flags: flags, mode: mode)
        } catch {
            // A symbolic link, a directory, a socket or a device without a driver.
            throw [ELOOP, EISDIR, ENXIO, ENODEV].contains(error.rawValue) ? none : error
        }
        do throws(Errno) {
            if try status(descriptor).isRegular { return descriptor }
        } catch {
            close(descriptor)
            throw error
        }
        close(descriptor)
        throw none
    }

    /// Reads until `bytes` is full or the file ends; returns how many bytes were read.
    public func readFully(
        _ descriptor: Int32, _ bytes: UnsafeMutableRawBufferPointer, at offset: UInt64
    ) throws(Errno) -> Int {
        var done = 0
        while done < bytes.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: bytes[done...])
            let count = try pread(descriptor, rest, at: offset + UInt64(done))
            if count == 0 { break }
            done += count
        }
        return done
    }

    /// Writes all of `bytes`. A write that makes no progress is EIO.
    public func writeFully(
        _ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64
    ) throws(Errno) {
        var done = 0
        while done < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
            let count = try pwrite(descriptor, rest, at: offset + UInt64(done))
            if count == 0 { throw .inputOutput }
            done += count
        }
    }

    /// As above, into an array (whose own closures cannot throw typed errors).
    public func readFully(_ descriptor: Int32, at offset: UInt64, into bytes: inout [UInt8]) throws(Errno)
        -> Int
    {
        let result = bytes.withUnsafeMutableBytes { bytes -> Result<Int, Errno> in
            do throws(Errno) { return .success(try readFully(descriptor, bytes, at: offset)) } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    public func writeFully(_ descriptor: Int32, _ bytes: [UInt8], at offset: UInt64) throws(Errno) {
        let result = bytes.withUnsafeBytes { bytes -> Result<Void, Errno> in
            do throws(Errno) { return .success(try writeFully(descriptor, bytes, at: offset)) } catch {
                return .failure(error)
            }
        }
        try result.get()
    }
}
