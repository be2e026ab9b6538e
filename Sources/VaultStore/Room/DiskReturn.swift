import LinuxIO
import VaultFormat

/// Returns unused disk of a vault of one space to the host: empty segments at its end are removed, free sectors
/// elsewhere become holes. Everything that either of the two newest durable roots refers to stays. Best effort: a host
/// that cannot punch holes keeps it.
final class DiskReturn: Sendable {
    private let lock: Lock
    private let disk: SpaceDisk
    private let gate: WriteGate
    private let segments: SegmentRoles
    private let sectors: SectorRoom
    private let slots: SlotRoom
    private let host: HostRoom
    private let references: ReferenceGuard
    private let reservedSlots: Int

    /// Unused disk that is not worth a pass, which costs commits.
    private static let spareBytesMax: UInt64 = 1 << 20

    init(_ parts: SpaceParts, _ references: ReferenceGuard, reservedSlots: Int) {
        (lock, disk, gate, segments) = (parts.lock, parts.disk, parts.gate, parts.segments)
        (sectors, slots, host) = (parts.sectors, parts.slots, parts.host)
        (self.references, self.reservedSlots) = (references, reservedSlots)
    }

    /// Whether the vault's unused disk is worth the commits of a pass.
    var isWorthwhile: Bool {
        let used = lock.withLock {
            sectors.contentBytes + UInt64(2 * (slots.used + reservedSlots) * Geometry.pageBytes)
        }
        return blockBytes(of: 0..<segments.count) > used + used / 50 + Self.spareBytesMax
    }

    private func blockBytes(of segments: some Sequence<Int>) -> UInt64 {
        segments.reduce(0) { $0 + disk.blockBytes($1) }
    }

    /// Returns the disk of everything that no root needs.
    func run() throws(StoreError) {
        try references.requireOwnFiles(0, segments.count * disk.sectorsPerSegment)
        segments.removeLast()
        for number in 0..<segments.count { punch(number) }
        lock.withLock { slots.trimLastPair() }
        try disk.sync()
    }

    /// Returns the disk of free sectors to a host that is full, so that the catalogue can have it. Returns whether the
    /// catalogue can have more then.
    func runForSlots() -> Bool {
        // With room for slots it is not the disk that the catalogue lacks.
        guard (try? gate.requireOpen()) != nil, !hasRoomForSlots else { return false }
        let count = segments.count
        guard (try? references.requireOwnFiles(0, count * disk.sectorsPerSegment)) != nil else {
            return false
        }
        for number in 0..<count { punch(number) }
        host.forget()
        let held = blockBytes(of: Set(0..<count).subtracting(segments.pageSegments))
        sectors.lowerPeak(to: held / UInt64(Geometry.sectorBytes))
        return hasRoomForSlots
    }

    private var hasRoomForSlots: Bool { lock.withLock { slots.mayAdd(for: .addition) } }

    /// Punches holes for a segment's free runs, which are reserved meanwhile.
    private func punch(_ number: Int) {
        let runs = lock.withLock { sectors.reserveFreeRuns(of: number) }
        for run in runs { disk.giveBack(number, sectors: run) }
        lock.withLock {
            let first = disk.sectors(of: number).lowerBound
            for run in runs { sectors.abandon(first + UInt64(run.lowerBound), run.count) }
        }
    }
}
