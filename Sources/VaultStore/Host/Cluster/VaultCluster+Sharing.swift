import ClusterIO
import Glibc
import LinuxIO

extension VaultCluster: SharedHost {
    private static let note = "obscura.note"

    func lockAtOnce() throws(VaultError) -> Bool {
        do throws(Errno) { return try lease.beginAtOnce() } catch {
            throw .system(error, "cannot lock the vault")
        }
    }

    func lockAfterAsking() throws(VaultError) {
        do throws(Errno) { try lease.beginAfterAsking() } catch {
            if error.rawValue == EBUSY { throw .inUse }
            throw .system(error, "cannot lock the vault")
        }
    }

    func whenAsked(_ handOver: @escaping @Sendable () -> Void) throws(VaultError) {
        do throws(Errno) {
            try pool.watch(address.header) {
                handOver()
                return true
            }
        } catch { throw .system(error, "cannot listen for other mounts") }
    }

    func forbidWriting() { lease.forbid() }

    var requestCounts: [(name: String, value: UInt64)] {
        let counts = pool.counts
        return [
            ("reads", counts.reads), ("bytes_read", counts.bytesRead), ("writes", counts.writes),
            ("bytes_written", counts.bytesWritten), ("others", counts.others),
        ]
    }

    var holderNote: [UInt8]? {
        try? pool.attribute(Self.note, of: address.header)
    }

    func setHolderNote(_ note: [UInt8]) throws(VaultError) {
        do throws(Errno) {
            try lease.requireHeld()
            try lease.setAttribute(Self.note, to: note)
        } catch { throw .system(error, "cannot tell other mounts of this one") }
    }
}
