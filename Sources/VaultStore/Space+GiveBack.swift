import LinuxIO
import Synchronization
import VaultFormat

/// A vault of one space returns unused disk to the host: empty segments at its end are removed, free sectors elsewhere
/// become holes. Everything that either of the two newest durable roots refers to stays.
extension Space {
    /// Whether more freed bytes than `Limits.backlogBytes` allows await reuse, so that writers should wait.
    public var isBacklogged: Bool {
        guard grows else { return false }
        return lock.withLock {
            // While a backup or a snapshot reads an older state, nothing becomes reusable.
            guard kept.copy == nil, held.isEmpty else { return false }
            let bytes = pendingSectors * UInt64(Geometry.sectorBytes)
            return bytes > max(limits.backlogBytes, sectors.usedSectors * UInt64(Geometry.sectorBytes) / 8)
        }
    }

    /// Returns unused disk to the host if there is enough of it. Best effort: a host that cannot punch holes keeps it.
    ///
    /// - Parameter commit: makes a durable commit of all changes.
    public func giveBack(_ commit: () throws(StoreError) -> Void) throws(StoreError) {
        guard grows, try isMuchUnused() else { return }
        releaseBackupHolds()
        overwriteFreed(most: .max / 2)
        // After the second commit no root refers to sectors that the first freed; the third's bitmaps have them free.
        for _ in 0..<3 {
            lock.withLock { peakSectors = min(peakSectors, sectors.usedSectors) }
            try commit()
            overwriteFreed(most: .max / 2)
        }
        try requireOwnFiles(0, lock.withLock { sectors.segmentCount } * files.sectorsPerSegment)
        removeLastSegments()
        for number in 0..<lock.withLock({ sectors.segmentCount }) { punch(number) }
        trimLastPair()
        try files.sync()
    }

    /// Returns the disk of free sectors to a host that is full, so that the catalogue can have it. Returns whether the
    /// catalogue can have more then. Best effort.
    public func giveBackForSlots() -> Bool {
        // With room for slots it is not the disk that the catalogue lacks.
        guard grows, (try? requireWritable()) != nil, !hasHostRoomForSlots else { return false }
        let count = lock.withLock { sectors.segmentCount }
        guard (try? requireOwnFiles(0, count * files.sectorsPerSegment)) != nil else { return false }
        for number in 0..<count { punch(number) }
        hostKnown.withLock { $0 = nil }
        let held = blockBytes(of: Set(0..<count).subtracting(pageSegments)) / UInt64(Geometry.sectorBytes)
        lock.withLock { peakSectors = max(min(peakSectors, held), sectors.usedSectors) }
        return hasHostRoomForSlots
    }

    private var hasHostRoomForSlots: Bool { lock.withLock { mayAddSlots(for: .addition) } }

    /// Whether the vault's unused disk is worth the commits of a pass.
    private func isMuchUnused() throws(StoreError) -> Bool {
        let (count, used) = lock.withLock { () -> (Int, UInt64) in
            let content = sectors.usedSectors - min(pendingSectors, sectors.usedSectors)
            let pages = UInt64(2 * (slots.usedSlots + limits.reservedSlots) * Geometry.sectorsPerPage)
            return (sectors.segmentCount, (content + pages) * UInt64(Geometry.sectorBytes))
        }
        return blockBytes(of: 0..<count) > used + used / 50 + Self.spareBytesMax
    }

    private func blockBytes(of segments: some Sequence<Int>) -> UInt64 {
        segments.reduce(0) { $0 + files.blockBytes($1) }
    }

    /// Unused disk that is not worth a pass, which costs commits.
    private static let spareBytesMax: UInt64 = 1 << 20

    /// Removes the empty segments at the end, by the published bitmaps.
    func removeLastSegments() {
        lock.withLock {
            let pageSegments = Set(pairs.flatMap { [Int($0.a), Int($0.b)] })
            while let last = sectors.lastRemovable, !pageSegments.contains(last) {
                guard !mayHoldNewerState(last), files.remove(last) else { return }
                sectors.removeLast()
            }
        }
    }

    /// Whether a segment has data that must stay, used or not; see `keepsFreeSectors`.
    func mayHoldNewerState(_ number: Int) -> Bool {
        keepsFreeSectors && files.hasFile(number) && !files.isHole(number)
    }

    /// Punches holes for a segment's free runs, which are reserved meanwhile.
    private func punch(_ number: Int) {
        let runs = lock.withLock { () -> [Range<Int>] in
            guard !pairs.contains(where: { Int($0.a) == number || Int($0.b) == number }),
                number < sectors.segmentCount
            else { return [] }
            let used = UInt64(sectors.usedCounts[number]) * UInt64(Geometry.sectorBytes)
            guard files.blockBytes(number) > used + Self.spareSegmentBytes else { return [] }
            return sectors.reserveFreeRuns(of: number, least: Geometry.sectorsPerPage)
        }
        for run in runs { files.punch(number, sectors: run) }
        lock.withLock {
            let first = UInt64(number * files.sectorsPerSegment)
            // Their bits are in memory, because they are reserved.
            for run in runs { try? sectors.abandon(first + UInt64(run.lowerBound), run.count) }
        }
    }

    private static let spareSegmentBytes: UInt64 = 64 << 10

    /// Truncates the files of the last pair of page segments after its last page, keeping the slots that deleting
    /// needs.
    private func trimLastPair() {
        lock.withLock {
            guard let pair = pairs.last else { return }
            let count = min(slots.lastUsed + 1 + 2 * limits.reservedSlots, slots.backedSlots)
            let inPair = count - slotsPerPair * (pairs.count - 1)
            guard inPair > 0, count < slots.backedSlots else { return }
            for number in [pair.a, pair.b] {
                guard files.shorten(Int(number), to: UInt64(inPair * Geometry.pageBytes)) else { return }
            }
            slots.unback(count)
        }
    }
}
