import Glibc
public import LinuxIO
public import VaultCrypto
public import VaultFormat

/// Creating and growing vaults.
extension Vault {
    /// The proposed size of a space: an eighth of the available disk, divided among the spaces, in whole segments.
    public static func proposedBytesPerSpace(at path: String, spaces: Int) -> UInt64 {
        if isClusterPath(path) { return proposedBytesOnCluster(path, spaces: spaces) }
        let host = host(path)
        var available = (host?.availableBytes ?? 0) / 8
        if let host, host.typeMagic == fatMagic { available = min(available, fatFileBytesMax) }
        return proposal(available, spaces: spaces)
    }

    /// - Parameter bytes: for all spaces.
    static func proposal(_ bytes: UInt64, spaces: Int) -> UInt64 {
        let segment = Geometry.segmentBytesUsual
        return max(4 * segment, bytes / UInt64(max(1, spaces)) / segment * segment)
    }

    /// The name of the store at `path` if it keeps old versions of overwritten data, for a warning.
    public static func storeKeepsVersions(at path: String) -> String? {
        if isClusterPath(path) { return nil }
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
        return pathText(path)
    }

    /// The host filesystem of `path`, or of its nearest existing ancestor.
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

    /// Creates a vault and gives `password` a random one of its spaces.
    ///
    /// With several spaces all segments are created now, full of random bytes. If this throws, everything it created is
    /// removed again.
    /// - Parameters:
    ///   - bytesPerSpace: rounded up to whole segments; nil only for a single space, which grows on demand.
    ///   - segmentBytes: a power of two that the header may name; nil: chosen by the size.
    ///   - limits: `least` creates a vault with the smallest segments.
    ///   - coverBytes: bytes of several spaces that are written once more; nil: a random number, see `CoverAmount`.
    ///   - progress: called with the bytes written so far and the total, every MiB and between the steps. Its error
    ///     ends the creation.
    public static func create(
        at path: String, spaces: Int, bytesPerSpace: UInt64?, kdf: KDFParameters, password: SecretBytes,
        segmentBytes wanted: UInt64? = nil, stretcher: any PasswordStretcher = LocalStretcher(),
        calls: any FileSystemCalls = LinuxCalls.shared, limits: Limits = .ofProcess,
        coverBytes: UInt64? = nil,
        progress: (_ done: UInt64, _ total: UInt64) throws(VaultError) -> Void
    ) throws(VaultError) {
        let address = try ClusterAddress(path)
        let chosen = try checkedSegmentBytes(path, spaces, bytesPerSpace, isLeast: limits == .least)
        let segmentBytes = wanted ?? chosen
        let segments =
            spaces == 1 ? 0 : try segmentCount(bytesPerSpace ?? 0, of: segmentBytes)
        guard KDFLimits.memoryBytes.contains(kdf.memoryBytes), KDFLimits.passes.contains(kdf.passes) else {
            throw .invalidSize("the KDF takes 8M to 448M of memory and 1 to 64 passes")
        }
        if let address {
            return try create(
                at: address, path: path, Header(spaces: spaces, segmentBytes: segmentBytes, kdf: kdf),
                segments: segments, password: password, stretcher: stretcher, progress: progress)
        }
        var made = MadeFiles(calls: calls, path: path)
        do throws(VaultError) {
            let directory = try made.openRoot()
            try InPlaceProbe(calls: calls, directory: directory).run()
            var header = Header(spaces: spaces, segmentBytes: segmentBytes, kdf: kdf)
            let layout = header.layout
            if !layout.isShared { try made.directory(SegmentLayout.directoryName) }
            // First, so that a machine without enough memory fails before hours of filling.
            let stretched = try header.stretched(password, by: stretcher)
            let total = UInt64(segments) * layout.rowBytes
            if layout.isShared {
                try requireRoom(for: total, directory, calls)
                made.hasSpaces = true
                let cover = coverBytes ?? CoverAmount.ofCreation()
                try fill(directory, layout, to: segments, calls, coverBytes: cover, progress)
            }
            try progress(total, total)
            try VaultFiles.syncDirectory(layout.directoryPath, directory, calls)
            let file = try made.headerFile()
            let vault = VaultFiles(calls: calls, directory: directory, header: file, ownsHeader: true)
            try vault.lock()
            let space = Int(randomNumber(below: UInt32(spaces)))
            let key = SecretBytes.random(count: Geometry.keyBytes)
            try formatSpace(vault, header, space, key)
            header.setKeySlot(space, key: key, stretched: stretched)
            try header.write(to: vault)
            vault.blurTraces(layout, isNew: true)
            try vault.syncDirectories(layout)
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
            // A vault that grows may fill its disk.
            let total =
                try ClusterAddress(path).map { (address) throws(VaultError) in
                    try address.room()?.total
                } ?? host(path)?.totalBytes
            return Geometry.segmentBytes(forSpace: max(total ?? 0, Geometry.spaceBytesUsual))
        }
        guard let bytes = bytesPerSpace else {
            throw .invalidSize("a vault of \(spaces) spaces needs a size")
        }
        guard bytes >= Geometry.spaceBytesMin else { throw .invalidSize("a space has at least 16M") }
        if isLeast { return Geometry.segmentBytesLeast }
        return Geometry.segmentBytes(forSpace: bytes)
    }

    /// The number of segments for a space of `bytesPerSpace`. Throws `invalidSize` above `Geometry.segmentsMax`, so
    /// that sums cannot overflow.
    static func segmentCount(
        _ bytesPerSpace: UInt64, of segmentBytes: UInt64
    ) throws(VaultError) -> Int {
        let count = Quantity(bytesPerSpace).units(of: Quantity(segmentBytes)).int
        guard count <= Geometry.segmentsMax else {
            let most = Quantity(segmentBytes) * Quantity(Geometry.segmentsMax)
            throw .invalidSize("a space with segments of this size has at most \(most.value >> 30)G")
        }
        return count
    }

    /// Appends random bytes to the file of all spaces until each has `count` segments. Existing bytes stay.
    ///
    /// Disk for all of it is reserved first if the host can; else the host is asked whether it takes a file of that
    /// size. If this throws, the file is cut to whole rows; the caller removes an empty file.
    ///
    /// - Parameters:
    ///   - coverBytes: as many of the new bytes are written once more.
    ///   - mayGiveBack: asked after a failure: whether no mount is using the file, so that new rows are removed too.
    ///     Rows in which anything was written meanwhile stay.
    static func fill(
        _ directory: Int32, _ layout: SegmentLayout, to count: Int,
        _ calls: any FileSystemCalls, coverBytes: UInt64 = 0, mayGiveBack: () -> Bool = { false },
        _ progress: (UInt64, UInt64) throws(VaultError) -> Void
    ) throws(VaultError) {
        let file = try SpacesFile(directory, calls)
        let end = UInt64(count) * layout.rowBytes
        do throws(VaultError) {
            try file.reserve(end, directory)
            try file.complete(end, coverBytes: coverBytes, progress)
        } catch {
            file.shorten(toWhole: layout.rowBytes, givesBack: mayGiveBack())
            throw error
        }
    }

    /// Throws `noRoom` or `fileTooLarge` if the host has no room for a file of all spaces of `size` bytes, or cannot
    /// hold one.
    static func requireRoom(
        for size: UInt64, _ directory: Int32, _ calls: any FileSystemCalls
    ) throws(VaultError) {
        guard let host = try? calls.hostStatus(directory) else { return }
        if host.typeMagic == fatMagic && size > fatFileBytesMax { throw .fileTooLarge }
        // Disk that a killed `grow` reserved belongs to the file.
        let missing = size - min(size, bytesHeld(directory, calls))
        guard missing == 0 || host.availableBytes > missing else { throw .noRoom }
    }

    /// The size of the file of all spaces, or of its disk blocks if that is more; 0 if there is no file.
    private static func bytesHeld(_ directory: Int32, _ calls: any FileSystemCalls) -> UInt64 {
        let name = SegmentLayout.sharedName
        guard let file = try? calls.openRegular(directory, name, flags: O_RDONLY, mode: 0) else { return 0 }
        defer { calls.close(file) }
        guard let status = try? calls.status(file) else { return 0 }
        return max(status.size, (Quantity(status.blocks) * Quantity(512)).value)
    }

    /// FAT12 to FAT32: linux/magic.h.
    private static let fatMagic: UInt64 = 0x4D44
    private static let fatFileBytesMax: UInt64 = 4 << 30 - 1

    /// The numbers below `count`, shuffled.
    private static func randomOrder(_ count: Int) -> [Int] {
        var order = Array(0..<count)
        for index in stride(from: order.count - 1, to: 0, by: -1) {
            order.swapAt(index, Int(randomNumber(below: UInt32(index + 1))))
        }
        return order
    }

    // MARK: Growing

    /// Enlarges every space to `bytesPerSpace`, used or not, mounted or not. Needs no password.
    ///
    /// A mounted daemon uses new segments once every space has them. If `grow` is killed, all spaces are equally large;
    /// the next `grow` or mount completes a partial row. If it fails, the spaces are as large as before, or, while one
    /// is mounted, as many whole rows larger as could be written.
    public static func grow(
        _ path: String, bytesPerSpace: UInt64, calls: any FileSystemCalls = LinuxCalls.shared,
        progress: (_ done: UInt64, _ total: UInt64) -> Void
    ) throws(VaultError) {
        let (host, header) = try open(path, calls: calls, mayRepair: false)
        let layout = header.layout
        guard layout.isShared else {
            throw .invalidSize("this vault has one space and grows with its photos")
        }
        if let vault = host as? VaultCluster {
            return try grow(vault, header, bytesPerSpace: bytesPerSpace, progress: progress)
        }
        guard let vault = host as? VaultFiles else { return }
        let lock = try lockSpaces(vault)
        defer { calls.close(lock) }
        let wanted = try segmentCountWanted(bytesPerSpace, header, now: vault.segmentCount(layout))
        let (size, end) = (vault.fileBytes(SegmentLayout.sharedName) ?? 0, UInt64(wanted) * layout.rowBytes)
        if end > size {
            try requireRoom(for: end, vault.directory, calls)
            // The lock is kept until the file has its size again: a mount would use new segments.
            let takeLock = { (try? vault.lock()) != nil }
            try fill(vault.directory, layout, to: wanted, calls, mayGiveBack: takeLock) {
                (done, total) throws(VaultError) in
                progress(done - size, total - size)
            }
        }
        vault.blurTraces(layout)
    }

    /// The number of segments of each space after it has grown.
    static func segmentCountWanted(
        _ bytesPerSpace: UInt64, _ header: Header, now count: Int
    ) throws(VaultError) -> Int {
        let wanted = try segmentCount(bytesPerSpace, of: header.segmentBytes)
        guard wanted >= count else {
            throw .invalidSize(
                "a space has \(UInt64(count) * header.segmentBytes >> 20)M already and never shrinks")
        }
        return wanted
    }

    /// Locks the file of all spaces: one `grow` at a time. A mounted daemon does not hold this lock.
    static func lockSpaces(_ vault: VaultFiles) throws(VaultError) -> Int32 {
        do throws(Errno) {
            let descriptor = try vault.calls.openRegular(
                vault.directory, SegmentLayout.sharedName, flags: O_RDONLY, mode: 0)
            do throws(Errno) { try vault.calls.lock(descriptor) } catch {
                vault.calls.close(descriptor)
                throw error
            }
            return descriptor
        } catch {
            if error == .wouldBlock { throw .inUse }
            if error == .noEntry { throw .damaged("\(SegmentLayout.sharedName) is missing") }
            throw .system(error, "cannot lock the vault's segments")
        }
    }

    /// Completes an interrupted `grow`, unless one is running.
    static func completeSegments(_ vault: VaultFiles, _ layout: SegmentLayout) throws(VaultError) {
        guard layout.isShared, let size = vault.fileBytes(SegmentLayout.sharedName),
            size % layout.rowBytes != 0
        else { return }
        do throws(VaultError) {
            let lock = try lockSpaces(vault)
            defer { vault.calls.close(lock) }
            try fill(vault.directory, layout, to: vault.segmentCount(layout) + 1, vault.calls) { _, _ in }
        } catch {
            switch error {
            // Without room the spaces stay as they are. A running `grow` does this itself.
            case .inUse, .noRoom, .fileTooLarge: return
            // Opening the space for writing reports that.
            case .notWritable: return
            default: throw error
            }
        }
    }
}

/// The files that `create` has made so far, to be removed if it fails.
struct MadeFiles {
    let calls: any FileSystemCalls
    let path: String
    /// Whether there may be a file of all spaces.
    var hasSpaces = false
    private var directories: [String] = []
    private var hasHeader = false
    private var madeRoot = false
    private var root: Int32 = -1

    init(calls: any FileSystemCalls, path: String) {
        self.calls = calls
        self.path = path
    }

    /// Opens the vault's directory, which must be empty; creates it if it is missing.
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

    /// Creates the header's file, full of random bytes.
    mutating func headerFile() throws(VaultError) -> Int32 {
        hasHeader = true
        do throws(Errno) {
            let flags = O_RDWR | O_CREAT | O_EXCL
            let file = try calls.openRegular(root, VaultFiles.headerName, flags: flags, mode: 0o600)
            var bytes = [UInt8](repeating: 0, count: Int(HeaderLayout.fileBytes))
            bytes.withUnsafeMutableBytes { fillRandom($0) }
            try calls.writeFully(file, bytes, at: 0)
            return file
        } catch {
            if error.meansNoRoom { throw VaultError.noRoom }
            throw .system(error, "cannot write the header")
        }
    }

    /// Removes everything. Best effort.
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
        if hasSpaces { try? calls.unlink(again, SegmentLayout.sharedName) }
        if hasHeader { try? calls.unlink(again, VaultFiles.headerName) }
    }
}
