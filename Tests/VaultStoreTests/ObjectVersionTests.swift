import Dispatch
import Glibc
import TestThreads
import Testing

@testable import ClusterIO

@Suite("Space: versions of objects on a cluster", .waiting) struct ObjectVersionTests {
    @Test func `a write expects the version of the one before`() {
        let versions = ObjectVersions()
        #expect(versions.begin("a") == nil)
        versions.follow("a")
        let first = versions.begin("a")
        #expect(first != nil && first?.expected == nil)
        #expect(versions.end(first, PoolAnswer(0, version: 7)) == 0)
        // One that fails leaves the object as it was.
        for (error, told) in [(ENOSPC, ENOSPC), (ERANGE, EBUSY), (EOVERFLOW, EBUSY), (EBUSY, EBUSY)] {
            let failed = versions.begin("a")
            #expect(failed?.expected == 7)
            #expect(versions.end(failed, PoolAnswer(-error, version: 9)) == -told)
        }
        let unsent = versions.begin("a")
        versions.giveUp(unsent)
        let second = versions.begin("a")
        #expect(second?.expected == 7)
        #expect(versions.end(second, PoolAnswer(0, version: 30)) == 0)
        #expect(versions.beginAtOnce("a").turn?.expected == 30)
        #expect(versions.begin("b") == nil && versions.end(nil, PoolAnswer(-ERANGE, version: 1)) == -ERANGE)
        versions.unfollow("a")
        #expect(versions.begin("a") == nil)
    }

    @Test func `writes to one object go one after another`() {
        let versions = ObjectVersions()
        for object in ["a", "b"] { versions.follow(object) }
        let first = versions.begin("a")
        #expect(!versions.beginAtOnce("a").isFree)
        #expect(versions.beginAtOnce("b").isFree && versions.beginAtOnce("c").isFree)
        let expected = DispatchSemaphore(value: 0)
        let second = Turns()
        DispatchQueue.global().async {
            second.turn = versions.begin("a")
            expected.signal()
        }
        #expect(versions.end(first, PoolAnswer(0, version: 5)) == 0)
        #expect(expected.wait(timeout: .now() + 300) == .success)
        #expect(second.turn?.expected == 5)
    }

    private final class Turns: @unchecked Sendable { var turn: ObjectVersions.Turn? }
}
