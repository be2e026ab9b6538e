public import LinuxIO
public import VaultCrypto
import VaultFormat

/// Operations on a vault as a whole: creating, opening, changing passwords. The format specification describes its
/// files.
public enum Vault {
    /// Reads the header, and requires that this user may read the segments. Completes an interrupted backup into this
    /// vault first.
    static func readHeader(_ vault: any VaultHost, mayRepair: Bool) throws(VaultError) -> Header {
        let header: Header
        do throws(VaultError) {
            header = try Header.read(from: vault, mayRepair: mayRepair)
        } catch {
            guard error == .headerDamaged else { throw error }
            try vault.completeCopy()
            header = try Header.read(from: vault, mayRepair: mayRepair)
        }
        try vault.requirePermission(header.layout)
        return header
    }

    // MARK: Opening

    /// Opens the space of a password: one Argon2id run, then all slots are tried. Takes the vault's lock.
    ///
    /// - Parameters:
    ///   - readOnly: nothing is repaired or written.
    ///   - follows: on a cluster, with `readOnly`: the lock is not taken, so another mount can write meanwhile; see
    ///     `UnlockedSpace.follows`.
    public static func unlock(
        _ path: String, password: SecretBytes, readOnly: Bool = false, follows: Bool = false,
        stretcher: any PasswordStretcher = LocalStretcher(), calls: any FileSystemCalls = LinuxCalls.shared
    ) throws(VaultError) -> UnlockedSpace {
        let vault = try hostPlace(path, calls).open()
        let shared = vault.shared
        if let shared, follows, readOnly {
            shared.forbidWriting()
        } else if let shared {
            try take(shared, password, stretcher)
        } else {
            try vault.lock()
        }
        let header = try readHeader(vault, mayRepair: !readOnly)
        if !readOnly {
            // `openSpace` checks for a remaining log before it allows writing.
            do throws(VaultError) { try vault.removeCopyLog() } catch {
                guard case .notWritable = error else { throw error }
            }
        }
        let stretched = try header.stretched(password, by: stretcher)
        guard let (key, space) = try header.openKeySlots(stretched) else { throw .noSpaceOpens }
        if !readOnly { try vault.completeSegments(header.layout) }
        vault.dropPageCache(header.layout, ofKilled: true)
        return UnlockedSpace(
            path: path, vault: vault, key: key, index: space, spaceCount: header.spaceCount,
            segmentBytes: header.segmentBytes, follows: follows && readOnly && shared != nil)
    }

    /// Locks a vault; asks the mount that has it for it. Throws `noSpaceOpens` before that if the password opens none,
    /// and `heldBy` or `inUse` if it does not hand the vault over.
    private static func take(
        _ vault: any SharedHost, _ password: SecretBytes, _ stretcher: any PasswordStretcher
    ) throws(VaultError) {
        if try vault.lockAtOnce() { return }
        let header = try readHeader(vault, mayRepair: false)
        guard let (key, _) = try header.openKeySlots(header.stretched(password, by: stretcher)) else {
            throw .noSpaceOpens
        }
        do throws(VaultError) { try vault.lockAfterAsking() } catch {
            guard error == .inUse, let note = vault.holderNote.flatMap(HolderNote(key).opened) else {
                throw error
            }
            throw .heldBy(note)
        }
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

    /// Whether a mount or a command has the vault open.
    public static func isInUse(_ path: String, calls: any FileSystemCalls = LinuxCalls.shared) -> Bool {
        do throws(VaultError) {
            try hostPlace(path, calls).open().lock()
            return false
        } catch {
            if case .inUse = error { return true }
            return false
        }
    }

    /// Whether a password, alone or with one of the key files, opens a space. It takes as long for any other.
    public static func opens(
        _ path: String, password: SecretBytes, keyFiles: [KeyFile] = [],
        stretcher: any PasswordStretcher = LocalStretcher(), calls: any FileSystemCalls = LinuxCalls.shared
    ) throws(VaultError) -> Bool {
        let (_, header) = try openLocked(path, calls)
        var isKnown = false
        for form in [password] + keyFiles.map({ $0.combined(with: password) }) {
            if try header.openKeySlots(header.stretched(form, by: stretcher)) != nil { isKnown = true }
        }
        return isKnown
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
    ) throws(VaultError) -> (any VaultHost, Header) {
        let vault = try hostPlace(path, calls).open()
        try vault.requireWritableHeader()
        try vault.lock()
        let header = try readHeader(vault, mayRepair: true)
        try vault.removeCopyLog()
        return (vault, header)
    }

    /// Formats a space as empty, sealed under `key`.
    static func formatSpace(
        _ vault: any VaultHost, _ header: Header, _ space: Int, _ key: SecretBytes
    ) throws(VaultError) {
        let cover = vault.cover(header.layout, isRunning: true)
        let disk = SpaceDisk(try vault.segments(of: space, header.layout, cover: cover), header.layout)
        do throws(StoreError) {
            try RootStore.format(disk, PageCodec(key: SpaceKeys(key).page), grows: header.spaceCount == 1)
        } catch { throw VaultError(error, doing: "cannot prepare the space") }
    }

    /// Formats one space of a new vault, which one is random, and writes the header with its key.
    ///
    /// - Parameter stretched: the password of the space, stretched.
    static func writeFirstSpace(
        _ vault: any VaultHost, _ header: Header, _ stretched: SecretBytes
    ) throws(VaultError) {
        var header = header
        try vault.lock()
        let space = Int(randomNumber(below: UInt32(header.spaceCount)))
        let key = SecretBytes.random(count: Geometry.keyBytes)
        try formatSpace(vault, header, space, key)
        header.setKeySlot(space, key: key, stretched: stretched)
        try header.write(to: vault)
    }

    // MARK: Changing the header

    /// Pause between the start of `formatSpace`, or of its imitation, and the next step, in microseconds: longer than
    /// either takes, so that the times in the host's journal do not show which it was.
    private static let formattingPause: Range<UInt32> = 50_000..<100_000

    /// Writes a changed header. The traces are the same whether a space was added, removed or given another password.
    ///
    /// - Parameter format: formats the space that is added; nil if none is.
    static func change(
        _ header: Header, of vault: any VaultHost, format: (() throws(VaultError) -> Void)? = nil
    ) throws(VaultError) {
        let start = MonotonicClock.nanoseconds
        if let format { try format() } else { vault.imitateFormatting(header.layout) }
        if header.layout.isShared {
            let pause = formattingPause.lowerBound + randomNumber(below: UInt32(formattingPause.count))
            MonotonicClock.sleep(until: start + Int64(pause) * 1000)
            vault.blurChange(header.layout)
        }
        try header.write(to: vault)
        vault.blurTraces(header.layout)
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
