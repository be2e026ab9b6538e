import VaultFormat

/// Slot of a page or map node, and the tags of its two copies.
struct Reference: Sendable, Equatable {
    var slot: UInt32
    var tagA: Tag
    var tagB: Tag

    static let absent = Reference(slot: MapLayout.absentSlot, tagA: Tag(), tagB: Tag())
    var isAbsent: Bool { slot == MapLayout.absentSlot }

    init(slot: UInt32, tagA: Tag, tagB: Tag) {
        self.slot = slot
        self.tagA = tagA
        self.tagB = tagB
    }

    init(decoding bytes: UnsafeRawBufferPointer) {
        slot = bytes.number(0)
        tagA = Tag(bytes.slice(4, Geometry.tagBytes))
        tagB = Tag(bytes.slice(20, Geometry.tagBytes))
    }

    func encode(into bytes: UnsafeMutableRawBufferPointer) {
        bytes.setNumber(slot, 0)
        tagA.copy(to: bytes.slice(4, Geometry.tagBytes))
        tagB.copy(to: bytes.slice(20, Geometry.tagBytes))
    }
}

/// A Poly1305 tag.
struct Tag: Sendable, Equatable {
    private var low: UInt64 = 0
    private var high: UInt64 = 0

    init() {}

    init(_ bytes: UnsafeRawBufferPointer) {
        low = bytes.number(0)
        high = bytes.number(8)
    }

    func copy(to bytes: UnsafeMutableRawBufferPointer) {
        bytes.setNumber(low, 0)
        bytes.setNumber(high, 8)
    }
}

/// A decoded node of a page map.
final class MapNode {
    var references = [Reference](repeating: .absent, count: MapLayout.fanout)
    var isDirty = false
}

/// Position of a node: level 0 refers to pages, level n to nodes of level n - 1.
struct NodeKey: Hashable, Sendable {
    var level: Int
    var index: Int

    var parent: NodeKey { NodeKey(level: level + 1, index: index / MapLayout.fanout) }
    var place: Int { index % MapLayout.fanout }
}

/// The copy-on-write tree from the pages of one object to their slots. Under the space's lock.
struct PageMap {
    let object: MapObject
    var pageCount: UInt32
    private(set) var levels: Int
    private(set) var root: Reference
    private var nodes: [NodeKey: MapNode] = [:]

    private let nodesMax: Int

    init(
        object: MapObject, pageCount: UInt32 = 0, levels: Int = 0, root: Reference = .absent,
        nodesMax: Int = Limits.production.mapNodes
    ) {
        self.nodesMax = nodesMax
        self.object = object
        self.pageCount = pageCount
        self.levels = levels
        self.root = root
    }

    private func capacity(_ levels: Int) -> Int {
        var pages = 1
        for _ in 0..<levels { pages *= MapLayout.fanout }
        return levels == 0 ? 0 : pages
    }

    /// Opens a node by its parent's reference.
    typealias NodeLoader = (_ key: NodeKey, _ reference: Reference) throws(StoreError) -> MapNode

    mutating func node(_ key: NodeKey, load: NodeLoader) throws(StoreError) -> MapNode? {
        if let found = nodes[key] { return found }
        let reference = try reference(ofNode: key, load: load)
        if reference.isAbsent { return nil }
        if nodes.count >= nodesMax { nodes = nodes.filter { $0.value.isDirty } }
        let loaded = try load(key, reference)
        nodes[key] = loaded
        return loaded
    }

    /// Whether a node is in memory.
    func hasLoaded(_ key: NodeKey) -> Bool { nodes[key] != nil }

    /// Reference to a node, from its parent or the root record.
    mutating func reference(ofNode key: NodeKey, load: NodeLoader) throws(StoreError) -> Reference {
        if key.level == levels - 1 { return key.index == 0 ? root : .absent }
        guard key.level < levels else { return .absent }
        return try node(key.parent, load: load)?.references[key.place] ?? .absent
    }

    /// Reference to a page; absent if it was never written.
    mutating func reference(ofPage page: Int, load: NodeLoader) throws(StoreError) -> Reference {
        guard page < capacity(levels) else { return .absent }
        let leaf = NodeKey(level: 0, index: page / MapLayout.fanout)
        return try node(leaf, load: load)?.references[page % MapLayout.fanout] ?? .absent
    }

    /// Returns a node for changing; creates it if it is missing. Marks it and its ancestors dirty.
    private mutating func dirtyNode(_ key: NodeKey, load: NodeLoader) throws(StoreError) -> MapNode {
        let found: MapNode
        if let loaded = try node(key, load: load) {
            found = loaded
        } else {
            found = MapNode()
            nodes[key] = found
        }
        found.isDirty = true
        if key.level + 1 < levels { _ = try dirtyNode(key.parent, load: load) }
        return found
    }

    /// Marks the path to a page dirty, so that a new reference can be set; adds levels if needed.
    mutating func makeDirty(page: Int, load: NodeLoader) throws(StoreError) {
        while page >= capacity(levels) {
            levels += 1
            precondition(levels <= MapLayout.levelsMax)
            guard levels > 1 else { continue }
            let top = MapNode()
            top.references[0] = root
            top.isDirty = true
            nodes[NodeKey(level: levels - 1, index: 0)] = top
            root = .absent
        }
        _ = try dirtyNode(NodeKey(level: 0, index: page / MapLayout.fanout), load: load)
    }

    /// Sets a page's new reference. The path must be dirty already.
    mutating func set(page: Int, _ reference: Reference) {
        guard let leaf = nodes[NodeKey(level: 0, index: page / MapLayout.fanout)], leaf.isDirty else {
            preconditionFailure("the path of a changed page is dirty")
        }
        leaf.references[page % MapLayout.fanout] = reference
    }

    /// Sets a node's new reference in its parent or as the root.
    mutating func set(node key: NodeKey, _ reference: Reference) {
        if key.level == levels - 1 {
            root = reference
        } else {
            guard let parent = nodes[key.parent] else {
                preconditionFailure("a dirty node's parent is dirty")
            }
            parent.references[key.place] = reference
        }
    }

    /// The dirty nodes, children before parents.
    var dirtyNodes: [(key: NodeKey, node: MapNode)] {
        nodes.filter { $0.value.isDirty }.map { (key: $0.key, node: $0.value) }
            .sorted { ($0.key.level, $0.key.index) < ($1.key.level, $1.key.index) }
    }

    /// Reverts to the tree of a published root after a failed commit.
    mutating func restore(levels: Int, root: Reference) {
        self.levels = levels
        self.root = root
        nodes = [:]
    }
}
