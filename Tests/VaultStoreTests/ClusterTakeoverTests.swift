import ClusterIO
import LinuxIO
import TestSupport
import Testing
import VaultFormat

@testable import VaultStore

/// A mount on a cluster that is gone while its requests are on their way, and the next one.
@Suite("Claims: taking over a vault on a cluster") struct ClusterTakeoverTests {
    private static let objects = 40

    /// Objects of several groups, others in each seed.
    private func objects(_ address: ClusterAddress, _ seed: UInt64) -> [String] {
        (0..<Self.objects).map { address.object(Int(seed) * Self.objects + $0) }
    }

    private func address(_ disk: MemoryDisk) throws -> ClusterAddress {
        try #require(try ClusterAddress("ceph:pool/vault", on: disk))
    }

    /// The cluster after the end of a mount that was writing to all objects.
    private func abandoned(_ seed: UInt64) throws -> DiskState {
        let disk = MemoryDisk(DiskState(DiskImage()))
        disk.pool.order(by: seed)
        let address = try address(disk)
        disk.pool.plant(address.header, bytes: HeaderLayout.fileBytes)
        for object in objects(address, seed) { disk.pool.plant(object, bytes: 4096) }
        let vault = try VaultCluster.open(address)
        try vault.lock()
        let header: [ClusterPool.Step] = [.lock(vault.lease.clusterLock), .writeArray([1], at: 0)]
        try vault.pool.start(header, on: address.header)
        for object in objects(address, seed) {
            try vault.pool.start([.writeArray([1], at: 0)], on: object)
        }
        var random = RandomSource(seed)
        return disk.state.afterClientLoss(.nothing, using: &random)
    }

    @Test(arguments: [true, false])
    func `a former mount writes before the next one has the lock, or never`(groupsAreTold: Bool) throws {
        var (late, arrived) = (0, 0)
        for seed: UInt64 in 1...100 {
            let disk = MemoryDisk(try abandoned(seed))
            disk.pool.order(by: seed)
            disk.pool.tellGroups(groupsAreTold)
            late += disk.state.pending.count
            let address = try address(disk)
            let vault = try VaultCluster.open(address)
            try vault.lock()
            #expect(disk.state.pending.isEmpty, "seed \(seed)")
            arrived += disk.log.count { if case .arrived = $0 { true } else { false } }
            let count = disk.eventCount
            for object in objects(address, seed) {
                try vault.pool.apply([.writeArray([2], at: 0)], on: object)
            }
            for event in disk.log[count...] {
                if case .arrived(let number) = event { Issue.record("seed \(seed): operation \(number)") }
            }
            for object in objects(address, seed) {
                var byte: [UInt8] = [0]
                #expect(try vault.pool.read(object, at: 0, into: &byte) == 1 && byte == [2])
            }
        }
        // Both happen to some.
        #expect(arrived > 0 && late > arrived)
    }

    /// So the test above would find it.
    @Test func `a former mount may still write to a group that was not reached`() throws {
        var left = 0
        for seed: UInt64 in 1...100 {
            let disk = MemoryDisk(try abandoned(seed))
            disk.pool.order(by: seed)
            disk.pool.tellGroups(true, hiding: 1)
            try VaultCluster.open(try address(disk)).lock()
            left += disk.state.pending.count
        }
        #expect(left > 0)
    }

    @Test func `taking over makes a request for each placement group, not for each object`() throws {
        for seed: UInt64 in 1...4 {
            let disk = MemoryDisk(try abandoned(seed))
            disk.pool.order(by: seed)
            let vault = try VaultCluster.open(try address(disk))
            try vault.lock()
            let groups = disk.pool.groupCount
            #expect(groups < Self.objects && (groups...groups * 2).contains(Int(vault.pool.counts.reads)))
        }
    }
}
