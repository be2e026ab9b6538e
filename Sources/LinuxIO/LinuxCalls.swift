import CShims
import Glibc

/// The real system calls.
public final class LinuxCalls: FileSystemCalls {
    public static let shared = LinuxCalls()

    #if DEBUG
        /// If set, locks do nothing, as on some hosts; for tests of two mounts. Release builds do not have this.
        private static let locksDoNothing = getenv("OBSCURA_NO_LOCKS") != nil
    #endif

    private init() {}

    public func open(_ directory: Int32, _ path: String, flags: Int32, mode: UInt32) throws(Errno) -> Int32 {
        try retryingInterrupts { path.withPath { obscura_openat(directory, $0, flags | O_CLOEXEC, mode) } }
    }

    public func close(_ descriptor: Int32) {
        // close(2) frees the descriptor even when it reports an error; data that matters was synced before.
        _ = Glibc.close(descriptor)
    }

    public func pread(
        _ descriptor: Int32, _ bytes: UnsafeMutableRawBufferPointer, at offset: UInt64
    ) throws(Errno) -> Int {
        try retryingInterrupts { Glibc.pread(descriptor, bytes.baseAddress, bytes.count, off_t(offset)) }
    }

    public func pwrite(
        _ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64
    ) throws(Errno) -> Int {
        try retryingInterrupts { Glibc.pwrite(descriptor, bytes.baseAddress, bytes.count, off_t(offset)) }
    }

    public func dataSync(_ descriptor: Int32) throws(Errno) {
        _ = try retryingInterrupts { fdatasync(descriptor) }
    }

    public func sync(_ descriptor: Int32) throws(Errno) {
        _ = try retryingInterrupts { fsync(descriptor) }
    }

    public func truncate(_ descriptor: Int32, to size: UInt64) throws(Errno) {
        _ = try retryingInterrupts { ftruncate(descriptor, off_t(size)) }
    }

    public func allocate(_ descriptor: Int32, offset: UInt64, length: UInt64) throws(Errno) {
        _ = try retryingInterrupts { obscura_fallocate(descriptor, 0, Int64(offset), Int64(length)) }
    }

    public func reserve(_ descriptor: Int32, bytes: UInt64) throws(Errno) {
        _ = try retryingInterrupts { obscura_fallocate(descriptor, obscura_keep_size, 0, Int64(bytes)) }
    }

    public func punchHole(_ descriptor: Int32, offset: UInt64, length: UInt64) throws(Errno) {
        let mode = obscura_punch_hole | obscura_keep_size
        _ = try retryingInterrupts { obscura_fallocate(descriptor, mode, Int64(offset), Int64(length)) }
    }

    /// SEEK_DATA and SEEK_HOLE of linux/fs.h.
    private static let (seekData, seekHole): (Int32, Int32) = (3, 4)

    public func seek(_ descriptor: Int32, from offset: UInt64, hole: Bool) throws(Errno) -> UInt64 {
        let whence = hole ? Self.seekHole : Self.seekData
        let found = try retryingInterrupts { lseek(descriptor, off_t(clamping: offset), whence) }
        guard found >= 0 else { throw Errno(EINVAL) }
        return UInt64(found)
    }

    public func status(_ descriptor: Int32) throws(Errno) -> FileStatus {
        var status = stat()
        _ = try retryingInterrupts { fstat(descriptor, &status) }
        return FileStatus(status)
    }

    public func hostStatus(_ descriptor: Int32) throws(Errno) -> HostStatus {
        var status = statvfs()
        _ = try retryingInterrupts { fstatvfs(descriptor, &status) }
        let type = try retryingInterrupts { obscura_filesystem_type(descriptor) }
        #if DEBUG
            let magic = Self.locksDoNothing ? 0 : type
        #else
            let magic = type
        #endif
        return HostStatus(status, typeMagic: UInt64(truncatingIfNeeded: magic) & 0xFFFF_FFFF)
    }

    public func touch(_ directory: Int32, _ path: String, count: Int) throws(Errno) {
        let end = MonotonicClock.milliseconds + 100
        // Not the access time, which no write sets. The kernel sets both others to one moment, as for a write.
        let times = [
            timespec(tv_sec: 0, tv_nsec: obscura_time_omit), timespec(tv_sec: 0, tv_nsec: obscura_time_now),
        ]
        let file = try retryingInterrupts {
            path.withPath {
                obscura_openat(directory, $0, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0)
            }
        }
        defer { Glibc.close(file) }
        for done in 1...max(1, count) {
            // Since Linux 6.13 that moment is the last tick, some milliseconds ago, unless the file was stat'ed since
            // its last change. Whether a session stats its files must not show.
            var status = stat()
            _ = try retryingInterrupts { fstat(file, &status) }
            _ = try retryingInterrupts { futimens(file, times) }
            if done % 64 == 0 && MonotonicClock.milliseconds > end { break }
        }
    }

    public func makeDirectory(_ directory: Int32, _ path: String, mode: UInt32) throws(Errno) {
        _ = try retryingInterrupts { path.withPath { mkdirat(directory, $0, mode_t(mode)) } }
    }

    public func unlink(_ directory: Int32, _ path: String) throws(Errno) {
        _ = try retryingInterrupts { path.withPath { unlinkat(directory, $0, 0) } }
    }

    public func rename(
        _ directory: Int32, _ from: String, _ to: String, isExchange: Bool
    ) throws(Errno) {
        _ = try retryingInterrupts {
            from.withPath { from in to.withPath { obscura_rename(directory, from, $0, isExchange ? 1 : 0) } }
        }
    }

    public func checkWritable(_ directory: Int32) throws(Errno) {
        _ = try retryingInterrupts { faccessat(directory, ".", W_OK, AT_EACCESS) }
    }

    public func list(_ directory: Int32) throws(Errno) -> [String] {
        // fdopendir takes ownership of its descriptor, so it gets one of its own.
        let own = try open(directory, ".", flags: O_RDONLY | O_DIRECTORY, mode: 0)
        guard let stream = fdopendir(own) else {
            let error = Errno.last
            close(own)
            throw error
        }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { tuple in
                tuple.withMemoryRebound(to: CChar.self, capacity: 256) { pathText($0) }
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names
    }

    public func lock(_ descriptor: Int32) throws(Errno) {
        #if DEBUG
            if Self.locksDoNothing { return }
        #endif
        _ = try retryingInterrupts { flock(descriptor, LOCK_EX | LOCK_NB) }
    }

    public func forget(_ descriptor: Int32, offset: UInt64, length: UInt64) {
        posix_fadvise(descriptor, off_t(offset), off_t(length), Int32(POSIX_FADV_DONTNEED))
    }

    public func cachedPages(_ descriptor: Int32) -> Int {
        if obscura_filesystem_type(descriptor) == Self.tmpfs { return 0 }
        return max(0, Int(obscura_cached_pages(descriptor)))
    }

    /// TMPFS_MAGIC.
    private static let tmpfs: Int64 = 0x0102_1994

    public func readNothingAhead(_ descriptor: Int32) {
        posix_fadvise(descriptor, 0, 0, Int32(POSIX_FADV_RANDOM))
    }

    public func writeBeforeSync(
        _ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64
    ) throws(Errno) {
        let end = offset + UInt64(bytes.count)
        let firstPage = min((offset + Self.pageBytes - 1) / Self.pageBytes * Self.pageBytes, end)
        let pagesEnd = Int(max(end / Self.pageBytes * Self.pageBytes, firstPage) - offset)
        var done = 0
        if Self.canDropPages {
            // A page that is written in part stays in the cache: the next write would have to read it from the disk.
            done = Int(firstPage - offset)
            try writeFully(descriptor, UnsafeRawBufferPointer(rebasing: bytes[..<done]), at: offset)
            while done < pagesEnd,
                let count = try writePastCache(
                    descriptor, UnsafeRawBufferPointer(rebasing: bytes[done..<pagesEnd]),
                    at: offset + UInt64(done))
            {
                done += count
            }
        }
        let hasBegun = done == pagesEnd
        try writeFully(
            descriptor, UnsafeRawBufferPointer(rebasing: bytes[done...]), at: offset + UInt64(done))
        if !hasBegun { writeSoon(descriptor, offset: offset, length: UInt64(bytes.count)) }
    }

    /// Writes whole pages, as `pwrite`. Nil if this kernel or file system cannot drop them from the page cache.
    private func writePastCache(
        _ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64
    ) throws(Errno) -> Int? {
        do throws(Errno) {
            let count = try retryingInterrupts { () -> Int in
                Int(obscura_write_past_cache(descriptor, bytes.baseAddress, UInt(bytes.count), Int64(offset)))
            }
            if count == 0 { throw .inputOutput }
            return count
        } catch  where error == Errno(EOPNOTSUPP) {
            return nil
        }
    }

    private static let pageBytes: UInt64 = 4096
    /// Linux 6.14 and 6.15 can drop pages too, but may drop some that were changed again meanwhile.
    private static let canDropPages = isKernelAtLeast(6, 16)

    public func writeSoon(_ descriptor: Int32, offset: UInt64, length: UInt64) {
        _ = obscura_write_soon(descriptor, Int64(offset), Int64(length))
    }

    public func readSoon(_ descriptor: Int32, offset: UInt64, length: UInt64) {
        posix_fadvise(descriptor, off_t(offset), off_t(length), Int32(POSIX_FADV_WILLNEED))
    }
}
