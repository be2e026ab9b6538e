import LinuxIO
import Synchronization
import VaultCrypto
import VaultFormat

/// Free sectors that have disk, kept so that files can be cut on a full host; see `HostRoom.usedReserveBytes`.
///
/// A host that punches no holes never has disk back for them. What is removed first would become the reserve, and small
/// files could not be written again. So there random bytes are written to free sectors while the host still has room.
final class CuttingReserve: Sendable {
    private enum State {
        case unknown
        /// Holes are punched: the disk of what is removed goes where it is needed.
        case needless
        case wanted
        /// A thread is at it.
        case beingFilled
    }

    private let lock: Lock
    private let disk: SpaceDisk
    private let sectors: SectorRoom
    private let host: HostRoom
    private let references: ReferenceGuard
    private let state = Mutex(State.unknown)

    private static let bytes = Int(HostRoom.usedReserveBytes)

    init(_ parts: SpaceParts, _ references: ReferenceGuard) {
        (lock, disk, sectors, host) = (parts.lock, parts.disk, parts.sectors, parts.host)
        self.references = references
    }

    /// Fills it in a vault that grows, if the host's room ends with one of the next writes. Best effort.
    ///
    /// - Parameter count: bytes that are about to be written.
    func fill(before count: Int) {
        let soon = host.keptBytes + 2 * HostRoom.marginBytes + UInt64(Self.bytes + 2 * count)
        guard host.lastAvailable < soon, lock.withLock({ sectors.reusableBytes < UInt64(Self.bytes) }),
            begin()
        else { return }
        defer { state.withLock { $0 = .wanted } }
        // As much is left for the catalogue.
        guard host.availableOrNone > UInt64(2 * Self.bytes) + HostRoom.marginBytes else { return }
        do throws(StoreError) { try write() } catch {
            // The next write tries again.
        }
    }

    /// Returns false where it is not needed, or being filled.
    private func begin() -> Bool {
        state.withLock { state in
            if state == .unknown { state = disk.host.punchesHoles ? .needless : .wanted }
            guard state == .wanted else { return false }
            state = .beingFilled
            return true
        }
    }

    private func write() throws(StoreError) {
        let count = Self.bytes / Geometry.sectorBytes
        let reserved = try lock.withLock { () throws(StoreError) in
            try sectors.reserve(least: count, most: count, .system, .anywhere)
        }
        guard let (sector, _) = reserved else { return }
        try references.requireUnnamed(sector, count)
        defer { lock.withLock { sectors.abandon(sector, count) } }
        var random = [UInt8](repeating: 0, count: Self.bytes)
        random.withUnsafeMutableBytes { fillRandom($0) }
        let result = random.withUnsafeBytes { bytes -> Result<Void, StoreError> in
            do throws(StoreError) { return .success(try disk.write(sector, bytes, .body)) } catch {
                return .failure(error)
            }
        }
        try result.get()
        sectors.raisePeak(toFree: count)
    }
}
