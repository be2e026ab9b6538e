import Glibc
public import LinuxIO
public import VaultCrypto
import VaultFormat

/// Properties of a vault that are visible without a password.
public struct VaultInfo: Sendable, Equatable {
    public var formatVersion: Int
    public var spaceCount: Int
    public var segmentBytes: UInt64
    public var segmentsPerSpace: Int
    /// Capacity of each space; in a vault that grows, of its present segments.
    public var bytesPerSpace: UInt64
    public var bytesOnDisk: UInt64
    public var kdf: KDFParameters
    /// Whether the vault has one space, which grows with its photos.
    public var grows: Bool
}

/// Operations on a vault as a whole: creating, opening, changing passwords. The format specification describes its
/// files.
public enum Vault {
    /// Whether a directory has the segments of a vault, and no header.
    public static func lacksHeader(_ path: String) -> Bool {
        func has(_ name: String) -> Bool { access(path + "/" + name, F_OK) == 0 }
        return !has(VaultDirectory.headerName)
            && (has(SegmentLayout.sharedName) || has(SegmentLayout.directoryName))
    }

    /// Whether `path` may be a vault, valid or not: false only if it is no directory or has no header file.
    public static func isVault(_ path: String) -> Bool {
        do throws(VaultError) {
            _ = try VaultDirectory.open(path, calls: LinuxCalls.shared)
            return true
        } catch {
            if case .notAVault = error { return false }
            return true
        }
    }

    /// Reads the vault's properties from the header and the segment files.
    public static func info(_ path: String) throws(VaultError) -> VaultInfo {
        let (vault, header) = try open(path, calls: LinuxCalls.shared, mayRepair: false)
        let layout = header.layout
        let count = vault.segmentCount(layout)
        var onDisk = Quantity(HeaderLayout.fileBytes)
        if layout.isShared {
            onDisk += Quantity(UInt64(count) * layout.rowBytes)
        } else {
            for number in 0..<count {
                let bytes = vault.fileBytes(layout.path(SegmentPlace(space: 0, number: number))) ?? 0
                onDisk += Quantity(min(bytes, header.segmentBytes))
            }
        }
        return VaultInfo(
            formatVersion: Int(formatVersion), spaceCount: header.spaceCount,
            segmentBytes: header.segmentBytes, segmentsPerSpace: count,
            bytesPerSpace: UInt64(count) * header.segmentBytes, bytesOnDisk: onDisk.value, kdf: header.kdf,
            grows: !layout.isShared)
    }

    /// Opens a vault and its header, without a lock.
    static func open(
        _ path: String, calls: any FileSystemCalls, mayRepair: Bool
    ) throws(VaultError) -> (VaultDirectory, Header) {
        let vault = try VaultDirectory.open(path, calls: calls)
        return (vault, try readHeader(vault, mayRepair: mayRepair))
    }

    /// Reads the header, and requires that this user may read the segments. Completes an interrupted backup into this
    /// vault first.
    private static func readHeader(_ vault: VaultDirectory, mayRepair: Bool) throws(VaultError) -> Header {
        let header: Header
        do throws(VaultError) {
            header = try Header.read(vault.header, calls: vault.calls, mayRepair: mayRepair)
        } catch {
            guard error == .headerDamaged else { throw error }
            try CopyLog.applyAny(to: vault)
            header = try Header.read(vault.header, calls: vault.calls, mayRepair: mayRepair)
        }
        try vault.requirePermission(header.layout)
        return header
    }

    // MARK: Opening

    /// Opens the space of a password: one Argon2id run, then all slots are tried. Takes the vault's lock.
    ///
    /// - Parameter readOnly: nothing is repaired or written.
    public static func unlock(
        _ path: String, password: SecretBytes, readOnly: Bool = false,
        stretcher: any PasswordStretcher = LocalStretcher(), calls: any FileSystemCalls = LinuxCalls.shared
    ) throws(VaultError) -> UnlockedSpace {
        let vault = try VaultDirectory.open(path, calls: calls)
        try vault.lockHeader()
        let header = try readHeader(vault, mayRepair: !readOnly)
        if !readOnly {
            // `openSpace` checks for a remaining log before it allows writing.
            do throws(VaultError) { try CopyLog.remove(from: vault) } catch {
                guard case .notWritable = error else { throw error }
            }
        }
        let stretched = try header.stretched(password, by: stretcher)
        guard let (key, space) = try header.openKeySlots(stretched) else { throw .noSpaceOpens }
        if !readOnly { try completeSegments(vault, header.layout) }
        dropPageCache(vault, header.layout, ofKilled: true)
        return UnlockedSpace(
            path: path, vault: vault, key: key, index: space, spaceCount: header.spaceCount,
            segmentBytes: header.segmentBytes)
    }

    // MARK: Passwords

    /// Seals the space that `old` opens under `new`. Nothing else changes.
    public static func changePassword(
        _ path: String, old: SecretBytes, new: SecretBytes,
        stretcher: any PasswordStretcher = LocalStretcher(), calls: any FileSystemCalls = LinuxCalls.shared
    ) throws(VaultError) {
        var (vault, header) = try openLocked(path, calls)
        guard let (key, space) = try header.openKeySlots(header.stretched(old, by: stretcher)) else {
            throw .noSpaceOpens
        }
        let stretched = try header.stretched(new, by: stretcher)
        guard try header.openKeySlots(stretched) == nil else { throw .passwordTaken }
        header.setKeySlot(space, key: key, stretched: stretched)
        try change(header, of: vault)
    }

    /// Gives the password `new` to a random space that none of `surviving` opens. Its previous contents are lost.
    ///
    /// - Parameter keyFiles: every password of `surviving` is tried alone and combined with each of these.
    public static func addSpace(
        _ path: String, new: SecretBytes, surviving: [SecretBytes], keyFiles: [KeyFile] = [],
        stretcher: any PasswordStretcher = LocalStretcher(), calls: any FileSystemCalls = LinuxCalls.shared
    ) throws(VaultError) {
        var (vault, header) = try openLocked(path, calls)
        // The only space is in use from creation on: none is free, and nothing is hidden.
        guard header.spaceCount > 1 else { throw .singleSpace }
        let stretched = try header.stretched(new, by: stretcher)
        guard try header.openKeySlots(stretched) == nil else { throw .passwordTaken }
        var free = Set(0..<header.spaceCount)
        for password in surviving {
            var isKnown = false
            for form in [password] + keyFiles.map({ $0.combined(with: password) }) {
                guard let (_, space) = try header.openKeySlots(header.stretched(form, by: stretcher)) else {
                    continue
                }
                isKnown = true
                free.remove(space)
            }
            guard isKnown else { throw .noSpaceOpens }
        }
        guard !free.isEmpty else { throw .noUnusedSpace }
        let space = free.sorted()[Int(randomNumber(below: UInt32(free.count)))]
        let key = SecretBytes.random(count: Geometry.keyBytes)
        header.setKeySlot(space, key: key, stretched: stretched)
        try change(header, of: vault) { () throws(VaultError) in
            try formatSpace(vault, header, space, key)
        }
    }

    /// Destroys the space that `password` opens: see `UnlockedSpace.destroy`.
    public static func removeSpace(
        _ path: String, password: SecretBytes, stretcher: any PasswordStretcher = LocalStretcher(),
        calls: any FileSystemCalls = LinuxCalls.shared
    ) throws(VaultError) {
        try unlockForRemoval(path, password: password, stretcher: stretcher, calls: calls).destroy()
    }

    /// As `unlock`, for a vault whose header is writable. Does not touch the segments.
    public static func unlockForRemoval(
        _ path: String, password: SecretBytes, stretcher: any PasswordStretcher = LocalStretcher(),
        calls: any FileSystemCalls = LinuxCalls.shared
    ) throws(VaultError) -> UnlockedSpace {
        let (vault, header) = try openLocked(path, calls)
        guard let (key, space) = try header.openKeySlots(header.stretched(password, by: stretcher)) else {
            throw .noSpaceOpens
        }
        return UnlockedSpace(
            path: path, vault: vault, key: key, index: space, spaceCount: header.spaceCount,
            segmentBytes: header.segmentBytes)
    }

    private static func openLocked(
        _ path: String, _ calls: any FileSystemCalls
    ) throws(VaultError) -> (VaultDirectory, Header) {
        let vault = try VaultDirectory.open(path, calls: calls)
        try vault.requireWritableHeader()
        try vault.lockHeader()
        let header = try readHeader(vault, mayRepair: true)
        try CopyLog.remove(from: vault)
        return (vault, header)
    }

    /// Formats a space as empty, sealed under `key`.
    static func formatSpace(
        _ vault: VaultDirectory, _ header: Header, _ space: Int, _ key: SecretBytes
    ) throws(VaultError) {
        let files = SegmentFiles(
            directory: try vault.openSegments(header.layout), layout: header.layout, space: space,
            calls: vault.calls)
        if header.layout.isShared { files.cover = CoverTraffic(vault, isRunning: true) }
        do throws(StoreError) {
            try RootStore.format(files, PageCodec(key: SpaceKeys(key).page), grows: header.spaceCount == 1)
        } catch { throw VaultError(error, doing: "cannot prepare the space") }
    }

    // MARK: Traces

    /// Leaves the traces of `formatSpace` on the host, for a change of the header that formats none. Best effort.
    private static func imitateFormatting(_ vault: VaultDirectory, _ layout: SegmentLayout) {
        guard layout.isShared else { return }
        _ = CoverTraffic(vault, isRunning: true).sync()
        try? vault.calls.sync(vault.directory)
    }

    /// Pause between the start of `formatSpace`, or of its imitation, and the next step, in microseconds: longer than
    /// either takes, so that the times in the host's journal do not show which it was.
    private static let formattingPause: Range<UInt32> = 50_000..<100_000

    /// Writes a changed header. The traces are the same whether a space was added, removed or given another password.
    ///
    /// - Parameter format: formats the space that is added; nil if none is.
    static func change(
        _ header: Header, of vault: VaultDirectory, format: (() throws(VaultError) -> Void)? = nil
    ) throws(VaultError) {
        let start = MonotonicClock.nanoseconds
        if let format { try format() } else { imitateFormatting(vault, header.layout) }
        // Adding a space writes to the spaces, and the host's journal records their state with the header's. The same
        // is done here for every change.
        if header.layout.isShared {
            let pause = formattingPause.lowerBound + randomNumber(below: UInt32(formattingPause.count))
            MonotonicClock.sleep(until: start + Int64(pause) * 1000)
            touch(vault, SegmentLayout.sharedName, powers: 3..<9)
            touch(vault, VaultDirectory.headerName, powers: 3..<9)
        }
        try header.write(vault.header, calls: vault.calls)
        blurTraces(vault, header.layout)
    }

    /// Makes all sessions of a vault of several spaces leave the same traces on the host, whether they only read or
    /// also wrote, and in whichever space. Best effort: a vault on read-only media has nothing to hide.
    ///
    /// Sets the files' times to now, as a write does. Hosts count the changes of each file (ext4, XFS: the inode's
    /// version), including changes of its times. To hide the number of changes, times are set a random number of times:
    /// in a new vault so often that the changes of a few sessions are negligible. Also drops the spaces from the page
    /// cache.
    static func blurTraces(_ vault: VaultDirectory, _ layout: SegmentLayout, isNew: Bool = false) {
        guard layout.isShared else { return }
        for path in [SegmentLayout.sharedName, VaultDirectory.headerName] {
            touch(vault, path, powers: isNew ? 12..<16 : 4..<11)
        }
        dropPageCache(vault, layout)
    }

    /// Leaves the same trace in the host's journal as the first durable write of a session, because a session may only
    /// read.
    ///
    /// The first fdatasync(2) of a file after its inode was read makes ext4 commit the running transaction
    /// (linux/fs/ext4/inode.c, `__ext4_iget`), and with it the file's times.
    static func blurBeginning(_ vault: VaultDirectory, _ layout: SegmentLayout) {
        guard layout.isShared else { return }
        touch(vault, SegmentLayout.sharedName, powers: 0..<11)
        guard
            let file = try? vault.calls.openRegular(
                vault.directory, SegmentLayout.sharedName, flags: O_RDONLY, mode: 0)
        else { return }
        defer { vault.calls.close(file) }
        try? vault.calls.dataSync(file)
    }

    private static func touch(_ vault: VaultDirectory, _ path: String, powers: Range<UInt32>) {
        let power = powers.lowerBound + randomNumber(below: UInt32(powers.count))
        let count = (1 << power) + randomNumber(below: 1 << power)
        touch(vault, path, count: Int(count))
    }

    /// Changes a file's times as a write does. Best effort.
    static func touch(_ vault: VaultDirectory, _ path: String, count: Int) {
        try? vault.calls.touch(vault.directory, path, count: count)
    }
}

extension VaultError {
    init(_ error: StoreError, doing what: String) {
        switch error {
        case .noRoom: self = .noRoom
        case .damaged: self = .damaged(what)
        case .io(let errno): self = .system(errno, what)
        case .readOnly: self = .system(.readOnlyFileSystem, what)
        case .newer(let version): self = .newer(version)
        case .segmentMissing(let number): self = .notWritable(.segmentMissing(number))
        case .segmentShort(let number): self = .notWritable(.segmentShort(number))
        }
    }
}
