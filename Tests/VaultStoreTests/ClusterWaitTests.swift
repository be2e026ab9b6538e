import Testing

@testable import VaultStore

@Suite("Space: waiting for a cluster") struct ClusterWaitTests {
    @Test func `a thread's name tells for how long`() {
        #expect(ClusterWait.threadName(milliseconds: 0) == nil)
        #expect(ClusterWait.threadName(milliseconds: 1999) == nil)
        for seconds in [2, 12, 99_999] {
            let name = ClusterWait.threadName(milliseconds: Int64(seconds) * 1000 + 999) ?? ""
            #expect(name.utf8.count <= 15)
            #expect(ClusterWait.seconds(ofThread: name) == seconds)
        }
        #expect(ClusterWait.threadName(milliseconds: .max) == "waiting 99999 s")
    }

    @Test(arguments: ["obscura", "cluster lock", "waiting", "waiting  s", "waiting x s", ""])
    func `other names tell nothing`(name: String) {
        #expect(ClusterWait.seconds(ofThread: name) == nil)
    }
}
