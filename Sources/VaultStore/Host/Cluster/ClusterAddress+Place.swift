import ClusterIO
import LinuxIO
import VaultCrypto
import VaultFormat

extension ClusterAddress: HostPlace {
    static let traits = HostTraits(
        hasObjects: true, showsTimesOfWrites: true, letsReadersFollow: true, tellsWaiting: true)

    init(_ path: String, _ calls: any FileSystemCalls) throws(VaultError) {
        guard let address = try ClusterAddress(path, on: calls as? any ClusterCalls) else {
            throw .notAVault(path)
        }
        self = address
    }

    // MARK: Opening

    func open() throws(VaultError) -> any VaultHost { try VaultCluster.open(self) }

    func openForRestoring() throws(VaultError) -> (vault: any VaultHost, isMade: Bool) {
        try VaultCluster.openForRestoring(self)
    }

    func openForCopy() throws(VaultError) -> any VaultHost { try VaultCluster.openForCopy(self) }

    func adopt(lock: Int32, follows: Bool) throws(VaultError) -> any VaultHost {
        let vault = try VaultCluster.open(self)
        if follows { vault.forbidWriting() } else { try vault.lock() }
        return vault
    }

    // MARK: A place without a vault, or with one that is not opened

    func requireReachable() throws(VaultError) { _ = try connected() }

    var lacksHeader: Bool { false }

    func dropTraces() {}

    // MARK: Creating

    /// Objects need no directory.
    func requireFree() {}

    func totalBytes() throws(VaultError) -> UInt64? { try room()?.total }

    func requireRoom(forNew bytes: UInt64) throws(VaultError) {
        try VaultCluster.requireRoom(for: bytes, in: room())
    }

    /// An eighth of what the cluster has, kept in three copies.
    var proposedBytes: UInt64 {
        // Without an answer the least is proposed.
        let room = try? room()
        return (room?.available ?? 0) / 8 / Self.copiesUsual
    }

    private static let copiesUsual: UInt64 = 3

    var storeKeepingVersions: String? { nil }

    func create(
        _ header: Header, segments: Int, password: SecretBytes, stretcher: any PasswordStretcher,
        coverBytes: UInt64?, progress: (_ done: UInt64, _ total: UInt64) throws(VaultError) -> Void
    ) throws(VaultError) {
        let vault = try VaultCluster.make(self)
        do throws(VaultError) {
            let stretched = try header.stretched(password, by: stretcher)
            let layout = vault.objects(header.layout)
            if header.layout.isShared {
                try vault.requireRoom(for: UInt64(segments) * header.layout.rowBytes)
                try vault.makeRows(0..<segments, layout, progress)
            }
            try Vault.writeFirstSpace(vault, header, stretched)
        } catch {
            vault.removeAll()
            throw error
        }
    }

    /// Bytes of the cluster, in all and available; nil if it does not tell, as without a manager.
    func room() throws(VaultError) -> (total: UInt64, available: UInt64)? { try Self.room(connected()) }

    static func room(_ pool: ClusterPool) throws(VaultError) -> (total: UInt64, available: UInt64)? {
        do throws(Errno) { return try pool.room() } catch {
            throw .system(error, "cannot read the cluster's size")
        }
    }
}

extension VaultCluster {
    /// Throws `noRoom` if the cluster surely has no room for so many bytes: it may keep them more than once.
    func requireRoom(for bytes: UInt64) throws(VaultError) {
        try Self.requireRoom(for: bytes, in: ClusterAddress.room(pool))
    }

    static func requireRoom(
        for bytes: UInt64, in room: (total: UInt64, available: UInt64)?
    ) throws(VaultError) {
        if let room, room.available <= bytes { throw .noRoom }
    }

    /// Makes the header of a new vault, full of random bytes. Throws `notEmpty` if there is any object of a vault of
    /// this name: it may have lost no more than its header.
    static func make(_ address: ClusterAddress) throws(VaultError) -> VaultCluster {
        let pool = try address.connected()
        var random = [UInt8](repeating: 0, count: Int(HeaderLayout.fileBytes))
        random.withUnsafeMutableBytes { fillRandom($0) }
        do throws(Errno) {
            guard try pool.objects(prefix: address.name + "/").isEmpty else { throw Errno.exists }
            try pool.apply([.creation, .writeArray(random, at: 0)], on: address.header)
        } catch {
            if error == .exists { throw .notEmpty(address.path) }
            throw error.meansNoRoom ? .noRoom : .system(error, "cannot write the header")
        }
        return VaultCluster(address, pool)
    }

    /// Removes all objects of a vault that could not be made. Best effort.
    func removeAll() {
        try? pool.settle()
        try? pool.remove((try? pool.objects(prefix: address.name + "/")) ?? [])
    }
}
