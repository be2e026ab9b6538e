import LinuxIO
public import VaultFormat

/// The purpose of a change of the catalogue: how much of the room for pages it must leave.
public enum ChangePurpose: Sendable {
    /// New names, links and attributes.
    case addition
    /// New bytes of files: a file that could be made can be written, and an existing one be edited.
    case edit
    /// Any other change.
    case change
    /// Removing, and saving accepted bytes: may use the whole reserve.
    case removal

    /// The part of the reserve that stays free, in quarters.
    fileprivate var reservedQuarters: Int {
        switch self {
        case .addition: 4
        case .edit: 2
        case .change: 1
        case .removal: 0
        }
    }
}

/// The ledger of page slots: what was accepted can be committed.
///
/// Changed pages get new slots, and those of the old ones are reused only after two durable commits. So before each
/// change there must be slots for the commit that it becomes part of, and for two more commits, which release what
/// that one replaced. Then every commit succeeds, and after two of them all slots are free but those of the newest
/// state. Additions leave a reserve, in which removing goes on in batches.
///
/// Has no state of its own. Public functions take the space's lock, the others are called with it held.
public final class RoomLedger: @unchecked Sendable {
    private let lock: Lock
    private let segments: SegmentRoles
    private let sectors: SectorRoom
    private let slots: SlotRoom
    private let pages: PageStore
    private let freed: FreedRoom
    private let host: HostRoom
    private let gate: WriteGate
    private let limits: Limits
    private let grows: Bool

    init(
        _ segments: SegmentRoles, _ sectors: SectorRoom, _ slots: SlotRoom, _ pages: PageStore,
        _ freed: FreedRoom, _ host: HostRoom, _ gate: WriteGate, grows: Bool, limits: Limits, lock: Lock
    ) {
        (self.segments, self.sectors, self.slots, self.pages) = (segments, sectors, slots, pages)
        (self.freed, self.host, self.gate) = (freed, host, gate)
        (self.grows, self.limits, self.lock) = (grows, limits, lock)
    }

    // MARK: Slots

    /// Whether the next commit has slots for so many more changed pages, beside the reserve that the purpose leaves.
    public func hasRoom(for purpose: ChangePurpose, pages: Int) -> Bool {
        lock.withLock { slots.free >= slotsNeeded(pages, purpose) }
    }

    /// Whether the next commit has slots for so many more changed pages, and the one after it as well.
    public func canCommit(pages: Int) -> Bool {
        lock.withLock { slots.free >= commitSlots(pages: pages) + drainSlots }
    }

    /// As `hasRoom`, but first adds slots if there is room for more.
    public func makesRoom(for purpose: ChangePurpose, pages: Int) -> Bool {
        guard (try? gate.requireOpen()) != nil else { return false }
        return lock.withLock {
            while slots.free < slotsNeeded(pages, purpose) {
                guard slots.mayAdd(for: purpose), (try? slots.add()) != nil else { return false }
            }
            return true
        }
    }

    /// Whether durable commits may release so many slots that there is room then.
    public func commitsMakeRoom(for purpose: ChangePurpose, pages: Int) -> Bool {
        lock.withLock { slotsAfterCommits >= leastSlots(pages: pages, purpose) }
    }

    /// Whether rows may be added for users.
    public var hasRowRoom: Bool { hasRoom(for: .addition, pages: limits.reservedSlots / 4) }

    /// Whether so few slots are free that commits must not become large.
    public var isShortOfRowRoom: Bool {
        lock.withLock { slots.free < 2 * (reserveSlots + pages.changedPages + drainSlots) }
    }

    /// Gives the catalogue two segments that are free; false if there are none.
    public func growIntoVacantPair() -> Bool {
        lock.withLock { segments.mayGrowIntoPair && (try? slots.add()) != nil }
    }

    /// Slots that are free after two durable commits that change nothing, except those of pages that are added.
    private var slotsAfterCommits: Int {
        slots.free + slots.withheld + freed.pendingSlots + pages.changedZeros
    }

    /// The least that a change of so many pages takes, once there is nothing else to commit.
    ///
    /// - Parameter bitmaps: pages of the sector bitmap that each commit changes.
    private func leastSlots(pages: Int, _ purpose: ChangePurpose, bitmaps: Int = 1) -> Int {
        func commit(_ stored: Int) -> Int {
            commitSlots(stored: stored, zeros: 0, bitmaps: bitmaps, counts: 1, entries: 0)
        }
        return commit(pages) + 2 * commit(0) + reservedSlots(purpose)
    }

    /// Slots that additions do not take: an eighth, within bounds.
    private var reserveSlots: Int {
        min(max(limits.reservedSlots, slots.backed / 8), slots.backed / 2, 8192)
    }

    private func reservedSlots(_ purpose: ChangePurpose) -> Int {
        reserveSlots * purpose.reservedQuarters / 4
    }

    private func slotsNeeded(_ pages: Int, _ purpose: ChangePurpose) -> Int {
        commitSlots(pages: pages) + 2 * drainSlots + reservedSlots(purpose)
    }

    /// Upper bound of the slots that a commit of all changes takes, with `pages` more.
    private func commitSlots(pages count: Int) -> Int {
        commitSlots(
            stored: pages.changedPages + count, zeros: pages.changedZeros,
            bitmaps: sectors.unpublishedBitmaps, counts: sectors.unpublishedCounts, entries: freed.entryCount)
    }

    /// Slots of a commit that only releases what earlier ones freed.
    private var drainSlots: Int {
        let released = freed.entriesToRelease + sectors.unpublishedBitmaps
        return commitSlots(
            stored: 0, zeros: 0, bitmaps: min(sectors.bitmapPages, released), counts: 1,
            entries: freed.entriesToErase)
    }

    /// Upper bound of the slots that a commit takes.
    ///
    /// - Parameters:
    ///   - stored: pages of the catalogue that are stored.
    ///   - zeros: those that are not stored any more.
    ///   - bitmaps: pages of the sector bitmap.
    ///   - counts: pages of the usage counts.
    ///   - entries: entries of the delta, without those of slots that the commit replaces.
    func commitSlots(stored: Int, zeros: Int, bitmaps: Int, counts: Int, entries: Int) -> Int {
        func nodes(_ changed: Int, of pages: Int) -> Int {
            var (width, count, levels) = (pages, 0, 0)
            while width > 1 || levels == 0 {
                width = (width + MapLayout.fanout - 1) / MapLayout.fanout
                count += min(changed, width)
                levels += 1
            }
            // A page at a new end adds a level.
            return changed == 0 ? 0 : count + 2
        }
        let slotPages = (slots.count + 2 * slots.slotsPerPair) / MapLayout.bitsPerPage + 1
        let catalogue = pages.pageCount(of: .catalogue) + stored
        let counted =
            stored + nodes(stored + zeros, of: catalogue)
            + bitmaps + nodes(bitmaps, of: sectors.bitmapPages)
            + counts + nodes(counts, of: sectors.countPages)
        // The slot bitmap records the slots that it takes itself.
        let bits = slotPages + nodes(slotPages, of: slotPages)
        let listed = entries + freed.deltaPageCount + zeros + counted + bits
        return counted + bits + listed / DeltaLayout.entriesPerPage + 2
    }

    // MARK: Files

    /// Pages of a change, for which additions stop.
    private static let pagesPerChange = 32
    /// Pages of the sector bitmap that the commits before a refusal change: then nothing may be shown any more.
    private static let bitmapsPerCommit = 32
    /// Bytes of a photo that makes way.
    private static let purgedBytesUsual: UInt64 = 4 << 20

    /// The room for new files. More page slots take segments that content would have.
    ///
    /// - Parameters:
    ///   - reserved: bytes reserved for accepted writes.
    ///   - purgeable: bytes of photos that make way for new files.
    public func fileRoom(besides reserved: UInt64, purgeable: UInt64) -> FileRoom {
        let use = sectors.capacity
        let available = use.available - min(use.available, reserved) + purgeable
        return lock.withLock {
            let bitmaps = min(Self.bitmapsPerCommit, sectors.bitmapPages)
            let least = leastSlots(
                pages: limits.reservedSlots / 2 + Self.pagesPerChange, .addition, bitmaps: bitmaps)
            let made = Double(purgeable / Self.purgedBytesUsual) * FileRoom.slotsPerFile
            let slots = max(0, Double(slotsAfterCommits - least)) + made
            let returnable = sectors.returnableBytes
            return FileRoom(available: available) { bytesPerFile in
                guard grows else {
                    return segments.fixed.filesThatFit(
                        bytesPerFile: bytesPerFile, content: Double(available), slots: slots,
                        pairs: segments.pairsToAdd, setAside: segments.setAsideForPages)
                }
                return filesThatFit(
                    bytesPerFile: bytesPerFile, content: Double(available), slots: slots,
                    returnable: returnable)
            }
        }
    }

    /// How many files fit in a vault that grows, if the catalogue takes more of the host's disk.
    ///
    /// - Parameter returnable: `SectorRoom.returnableBytes`, which take some time to count.
    private func filesThatFit(
        bytesPerFile: Double, content: Double, slots: Double, returnable: UInt64
    ) -> Double {
        let files = min(content / bytesPerFile, slots / FileRoom.slotsPerFile)
        let left = content - files * bytesPerFile
        let host = self.host.lastAvailable
        let disk = Double(host + returnable) - Double(self.slots.stepBytes)
        // Where little of it is whole pages, files are in pieces, and take more rows.
        let unused = Double(host + sectors.reusableBytes + 1)
        let scattered = host < HostRoom.plentyBytes ? 1 - Double(host + returnable) / unused : 0
        let diskPerFile = FileRoom.slotsPerFile * (1 + scattered) * Double(2 * Geometry.pageBytes)
        return files + min(max(0, left) / (bytesPerFile + diskPerFile), max(0, disk) / diskPerFile)
    }
}
