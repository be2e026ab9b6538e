import Testing
import VaultFormat

/// The worked sizes and offsets of the specification.
@Suite("Format: places of bytes") struct LayoutTests {
    @Test(arguments: [(0, 1), (1, 1), (4096, 9), (131_072, 257), (416, 1), (417, 2)])
    func `sectors of an extent`(plain: Int, sectors: Int) {
        #expect(Geometry.sectors(forPlaintext: plain) == sectors)
    }

    @Test func `offsets are those of the specification`() {
        #expect(Geometry.pagePlainBytes == 4056)
        #expect(Geometry.extentHeaderBytes == 80 && Geometry.extentOverheadBytes == 96)
        #expect(HeaderLayout.keySlotOffset(1) == 192 && HeaderLayout.checksumOffset == 4064)
        #expect(HeaderLayout.keySlotTagOffset + Geometry.tagBytes == HeaderLayout.keySlotBytes)
        #expect(HeaderLayout.keySlotOffset(Geometry.spacesMax) <= HeaderLayout.checksumOffset)
        #expect(RootLayout.deltaOffset == 272 && RootLayout.peakSectorsOffset == 312)
        #expect(RootLayout.pairsOffset == 320)
        #expect(MapLayout.fanout * MapLayout.referenceBytes <= Geometry.pagePlainBytes)
        #expect(DeltaLayout.previousOffset + MapLayout.referenceBytes <= DeltaLayout.entriesOffset)
    }

    @Test func `runs count their sectors`() {
        let run = ExtentRun(offset: 0, length: 3_000_000, sector: 10, generation: 1, epoch: 2)
        #expect(run.chunkCount == 23 && run.sectorCount == 22 * 257 + 228)
        #expect(run.plainBytes(ofChunk: 22) == 3_000_000 - 22 * 131_072)
        let whole = ExtentRun(offset: 0, length: 262_144, sector: 10, generation: 1, epoch: 2)
        let next = ExtentRun(offset: 262_144, length: 5, sector: 10 + 514, generation: 1, epoch: 2)
        #expect(whole.isContinued(by: next) && !next.isContinued(by: whole))
        #expect(!run.isContinued(by: next))
    }

    @Test(arguments: [(16, 4), (255, 4), (256, 16), (262_144, 16), (262_145, 32), (1 << 20, 64)])
    func `segments serve their space`(spaceMiB: UInt64, segmentMiB: UInt64) {
        #expect(Geometry.segmentBytes(forSpace: spaceMiB << 20) == segmentMiB << 20)
    }

    @Test func `descriptors come back, and invalid ones are refused`() {
        let descriptor = Descriptor(
            role: .thumbnail, content: 7, offset: 1 << 40, length: 131_072, generation: 9, epoch: .max)
        var bytes = [UInt8](repeating: 0, count: 40)
        bytes.withUnsafeMutableBytes { descriptor.encode(into: $0) }
        #expect(bytes.withUnsafeBytes { Descriptor(decoding: $0) } == descriptor)
        bytes[0] = 99
        #expect(bytes.withUnsafeBytes { Descriptor(decoding: $0) } == nil)
        bytes[0] = 1
        bytes[7] = 1
        #expect(bytes.withUnsafeBytes { Descriptor(decoding: $0) } == nil)
    }
}
