import ClusterIO
import LinuxIO
import VaultCrypto
import VaultFormat

extension Vault {
    /// Throws if a vault on a cluster cannot be reached; does nothing for files.
    public static func requireReachable(_ path: String) throws(VaultError) {
        _ = try ClusterAddress(path)?.connected()
    }

    /// Creates a vault of one space. If this throws, what it created is removed again.
    static func create(
        at address: ClusterAddress, path: String, spaces: Int, kdf: KDFParameters, password: SecretBytes,
        stretcher: any PasswordStretcher
    ) throws(VaultError) {
        guard spaces == 1 else {
            throw .invalidSize(
                "a vault on a cluster has one space: each object there tells when and how often it was "
                    + "written, and so which spaces are in use: give --spaces 1")
        }
        let vault = try VaultCluster.make(address, path: path)
        do throws(VaultError) {
            let total: UInt64
            do throws(Errno) { total = try vault.pool.room()?.total ?? 0 } catch {
                throw VaultError.system(error, "cannot read the cluster's size")
            }
            let segmentBytes = Geometry.segmentBytes(forSpace: max(total, Geometry.spaceBytesUsual))
            var header = Header(spaces: 1, segmentBytes: segmentBytes, kdf: kdf)
            let stretched = try header.stretched(password, by: stretcher)
            try vault.lock()
            let key = SecretBytes.random(count: Geometry.keyBytes)
            try formatSpace(vault, header, 0, key)
            header.setKeySlot(0, key: key, stretched: stretched)
            try header.write(to: vault)
        } catch {
            vault.removeAll()
            throw error
        }
    }
}

extension VaultCluster {
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
        for object in (try? pool.objects(prefix: address.name + "/")) ?? [] {
            try? pool.apply([.removal], on: object)
        }
    }
}
