import ClusterIO
import Glibc
import LinuxIO
import TestSupport
import Testing
import VaultCrypto
import VaultFormat

@testable import VaultStore

@Suite("Space: segments on a cluster") struct ClusterSegmentsTests {
    /// A cluster in memory, with the objects of a vault.
    private struct Cluster {
        let calls = FaultyCalls(MemoryDisk(DiskState(DiskImage())))
        let address: ClusterAddress
        let layout: SegmentLayout
        let key = SecretBytes.random(count: Geometry.keyBytes)

        init(spaces: Int, segments: some Sequence<Int>) throws {
            address = try #require(try ClusterAddress("ceph:pool/vault", on: calls))
            layout = SegmentLayout(spaceCount: spaces, segmentBytes: Geometry.segmentBytesMin)
            let objects = ClusterLayout(address, layout)
            let pool = try #require(calls.real as? MemoryDisk).pool
            pool.plant(address.header, bytes: HeaderLayout.fileBytes)
            for segment in segments {
                for index in 0..<objects.objectsPerSegment {
                    pool.plant(objects.object(segment, index), bytes: objects.objectBytes)
                }
            }
        }

        func locked() throws -> VaultCluster {
            let vault = try VaultCluster.open(address)
            try vault.lock()
            return vault
        }

        func disk(_ vault: VaultCluster) throws -> SpaceDisk {
            SpaceDisk(try vault.segments(of: 0, layout), layout)
        }

        /// Opens the space as a mount does.
        func open(_ vault: VaultCluster) throws -> Space {
            try vault.completeSegments(layout)
            return try UnlockedSpace(
                path: address.path, vault: vault, key: key, index: 0, spaceCount: layout.spaceCount,
                segmentBytes: layout.segmentBytes
            ).openSpace(.writing)
        }
    }

    @Test(arguments: [1, 2], [EAGAIN, EIO])
    func `a segment is not missing because the cluster does not tell`(spaces: Int, error: Int32) throws {
        let cluster = try Cluster(spaces: spaces, segments: [5])
        let vault = try cluster.locked()
        let segments = try vault.segments(of: 0, cluster.layout)
        let bytes = [UInt8](repeating: 1, count: 4096)
        func write() throws { try bytes.withUnsafeBytes { try segments.write(5, at: 0, $0, .body) } }
        cluster.calls.inject(.error(Errno(error)), after: 0)
        #expect(throws: StoreError.io(Errno(error))) { try write() }
        #expect(!cluster.calls.isFaultDue && segments.exists(5) && !segments.exists(6))
        try write()
        try segments.sync()
    }

    /// Each request of a mount fails once.
    @Test(arguments: [1, 2], [EAGAIN, EIO])
    func `a mount that cannot count the segments ends`(spaces: Int, error: Int32) throws {
        let count = 11
        let cluster = try Cluster(spaces: spaces, segments: 0..<count)
        do {
            let vault = try cluster.locked()
            defer { vault.giveUp() }
            try RootStore.format(
                cluster.disk(vault), PageCodec(key: SpaceKeys(cluster.key).page), grows: spaces == 1)
        }
        let uncounted = VaultError.system(Errno(error), "cannot count the vault's segments on the cluster")
        var (number, isOver, told) = (0, false, 0)
        while !isOver {
            let vault = try cluster.locked()
            defer { vault.giveUp() }
            cluster.calls.inject(.error(Errno(error)), after: number)
            do {
                let space = try cluster.open(vault)
                #expect(space.segments.count == count, "request \(number)")
            } catch let found as VaultError { told += found == uncounted ? 1 : 0 }
            isOver = cluster.calls.isFaultDue
            cluster.calls.injectNothing()
            number += 1
        }
        #expect(told > 3)
    }

    @Test func `a header is not foreign because the cluster does not tell`() throws {
        let cluster = try Cluster(spaces: 2, segments: 0..<1)
        let vault = try cluster.locked()
        let kdf = KDFParameters(memoryBytes: KDFParameters.memoryBytesRange.lowerBound, passes: 1)
        let header = Header(spaces: 2, segmentBytes: cluster.layout.segmentBytes, kdf: kdf)
        // After the list of objects.
        cluster.calls.inject(.error(.inputOutput), after: 1)
        #expect(throws: VaultError.system(.inputOutput, "cannot count the vault's segments on the cluster")) {
            try vault.requireFitting(header)
        }
        try vault.requireFitting(header)
    }

    /// The errors come before anything is written.
    @Test func `a mount that is shut out is read-only once it asks for room or makes a segment`() throws {
        let askings: [(SpaceDisk) throws -> Void] = [
            { _ = try $0.availableBytes() }, { try $0.create(7) },
            { disk in
                // The lock is lost by a request before.
                #expect(throws: StoreError.self) { try disk.host.create(7) }
                try disk.requireMayCreate()
            },
        ]
        for (number, ask) in askings.enumerated() {
            let cluster = try Cluster(spaces: 1, segments: 0..<2)
            let vault = try cluster.locked()
            let disk = try cluster.disk(vault)
            let gate = WriteGate(isReadOnly: false, claim: nil)
            disk.gate = gate
            cluster.calls.inject(.fenced, after: 0)
            #expect(throws: StoreError.io(Errno(ESHUTDOWN)), "\(number)") { try ask(disk) }
            #expect(!cluster.calls.isFaultDue && gate.stopped == .claimLost, "\(number)")
        }
    }
}
