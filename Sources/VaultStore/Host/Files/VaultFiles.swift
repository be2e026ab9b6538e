import Glibc
import LinuxIO
import VaultCrypto
import VaultFormat

/// The files of a vault, held by descriptors, so that later changes of paths do not matter.
final class VaultFiles: VaultHost {
    let calls: any FileSystemCalls
    let directory: Int32
    let header: Int32
    private let ownsHeader: Bool

    static let headerName = "obscura.vault"

    /// Opens a vault's directory and header; read-only if the host allows no more. Drops what a killed session left in
    /// the page cache.
    static func open(_ path: String, calls: any FileSystemCalls) throws(VaultError) -> VaultFiles {
        let directory = try openDirectory(path, calls)
        VaultFiles.dropTraces(in: directory, calls)
        do throws(Errno) {
            let header = try openHeader(directory, calls)
            return VaultFiles(calls: calls, directory: directory, header: header, ownsHeader: true)
        } catch {
            calls.close(directory)
            if error == .noEntry { throw .notAVault(path) }
            throw .system(error, "cannot open \(path)/\(headerName)")
        }
    }

    /// Opens a vault whose header is already open and locked by the process that passed it on.
    static func adopt(_ path: String, header: Int32, calls: any FileSystemCalls) throws(VaultError)
        -> VaultFiles
    {
        VaultFiles(
            calls: calls, directory: try openDirectory(path, calls), header: header, ownsHeader: true)
    }

    /// Opens a vault whose header may be missing: then an empty one is created. Drops what a killed session left in the
    /// page cache.
    ///
    /// - Returns: also whether the header's file was created.
    static func openForRestoring(
        _ path: String, calls: any FileSystemCalls
    ) throws(VaultError) -> (vault: VaultFiles, isMade: Bool) {
        let directory = try openDirectory(path, calls)
        VaultFiles.dropTraces(in: directory, calls)
        do throws(Errno) {
            // A directory without segments is no vault, so nothing is created in it.
            try requireSegments(directory, calls)
            var (header, isMade) = (Int32(-1), false)
            do throws(Errno) {
                header = try calls.openRegular(directory, headerName, flags: O_RDWR, mode: 0)
            } catch  where error == .noEntry {
                let flags = O_RDWR | O_CREAT | O_EXCL
                header = try calls.openRegular(directory, headerName, flags: flags, mode: 0o600)
                isMade = true
            }
            return (
                VaultFiles(calls: calls, directory: directory, header: header, ownsHeader: true), isMade
            )
        } catch {
            calls.close(directory)
            if error == .noEntry || error == .notDirectory { throw .notAVault(path) }
            if error.refusesWriting { throw .notWritable(.io(error)) }
            throw .system(error, "cannot open \(path)/\(headerName)")
        }
    }

    /// Throws `noEntry` if there are neither segments of a vault of one space nor the file of all spaces.
    private static func requireSegments(_ directory: Int32, _ calls: any FileSystemCalls) throws(Errno) {
        do throws(Errno) {
            let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW
            calls.close(try calls.open(directory, SegmentLayout.directoryName, flags: flags, mode: 0))
        } catch {
            calls.close(
                try calls.openRegular(directory, SegmentLayout.sharedName, flags: O_RDONLY, mode: 0))
        }
    }

    private static func openDirectory(_ path: String, _ calls: any FileSystemCalls) throws(VaultError)
        -> Int32
    {
        do throws(Errno) {
            return try calls.open(AT_FDCWD, path, flags: O_RDONLY | O_DIRECTORY, mode: 0)
        } catch {
            if error == .noEntry || error == .notDirectory { throw .notAVault(path) }
            throw .system(error, "cannot open \(path)")
        }
    }

    private static func openHeader(_ directory: Int32, _ calls: any FileSystemCalls) throws(Errno) -> Int32 {
        do throws(Errno) {
            return try calls.openRegular(directory, headerName, flags: O_RDWR, mode: 0)
        } catch  where error.refusesWriting {
            return try calls.openRegular(directory, headerName, flags: O_RDONLY, mode: 0)
        }
    }

    /// Throws `notWritable` if the host allows only reading the header.
    func requireWritableHeader() throws(VaultError) {
        do throws(Errno) {
            let flags = O_RDWR | O_NOFOLLOW
            calls.close(try calls.open(directory, Self.headerName, flags: flags, mode: 0))
        } catch {
            if error.refusesWriting { throw .notWritable(.io(error)) }
            throw .system(error, "cannot open \(Self.headerName)")
        }
    }

    init(calls: any FileSystemCalls, directory: Int32, header: Int32, ownsHeader: Bool) {
        self.calls = calls
        self.directory = directory
        self.header = header
        self.ownsHeader = ownsHeader
    }

    deinit {
        calls.close(directory)
        if ownsHeader { calls.close(header) }
    }

    /// Locks the vault for this process; the lock belongs to the descriptor. Throws `inUse` if it is taken.
    func lock() throws(VaultError) {
        do throws(Errno) { try calls.lock(header) } catch {
            if error.meansLocked { throw .inUse }
            throw .system(error, "cannot lock the vault")
        }
    }

    func readHeader(at offset: UInt64, into bytes: inout [UInt8]) throws(Errno) -> Int {
        try calls.readFully(header, at: offset, into: &bytes)
    }

    func writeHeader(_ bytes: [UInt8], at offset: UInt64) throws(Errno) {
        try calls.writeFully(header, bytes, at: offset)
        try calls.sync(header)
    }

    /// The lock belongs to the header's open file, so it is never released in between.
    func passLockOn() -> Int32? { header }

    /// Locks of a file server may not reach other computers.
    var excludesOthers: Bool { false }

    func segments(
        of space: Int, _ layout: SegmentLayout, cover: CoverTraffic?, openMax: Int
    ) throws(VaultError) -> any SegmentHost {
        SegmentFiles(
            directory: try openSegments(layout), layout: layout, space: space, calls: calls, cover: cover,
            openMax: openMax)
    }

    /// Opens the directory of the segments' files.
    func openSegments(_ layout: SegmentLayout) throws(VaultError) -> Int32 {
        do throws(Errno) {
            let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW
            return try calls.open(directory, layout.directoryPath, flags: flags, mode: 0)
        } catch {
            if error == .noEntry { throw .damaged("the directory of segments is missing") }
            throw .system(error, "cannot open the vault's segments")
        }
    }

    /// Throws if this user may not read the segments. Every other error is damage, which is found later.
    func requirePermission(_ layout: SegmentLayout) throws(VaultError) {
        do throws(Errno) {
            let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK
            calls.close(try calls.open(directory, layout.directoryPath, flags: flags, mode: 0))
            guard layout.isShared else { return }
            calls.close(try calls.open(directory, SegmentLayout.sharedName, flags: flags, mode: 0))
        } catch {
            guard error.rawValue == EACCES || error.rawValue == EPERM else { return }
            throw .system(error, "cannot read the vault's files: check their owner and mode")
        }
    }

    /// The size in bytes of a regular file; nil if there is none.
    func fileBytes(_ path: String) -> UInt64? {
        do throws(Errno) {
            let descriptor = try calls.openRegular(directory, path, flags: O_RDONLY, mode: 0)
            defer { calls.close(descriptor) }
            return try calls.status(descriptor).size
        } catch {
            return nil
        }
    }

    func storedBytes(_ layout: SegmentLayout) throws(VaultError) -> UInt64 {
        let count = segmentCount(layout)
        if layout.isShared { return HeaderLayout.fileBytes + UInt64(count) * layout.rowBytes }
        return (0..<count).reduce(Quantity(HeaderLayout.fileBytes)) { sum, number in
            let bytes = fileBytes(layout.path(SegmentPlace(space: 0, number: number))) ?? 0
            return sum + Quantity(min(bytes, layout.segmentBytes))
        }.value
    }

    /// The number of segments that every space has, from 0 on without a gap.
    func segmentCount(_ layout: SegmentLayout) -> Int {
        if layout.isShared { return layout.rows(ofFile: fileBytes(SegmentLayout.sharedName) ?? 0) }
        // In a vault that grows, a last name that is not a regular file is no segment.
        let numbers = (try? listing(layout).numbers) ?? []
        var count = zip(numbers, 0...).prefix { $0 == $1 }.count
        while count > 0, fileBytes(layout.path(SegmentPlace(space: 0, number: count - 1))) == nil {
            count -= 1
        }
        return count
    }
}

// MARK: Copies

extension VaultFiles {
    func holdForBackups() -> BackupHold? { BackupHold(self) }
    var copyLocks: Int32? { header }
}

// MARK: This computer

extension VaultFiles {
    /// Only file servers and programs may have files that cannot; disks are not asked. Of several spaces nothing may be
    /// written when a session begins, because its writes count.
    func changesInPlace(_ layout: SegmentLayout) -> Bool {
        guard !layout.isShared, let host = try? calls.hostStatus(directory),
            Self.remoteMagics.contains(host.typeMagic)
        else { return true }
        return InPlaceProbe(calls: calls, directory: directory).isPassed()
    }

    /// No computer is asked for a vault in files: its lock ends with the mount's process.
    var shared: (any SharedHost)? { nil }

    /// FUSE, NFS, SMB (its kernel client has had three), 9P, Ceph, AFS and Coda: linux/magic.h.
    private static let remoteMagics: Set<UInt64> = [
        0x6573_5546, 0x6969, 0xFF53_4D42, 0xFE53_4D42, 0x517B, 0x0102_1997, 0x00C3_6400, 0x5346_414F,
        0x7375_7245,
    ]

    /// The kernel's boot id: its page cache has the unsynced writes of all sessions since.
    func memoryMark() -> [UInt8]? {
        var id = [UInt8](repeating: 0, count: 64)
        let path = "/proc/sys/kernel/random/boot_id"
        guard let descriptor = try? calls.open(AT_FDCWD, path, flags: O_RDONLY, mode: 0) else { return nil }
        defer { calls.close(descriptor) }
        return (try? calls.readFully(descriptor, at: 0, into: &id)) ?? 0 > 0 ? id : nil
    }
}

// MARK: Making

extension VaultFiles {
    /// Makes the names of all files of a new vault durable.
    func syncDirectories(_ layout: SegmentLayout) throws(VaultError) {
        try Self.syncDirectory(layout.directoryPath, directory, calls)
        try Self.syncDirectory(".", directory, calls)
        // Best effort: the parent directory may belong to another user.
        try? Self.syncDirectory("..", directory, calls)
    }

    /// Makes the names in a directory of the vault durable: fsync(2) of a file need not.
    static func syncDirectory(
        _ path: String, _ directory: Int32, _ calls: any FileSystemCalls
    ) throws(VaultError) {
        do throws(Errno) {
            let descriptor = try calls.open(directory, path, flags: O_RDONLY | O_DIRECTORY, mode: 0)
            defer { calls.close(descriptor) }
            try calls.sync(descriptor)
        } catch {
            throw error.meansNoRoom ? .noRoom : .system(error, "cannot write the vault's directories")
        }
    }
}
