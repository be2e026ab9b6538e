import Glibc
import LinuxIO
import Testing

@testable import ClusterIO

/// Writes to a cluster that fail after they were accepted.
@Suite("Space: writes to a cluster") struct PendingWritesTests {
    private let writes = PendingWrites()

    private func ended(_ step: ClusterPool.Step, _ result: Int32) -> PendingWrites.Write {
        let write = PendingWrites.Write(writes, "object", [step])
        writes.begin(write)
        writes.end(write, result)
        return write
    }

    @Test(arguments: [ENOSPC, EDQUOT, EIO, ETIMEDOUT])
    func `accepted bytes are kept until they are repeated, in order`(error: Int32) {
        let first = ended(.writeArray([1], at: 0), -error)
        _ = ended(.writeArray([2], at: 0), 0)
        let third = ended(.writeArray([3], at: 0), -error)
        #expect(writes.firstFailed === first)
        writes.settle(first)
        #expect(writes.firstFailed === third)
        writes.settle(third)
        #expect(writes.firstFailed == nil && writes.takeFailure() == nil)
        #expect(writes.isFull == Errno(error).meansNoRoom)
    }

    @Test(arguments: [EBUSY, ESHUTDOWN]) func `nothing is repeated without the lock`(error: Int32) {
        _ = ended(.writeArray([1], at: 0), -error)
        #expect(writes.firstFailed == nil)
        #expect(writes.takeFailure() == Errno(error) && writes.takeFailure() == nil)
    }

    @Test func `room that is not given back holds up nothing`() {
        _ = ended(.zeros(0..<4096), -EIO)
        #expect(writes.firstFailed == nil && writes.takeFailure() == nil)
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
        writes.drain(nil)
        writes.drain(["object"])
    }
}
