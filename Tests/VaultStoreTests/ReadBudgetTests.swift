import Dispatch
import LinuxIO
import TestSupport
import TestThreads
import Testing

@testable import ClusterIO

/// The bytes of reads that wait for a cluster at a time.
@Suite("Space: reads from a cluster", .waiting) struct ReadBudgetTests {
    private let budget = ReadBudget()

    @Test func `so many bytes are read at a time, or one read`() {
        #expect(budget.takeAtOnce(ReadBudget.bytesMax + 1))
        #expect(!budget.takeAtOnce(1))
        budget.giveBack(ReadBudget.bytesMax + 1)
        #expect(budget.takeAtOnce(ReadBudget.bytesMax - 1) && budget.takeAtOnce(1))
        #expect(!budget.takeAtOnce(1))
        budget.giveBack(1)
        #expect(budget.takeAtOnce(1))
    }

    /// Programs that read wait; what is read ahead for them is left out.
    @Test func `a pool waits for bytes that are being read`() throws {
        let disk = MemoryDisk(DiskState(DiskImage()))
        let pool = ClusterPool(try disk.connect(pool: "pool", namespace: ""))
        try pool.apply([.writeArray([7], at: 0)], on: "a")
        pool.budget.take(ReadBudget.bytesMax)
        #expect(pool.startReading("a", 0..<1) == nil)
        let isRead = DispatchSemaphore(value: 0)
        DispatchQueue.global().async {
            var bytes: [UInt8] = [0]
            _ = try? pool.read("a", at: 0, into: &bytes)
            if bytes == [7] { isRead.signal() }
        }
        #expect(isRead.wait(timeout: .now() + 0.05) == .timedOut)
        pool.budget.giveBack(ReadBudget.bytesMax)
        #expect(isRead.wait(timeout: .now() + 300) == .success)
        // An answer, and an error, give back what the read took.
        #expect(pool.startReading("a", 0..<1) != nil && pool.startReading("b", 0..<1) != nil)
        #expect(pool.budget.takeAtOnce(ReadBudget.bytesMax) && !pool.budget.takeAtOnce(1))
    }
}
