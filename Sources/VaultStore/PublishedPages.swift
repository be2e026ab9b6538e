import LinuxIO
import VaultFormat

/// The catalogue pages of one root, read-only. A page that cannot be authenticated throws `damaged`.
///
/// Unchecked Sendable: the map is guarded by `lock`.
public final class PublishedPages: PageStorage, @unchecked Sendable {
    private let space: Space
    private let pairs: [SegmentPair]
    private let lock = Lock()
    private var map: PageMap
    public let pageCount: UInt32

    init(_ space: Space, _ root: RootRecord) {
        let stored = root.objects[MapObject.catalogue.rawValue]
        self.space = space
        pairs = root.pairs
        // Each page has a slot, so a larger count in the root is invalid.
        pageCount = UInt32(min(Int(stored.pageCount), root.pairs.count * space.slotsPerPair))
        map = PageMap(
            object: .catalogue, pageCount: pageCount, levels: stored.levels, root: stored.reference,
            nodesMax: space.limits.mapNodes)
    }

    public func readPage(_ index: UInt32, into bytes: UnsafeMutableRawBufferPointer) throws(StoreError) {
        precondition(bytes.count == Geometry.pageBytes)
        let reference = try lock.withLock { () throws(StoreError) in
            try map.reference(ofPage: Int(index)) { [space, pairs] (key, reference) throws(StoreError) in
                try space.openNode(.catalogue, key, reference, pairs: pairs)
            }
        }
        guard !reference.isAbsent else { return bytes.zero() }
        let place = try space.place(reference.slot, pairs: pairs)
        try space.openPage(reference, at: place, as: .page(.catalogue, Int(index)), into: bytes)
        bytes.slice(Geometry.pagePlainBytes, Geometry.pageBytes - Geometry.pagePlainBytes).zero()
    }

    public func stagePage(_ index: UInt32, _ bytes: UnsafeRawBufferPointer) {
        preconditionFailure("what was published stays as it is")
    }

    public func truncatePages(to count: UInt32) {
        preconditionFailure("what was published stays as it is")
    }
}

extension Space {
    /// The catalogue of the state before the one being built, as far as it is readable; nil if no root is left. Must be
    /// read before anything is written.
    public var formerPages: PublishedPages? {
        lock.withLock { formerRoot }.map { PublishedPages(self, $0) }
    }

    /// The newest root: a soft one only if it was written in this boot, since when nothing can have been lost.
    static func newestRoot(_ found: [FoundRoot], bootHash: [UInt8]) -> RootRecord? {
        found.map(\.root).filter { $0.isDurable || $0.bootHash == bootHash }
            .max { $0.generation < $1.generation }
    }
}
