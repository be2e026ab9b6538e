import LinuxIO
import Synchronization
import VaultFormat

/// Free room.
extension Space {
    /// Capacity and use of the space.
    public var capacity: SpaceUse {
        lock.withLock { noticeGrowth() }
        return knownCapacity
    }

    /// As `capacity`, but without checking for segments added by `grow`, which costs system calls.
    public var knownCapacity: SpaceUse {
        let host = grows ? (try? hostAvailable()) ?? 0 : 0
        return lock.withLock {
            let sectorBytes = UInt64(Geometry.sectorBytes)
            let used = takenSectors
            if grows {
                let reusable = reusableBytes
                let reserved = min(host, Self.hostReserveBytes) + min(reusable, Self.usedReserveBytes)
                let free = reusable + host
                return SpaceUse(total: used * sectorBytes + free, free: free, available: free - reserved)
            }
            let total = sectors.contentSectors
            let free = total > used ? total - used : 0
            let available = free > systemReserveSectors ? free - systemReserveSectors : 0
            return SpaceUse(
                total: total * sectorBytes, free: free * sectorBytes, available: available * sectorBytes)
        }
    }

    /// Sectors that are in use or reserved, without those that the next commits release. Under `lock`.
    private var takenSectors: UInt64 {
        (sectors.usedSectors + sectors.reservedSectors) - min(pendingSectors, sectors.usedSectors)
    }

    /// In a vault that grows, bytes of sectors that were used once, and have disk blocks. Under `lock`.
    var reusableBytes: UInt64 {
        let taken = takenSectors
        return (max(peakSectors, taken) - taken) * UInt64(Geometry.sectorBytes)
    }

    /// Sectors released since the space was opened: increases whenever retrying a write may succeed.
    public var freedSectors: UInt64 { lock.withLock { sectors.freedCount } }

    /// Sectors reserved from users' bytes, so that truncating and deleting work in a full space.
    var systemReserveSectors: UInt64 { 2048 }

    /// Whether free sectors are so few, or so scattered, that bytes should be sealed before they are accepted.
    ///
    /// - Parameter bytes: reserved for accepted bytes that are not sealed yet.
    public func isTight(reserved bytes: UInt64) -> Bool {
        let isFull =
            grows && lastHostBytes.load(ordering: .relaxed) < Self.tightBytes + Self.hostReserveBytes + bytes
        return lock.withLock {
            if sectors.isFragmented { return true }
            if grows { return isFull }
            let wanted = (bytes + Self.tightBytes) / UInt64(Geometry.sectorBytes) + systemReserveSectors
            return freeSectors < wanted
        }
    }

    private static let tightBytes: UInt64 = 4 << 20

    /// Free sectors, not counting those that the next commits release. Under `lock`.
    var freeSectors: UInt64 {
        let taken = sectors.usedSectors + sectors.reservedSectors
        return sectors.contentSectors > taken ? sectors.contentSectors - taken : 0
    }

    /// Disk of the host that content does not use, so that the catalogue can still be written.
    static let hostReserveBytes: UInt64 = 1 << 20
    /// Bytes of sectors that can be used again on a full host, and are kept from users' bytes, so that files can be
    /// cut: the host's own reserve may be the catalogue's by then.
    static let usedReserveBytes: UInt64 = 192 << 10
    /// With more free disk than this, slots are backed before they are needed.
    static let hostPlentyBytes: UInt64 = 1 << 30

    /// Bytes available on the host's disk. If they are far more than can be written meanwhile, the result is cached
    /// briefly, because it is queried several times a file.
    func hostAvailable() throws(StoreError) -> UInt64 {
        let now = MonotonicClock.milliseconds
        if let known = hostKnown.withLock({ $0 }), now < known.until { return known.bytes }
        let bytes = try files.hostStatus().availableBytes
        lastHostBytes.store(bytes, ordering: .relaxed)
        let isAmple = bytes > Self.hostAmpleBytes
        hostKnown.withLock { $0 = isAmple ? (bytes, now + Self.hostKnownMilliseconds) : nil }
        return bytes
    }

    private static let hostAmpleBytes: UInt64 = 8 << 30
    private static let hostKnownMilliseconds: Int64 = 50

    /// Starts using segments that `grow` has added. Under `lock`.
    func noticeGrowth() {
        guard !grows else { return }
        let count = segmentCountNow()
        guard count > sectors.segmentCount else { return }
        noteEnd()
        sectors.addSegments(to: count)
        updateExcluded()
    }

    /// Sets the end of the file of all spaces, beyond which nothing is written.
    func noteEnd() {
        files.leastBytes = grows ? 0 : UInt64(segmentCountNow()) * files.layout.rowBytes
    }
}
