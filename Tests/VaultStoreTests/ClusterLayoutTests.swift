import TestSupport
import Testing
import VaultFormat

@testable import VaultStore

/// Where the bytes of segments are on a cluster.
@Suite("Space: objects of a cluster") struct ClusterLayoutTests {
    private static let segmentSizes = [Geometry.segmentBytesLeast, 4 << 20, 16 << 20, 64 << 20]

    private func layout(_ spaces: Int, _ segmentBytes: UInt64) throws -> ClusterLayout {
        let address = try #require(try ClusterAddress("ceph:photos/family"))
        return ClusterLayout(address, SegmentLayout(spaceCount: spaces, segmentBytes: segmentBytes))
    }

    @Test func `the objects of one space are stripes of 4 MiB`() throws {
        let layout = try layout(1, 16 << 20)
        #expect(layout.objectsPerSegment == 4)
        #expect(layout.object(3, 2) == "family/000003.2")
        let parts = layout.parts((4 << 20) - 10..<(8 << 20) + 5, ofSpace: 0)
        #expect(parts.map(\.index) == [0, 1, 2])
        let whole: UInt64 = 4 << 20
        let expected: [Range<UInt64>] = [whole - 10..<whole, 0..<whole, 0..<5]
        #expect(parts.map(\.range) == expected)
    }

    @Test(arguments: 1...Geometry.spacesMax)
    func `each byte of an object belongs to one space`(spaces: Int) throws {
        for segmentBytes in Self.segmentSizes {
            let layout = try layout(spaces, segmentBytes)
            #expect(layout.objectBytes <= 4 << 20)
            var found: [Int: [Range<UInt64>]] = [:]
            for space in 0..<spaces {
                for part in layout.parts(0..<segmentBytes, ofSpace: space) {
                    found[part.index, default: []].append(part.range)
                }
            }
            #expect(found.count == layout.objectsPerSegment)
            for ranges in found.values {
                // Without gaps and overlaps, and all objects alike.
                #expect(ranges.map(\.lowerBound) == [0] + ranges.map(\.upperBound).dropLast())
                #expect(ranges.last?.upperBound == layout.objectBytes)
            }
        }
    }

    @Test(arguments: 1...Geometry.spacesMax)
    func `any range of a segment is that many bytes, each where the whole segment has it`(spaces: Int) throws
    {
        var random = RandomSource(UInt64(spaces))
        for segmentBytes in Self.segmentSizes {
            let layout = try layout(spaces, segmentBytes)
            for _ in 0..<100 {
                let space = Int.random(in: 0..<spaces, using: &random)
                let start = UInt64.random(in: 0..<segmentBytes, using: &random)
                let range = start..<UInt64.random(in: start...segmentBytes, using: &random)
                var position = range.lowerBound
                for part in layout.parts(range, ofSpace: space) {
                    #expect(UInt64(part.index) == position / layout.partBytes)
                    #expect(
                        part.range.lowerBound == UInt64(space) * layout.partBytes + position
                            % layout.partBytes)
                    position += UInt64(part.range.count)
                }
                #expect(position == range.upperBound)
            }
        }
    }

    @Test(arguments: 2...Geometry.spacesMax)
    func `the roots of all spaces are in the same two objects`(spaces: Int) throws {
        for segmentBytes in Self.segmentSizes {
            let layout = try layout(spaces, segmentBytes)
            for space in 0..<spaces {
                let roots = layout.parts(0..<UInt64(RootSnapshot.rootBytes), ofSpace: space)
                #expect(roots.map(\.index) == [0])
            }
        }
    }

    @Test func `where a segment ends is told by its last object`() throws {
        let layout = try layout(2, 16 << 20)
        #expect(layout.partBytes == 2 << 20)
        // A copy that has the first space's segment, and a part of the second's.
        #expect(layout.end(0, index: 7, size: 2 << 20) == 16 << 20)
        #expect(layout.end(1, index: 7, size: 2 << 20) == nil)
        #expect(layout.end(1, index: 3, size: 3 << 20) == 7 << 20)
        #expect(layout.end(1, index: 7, size: 4 << 20) == 16 << 20)
    }
}
