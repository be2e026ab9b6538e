import ClusterIO
import LinuxIO
import VaultCrypto
import VaultFormat

extension Vault {
    /// Throws if a vault on a cluster cannot be reached; does nothing for files.
    public static func requireReachable(_ path: String) throws(VaultError) {
        _ = try ClusterAddress(path)?.connected()
    }

    /// Creates a vault on a cluster. If this throws, what it created is removed again.
    ///
    /// - Parameters:
    ///   - segments: how many each space gets now; 0 with one space.
    ///   - progress: as for `create` of files.
    static func create(
        at address: ClusterAddress, path: String, _ made: Header, segments: Int, password: SecretBytes,
        stretcher: any PasswordStretcher,
        progress: (_ done: UInt64, _ total: UInt64) throws(VaultError) -> Void
    ) throws(VaultError) {
        let vault = try VaultCluster.make(address, path: path)
        do throws(VaultError) {
            var header = made
            let stretched = try header.stretched(password, by: stretcher)
            let layout = vault.objects(header.layout)
            if header.layout.isShared {
                try vault.requireRoom(for: UInt64(segments) * header.layout.rowBytes)
                try vault.makeRows(0..<segments, layout, progress)
            }
            try vault.lock()
            let space = Int(randomNumber(below: UInt32(header.spaceCount)))
            let key = SecretBytes.random(count: Geometry.keyBytes)
            try formatSpace(vault, header, space, key)
            header.setKeySlot(space, key: key, stretched: stretched)
            try header.write(to: vault)
        } catch {
            vault.removeAll()
            throw error
        }
    }

    /// Enlarges every space of a vault on a cluster; see `grow`.
    static func grow(
        _ vault: VaultCluster, _ header: Header, bytesPerSpace: UInt64,
        progress: (_ done: UInt64, _ total: UInt64) -> Void
    ) throws(VaultError) {
        let layout = vault.objects(header.layout)
        let count = vault.rowCount(layout)
        let wanted = try segmentCountWanted(bytesPerSpace, header, now: count)
        guard wanted > count else { return }
        let (begun, rowBytes) = (UInt64(count) * header.layout.rowBytes, header.layout.rowBytes)
        try vault.requireRoom(for: UInt64(wanted - count) * rowBytes)
        // If it fails, objects of a row that is not whole stay: a mount may be about to complete it.
        try vault.makeRows(count..<wanted, layout) { (done, total) throws(VaultError) in
            progress(done - begun, total - begun)
        }
    }

    /// The proposed size of a space: an eighth of what the cluster has, kept in three copies.
    static func proposedBytesOnCluster(_ path: String, spaces: Int) -> UInt64 {
        // Without an answer the least is proposed.
        let room = try? ClusterAddress(path)?.room()
        return proposal((room?.available ?? 0) / 8 / copiesUsual, spaces: spaces)
    }

    private static let copiesUsual: UInt64 = 3
}

extension ClusterAddress {
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
        guard let room = try ClusterAddress.room(pool) else { return }
        guard room.available > bytes else { throw .noRoom }
    }

    /// Makes the header of a new vault, full of random bytes. Throws `notEmpty` if there is any object of a vault of
    /// this name: it may have lost no more than its header.
    static func make(_ address: ClusterAddress, path: String) throws(VaultError) -> VaultCluster {
        let pool = try address.connected()
        var random = [UInt8](repeating: 0, count: Int(HeaderLayout.fileBytes))
        random.withUnsafeMutableBytes { fillRandom($0) }
        do throws(Errno) {
            guard try pool.objects(prefix: address.name + "/").isEmpty else { throw Errno.exists }
            try pool.apply([.creation, .writeArray(random, at: 0)], on: address.header)
        } catch {
            if error == .exists { throw .notEmpty(path) }
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
