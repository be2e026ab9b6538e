import ClusterIO
import Glibc
import LinuxIO
import TestSupport
import Testing
import VaultFormat

@testable import VaultStore

@Suite("Space: segments on a cluster") struct ClusterSegmentsTests {
    @Test(arguments: [1, 2], [EAGAIN, EIO])
    func `a segment is not missing because the cluster does not tell`(spaces: Int, error: Int32) throws {
        let calls = FaultyCalls(MemoryDisk(DiskState(DiskImage())))
        let address = try #require(try ClusterAddress("ceph:pool/vault", on: calls))
        let layout = SegmentLayout(spaceCount: spaces, segmentBytes: Geometry.segmentBytesMin)
        let objects = ClusterLayout(address, layout)
        let pool = try #require(calls.real as? MemoryDisk).pool
        pool.plant(address.header, bytes: HeaderLayout.fileBytes)
        for index in 0..<objects.objectsPerSegment {
            pool.plant(objects.object(5, index), bytes: objects.objectBytes)
        }
        let vault = try VaultCluster.open(address)
        try vault.lock()
        let segments = try vault.segments(of: 0, layout)
        let bytes = [UInt8](repeating: 1, count: 4096)
        func write() throws { try bytes.withUnsafeBytes { try segments.write(5, at: 0, $0, .body) } }
        calls.inject(.error(Errno(error)), after: 0)
        #expect(throws: StoreError.io(Errno(error))) { try write() }
        #expect(!calls.isFaultDue && segments.exists(5) && !segments.exists(6))
        try write()
        try segments.sync()
    }
}
