public import VaultFormat

/// A page of the catalogue's side of a space, by what it is.
public enum StructurePart: Sendable, Hashable {
    /// A slot of the ring of durable roots.
    case root(slot: Int)
    case page(MapObject, Int)
    case node(MapObject, level: Int, index: Int)
    case delta(slot: UInt32)

    /// Without its number: `page of the catalogue`.
    public var kind: String {
        switch self {
        case .root: "root"
        case .page(let object, _): "page of \(object.words)"
        case .node(let object, _, _): "map node of \(object.words)"
        case .delta: "delta"
        }
    }

    /// As a user is told: `page 17 of the catalogue`.
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

/// A part of which one copy, or both, cannot be authenticated.
public struct StructureDamage: Sendable, Hashable {
    public var part: StructurePart
    /// Copy A is bad.
    public var isADamaged: Bool
    /// Copy B is bad.
    public var isBDamaged: Bool

    /// Whether nothing is left of it.
    public var isLost: Bool { isADamaged && isBDamaged }
}

/// Why the bytes of a segment cannot be had.
public enum SegmentFault: Sendable, Hashable {
    case missing(Int)
    /// The file ends before its use does.
    case short(Int)

    public var segment: Int {
        switch self {
        case .missing(let number), .short(let number): number
        }
    }

    /// `segment 000012 is missing`.
    public var text: String {
        let number = SegmentLayout.name(segment).dropLast(4)
        return switch self {
        case .missing: "segment \(number) is missing"
        case .short: "segment \(number) is truncated"
        }
    }
}

/// What a check of a space's pages found.
public struct StructureReport: Sendable {
    public var damage: [StructureDamage] = []
    /// Segments that cannot be had; pages with one copy there are not in `damage`.
    public var segments: Set<SegmentFault> = []
    /// Pages with one copy in such a segment, to be written again.
    public var halved: [StructurePart] = []
    /// Bytes read.
    public var bytes: UInt64 = 0
    /// Slots that something refers to, each as often as something does; only after a check of everything.
    var slots: [UInt32] = []
}
