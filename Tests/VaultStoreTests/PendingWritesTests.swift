import Dispatch
import Glibc
import LinuxIO
import TestSupport
import TestThreads
import Testing

@testable import ClusterIO

/// Writes to a cluster that fail after they were accepted.
@Suite("Space: writes to a cluster", .waiting) struct PendingWritesTests {
    private let writes = PendingWrites()

    private func ended(_ step: ClusterPool.Step, _ result: Int32) -> PendingWrites.Write {
        let write = PendingWrites.Write("object", [step])
        writes.begin(write)
        writes.end(write, result)
        return write
    }

    @Test(arguments: [ENOSPC, EDQUOT, EIO, ETIMEDOUT])
    func `accepted bytes are kept until they are repeated, in order`(error: Int32) throws {
        let first = ended(.writeArray([1], at: 0), -error)
        _ = ended(.writeArray([2], at: 0), 0)
        let third = ended(.writeArray([3], at: 0), -error)
        for write in [first, third] {
            #expect(writes.beginRepeating() === write)
            #expect(throws: Errno(error)) { try writes.endRepeating(write, -error) }
            #expect(writes.beginRepeating() === write)
            try writes.endRepeating(write, 0)
        }
        #expect(writes.beginRepeating() == nil && writes.lossOfLock == nil)
        #expect(writes.isFull == Errno(error).meansNoRoom)
    }

    @Test(arguments: [EBUSY, ESHUTDOWN]) func `nothing is repeated without the lock`(error: Int32) {
        _ = ended(.writeArray([1], at: 0), -error)
        #expect(writes.beginRepeating() == nil)
        #expect(writes.lossOfLock == Errno(error) && writes.lossOfLock == Errno(error))
    }

    @Test(arguments: [EBUSY, ESHUTDOWN]) func `what waits to be repeated is given up with the lock`(
        error: Int32
    ) throws {
        let write = ended(.writeArray([1], at: 0), -EIO)
        _ = ended(.writeArray([2], at: 0), -EIO)
        #expect(writes.beginRepeating() === write)
        try writes.endRepeating(write, -error)
        #expect(writes.beginRepeating() == nil && writes.lossOfLock == Errno(error))
    }

    /// A write that has failed is repeated by the next call, which may be a read, when another client has the lock.
    @Test func `without the lock reads go on, and no sync succeeds`() throws {
        let disk = MemoryDisk(DiskState(DiskImage()))
        let calls = FaultyCalls(disk)
        let pool = ClusterPool(try calls.connect(pool: "pool", namespace: ""))
        let another = ClusterPool(try disk.connect(pool: "pool", namespace: ""))
        let (own, others) = (ClusterLock(cookie: "1", seconds: 20), ClusterLock(cookie: "2", seconds: 20))
        try another.apply([.writeArray([1], at: 0)], on: "a")
        calls.inject(.error(.inputOutput), after: 0)
        try pool.start([.lock(own), .writeArray([2], at: 0)], on: "a")
        try another.apply([.lock(others)], on: "a")
        for _ in 0..<2 {
            var bytes: [UInt8] = [0]
            #expect(try pool.read("a", at: 0, into: &bytes) == 1 && bytes == [1])
            #expect(throws: Errno(EBUSY)) { try pool.settle() }
        }
    }

    @Test func `room that is not given back holds up nothing`() {
        _ = ended(.zeros(0..<4096), -EIO)
        #expect(writes.beginRepeating() == nil && writes.lossOfLock == nil)
    }

    @Test func `a write is repeated by one thread alone`() throws {
        let write = ended(.writeArray([1], at: 0), -EIO)
        #expect(writes.beginRepeating() === write)
        let (hasBegun, found) = (DispatchSemaphore(value: 0), Found())
        DispatchQueue.global().async { [writes] in
            found.write = writes.beginRepeating()
            hasBegun.signal()
        }
        // Without waiting it would have it by then.
        #expect(hasBegun.wait(timeout: .now() + 0.05) == .timedOut)
        try writes.endRepeating(write, 0)
        #expect(hasBegun.wait(timeout: .now() + 300) == .success)
        #expect(found.write == nil)
    }

    private final class Found: @unchecked Sendable { var write: PendingWrites.Write? }

    @Test func `newer bytes wait for those on their way`() {
        func write(_ range: Range<UInt64>, on object: String = "object") -> PendingWrites.Write {
            PendingWrites.Write(
                object, [.writeArray([UInt8](repeating: 1, count: range.count), at: range.lowerBound)])
        }
        let first = write(10..<20)
        #expect(!writes.mustFollow(write(10..<20)))
        writes.begin(first)
        #expect(writes.mustFollow(write(19..<30)) && writes.mustFollow(write(0..<11)))
        #expect(!writes.mustFollow(write(20..<30)) && !writes.mustFollow(write(0..<10)))
        #expect(!writes.mustFollow(write(10..<20, on: "another")))
        writes.end(first, 0)
        #expect(!writes.mustFollow(write(10..<20)))
    }

    /// The answer may come right after the failed ones were repeated.
    @Test func `newer bytes wait for those that have just failed`() throws {
        let first = ended(.writeArray([1, 1], at: 0), -EIO)
        let (second, other) = (
            PendingWrites.Write("object", [.writeArray([2], at: 1)]),
            PendingWrites.Write("object", [.writeArray([2], at: 2)])
        )
        #expect(writes.mustFollow(second) && !writes.mustFollow(other))
        #expect(writes.beginRepeating() === first)
        #expect(writes.mustFollow(second))
        try writes.endRepeating(first, 0)
        #expect(!writes.mustFollow(second))
    }

    /// A write that fails once a newer one to the same place has begun.
    @Test(arguments: 1...20) func `an older write is not repeated over a newer one`(seed: UInt64) throws {
        let disk = MemoryDisk(DiskState(DiskImage()))
        let calls = FaultyCalls(disk)
        disk.pool.order(by: seed)
        let pool = ClusterPool(try calls.connect(pool: "pool", namespace: ""))
        calls.inject(.error(.inputOutput), after: 0)
        try pool.start([.writeArray([1, 1], at: 0)], on: "a")
        try pool.start([.writeArray([2], at: 1)], on: "a")
        #expect(!calls.isFaultDue)
        var bytes: [UInt8] = [0, 0]
        #expect(try pool.read("a", at: 0, into: &bytes) == 2)
        #expect(bytes == [1, 2])
    }

    /// A program that copies without a pause must not hold up another one's sync.
    @Test(arguments: [nil, ["object"]] as [Set<String>?])
    func `writes that begin later are not waited for`(objects: Set<String>?) {
        func begun() -> PendingWrites.Write {
            let write = PendingWrites.Write("object", [.writeArray([1], at: 0)])
            writes.begin(write)
            return write
        }
        let first = begun()
        let last = writes.newest
        let later = begun()
        let isOver = DispatchSemaphore(value: 0)
        DispatchQueue.global().async { [writes] in
            writes.drain(objects, upTo: last)
            isOver.signal()
        }
        #expect(isOver.wait(timeout: .now() + 0.05) == .timedOut)
        writes.end(first, 0)
        #expect(isOver.wait(timeout: .now() + 300) == .success)
        writes.end(later, 0)
    }

    @Test func `bytes are copied, and nothing is on its way when all are answered`() {
        var bytes: [UInt8] = [7, 8]
        let write = bytes.withUnsafeBytes { ended(.write($0, at: 5), 0) }
        bytes = [0, 0]
        if case .writeArray(let kept, 5) = write.steps[0] {
            #expect(kept == [7, 8])
        } else {
            Issue.record("\(write.steps)")
        }
        writes.drain(nil, upTo: writes.newest)
        writes.drain(["object"], upTo: writes.newest)
    }
}
