import LinuxIO
import VaultFormat

/// Capacity and use of a space, in bytes.
public struct SpaceUse: Sendable, Equatable {
    public var total: UInt64
    public var free: UInt64
    /// Bytes that a user may still write.
    public var available: UInt64
}

/// The purpose of an allocation.
public enum WritePurpose: Sendable {
    /// A user's bytes: refused when only the system reserve is left.
    case user
    /// Writes needed for deleting and truncating: may use the reserve.
    case system
}

/// The area for content in a vault that grows.
enum WriteArea {
    case anywhere
    /// Only sectors that have disk blocks.
    case onDisk
}

/// Gives out sectors for content, and says how much room there is.
///
/// Unchecked Sendable: everything mutable is under the space's lock. Functions marked so are called with it held, the
/// others take it.
public final class SectorRoom: @unchecked Sendable {
    private let lock: Lock
    private let disk: SpaceDisk
    private let sectors: SectorAllocator
    private let segments: SegmentRoles
    private let host: HostRoom
    private let limits: Limits
    private let grows: Bool
    /// In use by the bitmap, but freed: they become allocatable once no root refers to them.
    private var pending: UInt64 = 0
    /// The most sectors that were ever in use.
    private var peak: UInt64
    /// Where content begins; see `Evasion.segment`.
    private(set) var firstSegment: UInt32

    private static let tightBytes: UInt64 = 4 << 20

    init(
        _ root: RootRecord, _ disk: SpaceDisk, _ sectors: SectorAllocator, _ segments: SegmentRoles,
        _ host: HostRoom, grows: Bool, limits: Limits, lock: Lock
    ) {
        (self.disk, self.sectors, self.segments, self.host) = (disk, sectors, segments, host)
        (self.grows, self.limits, self.lock) = (grows, limits, lock)
        (peak, firstSegment) = (root.peakSectors, root.evasion.segment)
    }

    /// Reads how many sectors of each segment are in use, and has bits read from `pages` on demand. Includes segments
    /// whose file is missing but whose count is not 0, so that their numbers are never reused.
    func load(from pages: PageStore) throws(StoreError) {
        sectors.loadPage = { [unowned pages] (page: Int) throws(StoreError) in
            try pages.words(.sectorBitmap, page, count: MapLayout.bitmapBytes / 8)
        }
        let present = segments.leastCount
        let perPage = MapLayout.countsPerPage
        let stored = max(pages.pageCount(of: .usage), (present + perPage - 1) / perPage)
        var counts: [UInt32] = []
        let most = UInt32(disk.sectorsPerSegment)
        for page in 0..<stored {
            for pair in try pages.words(.usage, page, count: perPage / 2) {
                counts.append(min(UInt32(truncatingIfNeeded: pair), most))
                counts.append(min(UInt32(pair >> 32), most))
            }
        }
        let lastUsed = counts.lastIndex { $0 > 0 } ?? 0
        sectors.load(counts: Array(counts.prefix(max(present, lastUsed + 1))))
        sectors.begin(atSegment: Int(firstSegment))
    }

    #if DEBUG
        /// For tests that fill a space without writing.
        var allocator: SectorAllocator { sectors }
    #endif

    // MARK: How much there is

    public var perSegment: Int { disk.sectorsPerSegment }

    /// Capacity and use of the space.
    public var capacity: SpaceUse {
        lock.withLock { segments.noticeGrowth() }
        return knownCapacity
    }

    /// As `capacity`, but without checking for segments added by `grow`, which costs system calls.
    public var knownCapacity: SpaceUse {
        let host = grows ? self.host.availableOrNone : 0
        return lock.withLock {
            let sectorBytes = UInt64(Geometry.sectorBytes)
            let used = taken
            if grows {
                let reusable = reusableBytes
                let kept = self.host.keptBytes + HostRoom.marginBytes
                let reserved = min(host, kept) + min(reusable, HostRoom.usedReserveBytes)
                let free = reusable + host
                return SpaceUse(total: used * sectorBytes + free, free: free, available: free - reserved)
            }
            let total = sectors.contentSectors
            let free = total > used ? total - used : 0
            let available = free > FixedSpace.reservedSectors ? free - FixedSpace.reservedSectors : 0
            return SpaceUse(
                total: total * sectorBytes, free: free * sectorBytes, available: available * sectorBytes)
        }
    }

    /// Sectors that are in use or reserved, without those that the next commits release. Under the lock.
    private var taken: UInt64 {
        (sectors.usedSectors + sectors.reservedSectors) - min(pending, sectors.usedSectors)
    }

    /// In a vault that grows, bytes of sectors that were used once, and have disk blocks. Under the lock.
    var reusableBytes: UInt64 {
        let taken = taken
        return (max(peak, taken) - taken) * UInt64(Geometry.sectorBytes)
    }

    /// Disk of free sectors that a full host can have back for slots, as far as their bits are in memory. Under the
    /// lock.
    var returnableBytes: UInt64 {
        guard grows, host.lastAvailable < HostRoom.plentyBytes else { return 0 }
        return min(reusableBytes, UInt64(sectors.freePages * Geometry.pageBytes))
    }

    /// Sectors in use, with those that were freed and not yet released. Under the lock.
    var used: UInt64 { sectors.usedSectors }

    /// Bytes of the sectors in use that stay so. Under the lock.
    var contentBytes: UInt64 {
        (sectors.usedSectors - min(pending, sectors.usedSectors)) * UInt64(Geometry.sectorBytes)
    }

    /// Sectors in use in each segment.
    public var usedCounts: [Int] { lock.withLock { sectors.usedCounts.map(Int.init) } }

    /// Sectors released since the space was opened: increases whenever retrying a write may succeed.
    public var freedSectors: UInt64 { lock.withLock { sectors.freedCount } }

    /// Freed bytes that two durable commits would make allocatable.
    public var pendingBytes: UInt64 { lock.withLock { pending * UInt64(Geometry.sectorBytes) } }

    /// Whether more freed bytes than `Limits.backlogBytes` allows await reuse, so that writers should wait. Under the
    /// lock.
    var isBacklogged: Bool {
        let bytes = pending * UInt64(Geometry.sectorBytes)
        return bytes > max(limits.backlogBytes, sectors.usedSectors * UInt64(Geometry.sectorBytes) / 8)
    }

    /// Whether free sectors are so few, or so scattered, that bytes should be sealed before they are accepted.
    ///
    /// - Parameter bytes: reserved for accepted bytes that are not sealed yet.
    public func isTight(reserved bytes: UInt64) -> Bool {
        let isFull = grows && host.lastAvailable < Self.tightBytes + host.keptBytes + bytes
        return lock.withLock {
            if sectors.isFragmented { return true }
            if grows { return isFull }
            let wanted = (bytes + Self.tightBytes) / UInt64(Geometry.sectorBytes) + FixedSpace.reservedSectors
            return sectors.freeSectors < wanted
        }
    }

    // MARK: Giving out

    /// Reserves between `least` and `most` consecutive sectors, at `near` if they are free there. Nil if no free run is
    /// long enough; throws `noRoom` if they would take the reserve of a user's bytes. Under the lock.
    ///
    /// - Parameter mayGrow: whether a segment may be added.
    func reserve(
        least: Int, most: Int, near: UInt64? = nil, _ purpose: WritePurpose, _ area: WriteArea,
        mayGrow: Bool = true
    ) throws(StoreError) -> (sector: UInt64, count: Int)? {
        var most = most
        if purpose == .user && area == .onDisk {
            let taken = UInt64(least * Geometry.sectorBytes)
            guard reusableBytes >= taken + HostRoom.usedReserveBytes else { throw .noRoom }
        }
        if purpose == .user && !grows {
            if sectors.freeSectors < UInt64(most) + FixedSpace.reservedSectors { segments.noticeGrowth() }
            let free = sectors.freeSectors
            guard free >= UInt64(least) + FixedSpace.reservedSectors else { throw .noRoom }
            most = Int(min(UInt64(most), free - FixedSpace.reservedSectors))
        }
        while let taken = try take(least: least, most: most, near: near, area, mayGrow) {
            if segments.isPresent(disk.segment(of: taken.sector)) { return taken }
            try sectors.abandon(taken.sector, taken.count)
        }
        return nil
    }

    private func take(
        least: Int, most: Int, near: UInt64?, _ area: WriteArea, _ mayGrow: Bool
    ) throws(StoreError) -> (sector: UInt64, count: Int)? {
        if area == .onDisk {
            return try sectors.take(least: least, most: most, near: nil) {
                [disk] (number, first) throws(StoreError) in
                try disk.storedSectors(number, from: first)
            }
        }
        if let found = try sectors.take(least: least, most: most, near: near) { return found }
        guard mayGrow else { return nil }
        segments.noticeGrowth()
        if grows {
            guard try host.available() > host.keptBytes + HostRoom.marginBytes,
                try segments.addForContent()
            else { return nil }
        }
        return try sectors.take(least: least, most: most, near: nil)
    }

    /// Reserves whole pages of sectors that are to get no content; see `SectorAllocator.takeAside`. Nil unless there
    /// are `factor` times as many behind the reserve. Under the lock.
    func reserveAside(
        most: Int, factor: UInt64, at place: UInt64?, distanceMax: UInt64
    ) throws(StoreError) -> (sector: UInt64, count: Int)? {
        let free = sectors.freeSectors
        let room = free - min(free, FixedSpace.reservedSectors)
        let most = Int(min(UInt64(most), room / factor)) / Geometry.sectorsPerPage
        guard most > 0 else { return nil }
        return try sectors.takeAside(pages: most, at: place, distance: min(distanceMax, room / 4))
    }

    /// Reserves the long free runs of a segment for content, so that their disk can be given back; none if it has
    /// little. Under the lock.
    func reserveFreeRuns(of segment: Int) -> [Range<Int>] {
        guard !segments.isOfPages(segment), segment < sectors.segmentCount else { return [] }
        let used = UInt64(sectors.usedCounts[segment]) * UInt64(Geometry.sectorBytes)
        guard disk.blockBytes(segment) > used + Self.spareSegmentBytes else { return [] }
        return sectors.reserveFreeRuns(of: segment, least: Geometry.sectorsPerPage)
    }

    private static let spareSegmentBytes: UInt64 = 64 << 10

    /// Releases reserved sectors. Their bits are in memory, so loading cannot fail. Under the lock.
    func abandon(_ sector: UInt64, _ count: Int) { try? sectors.abandon(sector, count) }

    /// Makes reserved sectors part of the next commit. Under the lock.
    func adopt(_ sector: UInt64, _ count: Int) {
        do throws(StoreError) { try sectors.adopt(sector, count) } catch {
            preconditionFailure("the bits of reserved sectors are in memory")
        }
    }

    /// Marks given sectors of one segment as used if all of them are free and may have content. Under the lock.
    func allocate(at sector: UInt64, _ count: Int) throws(StoreError) -> Bool {
        let segment = disk.segment(of: sector)
        guard segment < sectors.segmentCount, !segments.isOfPages(segment) else { return false }
        return try sectors.allocate(at: sector, count)
    }

    /// Counts sectors in use as freed, until `release`. Under the lock.
    func willRelease(_ count: UInt64) { pending += count }

    /// Counts freed sectors as in use again. Under the lock.
    func willKeep(_ count: UInt64) { pending -= min(count, pending) }

    /// Frees sectors that no root refers to any more. An unreadable bitmap only leaks this room until it is rebuilt.
    /// Under the lock.
    func release(_ sector: UInt64, _ count: Int) {
        try? sectors.release(sector, count)
        pending -= UInt64(count)
    }

    // MARK: Where

    /// Restarts the search for free sectors at the first.
    func rewind() { lock.withLock { sectors.rewind() } }

    /// After a takeover, lets content begin far from these segments. Under the lock.
    func begin(farFrom used: [Int]) {
        firstSegment = UInt32(sectors.farthest(from: used) ?? 0)
        sectors.begin(atSegment: Int(firstSegment))
    }

    // MARK: Commits

    /// Pages of the sector bitmap that changed since they were published. Under the lock.
    var unpublishedBitmaps: Int { sectors.unpublishedPages }

    /// Pages of counts that changed since they were published. Under the lock.
    var unpublishedCounts: Int { sectors.unpublishedCountPages }

    /// All pages of the sector bitmap. Under the lock.
    var bitmapPages: Int { sectors.segmentCount * sectors.pagesPerSegment }

    /// All pages of the counts. Under the lock.
    var countPages: Int { sectors.segmentCount / MapLayout.countsPerPage + 1 }

    /// The pages of bits and counts that changed since the last call; see `SectorAllocator.freezeDirtyPages`. Under the
    /// lock.
    func freeze() -> (bitmaps: [(page: Int, bytes: [UInt8])], counts: [(page: Int, bytes: [UInt8])]) {
        peak = max(peak, sectors.usedSectors)
        return sectors.freezeDirtyPages()
    }

    /// Under the lock.
    func didPublish() { sectors.didPublish() }

    /// Under the lock.
    func takeBack() { sectors.takeBack() }

    /// The most sectors that were ever in use. Under the lock.
    var peakSectors: UInt64 { peak }

    /// Counts so many free sectors, which were written, as having disk blocks.
    func raisePeak(toFree count: Int) { lock.withLock { peak = max(peak, taken + UInt64(count)) } }

    /// Counts only so many sectors, and those in use, as having disk blocks.
    func lowerPeak(to count: UInt64 = 0) {
        lock.withLock { peak = max(min(peak, count), sectors.usedSectors) }
    }

    /// Has the next commit write a page of the sector bitmap anew. Under the lock.
    func markDirty(bitmapPage page: Int) throws(StoreError) {
        if page / sectors.pagesPerSegment < sectors.segmentCount { try sectors.markDirty(bitmapPage: page) }
    }

    /// Has the next commit write a page of counts anew. Under the lock.
    func markDirty(countPage page: Int) { sectors.markDirty(countPage: page) }

    // MARK: Checking

    /// The bits of a segment, even if they contradict its count. Under the lock.
    func usedRow(of segment: Int) throws(StoreError) -> BitRow { try sectors.usedRow(of: segment) }

    /// Sectors in use in a segment, by its count. Under the lock.
    func usedCount(of segment: Int) -> Int { Int(sectors.usedCounts[segment]) }

    /// Replaces a segment's bits, and its count accordingly. Under the lock.
    func replace(_ segment: Int, with row: BitRow) { sectors.replace(segment, with: row) }
}
