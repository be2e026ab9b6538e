import Glibc
import PhotoImaging
import Testing

/// Bytes of which some ranges are stored; others read as zeros.
private final class HoledSource: ByteSource {
    let byteCount: UInt64
    private let stored: [(range: Range<UInt64>, byte: UInt8)]
    private let failsFrom: UInt64
    private(set) var bytesRead: UInt64 = 0

    init(_ byteCount: UInt64, _ stored: [(range: Range<UInt64>, byte: UInt8)] = [], failsFrom: UInt64 = .max)
    {
        self.byteCount = byteCount
        self.stored = stored.sorted { $0.range.lowerBound < $1.range.lowerBound }
        self.failsFrom = failsFrom
    }

    func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard offset < byteCount else { return 0 }
        let count = Int(min(UInt64(buffer.count), byteCount - offset))
        if offset + UInt64(count) > failsFrom { return -1 }
        bytesRead += UInt64(count)
        memset(buffer.baseAddress!, 0, buffer.count)
        for (range, byte) in stored {
            let part = range.clamped(to: offset..<offset + UInt64(count))
            guard !part.isEmpty else { continue }
            memset(buffer.baseAddress! + Int(part.lowerBound - offset), Int32(byte), part.count)
        }
        return count
    }

    func storedRange(from offset: UInt64) -> Range<UInt64>? {
        stored.first { $0.range.upperBound > offset }
            .map { max(offset, $0.range.lowerBound)..<$0.range.upperBound }
    }
}

/// Which bytes of two files are compared.
@Suite("Albums: equal bytes") struct ComparisonTests {
    private func compared(_ one: some ByteSource, _ other: some ByteSource) -> Comparison {
        compare(one, other) { _ in false }
    }

    @Test func `equal holes cost nothing, however large`() {
        let size: UInt64 = 1 << 62
        let stored = [(range: UInt64(0)..<5000, byte: UInt8(1)), (size / 2..<size / 2 + 70_000, 2)]
        let (one, other) = (HoledSource(size, stored), HoledSource(size, stored))
        #expect(compared(one, other) == .equal)
        #expect(one.bytesRead == 75_000 && other.bytesRead == 75_000)
        #expect(compared(HoledSource(size), HoledSource(size)) == .equal)
        #expect(compared(HoledSource(size), HoledSource(size - 1)) == .different)
        #expect(compared(HoledSource(0), HoledSource(0)) == .equal)
    }

    @Test func `a hole equals stored zeros and nothing else`() {
        let size: UInt64 = 8 << 20
        let holed = HoledSource(size, [(0..<100, 7)])
        for place: UInt64 in [100, 131_071, 131_072, 1 << 20, size - 1] {
            let zeros = HoledSource(size, [(0..<100, 7), (100..<size, 0)])
            #expect(compared(holed, zeros) == .equal)
            #expect(compared(zeros, holed) == .equal)
            let other = HoledSource(size, [(0..<100, 7), (place..<place + 1, 1)])
            #expect(compared(holed, other) == .different)
            #expect(compared(other, holed) == .different)
        }
    }

    @Test(arguments: 0..<300) func `random layouts are compared like their bytes`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        func layout(_ size: UInt64) -> [(range: Range<UInt64>, byte: UInt8)] {
            var (found, position) = ([(range: Range<UInt64>, byte: UInt8)](), UInt64(0))
            while position < size {
                let lower = position + UInt64.random(in: 0...size / 3, using: &random)
                let upper = lower + UInt64.random(in: 1...size / 3 + 1, using: &random)
                guard upper <= size else { break }
                found.append((lower..<upper, UInt8.random(in: 0...1, using: &random)))
                position = upper
            }
            return found
        }
        let size = UInt64.random(in: 1...(seed % 10 == 0 ? 3 << 20 : 2000), using: &random)
        let (one, other) = (HoledSource(size, layout(size)), HoledSource(size, layout(size)))
        func bytes(_ source: HoledSource) -> [UInt8] {
            var bytes = [UInt8](repeating: 9, count: Int(size))
            _ = bytes.withUnsafeMutableBytes { source.read(at: 0, into: $0) }
            return bytes
        }
        let isEqual = bytes(one) == bytes(other)
        #expect(compared(one, other) == (isEqual ? .equal : .different), "seed \(seed)")
        #expect(compared(one, one) == .equal, "seed \(seed)")
    }

    @Test func `it ends when it is called off, and tells what cannot be read`() {
        let size: UInt64 = 64 << 20
        let one = HoledSource(size, [(0..<size, 1)])
        var asked = 0
        let called = compare(one, one) { work in
            asked += 1
            return work >= 5 << 20
        }
        #expect(called == .cancelled && asked == 6)
        #expect(compare(one, one) { _ in true } == .cancelled)
        #expect(compared(one, HoledSource(size, [(0..<size, 1)], failsFrom: size - 1)) == .unreadable)
        // The least piece counts as work.
        let starts: [UInt64] = (0..<60).map { $0 << 20 }
        let scattered = HoledSource(size, starts.map { ($0..<$0 + 1, 1) })
        var last: UInt64 = 0
        #expect(
            compare(scattered, scattered) { work in
                last = work
                return false
            } == .equal)
        #expect(last == 59 << 14)
    }
}
