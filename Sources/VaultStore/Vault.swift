import Glibc
public import LinuxIO
public import VaultCrypto
import VaultFormat

/// What anyone can see of a vault without a password.
public struct VaultInfo: Sendable, Equatable {
    public var formatVersion: Int
    public var spaceCount: Int
    public var segmentBytes: UInt64
    public var segmentsPerSpace: Int
    /// What each space holds at most; in a vault that grows, what its segments could hold now.
    public var bytesPerSpace: UInt64
    public var bytesOnDisk: UInt64
    public var kdf: KDFParameters
    /// One space, which grows with its photos.
    public var grows: Bool
}

/// A vault as a whole: made, opened, and its passwords changed. The files are those of the format specification.
public enum Vault {
    /// Whether there is something at `path` that calls itself a vault.
    public static func isVault(_ path: String) -> Bool {
        do throws(VaultError) {
            _ = try VaultDirectory.open(path, calls: LinuxCalls.shared)
            return true
        } catch {
            if case .notAVault = error { return false }
            return true
        }
    }

    /// What the header and the file names tell.
    public static func info(_ path: String) throws(VaultError) -> VaultInfo {
        let (vault, header) = try open(path, calls: LinuxCalls.shared, mayRepair: false)
        let grows = header.spaceCount == 1
        let count = vault.segmentCount(
            spaces: 0..<header.spaceCount, segmentBytes: header.segmentBytes, from: 0, isGrowing: grows)
        var onDisk = Quantity(HeaderLayout.fileBytes)
        for space in 0..<header.spaceCount {
            for number in 0..<count {
                let bytes = vault.segmentBytes(space: space, number: number) ?? 0
                onDisk += Quantity(min(bytes, header.segmentBytes))
            }
        }
        return VaultInfo(
            formatVersion: Int(formatVersion), spaceCount: header.spaceCount,
            segmentBytes: header.segmentBytes, segmentsPerSpace: count,
            bytesPerSpace: UInt64(count) * header.segmentBytes, bytesOnDisk: onDisk.value, kdf: header.kdf,
            grows: grows)
    }

    /// Opens a vault and its header, without a lock.
    static func open(
        _ path: String, calls: any FileSystemCalls, mayRepair: Bool
    ) throws(VaultError) -> (VaultDirectory, Header) {
        let vault = try VaultDirectory.open(path, calls: calls)
        return (vault, try readHeader(vault, mayRepair: mayRepair))
    }

    /// Reads the header. What a backup into this vault was changing when it was killed is ended first.
    private static func readHeader(_ vault: VaultDirectory, mayRepair: Bool) throws(VaultError) -> Header {
        do throws(VaultError) {
            return try Header.read(vault.header, calls: vault.calls, mayRepair: mayRepair)
        } catch {
            guard error == .headerDamaged else { throw error }
            try CopyLog.applyAny(to: vault)
            return try Header.read(vault.header, calls: vault.calls, mayRepair: mayRepair)
        }
    }

    // MARK: Opening

    /// One Argon2id run, then all slots are tried. Takes the vault's lock.
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
            // Who opens the space for writing looks whether it is still there.
            do throws(VaultError) { try CopyLog.remove(from: vault) } catch {
                guard case .notWritable = error else { throw error }
            }
        }
        let stretched = try header.stretched(password, by: stretcher)
        guard let (key, space) = header.openSlots(stretched) else { throw .noSpaceOpens }
        if !readOnly && header.spaceCount > 1 { try levelSegments(vault, header) }
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
        guard let (key, space) = header.openSlots(try header.stretched(old, by: stretcher)) else {
            throw .noSpaceOpens
        }
        let stretched = try header.stretched(new, by: stretcher)
        guard header.openSlots(stretched) == nil else { throw .passwordTaken }
        header.setSlot(space, key: key, stretched: stretched)
        try header.write(vault.header, calls: calls)
        levelTimes(vault, header)
    }

    /// Gives a space that none of `surviving` opens the password `new`: one of them, at random. Whatever such a
    /// space held is gone.
    ///
    /// - Parameter keyFiles: every password of `surviving` is tried alone and combined with each of these.
    public static func addSpace(
        _ path: String, new: SecretBytes, surviving: [SecretBytes], keyFiles: [KeyFile] = [],
        stretcher: any PasswordStretcher = LocalStretcher(), calls: any FileSystemCalls = LinuxCalls.shared
    ) throws(VaultError) {
        var (vault, header) = try openLocked(path, calls)
        // Its space is in use from birth: there is nothing to hide, and nothing to take.
        guard header.spaceCount > 1 else { throw .singleSpace }
        let stretched = try header.stretched(new, by: stretcher)
        guard header.openSlots(stretched) == nil else { throw .passwordTaken }
        var free = Set(0..<header.spaceCount)
        for password in surviving {
            var isKnown = false
            for form in [password] + keyFiles.map({ $0.combined(with: password) }) {
                guard let (_, space) = header.openSlots(try header.stretched(form, by: stretcher)) else {
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
        try formatSpace(vault, header, space, key)
        header.setSlot(space, key: key, stretched: stretched)
        try header.write(vault.header, calls: calls)
        levelTimes(vault, header)
    }

    /// Destroys the space that `password` opens: see `UnlockedSpace.destroy`.
    public static func removeSpace(
        _ path: String, password: SecretBytes, stretcher: any PasswordStretcher = LocalStretcher(),
        calls: any FileSystemCalls = LinuxCalls.shared
    ) throws(VaultError) {
        try unlockForRemoval(path, password: password, stretcher: stretcher, calls: calls).destroy()
    }

    /// As `unlock`, of a vault whose header can be written. The segments are left as they are.
    public static func unlockForRemoval(
        _ path: String, password: SecretBytes, stretcher: any PasswordStretcher = LocalStretcher(),
        calls: any FileSystemCalls = LinuxCalls.shared
    ) throws(VaultError) -> UnlockedSpace {
        let (vault, header) = try openLocked(path, calls)
        guard let (key, space) = header.openSlots(try header.stretched(password, by: stretcher)) else {
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

    /// Makes a space an empty one, sealed under `key`.
    static func formatSpace(
        _ vault: VaultDirectory, _ header: Header, _ space: Int, _ key: SecretBytes
    ) throws(VaultError) {
        let files = SegmentFiles(
            directory: try vault.openSpace(space), segmentBytes: header.segmentBytes, calls: vault.calls)
        do throws(StoreError) {
            try Space.format(files: files, keys: SpaceKeys(key), grows: header.spaceCount == 1)
        } catch { throw VaultError(error, doing: "cannot prepare the space") }
    }

    // MARK: Times

    /// A vault of more files gets its times in several ticks of the host's clock, however often they are set.
    private static let filesAtOnceMax = 1024
    private static let roundsMax = 8

    /// Sets the times of every file and directory of the vault alike, in random order: they tell when the vault
    /// was last open and not which space. Best effort, as a vault on read-only media has nothing to hide.
    ///
    /// The host's change times, which nobody can set, are to tell nothing either. A file that was just written, read
    /// or looked at may be dated more exactly than others (Linux 6.13, multigrain timestamps), be in memory already,
    /// or wait for the host's journal: so the first round only makes all files alike. Of those after it, in which
    /// nothing else is done, the last is one that began and ended in the same tick of the clock, where there are not
    /// too many files for that.
    static func levelTimes(_ vault: VaultDirectory, _ header: Header) {
        guard header.spaceCount > 1 else { return }
        let calls = vault.calls
        let paths = allPaths(vault, header)
        let order = randomOrder(paths.count)
        for round in 0..<roundsMax {
            let start = calls.changeTime()
            let now = Timestamp(seconds: Timestamp.now().seconds)
            for index in order { try? calls.setTimes(vault.directory, paths[index], now) }
            let isLevel = paths.count > filesAtOnceMax || calls.changeTime() == start
            if round > 0 && isLevel { return }
        }
    }

    /// The vault's directory, and every file and directory in it, as paths from there.
    private static func allPaths(_ vault: VaultDirectory, _ header: Header) -> [String] {
        let count = vault.segmentCount(
            spaces: 0..<header.spaceCount, segmentBytes: header.segmentBytes, from: 0, isGrowing: false)
        var paths = [VaultDirectory.headerName, VaultDirectory.spacesName, "."]
        for space in 0..<header.spaceCount {
            paths.append("\(VaultDirectory.spacesName)/\(space)")
            for number in 0..<count {
                paths.append("\(VaultDirectory.spacesName)/\(space)/\(SegmentFiles.name(number))")
            }
        }
        return paths
    }
}

extension VaultError {
    init(_ error: StoreError, doing what: String) {
        switch error {
        case .noRoom: self = .noRoom
        case .damaged: self = .damaged(what)
        case .io(let errno): self = .system(errno, what)
        case .readOnly: self = .system(.readOnlyFileSystem, what)
        case .segmentMissing(let number): self = .notWritable(.segmentMissing(number))
        case .segmentShort(let number): self = .notWritable(.segmentShort(number))
        }
    }
}
