import Glibc
import LinuxIO
import TestSupport
import Testing
import VaultCrypto
import VaultFormat

@testable import ClusterIO
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

    // MARK: Pages

    private func page(_ segments: any SegmentHost, _ segment: Int, _ index: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Geometry.pageBytes)
        try bytes.withUnsafeMutableBytes {
            try segments.read(segment, at: UInt64(index * Geometry.pageBytes), into: $0)
        }
        return bytes
    }

    private func write(_ segments: any SegmentHost, _ segment: Int, _ index: Int, _ bytes: [UInt8]) throws {
        try bytes.withUnsafeBytes {
            try segments.write(segment, at: UInt64(index * Geometry.pageBytes), $0, .other)
        }
    }

    @Test(arguments: [1, 2]) func `pages that are read in order take few requests`(spaces: Int) throws {
        let cluster = try Cluster(spaces: spaces, segments: [5])
        let vault = try cluster.locked()
        let segments = try vault.segments(of: spaces - 1, cluster.layout)
        let count = Int(cluster.layout.segmentBytes) / Geometry.pageBytes
        let content = (0..<count).map { [UInt8](repeating: UInt8($0 % 251), count: Geometry.pageBytes) }
        for index in 0..<count { try write(segments, 5, index, content[index]) }
        try segments.sync()
        let before = vault.pool.counts.reads
        // As a directory's rows lie: some pages of each window.
        for index in stride(from: 0, to: count, by: 7) {
            #expect(try page(segments, 5, index) == content[index])
        }
        let read = vault.pool.counts.reads - before
        #expect(
            read <= cluster.layout.segmentBytes / PageStreams.windowBytes + 16,
            "\(count) pages: \(read) requests")
    }

    @Test(arguments: [1, 2], 1...4 as ClosedRange<UInt64>)
    func `pages that are read ahead have the bytes that were written last`(spaces: Int, seed: UInt64) throws {
        let cluster = try Cluster(spaces: spaces, segments: [5])
        try #require(cluster.calls.real as? MemoryDisk).pool.order(by: seed)
        let segments = try cluster.locked().segments(of: 0, cluster.layout)
        var random = RandomSource(seed)
        let count = 3 * Int(PageStreams.windowBytes) / Geometry.pageBytes
        var content = [[UInt8]](repeating: [UInt8](repeating: 0, count: Geometry.pageBytes), count: count)
        for step in 0..<400 {
            let index = Int.random(in: 0..<count, using: &random)
            if Int.random(in: 0..<4, using: &random) == 0 {
                content[index] = [UInt8](repeating: UInt8(step % 256), count: Geometry.pageBytes)
                try write(segments, 5, index, content[index])
            } else {
                #expect(try page(segments, 5, index) == content[index], "step \(step)")
            }
        }
    }

    /// Another mount may write them: a mount that only reads looks for newer ones.
    @Test(arguments: [1, 2]) func `roots are never kept`(spaces: Int) throws {
        let cluster = try Cluster(spaces: spaces, segments: 0..<2)
        let vault = try cluster.locked()
        let segments = try vault.segments(of: 0, cluster.layout)
        let rootPages = RootSnapshot.rootBytes / Geometry.pageBytes
        for index in 0..<2 * rootPages { _ = try page(segments, 0, index) }
        let other = try ClusterPool(
            #require(cluster.calls.real as? MemoryDisk).connect(pool: "pool", namespace: ""))
        let root = [UInt8](repeating: 9, count: Geometry.pageBytes)
        for index in 0..<rootPages {
            try other.apply(
                [.writeArray(root, at: UInt64(index * Geometry.pageBytes))],
                on: ClusterLayout(cluster.address, cluster.layout).object(0))
            #expect(try page(segments, 0, index) == root)
        }
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

    @Test func `bytes are lent as they are now, and only where one answer has them`() throws {
        let cluster = try Cluster(spaces: 1, segments: [0, 1, 2])
        let vault = try cluster.locked()
        let segments = try vault.segments(of: 0, cluster.layout)
        func lent(_ range: Range<UInt64>) -> [UInt8]? {
            var found: [UInt8]?
            let result = segments.lend(2, at: range.lowerBound, count: range.count) {
                found = Array($0)
                return true
            }
            #expect((result == true) == (found != nil))
            return found
        }
        func write(_ byte: UInt8, _ range: Range<UInt64>) throws {
            try Array(repeating: byte, count: range.count).withUnsafeBytes {
                try segments.write(2, at: range.lowerBound, $0, .other)
            }
        }
        try write(1, 0..<300_000)
        try segments.sync()
        #expect(lent(0..<4096) == nil)
        segments.willRead(2, 100_000..<300_000)
        #expect(lent(120_000..<260_000) == Array(repeating: 1, count: 140_000))
        #expect(lent(90_000..<110_000) == nil && lent(290_000..<310_000) == nil)
        try write(2, 200_000..<200_512)
        #expect(lent(199_000..<201_000) == nil)
        try segments.sync()
        segments.willRead(2, 100_000..<300_000)
        #expect(lent(200_000..<200_512) == Array(repeating: 2, count: 512))
        #expect(segments.shorten(2, to: 1 << 20))
        segments.willRead(2, 1_000_000..<1_100_000)
        #expect(lent(1_000_000..<1_040_000) == Array(repeating: 0, count: 40_000))
        #expect(lent(1_040_000..<1_060_000) == nil)
    }
}
