import ClusterIO
import Glibc
import LinuxIO
import Synchronization
import VaultCrypto
import VaultFormat

/// A vault on a Ceph cluster: an object for the header, and some for segments; see `ClusterLayout`. The sealed bytes
/// are those of a vault in files.
final class VaultCluster: VaultHost {
    let pool: ClusterPool
    let address: ClusterAddress
    let lease: ClusterLease
    /// Rows that a vault of several spaces has at least: none is ever removed once it is whole.
    let rowsKnown = Atomic<Int>(0)

    init(_ address: ClusterAddress, _ pool: ClusterPool) {
        (self.address, self.pool) = (address, pool)
        lease = ClusterLease(pool, address)
    }

    static func open(_ address: ClusterAddress) throws(VaultError) -> VaultCluster {
        let pool = try address.connected()
        do throws(Errno) {
            // Nothing is at stake yet. Later requests wait for their servers.
            guard try pool.size(of: address.header, within: Self.answerMilliseconds) != nil else {
                throw Errno.noEntry
            }
        } catch {
            if error == .noEntry { throw .notAVault(address.path) }
            throw .system(error, "cannot read the vault on the cluster")
        }
        return VaultCluster(address, pool)
    }

    /// An OSD that is started again answers sooner.
    private static let answerMilliseconds: Int64 = 60_000

    deinit { giveUp() }

    func giveUp() {
        // A closed space has seen its writes fail or arrive; what is left belongs to nobody.
        try? pool.settle()
        // Else a mount that asks the next holder would wait for this holder's answer too, until the servers forget it.
        pool.endWatches()
        lease.end()
    }

    func objects(_ layout: SegmentLayout) -> ClusterLayout { ClusterLayout(address, layout) }

    /// The lock under which alone an object of a segment is changed, one with roots; nil for any other object.
    func lockNeeded(_ layout: ClusterLayout, _ segment: Int, _ index: Int) throws(Errno) -> ClusterLock? {
        guard segment < 2, index == 0 else { return nil }
        try lease.requireLock(of: layout.object(segment))
        return lease.clusterLock
    }

    // MARK: Header

    func lock() throws(VaultError) {
        do throws(Errno) { try lease.begin() } catch {
            if error.rawValue == EBUSY { throw .inUse }
            throw .system(error, "cannot lock the vault")
        }
    }

    /// A lock belongs to a connection, and the daemon makes its own.
    func passLockOn() -> Int32? {
        lease.end()
        return nil
    }

    func requireWritableHeader() throws(VaultError) {}

    func readHeader(at offset: UInt64, into bytes: inout [UInt8]) throws(Errno) -> Int {
        try pool.read(address.header, at: offset, into: &bytes)
    }

    func writeHeader(_ bytes: [UInt8], at offset: UInt64) throws(Errno) {
        try lease.requireHeld()
        try pool.apply(
            [.lock(lease.clusterLock), .writeArray(bytes, at: offset)], on: address.header)
    }

    // MARK: Segments

    func segments(
        of space: Int, _ layout: SegmentLayout, cover: CoverTraffic?, openMax: Int
    ) throws(VaultError) -> any SegmentHost {
        ClusterSegments(self, space, layout)
    }

    func requirePermission(_ layout: SegmentLayout) throws(VaultError) {}

    func segmentCount(_ layout: SegmentLayout) throws(VaultError) -> Int {
        let objects = objects(layout)
        do throws(Errno) {
            return layout.isShared ? try rowCount(objects) : try ownCount(objects)
        } catch { throw .system(error, "cannot count the vault's segments on the cluster") }
    }

    /// The number of segments of one space.
    private func ownCount(_ objects: ClusterLayout) throws(Errno) -> Int {
        // The place of the first of these counts, in order, whose last segment is missing.
        func firstMissing(_ counts: [Int]) throws(Errno) -> Int? {
            try pool.sizes(of: counts.map { objects.object($0 - 1) }).firstIndex { $0 == nil }
        }
        // In few round trips: the end of the segments lies between the last one found and the first one missing.
        var (found, missing) = (0, 1)
        while true {
            let counts = (0..<Self.askedAtOnce).map { missing << $0 }.filter { $0 <= Geometry.segmentsMax }
            guard let first = try firstMissing(counts) else {
                found = counts.last ?? found
                missing = found * 2
                if missing > Geometry.segmentsMax { break }
                continue
            }
            if first > 0 { found = counts[first - 1] }
            missing = counts[first]
            break
        }
        while found + 1 < missing {
            let step = (missing - found + Self.askedAtOnce) / (Self.askedAtOnce + 1)
            let counts = Array(stride(from: found + step, to: missing, by: step))
            let first = try firstMissing(counts) ?? counts.count
            if first < counts.count { missing = counts[first] }
            if first > 0 { found = counts[first - 1] }
        }
        return found
    }

    private static let askedAtOnce = 8

    func listing(_ layout: SegmentLayout) throws(VaultError) -> SegmentListing {
        SegmentListing(
            try objects().filter { !$0.isShared && $0.index == 0 }.map { SegmentLayout.name($0.segment) })
    }

    /// All objects of segments.
    func objects() throws(VaultError) -> [ObjectPlace] {
        do throws(Errno) {
            return try pool.objects(prefix: address.name + "/").compactMap(address.place)
        } catch { throw .system(error, "cannot list the vault's objects") }
    }

    func storedBytes(_ layout: SegmentLayout) throws(VaultError) -> UInt64 {
        HeaderLayout.fileBytes + UInt64(try objects().count) * objects(layout).objectBytes
    }

    func highestNumber(_ layout: SegmentLayout) throws(VaultError) -> Int {
        layout.isShared ? try segmentCount(layout) - 1 : try listing(layout).numbers.last ?? -1
    }

    // MARK: Repairs

    /// Objects are named by this program alone.
    func exchange(_ steps: [(Int, Int)], _ layout: SegmentLayout) throws(VaultError) {
        throw .notWritable(.io(.notSupported))
    }

    // MARK: Copies

    func holdForBackups() -> BackupHold? { nil }
    var copyLocks: Int32? { nil }

    // MARK: Traces that others can see

    // The times of objects tell when each was written, and cannot be hidden.

    func cover(_ layout: SegmentLayout, isRunning: Bool) -> CoverTraffic? { nil }
    func dropPageCache(_ layout: SegmentLayout, ofKilled: Bool) {}
    func blurTraces(_ layout: SegmentLayout) {}
    func blurBeginning(_ layout: SegmentLayout) {}
    func blurChange(_ layout: SegmentLayout) {}

    /// Changes the objects with roots, as formatting does, by their locks.
    func imitateFormatting(_ layout: SegmentLayout) {
        guard layout.isShared else { return }
        // Best effort: nothing depends on it.
        for number in 0..<2 { try? lease.requireLock(of: objects(layout).object(number)) }
    }

    // MARK: This computer

    func changesInPlace(_ layout: SegmentLayout) -> Bool { true }

    var excludesOthers: Bool { true }
    var shared: (any SharedHost)? { self }

    /// The cluster itself: a root is written there once all before it is, so every one is valid.
    func memoryMark() -> [UInt8]? {
        let name = Array("\(clusterPrefix)\(address.pool)".utf8.prefix(64))
        return name + [UInt8](repeating: 0, count: 64 - name.count)
    }
}
