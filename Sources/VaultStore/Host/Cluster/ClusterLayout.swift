import ClusterIO
import VaultFormat

/// Maps the bytes of segments to objects.
///
/// In a vault of one space each segment has a stripe of objects of its own. With several spaces an object has the same
/// part of the segments of one number in all spaces, one after another: so the name of an object that changed tells of
/// no space, all roots are in the same two objects, and the names, number and sizes of objects depend on the vault's
/// size alone.
struct ClusterLayout: Sendable, Equatable {
    let address: ClusterAddress
    let layout: SegmentLayout
    /// Bytes of one segment in an object: a power of two.
    let partBytes: UInt64

    init(_ address: ClusterAddress, _ layout: SegmentLayout) {
        (self.address, self.layout) = (address, layout)
        var bytes = ClusterAddress.objectBytes
        while bytes * UInt64(layout.spaceCount) > ClusterAddress.objectBytes { bytes /= 2 }
        partBytes = min(bytes, layout.segmentBytes)
    }

    /// Objects of a segment, or of a row of segments.
    var objectsPerSegment: Int { Int(layout.segmentBytes / partBytes) }

    /// Bytes of a whole object.
    var objectBytes: UInt64 { partBytes * UInt64(layout.spaceCount) }

    /// The name of an object by the number of its segments and its index among their objects.
    func object(_ number: Int, _ index: Int = 0) -> String {
        layout.isShared ? address.object(ofRow: number, index) : address.object(number, index)
    }

    /// The last object of a row of segments. It is made last.
    func lastObject(_ number: Int) -> String { object(number, objectsPerSegment - 1) }

    /// The offset of a space's part in an object.
    func start(_ space: Int) -> UInt64 { UInt64(space) * partBytes }

    /// The parts of a range of a segment: the index of each one's object, and its range there.
    func parts(_ range: Range<UInt64>, ofSpace space: Int) -> [(index: Int, range: Range<UInt64>)] {
        let start = start(space)
        return ClusterAddress.parts(range, each: partBytes).map { index, range in
            (index, range.lowerBound + start..<range.upperBound + start)
        }
    }

    /// The reads of objects that fill `bytes` with a segment from an offset on.
    func reads(
        _ bytes: UnsafeMutableRawBufferPointer, _ place: SegmentPlace, at offset: UInt64
    ) -> [ClusterPool.Read] {
        ClusterAddress.reads(bytes, parts(offset..<offset + UInt64(bytes.count), ofSpace: place.space)) {
            object(place.number, $0)
        }
    }

    /// Where a segment ends whose last object has an index and a size; nil if the object has none of its bytes.
    func end(_ space: Int, index: Int, size: UInt64) -> UInt64? {
        let start = start(space)
        guard size > start || !layout.isShared else { return nil }
        return min(layout.segmentBytes, UInt64(index) * partBytes + min(partBytes, size - start))
    }
}
