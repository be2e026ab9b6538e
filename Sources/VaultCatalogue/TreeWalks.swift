import VaultFormat

/// Finds out which pages a walk through a B-tree of SQLite reads next, so that a host elsewhere can be asked for many
/// at once. Pages are numbered from 0 on, as in a storage.
///
/// An interior page names its children in their order (sqlite.org/fileformat2.html, *B-tree Pages*). Once two children
/// of one page are read, one after another, the next ones will be. Pages of one tree may lie far from each other.
struct TreeWalks {
    /// Pages that will be read, in order: see `PageStorage.willReadPages`.
    struct Next: Equatable {
        let soon: ArraySlice<UInt32>
        let later: ArraySlice<UInt32>
    }

    private struct Interior {
        let page: UInt32
        let children: [UInt32]
        /// The place among them of the child that was read last; -1 for a walk that has come to this page.
        var last: Int?
        /// Children that were read one after another.
        var length = 0
        /// Children before this place were asked for.
        var asked = 0

        /// The children to ask for behind a place; nil if most of these were.
        mutating func next(after place: Int) -> Next? {
            let ahead = min(TreeWalks.aheadMax, TreeWalks.aheadMin << min(length, 8))
            let start = max(place + 1, asked)
            let end = min(children.count, place + 1 + ahead)
            guard start < end, end == children.count || end - start >= ahead / 2 else { return nil }
            asked = end
            return Next(soon: children[start..<end], later: children[end...].prefix(ahead))
        }
    }

    /// The page that was used last comes last.
    private var interiors: [Interior] = []

    /// Interior pages that are known: of a few walks at once, with the levels of their trees.
    static let interiorsMax = 16
    /// Children that are asked for ahead: few after two, which may be two searches, more the longer a walk is.
    static let aheadMin = 4
    static let aheadMax = 32
    /// Children that a walk may pass over, because SQLite has their pages.
    private static let passedMax = 8

    /// Notes that SQLite reads a page. Returns the pages that it will read next, as far as that is known and they were
    /// not returned before.
    mutating func read(_ index: UInt32, _ page: UnsafeRawBufferPointer) -> [Next] {
        let (isWalk, next) = walk(to: index)
        guard let children = Self.children(of: page, isFirst: index == 0) else { return next }
        interiors.removeAll { $0.page == index }
        if interiors.count == Self.interiorsMax { interiors.removeFirst() }
        var interior = Interior(page: index, children: children)
        defer { interiors.append(interior) }
        guard isWalk else { return next }
        (interior.last, interior.length) = (-1, children.count)
        return (interior.next(after: -1).map { [$0] } ?? []) + next
    }

    /// Notes that a page changes: its children may be others from now on.
    mutating func wrote(_ index: UInt32) { interiors.removeAll { $0.page == index } }

    /// Notes that a page is read. Returns whether it is one of a walk.
    private mutating func walk(to index: UInt32) -> (isWalk: Bool, next: [Next]) {
        for number in interiors.indices.reversed() {
            guard let place = interiors[number].children.firstIndex(of: index) else { continue }
            var interior = interiors.remove(at: number)
            defer { interiors.append(interior) }
            let isNext = interior.last.map { (1...Self.passedMax).contains(place - $0) } ?? false
            interior.last = place
            if isNext {
                interior.length += 1
                return (true, interior.next(after: place).map { [$0] } ?? [])
            }
            (interior.length, interior.asked) = (0, 0)
            return (false, [])
        }
        return (false, [])
    }

    /// The children of an interior page, in order; nil for another page. Bytes of a forged page may be anything.
    private static func children(of page: UnsafeRawBufferPointer, isFirst: Bool) -> [UInt32]? {
        let header = isFirst ? databaseHeaderBytes : 0
        guard page.count == Geometry.pageBytes, interiorKinds.contains(page[header]) else { return nil }
        func number<N: FixedWidthInteger>(_ offset: Int, as _: N.Type) -> N {
            N(bigEndian: page.loadUnaligned(fromByteOffset: offset, as: N.self))
        }
        let count = Int(number(header + cellCountOffset, as: UInt16.self))
        let cells = header + interiorHeaderBytes
        guard cells + 2 * count <= page.count else { return nil }
        // A tree counts pages from 1 on.
        var children: [UInt32] = []
        for cell in 0..<count {
            let offset = Int(number(cells + 2 * cell, as: UInt16.self))
            guard offset + 4 <= page.count else { return nil }
            children.append(number(offset, as: UInt32.self) &- 1)
        }
        return children + [number(header + lastChildOffset, as: UInt32.self) &- 1]
    }

    private static let databaseHeaderBytes = 100
    /// Of an index, and of a table.
    private static let interiorKinds: Set<UInt8> = [2, 5]
    private static let cellCountOffset = 3
    private static let lastChildOffset = 8
    private static let interiorHeaderBytes = 12
}
