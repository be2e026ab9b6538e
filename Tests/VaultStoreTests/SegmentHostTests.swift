import LinuxIO
import Synchronization
import TestSupport
import Testing
import VaultCrypto

@testable import VaultFormat
@testable import VaultStore

/// A space on a host that has no files: what the store asks of `SegmentHost` is all that it needs.
@Suite("Space: hosts without files") struct SegmentHostTests {
    private static let layout = SegmentLayout(spaceCount: 1, segmentBytes: Geometry.segmentBytesLeast)
    private static let boot = [UInt8](repeating: 7, count: RootLayout.bootHashBytes)
    private let keys = SpaceKeys(SecretBytes.random(count: Geometry.keyBytes))

    private func makeHost() throws -> MemorySegments {
        let host = MemorySegments(Self.layout)
        try RootStore.format(SpaceDisk(host, Self.layout), PageCodec(key: keys.page), grows: true)
        return host
    }

    private func open(_ host: MemorySegments, isReadOnly: Bool = false, boot: [UInt8]? = nil) throws -> Space
    {
        try Space.open(
            disk: SpaceDisk(host, Self.layout), keys: keys,
            options: SpaceOptions(
                isReadOnly: isReadOnly, grows: true, bootHash: boot ?? Self.boot,
                segmentCount: host.count, segmentCountNow: { host.count }, limits: .least))
    }

    /// A state with so many pages and one content.
    private func write(_ round: UInt8, to space: Space) throws -> [ExtentRun] {
        for page in 0..<20 as Range<UInt32> { space.stage(page, round) }
        let runs = try space.writeAll(UInt64(round), bytes(300_000, seed: UInt64(round)))
        space.adopt(runs)
        return runs
    }

    private func expectState(_ round: UInt8, _ runs: [ExtentRun], in space: Space) throws {
        for page in 0..<20 as Range<UInt32> { #expect(try space.page(page) == round) }
        #expect(try space.readAll(UInt64(round), runs) == bytes(300_000, seed: UInt64(round)))
        #expect(StructureCheck(of: space).run().damage == [])
    }

    @Test func `a space is written, closed and opened`() throws {
        let host = try makeHost()
        var runs: [ExtentRun] = []
        do {
            let space = try open(host)
            for round in 1..<6 as Range<UInt8> {
                let old = runs
                runs = try write(round, to: space)
                space.free(old)
                try space.commit(durable: round % 2 == 0)
            }
            try space.close()
        }
        try expectState(5, runs, in: try open(host, isReadOnly: true, boot: [UInt8](repeating: 1, count: 32)))
    }

    /// At every sync of a host that loses some of the writes since the last one.
    @Test(arguments: 1...8 as ClosedRange<UInt64>) func `after a power cut the durable state is there`(
        seed: UInt64
    ) throws {
        var random = SeededGenerator(seed)
        let host = try makeHost()
        let space = try open(host)
        var runs: [ExtentRun] = []
        for round in 1..<5 as Range<UInt8> {
            let old = runs
            runs = try write(round, to: space)
            space.free(old)
            try space.commit(durable: true)
            // Not synced any more.
            for page in 0..<20 as Range<UInt32> { space.stage(page, 200 + round) }
            try space.commit(durable: false)
            let after = host.cut(using: &random)
            let found = try open(after, isReadOnly: true, boot: [UInt8](repeating: 1, count: 32))
            try expectState(round, runs, in: found)
        }
    }

    /// The error of any call is told, and the state before it stays.
    @Test func `a host that fails at any call loses nothing durable`() throws {
        let reference = try makeHost()
        let space = try open(reference)
        let before = reference.calls
        _ = try write(1, to: space)
        try space.commit(durable: true)
        let calls = reference.calls - before
        #expect(calls > 10)
        for number in 1...calls {
            let host = try makeHost()
            let space = try open(host)
            let runs = try write(9, to: space)
            try space.commit(durable: true)
            let failed = Mutex<(left: Int, call: String?)>((number, nil))
            host.fail { call in
                failed.withLock { failed in
                    failed.left -= 1
                    if failed.left == 0 { failed.call = call }
                    return failed.left == 0 ? .io(.inputOutput) : nil
                }
            }
            var told: (any Error)?
            do {
                _ = try write(1, to: space)
                try space.commit(durable: true)
            } catch { told = error }
            // Room is reserved as far as it goes, and a run may take a call less than another.
            let call = failed.withLock { $0.call }
            #expect(told as? StoreError == (call == nil || call == "reserve" ? nil : .io(.inputOutput)))
            host.fail(nil)
            let found = try open(host, isReadOnly: true, boot: [UInt8](repeating: 1, count: 32))
            let round = try found.page(0)
            #expect(round == 9 || round == 1)
            if round == 9 { try expectState(9, runs, in: found) }
            try space.commit(durable: true)
        }
    }

    /// As a mount that writes through a server whose permission is withdrawn.
    @Test func `a host that refuses all writing closes the space for writing`() throws {
        let host = try makeHost()
        let space = try open(host)
        host.fail { call in call == "write" ? .io(.readOnlyFileSystem) : nil }
        #expect(throws: StoreError.io(.readOnlyFileSystem)) { _ = try write(1, to: space) }
        #expect(space.writeStop == .io(.readOnlyFileSystem))
        host.fail(nil)
        #expect(throws: StoreError.readOnly) { _ = try write(1, to: space) }
        #expect(space.resumeWriting())
        let runs = try write(2, to: space)
        try space.commit(durable: true)
        try expectState(2, runs, in: space)
    }
}
