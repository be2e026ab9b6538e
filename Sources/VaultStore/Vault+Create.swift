import Glibc
public import LinuxIO
public import VaultCrypto
public import VaultFormat

/// Making vaults, and making them larger.
extension Vault {
    /// What a user with so much disk is offered: an eighth of it, shared by the spaces, in whole segments.
    public static func proposedBytesPerSpace(at path: String, spaces: Int) -> UInt64 {
        let available = host(path)?.availableBytes ?? 0
        let bytes = available / 8 / UInt64(max(1, spaces))
        let segment = Geometry.segmentBytesUsual
        return max(4 * segment, bytes / segment * segment)
    }

    /// The kind of store at `path` if it keeps old versions of what is overwritten, for a warning.
    public static func storeKeepsVersions(at path: String) -> String? {
        let types: [UInt64: String] = [
            0x9123_683E: "btrfs", 0x2FC1_2FC1: "ZFS", 0xF2F5_2010: "f2fs", 0xCA45_1A4E: "bcachefs",
            0x794C_7630: "overlay",
        ]
        if let type = host(path)?.typeMagic, let name = types[type] { return name }
        let synced = [
            "Dropbox", "Nextcloud", "ownCloud", "OneDrive", "Google Drive", "GoogleDrive", "Syncthing",
            "Sync",
        ]
        let absolute = path.hasPrefix("/") ? path : currentDirectory() + "/" + path
        return absolute.split(separator: "/").lazy.map(String.init).first { synced.contains($0) }
            .map { "a folder synced by \($0)" }
    }

    private static func currentDirectory() -> String {
        guard let path = getcwd(nil, 0) else { return "" }
        defer { free(path) }
        return String(cString: path)
    }

    /// The host filesystem of `path`, or of the nearest directory above it that exists.
    private static func host(_ path: String) -> HostStatus? {
        let calls = LinuxCalls.shared
        var path = path
        while true {
            if let descriptor = try? calls.open(AT_FDCWD, path, flags: O_RDONLY, mode: 0) {
                defer { calls.close(descriptor) }
                return try? calls.hostStatus(descriptor)
            }
            while path.hasSuffix("/") && path.utf8.count > 1 { path.removeLast() }
            guard let slash = path.lastIndex(of: "/") else {
                if path == "." { return nil }
                path = "."
                continue
            }
            if path == "/" { return nil }
            path = slash == path.startIndex ? "/" : String(path[..<slash])
        }
    }

    /// Makes a vault and gives `password` one of its spaces, at random.
    ///
    /// With several spaces every segment is there from birth, full of random bytes. When this throws, what it made
    /// is removed again.
    /// - Parameters:
    ///   - bytesPerSpace: rounded up to whole segments; nil only for one space, which grows on demand.
    ///   - limits: the least make a vault of the smallest segments.
    ///   - progress: bytes written so far, and in all. Called every MiB and between the steps; what it throws ends
    ///     the making like any other error.
    public static func create(
        at path: String, spaces: Int, bytesPerSpace: UInt64?, kdf: KDFParameters, password: SecretBytes,
        stretcher: any PasswordStretcher = LocalStretcher(), calls: any FileSystemCalls = LinuxCalls.shared,
        limits: Limits = .ofProcess, progress: (_ done: UInt64, _ total: UInt64) throws(VaultError) -> Void
    ) throws(VaultError) {
        let segmentBytes = try checkedSegmentBytes(path, spaces, bytesPerSpace, isLeast: limits == .least)
        let segments =
            spaces == 1 ? 0 : try segmentCount(bytesPerSpace ?? 0, of: segmentBytes)
        guard KDFLimits.memoryBytes.contains(kdf.memoryBytes), KDFLimits.passes.contains(kdf.passes) else {
            throw .invalidSize("the KDF takes 8M to 448M of memory and 1 to 64 passes")
        }
        var made = MadeFiles(calls: calls, path: path)
        do throws(VaultError) {
            let directory = try made.openRoot()
            try made.directory(VaultDirectory.spacesName)
            for space in 0..<spaces { try made.directory("\(VaultDirectory.spacesName)/\(space)") }
            var header = Header(spaces: spaces, segmentBytes: segmentBytes, kdf: kdf)
            // First: a machine that cannot do it says so before hours of filling.
            let stretched = try header.stretched(password, by: stretcher)
            let total = UInt64(segments * spaces) * segmentBytes
            if total > 0 {
                guard try made.hostStatus().availableBytes > total else { throw VaultError.noRoom }
                try fill(directory, spaces, 0..<segments, segmentBytes, calls, progress)
            }
            try progress(total, total)
            try syncDirectories(segmentDirectories(spaces), directory, calls)
            let file = try made.headerFile()
            let vault = VaultDirectory(calls: calls, directory: directory, header: file, ownsHeader: true)
            try vault.lockHeader()
            let space = Int(randomNumber(below: UInt32(spaces)))
            let key = SecretBytes.random(count: Geometry.keyBytes)
            try formatSpace(vault, header, space, key)
            header.setSlot(space, key: key, stretched: stretched)
            try header.write(vault.header, calls: calls)
            levelTimes(vault, header)
            try syncDirectories([VaultDirectory.spacesName, "."], directory, calls)
            // Its own name lies in a directory that may be another's.
            try? syncDirectories([".."], directory, calls)
            try progress(total, total)
        } catch {
            made.remove()
            throw error
        }
    }

    private static func checkedSegmentBytes(
        _ path: String, _ spaces: Int, _ bytesPerSpace: UInt64?, isLeast: Bool
    ) throws(VaultError) -> UInt64 {
        guard spaces >= 1 && spaces <= Geometry.spacesMax else {
            throw .invalidSize("a vault has 1 to \(Geometry.spacesMax) spaces")
        }
        if spaces == 1 {
            if isLeast { return Geometry.segmentBytesLeast }
            // A vault that grows may come to fill its disk.
            return Geometry.segmentBytes(
                forSpace: max(host(path)?.totalBytes ?? 0, 4 * Geometry.segmentBytesUsual))
        }
        guard let bytes = bytesPerSpace else {
            throw .invalidSize("a vault of \(spaces) spaces needs a size")
        }
        guard bytes >= Geometry.spaceBytesMin else { throw .invalidSize("a space has at least 16M") }
        if isLeast { return Geometry.segmentBytesLeast }
        return Geometry.segmentBytes(forSpace: bytes)
    }

    /// How many segments make so many bytes of space: a number that every sum with it can bear.
    static func segmentCount(
        _ bytesPerSpace: UInt64, of segmentBytes: UInt64
    ) throws(VaultError) -> Int {
        let count = Quantity(bytesPerSpace).units(of: Quantity(segmentBytes)).int
        guard count <= Geometry.segmentsMax else {
            let most = Quantity(segmentBytes) * Quantity(Geometry.segmentsMax)
            throw .invalidSize("a space of such segments has at most \(most.value >> 30)G")
        }
        return count
    }

    /// Writes segments full of random bytes, in random order, so that no order of inodes tells spaces apart.
    ///
    /// One number at a time: its files are made in all spaces, and the disk for all of them set aside where the host
    /// can, before any is written. So whoever completes what a kill left needs no more room, and a mount that takes
    /// the number into use, once all are whole, finds the files in directories that are on disk (`isInUse`).
    ///
    /// A segment that is there in part is completed; nothing that is there is written over. When this throws, the
    /// files it made for the unfinished number are gone again, and so are empty ones that it found.
    static func fill(
        _ directory: Int32, _ spaces: Int, _ numbers: Range<Int>, _ segmentBytes: UInt64,
        isInUse: Bool = false,
        _ calls: any FileSystemCalls, _ progress: (UInt64, UInt64) throws(VaultError) -> Void
    ) throws(VaultError) {
        let stream = RandomStream()
        let total = UInt64(spaces * numbers.count) * segmentBytes
        var done: UInt64 = 0
        var (made, wholeCount) = ([String](), 0)
        do throws(VaultError) {
            for number in numbers {
                (made, wholeCount) = ([], 0)
                var row: [Segment] = []
                for space in randomOrder(spaces) {
                    let path = "\(VaultDirectory.spacesName)/\(space)/\(SegmentFiles.name(number))"
                    row.append(try Segment(directory, path, calls))
                    if row.last?.size == 0 { made.append(path) }
                }
                for segment in row { try segment.reserve(segmentBytes) }
                if isInUse { try syncDirectories(segmentDirectories(spaces), directory, calls) }
                for segment in row {
                    try segment.complete(segmentBytes, stream) { (bytes) throws(VaultError) in
                        try progress(done + bytes, total)
                    }
                    wholeCount += 1
                    try segment.sync()
                    done += segmentBytes
                }
            }
        } catch {
            // A number that every space has whole may be in use by a mount already: it stays.
            if wholeCount < spaces { for path in made { try? calls.unlink(directory, path) } }
            throw error
        }
    }

    /// The numbers below `count`, shuffled.
    static func randomOrder(_ count: Int) -> [Int] {
        var order = Array(0..<count)
        for index in stride(from: order.count - 1, to: 0, by: -1) {
            order.swapAt(index, Int(randomNumber(below: UInt32(index + 1))))
        }
        return order
    }

    /// The directories whose entries are segments and spaces.
    private static func segmentDirectories(_ spaces: Int) -> [String] {
        (0..<spaces).map { "\(VaultDirectory.spacesName)/\($0)" } + [VaultDirectory.spacesName]
    }

    /// Makes the names in directories of the vault durable: a file's own fsync(2) need not.
    private static func syncDirectories(
        _ paths: [String], _ directory: Int32, _ calls: any FileSystemCalls
    ) throws(VaultError) {
        do throws(Errno) {
            for path in paths {
                let descriptor = try calls.open(directory, path, flags: O_RDONLY | O_DIRECTORY, mode: 0)
                defer { calls.close(descriptor) }
                try calls.sync(descriptor)
            }
        } catch {
            throw error.meansNoRoom ? .noRoom : .system(error, "cannot write the vault's directories")
        }
    }

    // MARK: Growing

    /// Enlarges every space to `bytesPerSpace`, used or not, mounted or not; needs no password.
    ///
    /// A mounted daemon takes new segments into use when every space has them. What an interrupted `grow` left is
    /// evened out by the next `grow` or mount.
    public static func grow(
        _ path: String, bytesPerSpace: UInt64, calls: any FileSystemCalls = LinuxCalls.shared,
        progress: (_ done: UInt64, _ total: UInt64) -> Void
    ) throws(VaultError) {
        let (vault, header) = try open(path, calls: calls, mayRepair: false)
        guard header.spaceCount > 1 else {
            throw .invalidSize("this vault has one space and grows with its photos")
        }
        let lock = try lockSpaces(vault)
        defer { calls.close(lock) }
        if let lost = try lostSegment(vault, header) { throw .notWritable(.segmentMissing(lost)) }
        let count = try completeSegments(vault, header)
        let wanted = try segmentCount(bytesPerSpace, of: header.segmentBytes)
        guard wanted >= count else {
            throw .invalidSize(
                "a space has \(UInt64(count) * header.segmentBytes >> 20)M already and never shrinks")
        }
        let total = UInt64((wanted - count) * header.spaceCount) * header.segmentBytes
        let available = try? calls.hostStatus(vault.directory).availableBytes
        if let available, available < total { throw .noRoom }
        try fill(
            vault.directory, header.spaceCount, count..<wanted, header.segmentBytes, isInUse: true, calls,
            progress)
        levelTimes(vault, header)
    }

    /// One `grow` at a time; a mounted daemon does not hold this lock.
    static func lockSpaces(_ vault: VaultDirectory) throws(VaultError) -> Int32 {
        do throws(Errno) {
            let descriptor = try vault.calls.open(
                vault.directory, VaultDirectory.spacesName, flags: O_RDONLY | O_DIRECTORY, mode: 0)
            do throws(Errno) { try vault.calls.lock(descriptor) } catch {
                vault.calls.close(descriptor)
                throw error
            }
            return descriptor
        } catch {
            if error == .wouldBlock { throw .inUse }
            throw .system(error, "cannot lock the vault's segments")
        }
    }

    /// Completes what an interrupted `grow` left, unless one is at work: all spaces have as many segments again.
    static func levelSegments(_ vault: VaultDirectory, _ header: Header) throws(VaultError) {
        guard hasMore(vault, header, than: wholeSegments(vault, header)) else { return }
        do throws(VaultError) {
            let lock = try lockSpaces(vault)
            defer { vault.calls.close(lock) }
            // It may still be put back, and what a repair would do is said first.
            if try lostSegment(vault, header) != nil { return }
            _ = try completeSegments(vault, header)
        } catch {
            // Without room the spaces stay as large as the smallest; with another at work it will do this.
            if error == .inUse || error == .noRoom { return }
            // Nor where it cannot be written to at all, which who opens a space is told.
            if case .notWritable = error { return }
            throw error
        }
    }

    /// Makes the segments that some spaces have and others lack; returns how many each has then. Under the lock of
    /// `lockSpaces`.
    ///
    /// An interrupted `grow` leaves one number unfinished; after a power cut, directories may have lost several.
    private static func completeSegments(_ vault: VaultDirectory, _ header: Header) throws(VaultError) -> Int
    {
        var count = wholeSegments(vault, header)
        while hasMore(vault, header, than: count) {
            try fill(
                vault.directory, header.spaceCount, count..<count + 1, header.segmentBytes, isInUse: true,
                vault.calls
            ) { _, _ in }
            let now = wholeSegments(vault, header)
            // A file longer than a segment is none, and stays what it is.
            if now == count { break }
            count = now
        }
        return count
    }

    /// The first segment that some space has lost: it is missing or short there, and a later one is whole. Growing
    /// makes one after the other, in directories that are on the disk before it fills a file, and leaves no such.
    private static func lostSegment(_ vault: VaultDirectory, _ header: Header) throws(VaultError) -> Int? {
        let count = wholeSegments(vault, header)
        for space in 0..<header.spaceCount {
            guard (vault.segmentBytes(space: space, number: count) ?? 0) < header.segmentBytes else {
                continue
            }
            let later = try vault.segmentNumbers(space: space).filter {
                $0 > count && $0 < Geometry.segmentsMax
            }
            let hasWhole = later.contains {
                vault.segmentBytes(space: space, number: $0) == header.segmentBytes
            }
            if hasWhole { return count }
        }
        return nil
    }

    /// How many segments every space has whole.
    private static func wholeSegments(_ vault: VaultDirectory, _ header: Header) -> Int {
        vault.segmentCount(
            spaces: 0..<header.spaceCount, segmentBytes: header.segmentBytes, from: 0, isGrowing: false)
    }

    /// Whether some space has a file, whole or not, of the number after the first `count`.
    private static func hasMore(_ vault: VaultDirectory, _ header: Header, than count: Int) -> Bool {
        (0..<header.spaceCount).contains { vault.segmentBytes(space: $0, number: count) != nil }
    }
}

/// A segment being filled with random bytes from where it ends.
private final class Segment {
    /// Bytes it had when it was opened; 0 for one made by that.
    let size: UInt64
    private let file: Int32
    private let calls: any FileSystemCalls

    /// Opens it, made if need be.
    init(_ directory: Int32, _ path: String, _ calls: any FileSystemCalls) throws(VaultError) {
        self.calls = calls
        do throws(Errno) {
            file = try calls.openRegular(directory, path, flags: O_RDWR | O_CREAT, mode: 0o600)
            do throws(Errno) { size = try calls.status(file).size } catch {
                calls.close(file)
                throw error
            }
        } catch { throw Self.failure(error) }
    }

    deinit { calls.close(file) }

    /// Has the host set aside what is missing up to `bytes`; nothing where it cannot. The size stays: what is whole
    /// is known by it.
    func reserve(_ bytes: UInt64) throws(VaultError) {
        if size >= bytes { return }
        do throws(Errno) { try calls.reserve(file, bytes: bytes) } catch {
            if error != .notSupported { throw Self.failure(error) }
        }
    }

    /// Fills it up to `bytes`. `progress` is told before every MiB how far it has come.
    func complete(
        _ bytes: UInt64, _ stream: RandomStream, _ progress: (UInt64) throws(VaultError) -> Void
    ) throws(VaultError) {
        let block = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
        defer { block.deallocate() }
        var offset = size
        while offset < bytes {
            try progress(offset)
            stream.fill(block)
            let count = Int(min(bytes - offset, UInt64(block.count)))
            do throws(Errno) {
                try calls.writeFully(file, UnsafeRawBufferPointer(block.slice(0, count)), at: offset)
            } catch { throw Self.failure(error) }
            offset += UInt64(count)
        }
    }

    func sync() throws(VaultError) {
        do throws(Errno) { try calls.dataSync(file) } catch { throw Self.failure(error) }
    }

    private static func failure(_ error: Errno) -> VaultError {
        if error.refusesWriting { return .notWritable(.io(error)) }
        return error.meansNoRoom ? .noRoom : .system(error, "cannot write the vault's segments")
    }
}

/// What `create` has made so far, to be removed when it fails.
private struct MadeFiles {
    let calls: any FileSystemCalls
    let path: String
    private var directories: [String] = []
    private var madeRoot = false
    private var root: Int32 = -1

    init(calls: any FileSystemCalls, path: String) {
        self.calls = calls
        self.path = path
    }

    /// Opens the vault's directory, made if need be; it must be empty.
    mutating func openRoot() throws(VaultError) -> Int32 {
        do throws(Errno) {
            do throws(Errno) {
                try calls.makeDirectory(AT_FDCWD, path, mode: 0o700)
                madeRoot = true
            } catch  where error == .exists {}
            root = try calls.open(AT_FDCWD, path, flags: O_RDONLY | O_DIRECTORY, mode: 0)
            guard try calls.list(root).isEmpty else { throw Errno(ENOTEMPTY) }
            return root
        } catch {
            if error == Errno(ENOTEMPTY) { throw .notEmpty(path) }
            throw .system(error, "cannot make \(path)")
        }
    }

    mutating func directory(_ name: String) throws(VaultError) {
        do throws(Errno) {
            try calls.makeDirectory(root, name, mode: 0o700)
            directories.append(name)
        } catch { throw .system(error, "cannot make \(path)/\(name)") }
    }

    func hostStatus() throws(VaultError) -> HostStatus {
        do throws(Errno) { return try calls.hostStatus(root) } catch {
            throw .system(error, "cannot ask for the free disk")
        }
    }

    /// The header's file, full of random bytes.
    func headerFile() throws(VaultError) -> Int32 {
        do throws(Errno) {
            let flags = O_RDWR | O_CREAT | O_EXCL
            let file = try calls.openRegular(root, VaultDirectory.headerName, flags: flags, mode: 0o600)
            var bytes = [UInt8](repeating: 0, count: Int(HeaderLayout.fileBytes))
            bytes.withUnsafeMutableBytes { fillRandom($0) }
            try calls.writeFully(file, bytes, at: 0)
            return file
        } catch {
            if error.meansNoRoom { throw VaultError.noRoom }
            throw .system(error, "cannot write the header")
        }
    }

    /// Removes everything, as far as it can be.
    func remove() {
        defer { if madeRoot { _ = rmdir(path) } }
        guard let again = try? calls.open(AT_FDCWD, path, flags: O_RDONLY | O_DIRECTORY, mode: 0) else {
            return
        }
        defer { calls.close(again) }
        for name in directories.reversed() {
            if let directory = try? calls.open(again, name, flags: O_RDONLY | O_DIRECTORY, mode: 0) {
                for file in (try? calls.list(directory)) ?? [] { try? calls.unlink(directory, file) }
                calls.close(directory)
            }
            _ = unlinkat(again, name, Int32(AT_REMOVEDIR))
        }
        if !directories.isEmpty { try? calls.unlink(again, VaultDirectory.headerName) }
    }
}
