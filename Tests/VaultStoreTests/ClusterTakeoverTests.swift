import ClusterIO
import LinuxIO
import TestSupport
import Testing
import VaultFormat

@testable import VaultStore

/// A mount on a cluster that is gone while its requests are on their way, and the next one.
@Suite("Claims: taking over a vault on a cluster") struct ClusterTakeoverTests {
    private static let objects = 8

    private func address(_ disk: MemoryDisk) throws -> ClusterAddress {
        try #require(try ClusterAddress("ceph:pool/vault", on: disk))
    }

    /// The cluster after the end of a mount that was writing to all objects.
    private func abandoned(_ seed: UInt64) throws -> DiskState {
        let disk = MemoryDisk(DiskState(DiskImage()))
        disk.pool.order(by: seed)
        let address = try address(disk)
        disk.pool.plant(address.header, bytes: HeaderLayout.fileBytes)
        for number in 0..<Self.objects { disk.pool.plant(address.object(number), bytes: 4096) }
        let vault = try VaultCluster.open(address)
        try vault.lock()
        let header: [ClusterPool.Step] = [.lock(vault.lease.clusterLock), .writeArray([1], at: 0)]
        try vault.pool.start(header, on: address.header)
        for number in 0..<Self.objects {
            try vault.pool.start([.writeArray([1], at: 0)], on: address.object(number))
        }
        var random = RandomSource(seed)
        return disk.state.afterClientLoss(.nothing, using: &random)
    }

    @Test func `a former mount writes before the next one has the lock, or never`() throws {
        var (late, arrived) = (0, 0)
        for seed: UInt64 in 1...100 {
            let disk = MemoryDisk(try abandoned(seed))
            disk.pool.order(by: seed)
            late += disk.state.pending.count
            let address = try address(disk)
            let vault = try VaultCluster.open(address)
            try vault.lock()
            #expect(disk.state.pending.isEmpty, "seed \(seed)")
            arrived += disk.log.count { if case .arrived = $0 { true } else { false } }
            let count = disk.eventCount
            for number in 0..<Self.objects {
                try vault.pool.apply([.writeArray([2], at: 0)], on: address.object(number))
            }
            for event in disk.log[count...] {
                if case .arrived(let number) = event { Issue.record("seed \(seed): operation \(number)") }
            }
            for number in 0..<Self.objects {
                var byte: [UInt8] = [0]
                #expect(try vault.pool.read(address.object(number), at: 0, into: &byte) == 1 && byte == [2])
            }
        }
        // Both happen to some.
        #expect(arrived > 0 && late > arrived)
    }
}
