import LinuxIO
import VaultFormat

/// A consistent state of a space, taken in the catalogue's critical section, to be published.
public final class FrozenCommit: @unchecked Sendable {
    let generation: UInt64
    private(set) var pages: [(index: UInt32, page: PageBuffer)]
    private(set) var bitmaps: [(page: Int, bytes: [UInt8])]
    private(set) var counts: [(page: Int, bytes: [UInt8])]
    /// Changes up to the freeze, then slots freed by publishing itself.
    var entries: [DeltaEntry]
    let entriesFrozen: Int
    /// Entries of earlier soft commits that this commit's delta takes over, so that their deltas are no longer needed.
    var inherited: [DeltaEntry]?
    /// Slots allocated by publishing: freed if it fails.
    var slotsTaken: [UInt32] = []
    /// Slots of its delta's pages.
    var deltaSlots: [UInt32] = []
    /// The most that publishing may take, by the ledger.
    var slotsMax = 0

    init(
        generation: UInt64, pages: [(index: UInt32, page: PageBuffer)],
        bitmaps: [(page: Int, bytes: [UInt8])],
        counts: [(page: Int, bytes: [UInt8])], entries: [DeltaEntry]
    ) {
        self.generation = generation
        self.pages = pages
        self.bitmaps = bitmaps
        self.counts = counts
        self.entries = entries
        entriesFrozen = entries.count
    }

    /// Changed pages: the catalogue's, and those of bits and counts of sectors.
    var pageCount: Int { pages.count + bitmaps.count + counts.count }

    /// Changed pages to be stored.
    var storedCount: Int { pageCount - pages.count { $0.page.isZero } }

    /// Adds the newest root's version of a page, unless the commit changes the page.
    func addUnlessChanged(_ object: MapObject, _ page: Int, _ bytes: UnsafeRawBufferPointer) {
        switch object {
        case .catalogue:
            if pages.contains(where: { $0.index == page }) { return }
            pages.append((index: UInt32(page), page: PageBuffer(bytes)))
        case .sectorBitmap:
            if bitmaps.contains(where: { $0.page == page }) { return }
            bitmaps.append((page: page, bytes: Array(bytes.prefix(MapLayout.bitmapBytes))))
        case .usage:
            if counts.contains(where: { $0.page == page }) { return }
            counts.append((page: page, bytes: Array(bytes.prefix(MapLayout.countsPerPage * 4))))
        case .slotBitmap: break
        }
    }
}
