import LibraryFixtures
import LinuxIO
import TestFixtures
import TestSupport
import VaultFormat

@testable import VaultCatalogue
@testable import VaultStore

/// A root as it was published, with the very bytes of all it leads to.
///
/// A space that opens with this root, on a disk where these bytes are where they were, is as it was then: so most
/// crash states are compared without being read through the catalogue.
final class PublishedCommit: @unchecked Sendable {
    /// Both copies of a page: one must be whole.
    private struct PageCopies {
        var index: Int
        var segmentA: Int
        var segmentB: Int
        var copyA: DiskPage?
        var copyB: DiskPage?
    }

    /// Sectors of an extent within one page of the disk.
    private struct ExtentPart {
        var segment: Int
        var index: Int
        var content: DiskPage?
        var sectors: Range<Int>
    }

    let generation: UInt64
    /// The newest root before it that had, or may have had, another tree.
    let before: UInt64
    let epoch: UInt64
    let isDurable: Bool
    let tree: TreeDump
    private var pages: [PageCopies] = []
    private var extents: [ExtentPart] = []
    private var segmentCount = 0
    private var layout: SegmentLayout?

    /// Takes the newest root of a space; also checks that no slot is in use that nothing refers to.
    ///
    /// - Parameter runs: its runs; nil if the catalogue has changed in nothing since.
    init(
        _ space: Space, _ tree: TreeDump, _ runs: [ExtentRun]? = nil, since before: UInt64,
        on image: DiskImage
    ) throws {
        self.before = before
        self.tree = tree
        let root = space.commits.newest
        (generation, epoch, isDurable) = (root.generation, root.epoch, root.isDurable)
        let places = try space.parts.lock.withLock {
            try space.reachableSlots().map { try space.parts.pages.place($0) }
        }
        let runs = try runs ?? space.allRuns()
        let perSegment = UInt64(space.parts.disk.sectorsPerSegment)
        let last =
            (places.flatMap { [$0.sectorA, $0.sectorB] } + runs.map { $0.sector + UInt64($0.sectorCount) - 1 })
            .max()
        segmentCount = Int((last ?? 0) / perSegment) + 1
        layout = space.parts.disk.layout
        let segments = segments(on: image)
        func page(_ sector: UInt64) -> (segment: Int, index: Int, content: DiskPage?) {
            let (segment, index) = (
                Int(sector / perSegment), Int(sector % perSegment) / Geometry.sectorsPerPage
            )
            return (segment, index, segments[segment]?.page(index))
        }
        for place in places {
            let (a, b) = (page(place.sectorA), page(place.sectorB))
            pages.append(
                PageCopies(
                    index: a.index, segmentA: a.segment, segmentB: b.segment, copyA: a.content,
                    copyB: b.content))
        }
        for run in runs {
            var sector = run.sector
            let end = run.sector + UInt64(run.sectorCount)
            while sector < end {
                let next = min(end, (sector / 8 + 1) * 8)
                let (segment, index, content) = page(sector)
                let first = Int(sector % 8)
                extents.append(
                    ExtentPart(
                        segment: segment, index: index, content: content,
                        sectors: first..<first + Int(next - sector)))
                sector = next
            }
        }
    }

    /// One that failed, whose root may have been written: its contents are not known.
    init(tried generation: UInt64, since before: UInt64, epoch: UInt64, _ tree: TreeDump) {
        self.generation = generation
        self.before = before
        self.epoch = epoch
        self.tree = tree
        isDurable = true
    }

    /// Whether it failed.
    var isTried: Bool { pages.isEmpty }

    /// Whether mounting it is all that can be done to judge it.
    func isUnknown(_ root: RootRecord) -> Bool { isTried || root.generation != generation }

    private func segments(on image: DiskImage) -> [MemoryVault.SegmentImage?] {
        guard let layout else { return [] }
        return (0..<segmentCount).map { MemoryVault.segment($0, of: layout, in: image) }
    }

    /// Whether that is its root, or one with the same tree.
    func has(_ root: RootRecord) -> Bool {
        root.epoch == epoch && root.generation > before && root.generation <= generation
    }

    /// The first part of it that the disk has lost; nil if it is whole.
    func damage(on image: DiskImage) -> String? {
        let segments = segments(on: image)
        func holds(_ segment: Int, _ index: Int, _ content: DiskPage?, _ sectors: Range<Int>) -> Bool {
            guard let found = segments[segment] else { return false }
            guard let content else { return true }
            return content.equals(found.page(index), in: sectors)
        }
        for page in pages
        where !holds(page.segmentA, page.index, page.copyA, 0..<8)
            && !holds(page.segmentB, page.index, page.copyB, 0..<8)
        {
            return "page \(page.index) of segments \(page.segmentA) and \(page.segmentB)"
        }
        for part in extents where !holds(part.segment, part.index, part.content, part.sectors) {
            return "sectors \(part.sectors) of page \(part.index) of segment \(part.segment)"
        }
        return nil
    }
}

extension Space {
    /// All runs that the catalogue has, as it was staged last.
    func allRuns() throws -> [ExtentRun] {
        guard pageCount > 0 else { return [] }
        let database = try Connection(path: PageVFS.register(self), vfs: PageVFS.name, readOnly: true)
        return try database.prepare("SELECT offset, length, sector FROM extent").all {
            ExtentRun(
                offset: $0.unsigned(0), length: $0.unsigned(1), sector: $0.unsigned(2), generation: 0,
                epoch: 0)
        }
    }

    /// The slots of all pages, nodes and deltas that the newest root leads to. Under `lock`.
    func reachableSlots() throws -> [UInt32] {
        var found: [UInt32] = []
        for object in MapObject.allCases {
            let pages = parts.pages
            for page in 0..<pages.pageCount(of: object) {
                let reference = try pages.reference(object, page)
                if !reference.isAbsent { found.append(reference.slot) }
            }
            var nodes = pages.pageCount(of: object)
            for level in 0..<pages.root(of: object).levels {
                nodes = (nodes + MapLayout.fanout - 1) / MapLayout.fanout
                for index in 0..<nodes {
                    let key = NodeKey(level: level, index: index)
                    let reference = try pages.reference(object, node: key)
                    if !reference.isAbsent { found.append(reference.slot) }
                }
            }
        }
        return found + parts.freed.deltaSlots
    }

    /// Every slot in use belongs to a root, to the pages of the newest one, or to pages given back.
    func auditSlots() throws {
        let (known, used) = try parts.lock.withLock { () -> (Set<Int>, Set<Int>) in
            let reachable = try reachableSlots().map { Int($0) }
            if Set(reachable).count < reachable.count { throw CrashFailure("two pages share a slot") }
            let freed = parts.freed.freedSlots.joined()
            if !Set(freed).isDisjoint(with: reachable) { throw CrashFailure("a slot in use was given back") }
            return (
                Set(0..<RootLayout.rootSlots).union(reachable).union(freed), parts.slots.allocator.usedList
            )
        }
        if used != known {
            let (lost, free) = (used.subtracting(known).sorted(), known.subtracting(used).sorted())
            throw CrashFailure(
                "slots that nothing has: \(lost); that have something and may be given out: \(free)")
        }
    }
}

extension SlotAllocator {
    /// Slots in use.
    var usedList: Set<Int> {
        var found: Set<Int> = []
        for page in 0..<(slotCount + MapLayout.bitsPerPage - 1) / MapLayout.bitsPerPage {
            for (index, byte) in bytes(ofPage: page).enumerated() where byte != 0 {
                for bit in 0..<8 where byte >> UInt8(bit) & 1 == 1 {
                    found.insert(page * MapLayout.bitsPerPage + index * 8 + bit)
                }
            }
        }
        return found
    }
}
