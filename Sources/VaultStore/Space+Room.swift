import LinuxIO
import Synchronization
import VaultFormat

/// How much room there is.
extension Space {
    /// What the space holds and can take.
    public var capacity: SpaceUse {
        lock.withLock { noticeGrowth() }
        return knownCapacity
    }

    /// As `capacity`, but blind to segments that `grow` has added since they were last looked for, which costs
    /// system calls.
    public var knownCapacity: SpaceUse {
        let host = grows ? (try? hostAvailable()) ?? 0 : 0
        return lock.withLock {
            let sectorBytes = UInt64(Geometry.sectorBytes)
            let used =
                (sectors.usedSectors + sectors.reservedSectors) - min(pendingSectors, sectors.usedSectors)
            if grows {
                let reusable = (max(peakSectors, used) - used) * sectorBytes
                let available = host > Self.hostReserveBytes ? host - Self.hostReserveBytes : 0
                return SpaceUse(
                    total: used * sectorBytes + reusable + host, free: reusable + host,
                    available: reusable + available)
            }
            let total = sectors.contentSectors
            let free = total > used ? total - used : 0
            let available = free > systemReserveSectors ? free - systemReserveSectors : 0
            return SpaceUse(
                total: total * sectorBytes, free: free * sectorBytes, available: available * sectorBytes)
        }
    }

    /// Sectors that have come free since the space was opened: grows whenever another try to write may succeed.
    public var freedSectors: UInt64 { lock.withLock { sectors.freedCount } }

    /// Sectors a user's bytes do not get, so that a full space can still be cut and deleted from.
    var systemReserveSectors: UInt64 { 2048 }

    /// Sectors nobody has, without those that come free with the next commits. Under `lock`.
    var freeSectors: UInt64 {
        let taken = sectors.usedSectors + sectors.reservedSectors
        return sectors.contentSectors > taken ? sectors.contentSectors - taken : 0
    }

    /// Disk of the host that content leaves alone, so that the catalogue can still be written.
    static let hostReserveBytes: UInt64 = 1 << 20
    /// With more the catalogue takes disk before it needs it.
    static let hostPlentyBytes: UInt64 = 1 << 30

    /// Bytes that the host's disk can still take. Where that is much more than can be written meanwhile, an answer
    /// serves for a moment: it is asked for several times a file.
    func hostAvailable() throws(StoreError) -> UInt64 {
        let now = MonotonicClock.milliseconds
        if let known = hostKnown.withLock({ $0 }), now < known.until { return known.bytes }
        let bytes = try files.hostStatus().availableBytes
        let isAmple = bytes > Self.hostAmpleBytes
        hostKnown.withLock { $0 = isAmple ? (bytes, now + Self.hostKnownMilliseconds) : nil }
        return bytes
    }

    private static let hostAmpleBytes: UInt64 = 8 << 30
    private static let hostKnownMilliseconds: Int64 = 50

    /// Takes segments into use that `grow` has added since. Under `lock`.
    func noticeGrowth() {
        guard !grows else { return }
        let count = segmentCountNow()
        guard count > sectors.segmentCount else { return }
        noteEnd()
        sectors.addSegments(to: count)
        updateExcluded()
    }

    /// Says where the file of all spaces ends, behind which nothing is written.
    func noteEnd() {
        files.leastBytes = grows ? 0 : UInt64(segmentCountNow()) * files.layout.rowBytes
    }

    /// Page slots kept for deleting when everything else is full.
    static let catalogueReserveSlots = 192
}
