import Glibc
import LinuxIO
import Testing

@testable import ClusterIO

/// Small writes to a cluster that go there together.
@Suite("Space: small writes to a cluster") struct GatheredWritesTests {
    private let writes = GatheredWrites()

    private final class Started {
        var batches: [(object: String, offsets: [UInt64], bytes: [[UInt8]], isLocked: Bool)] = []
        var error: Errno?

        func start(_ object: String, _ batch: GatheredWrites.Batch) throws(Errno) {
            if let error { throw error }
            batches.append(
                (object, batch.pieces.map(\.offset), batch.pieces.map(\.bytes), batch.lock != nil))
        }
    }

    private let started = Started()

    private func add(_ bytes: [UInt8], at offset: UInt64, _ object: String, _ lock: ClusterLock? = nil) throws
    {
        try writes.add(bytes, at: offset, of: object, lock, start: started.start)
    }

    @Test func `they wait until their object is asked for, and go in order`() throws {
        try add([1], at: 8, "a")
        try add([2], at: 0, "a")
        try add([3], at: 0, "b", ClusterLock(cookie: "c", seconds: 20))
        #expect(started.batches.isEmpty)
        try writes.flush(["none"], start: started.start)
        #expect(started.batches.isEmpty)
        try writes.flush(["a"], start: started.start)
        #expect(started.batches.count == 1 && started.batches[0].object == "a")
        #expect(started.batches[0].offsets == [8, 0] && !started.batches[0].isLocked)
        try writes.flush(nil, start: started.start)
        #expect(started.batches.count == 2 && started.batches[1].object == "b" && started.batches[1].isLocked)
        try writes.flush(nil, start: started.start)
        #expect(started.batches.count == 2)
    }

    /// The steps of one request are done in order, so the last bytes win.
    @Test func `the newest bytes are the last`() throws {
        var random = SystemRandomNumberGenerator()
        var wanted = [UInt8](repeating: 0, count: 64)
        for value in UInt8(1)...200 {
            let count = [4, 4, 4, 8].randomElement(using: &random) ?? 4
            let offset = Int.random(in: 0...7, using: &random) * 8 + (count == 8 ? 0 : 4 * Int(value & 1))
            let bytes = [UInt8](repeating: value, count: count)
            wanted.replaceSubrange(offset..<offset + count, with: bytes)
            try add(bytes, at: UInt64(offset), "a")
        }
        try writes.flush(nil, start: started.start)
        var found = [UInt8](repeating: 0, count: 64)
        for (offset, bytes) in zip(started.batches[0].offsets, started.batches[0].bytes) {
            found.replaceSubrange(Int(offset)..<Int(offset) + bytes.count, with: bytes)
        }
        #expect(found == wanted)
    }

    @Test func `a page that is written again costs nothing more`() throws {
        for value in UInt8(0)..<100 { try add([value], at: 4096, "a") }
        try writes.flush(nil, start: started.start)
        #expect(started.batches[0].bytes == [[99]])
    }

    @Test func `many bytes go at once`() throws {
        let piece = [UInt8](repeating: 7, count: GatheredWrites.pieceBytesMax)
        let count = GatheredWrites.bytesMax / piece.count
        for index in 0..<count { try add(piece, at: UInt64(index * piece.count), "a\(index % 3)") }
        #expect(started.batches.isEmpty)
        try add([1], at: 0, "b")
        #expect(Set(started.batches.map(\.object)) == ["a0", "a1", "a2", "b"])
        #expect(started.batches.reduce(0) { $0 + $1.offsets.count } == count + 1)
    }

    @Test func `those that cannot be begun stay`() throws {
        try add([1], at: 0, "a")
        started.error = Errno(ENOMEM)
        #expect(throws: Errno(ENOMEM)) { try writes.flush(nil, start: started.start) }
        started.error = nil
        try writes.flush(nil, start: started.start)
        #expect(started.batches.count == 1)
    }
}
