import LinuxIO
import VaultFormat

/// Stores the pages of a space: the catalogue's that wait in memory for the next commit, and the maps by which all
/// others are found.
///
/// Unchecked Sendable: everything mutable is under the space's lock. Functions marked so are called with it held, the
/// others take it.
final class PageStore: @unchecked Sendable {
    private let lock: Lock
    private let reader: PageReader
    private let segments: SegmentRoles
    private let next: NextCommit
    private var maps: [PageMap]
    private var staged: [UInt32: PageBuffer] = [:]
    private var frozen: [UInt32: PageBuffer] = [:]
    /// Pages of zeros in `staged` and in `frozen`.
    private var stagedZeros = 0
    private var frozenZeros = 0

    init(
        _ root: RootRecord, _ reader: PageReader, _ segments: SegmentRoles, _ next: NextCommit, _ lock: Lock,
        nodesMax: Int
    ) {
        (self.reader, self.segments, self.next, self.lock) = (reader, segments, next, lock)
        maps = zip(MapObject.allCases, root.objects).map { object, stored in
            PageMap(
                object: object, pageCount: stored.pageCount, levels: stored.levels, root: stored.reference,
                nodesMax: nodesMax)
        }
    }

    // MARK: References

    /// Reference to a page. Under the lock.
    func reference(_ object: MapObject, _ page: Int) throws(StoreError) -> Reference {
        try maps[object.rawValue].reference(ofPage: page, load: nodeLoader(object))
    }

    private func nodeLoader(_ object: MapObject) -> PageMap.NodeLoader {
        { [unowned self] (key: NodeKey, reference: Reference) throws(StoreError) in
            try openNode(object, key, reference)
        }
    }

    func openNode(
        _ object: MapObject, _ key: NodeKey, _ reference: Reference
    ) throws(StoreError) -> MapNode {
        try reader.openNode(object, key, reference, pairs: segments.pairs)
    }

    /// The sectors of a slot's two copies. Under the lock, or while no pair can be added.
    func place(_ slot: UInt32) throws(StoreError) -> SlotPlace {
        try reader.place(slot, pairs: segments.pairs)
    }

    func openPage(
        _ reference: Reference, as identity: PageIdentity, into plain: UnsafeMutableRawBufferPointer
    ) throws(StoreError) {
        try reader.openPage(reference, at: place(reference.slot), as: identity, into: plain)
    }

    /// The first words of a page; zeros if it was never written.
    func words(_ object: MapObject, _ page: Int, count: Int) throws(StoreError) -> [UInt64] {
        let reference = try reference(object, page)
        var words = [UInt64](repeating: 0, count: count)
        if reference.isAbsent { return words }
        try withUnsafeTemporaryPage { (plain) throws(StoreError) in
            try openPage(reference, as: .page(object, page), into: plain)
            for index in 0..<count { words[index] = UnsafeRawBufferPointer(plain).number(index * 8) }
        }
        return words
    }

    /// Number of pages of an object. Under the lock.
    func pageCount(of object: MapObject) -> Int { Int(maps[object.rawValue].pageCount) }

    /// Pages of all objects. Under the lock.
    var storedPages: UInt64 { maps.reduce(0) { $0 + UInt64($1.pageCount) } }

    // MARK: Pages that will be read

    /// Whether each read waits for an answer from elsewhere.
    var readsTakeRoundTrips: Bool { reader.readsTakeRoundTrips }

    /// As `PageStorage.willReadPages`.
    func willReadPages(_ soon: ArraySlice<UInt32>, later: ArraySlice<UInt32>) {
        lock.withLock { willRead(.catalogue, soon.map { Int($0) }, later: later.map { Int($0) }) }
    }

    /// Begins to read pages, and the nodes that refer to these or to pages for later. Only advice. Under the lock.
    func willRead(_ object: MapObject, _ soon: [Int], later: [Int] = []) {
        guard readsTakeRoundTrips else { return }
        let stored = self.pageCount(of: object)
        let nodes = Set(
            (soon + later).filter { $0 < stored }.map { NodeKey(level: 0, index: $0 / MapLayout.fanout) })
        reader.willRead(
            nodes.compactMap { key in
                if maps[object.rawValue].hasLoaded(key) { return nil }
                return try? maps[object.rawValue].reference(ofNode: key, load: nodeLoader(object))
            }, pairs: segments.pairs)
        let isInMemory = { (page: Int) in
            object == .catalogue && (self.staged[UInt32(page)] ?? self.frozen[UInt32(page)]) != nil
        }
        reader.willRead(
            soon.compactMap { page in
                page >= stored || isInMemory(page) ? nil : try? reference(object, page)
            }, pairs: segments.pairs)
    }

    // MARK: The catalogue's pages

    var pageCount: UInt32 { lock.withLock { maps[MapObject.catalogue.rawValue].pageCount } }

    func readPage(_ index: UInt32, into bytes: UnsafeMutableRawBufferPointer) throws(StoreError) {
        precondition(bytes.count == Geometry.pageBytes)
        var last: Reference?
        while true {
            let place = try locatePage(index, into: bytes)
            guard let (reference, place) = place else { return }
            do throws(StoreError) {
                try reader.openPage(reference, at: place, as: .page(.catalogue, Int(index)), into: bytes)
                break
            } catch {
                // Concurrent commits may have moved the page and reused its slot. Retried unless the reference stayed
                // the same.
                if reference == last { throw error }
                last = reference
            }
        }
        bytes.slice(Geometry.pagePlainBytes, Geometry.pageBytes - Geometry.pagePlainBytes).zero()
    }

    /// Reference and place of a catalogue page; nil if the page is only in memory or was never written: then `bytes`
    /// has it.
    private func locatePage(
        _ index: UInt32, into bytes: UnsafeMutableRawBufferPointer
    ) throws(StoreError) -> (Reference, SlotPlace)? {
        try lock.withLock { () throws(StoreError) -> (Reference, SlotPlace)? in
            if let page = staged[index] ?? frozen[index] {
                bytes.copyMemory(from: UnsafeRawBufferPointer(page.bytes))
                return nil
            }
            let reference = try reference(.catalogue, Int(index))
            if reference.isAbsent {
                bytes.zero()
                return nil
            }
            return (reference, try place(reference.slot))
        }
    }

    func stagePage(_ index: UInt32, _ bytes: UnsafeRawBufferPointer) {
        let page = PageBuffer(bytes)
        lock.withLock {
            stage(index, page)
            let count = maps[MapObject.catalogue.rawValue].pageCount
            maps[MapObject.catalogue.rawValue].pageCount = max(count, index + 1)
            next.noteChange()
        }
    }

    /// Puts a page into the next commit. Under the lock.
    private func stage(_ index: UInt32, _ page: PageBuffer) {
        if staged.updateValue(page, forKey: index)?.isZero == true { stagedZeros -= 1 }
        if page.isZero { stagedZeros += 1 }
    }

    func truncatePages(to count: UInt32) {
        lock.withLock {
            staged = staged.filter { $0.key < count }
            stagedZeros = staged.values.count { $0.isZero }
            maps[MapObject.catalogue.rawValue].pageCount = count
            next.noteChange()
        }
    }

    /// Puts a page that is not changed into the next commit.
    func restage(_ page: UInt32) throws(StoreError) {
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: Geometry.pageBytes, alignment: 16)
        defer { bytes.deallocate() }
        try readPage(page, into: bytes)
        stagePage(page, UnsafeRawBufferPointer(bytes))
    }

    /// Pages that wait for the next commit. The catalogue's cache holds others.
    var stagedPages: Int { lock.withLock { staged.count } }

    /// As `stagedPages`, with those of a commit under way.
    var unwrittenPages: Int { lock.withLock { staged.count + frozen.count } }

    /// Pages of zeros of the next commit and of one under way: they take no slots. Under the lock.
    var changedZeros: Int { stagedZeros + frozenZeros }

    /// Pages of the next commit and of one under way that take a slot. Under the lock.
    var changedPages: Int { staged.count + frozen.count - changedZeros }

    // MARK: Commits

    /// Takes the staged pages for a commit, in their order. Under the lock.
    func freeze() -> [(index: UInt32, page: PageBuffer)] {
        (frozen, frozenZeros) = (staged, stagedZeros)
        (staged, stagedZeros) = ([:], 0)
        return frozen.map { (index: $0.key, page: $0.value) }.sorted { $0.index < $1.index }
    }

    /// Returns the pages of a commit that failed to the next one, and the maps to those of a published root. Under the
    /// lock.
    func takeBack(_ pages: [(index: UInt32, page: PageBuffer)], _ published: RootRecord) {
        for (index, page) in pages where staged[index] == nil { stage(index, page) }
        (frozen, frozenZeros) = ([:], 0)
        for (index, stored) in published.objects.enumerated() {
            maps[index].restore(levels: stored.levels, root: stored.reference)
        }
    }

    /// Notes that the maps' changes and the frozen pages were published. Under the lock.
    func didPublish() {
        for map in maps { for (_, node) in map.dirtyNodes { node.isDirty = false } }
        (frozen, frozenZeros) = ([:], 0)
    }

    /// The objects of a root, by the maps as they are now. Under the lock.
    var objects: [RootRecord.Object] {
        maps.map { .init(pageCount: $0.pageCount, levels: $0.levels, reference: $0.root) }
    }

    /// Marks the path to a page as changed, and returns the reference that its new one replaces. Under the lock.
    func replace(_ object: MapObject, _ page: Int) throws(StoreError) -> Reference {
        let old = try reference(object, page)
        try markChanged(object, page)
        return old
    }

    /// Marks the path to a page as changed, so that its nodes are written again. Under the lock.
    func markChanged(_ object: MapObject, _ page: Int) throws(StoreError) {
        try maps[object.rawValue].makeDirty(page: page, load: nodeLoader(object))
    }

    /// Sets a page's new reference. The path must be marked already. Under the lock.
    func set(_ object: MapObject, _ page: Int, _ reference: Reference) {
        maps[object.rawValue].set(page: page, reference)
    }

    /// Sets a node's new reference in its parent or as the root. Under the lock.
    func set(_ object: MapObject, node: NodeKey, _ reference: Reference) {
        maps[object.rawValue].set(node: node, reference)
    }

    /// Sets the number of pages of an object. Under the lock.
    func setPageCount(of object: MapObject, _ count: Int) { maps[object.rawValue].pageCount = UInt32(count) }

    /// The changed nodes of a map, children before parents. Under the lock.
    func changedNodes(_ object: MapObject) -> [(key: NodeKey, node: MapNode)] {
        maps[object.rawValue].dirtyNodes
    }

    /// Reference to a node that the published root has. Under the lock.
    func reference(_ object: MapObject, node: NodeKey) throws(StoreError) -> Reference {
        try maps[object.rawValue].reference(ofNode: node, load: nodeLoader(object))
    }

    /// Number of levels and root of a map. Under the lock, or while nothing is published.
    func root(of object: MapObject) -> (levels: Int, reference: Reference) {
        (maps[object.rawValue].levels, maps[object.rawValue].root)
    }
}
