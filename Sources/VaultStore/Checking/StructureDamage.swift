public import VaultFormat

/// A root, page, map node or delta of a space.
public enum StructurePart: Sendable, Hashable {
    /// A slot of the ring of durable roots.
    case root(slot: Int)
    case page(MapObject, Int)
    case node(MapObject, level: Int, index: Int)
    case delta(slot: UInt32)

    /// The part that a sealed page is of; nil for a root or a claim.
    init?(_ identity: PageIdentity) {
        let object = MapObject(rawValue: Int(identity.object))
        switch identity.role {
        case .mapNode:
            guard let object else { return nil }
            self = .node(object, level: Int(identity.level), index: Int(identity.index))
        case .delta: self = .delta(slot: identity.index)
        default:
            guard let object, object.role == identity.role else { return nil }
            self = .page(object, Int(identity.index))
        }
    }

    /// The kind, without the number: `page of the catalogue`.
    public var kind: String {
        switch self {
        case .root: "root"
        case .page(let object, _): "page of \(object.words)"
        case .node(let object, _, _): "map node of \(object.words)"
        case .delta: "delta"
        }
    }

    /// The text for users: `page 17 of the catalogue`.
    public var text: String {
        switch self {
        case .root(let slot): "root \(slot)"
        case .page(let object, let page): "page \(page) of \(object.words)"
        case .node(let object, let level, let index):
            "map node \(level).\(index) of \(object.words)"
        case .delta(let slot): "delta \(slot)"
        }
    }
}

extension MapObject {
    fileprivate var words: String {
        switch self {
        case .catalogue: "the catalogue"
        case .sectorBitmap: "the sector bitmap"
        case .slotBitmap: "the slot bitmap"
        case .usage: "the sector counts"
        }
    }
}

/// A part with one or both copies unauthentic.
public struct StructureDamage: Sendable, Hashable {
    public var part: StructurePart
    /// Copy A is bad.
    public var isADamaged: Bool
    /// Copy B is bad.
    public var isBDamaged: Bool

    /// Whether both copies are lost.
    public var isLost: Bool { isADamaged && isBDamaged }
}

/// The result of a check of a space's pages.
public struct StructureReport: Sendable {
    public var damage: [StructureDamage] = []
    /// Unavailable segments. Pages with one copy there are in `halved`, not in `damage`.
    public var segments: Set<SegmentFault> = []
    /// Pages with one copy in such a segment, to be rewritten.
    public var halved: [StructurePart] = []
    /// Bytes read.
    public var bytes: UInt64 = 0
    /// Sectors of copies of pages that do not open.
    public var damagedSectors: [Range<UInt64>] = []
    /// Slots with references, once for each reference; only after a check of the whole structure.
    var slots: [UInt32] = []
}
