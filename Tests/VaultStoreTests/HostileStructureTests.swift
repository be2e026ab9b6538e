import Foundation
import LinuxIO
import TestSupport
import Testing
import VaultFormat

@testable import VaultStore

/// Roots, maps, deltas and bitmaps by somebody who knows the key: each opens, and has impossible values. All work
/// on such a space ends, with an error or without; a crash would end the tests.
@Suite("Damage: structures by a hostile author") struct HostileStructureTests {
    private let directory = TemporaryDirectory()
    private let seed: UInt64 = 7

    /// A space with pages, content and given-back sectors, and its files.
    private final class Target {
        private let unlocked: UnlockedSpace
        private static let noise = bytes(140_000, seed: 3)
        private let files: [(path: String, bytes: Data)]

        init(_ path: String) throws {
            unlocked = try patiently { try Vault.unlock(path, password: secret("one")) }
            for round in UInt8(1)...6 {
                let space = try unlocked.openSpace(readOnly: false)
                for page in 0..<30 { space.stage(UInt32(page), round) }
                let runs = try space.writeAll(UInt64(round), Self.noise)
                space.adopt(runs)
                try space.commit(durable: true)
                space.free(runs)
                try space.commit(durable: round % 2 == 0)
                if round < 6 { try space.close() }
            }
            files = try FileManager.default.subpathsOfDirectory(atPath: path).filter {
                $0.hasSuffix(".seg") || $0 == "spaces"
            }.map { ("\(path)/\($0)", try Data(contentsOf: URL(fileURLWithPath: "\(path)/\($0)"))) }
        }

        func reset() throws {
            for file in files { try file.bytes.write(to: URL(fileURLWithPath: file.path)) }
        }

        /// Puts a root that `change` has made of the newest one into every slot of the durable ring, and random bytes
        /// into the others.
        func forge(_ change: (Space, inout RootRecord) throws -> Void) throws {
            try reset()
            let space = try unlocked.openSpace(readOnly: false)
            try space.commit(durable: true)
            var root = space.commits.newest
            try change(space, &root)
            for _ in RootLayout.durableSlots {
                try space.parts.roots.write(root)
            }
            space.parts.roots.setRings { $0.hasSoft = true }
            for slot in RootLayout.softSlots {
                for copy in 0..<2 {
                    try Self.noise.prefix(Geometry.pageBytes).withUnsafeBytes {
                        try space.parts.disk.write(RootStore.sector(slot, copy: copy, space.parts.disk), $0)
                    }
                }
            }
        }

        /// Seals a page of one's own into a slot that is free; returns how it is referred to.
        func plant(_ space: Space, as identity: (UInt32) -> PageIdentity, _ plain: [UInt8]) throws
            -> Reference
        {
            guard let slot = space.parts.slots.allocator.take() else { throw StoreError.noRoom }
            var writer = PageWriter(disk: space.parts.disk, codec: space.parts.codec)
            let page = plain + [UInt8](repeating: 0, count: Geometry.pageBytes - plain.count)
            let reference = try page.withUnsafeBytes {
                try writer.add($0, as: identity(slot), slot: slot, at: try space.parts.pages.place(slot))
            }
            try writer.flush()
            return reference
        }

        /// Opens, reads, writes, checks and closes. Returns whether it could be opened.
        @discardableResult func use() throws -> Bool {
            var isOpen = false
            for isReadOnly in [true, false] {
                guard let space = try? unlocked.openSpace(readOnly: isReadOnly) else { continue }
                isOpen = true
                for page in 0..<min(space.pageCount, 40) { _ = try? space.page(page) }
                if space.pageCount > 0 { _ = try? space.page(space.pageCount - 1) }
                _ = (space.sectors.capacity, space.storedBytes, space.sectors.pendingBytes)
                let report = StructureCheck(of: space).run()
                _ = StructureCheck(of: space).runLive(0..<1024)
                _ = StructureCheck(of: space).runLive(Int(space.pageCount)..<Int(space.pageCount) + 1)
                _ = AllocationCheck(of: space).compareSlots(report, mending: !isReadOnly)
                let window = 0..<min(4, space.segments.count)
                _ = AllocationCheck(of: space).compareSectors(
                    AllocationCheck(of: space).expectedUse(of: window), mending: !isReadOnly)
                if isReadOnly { continue }
                change(space)
            }
            return isOpen
        }

        private func change(_ space: Space) {
            for round in UInt8(1)...4 {
                space.stage(0, round)
                space.stage(space.pageCount, round)
                if let runs = try? space.writeAll(UInt64(round), Self.noise) {
                    space.adopt(runs)
                    space.free(runs, overwriting: round % 2 == 0)
                }
                try? space.commit(durable: round % 2 == 0)
                space.eraser.overwrite(most: 1 << 20)
            }
            try? space.rewrite([.page(.catalogue, 3), .node(.catalogue, level: 0, index: 0)])
            try? space.publishMended()
            try? space.close()
        }
    }

    private func target(spaces: Int = 1) throws -> Target {
        try Target(try makeVault(directory, spaces: spaces, bytes: spaces == 1 ? nil : 16 << 20))
    }

    private static let numbers: [UInt64] = [
        0, 1 << 21, .max,
    ]

    @Test(arguments: [1, 2]) func `numbers of roots`(spaces: Int) throws {
        let target = try target(spaces: spaces)
        // All of a vault of two is written anew each time.
        for number in spaces == 1 ? Self.numbers : [.max] {
            let small = UInt32(truncatingIfNeeded: number)
            try target.forge { _, root in root.generation = number }
            try target.use()
            try target.forge { _, root in (root.base, root.released) = (number, number) }
            try target.use()
            try target.forge { _, root in root.peakSectors = number }
            try target.use()
            for object in MapObject.allCases.indices {
                try target.forge { _, root in root.objects[object].pageCount = small }
                try target.use()
                try target.forge { _, root in root.objects[object].reference.slot = small }
                try target.use()
            }
            try target.forge { _, root in root.delta.slot = small }
            try target.use()
            try target.forge { _, root in root.pairs[0].b = small }
            #expect(try target.use() == (small == 1))
            try target.forge { _, root in root.pairs.append(SegmentPair(a: small, b: small &+ 1)) }
            try target.use()
        }
    }

    @Test func `shapes of roots`() throws {
        let target = try target()
        for object in MapObject.allCases.indices {
            for levels in 0...MapLayout.levelsMax + 1 {
                try target.forge { _, root in root.objects[object].levels = levels }
                try target.use()
            }
            for other in MapObject.allCases.indices {
                try target.forge { _, root in root.objects[object] = root.objects[other] }
                try target.use()
            }
            try target.forge { _, root in root.objects[object].reference = root.delta }
            try target.use()
            try target.forge { _, root in root.delta = root.objects[object].reference }
            try target.use()
        }
        try target.forge { _, root in
            root.pairs = (0..<UInt32(RootLayout.pairsMax)).map { SegmentPair(a: 2 * $0, b: 2 * $0 + 1) }
        }
        try target.use()
        try target.forge { _, root in
            root.pairs = [SegmentPair](repeating: SegmentPair(a: 0, b: 1), count: RootLayout.pairsMax)
        }
        #expect(try !target.use())
        try target.reset()
        #expect(try target.use())
    }

    /// Delta pages whose entries are about nothing that there is.
    @Test func `entries of deltas`() throws {
        let target = try target()
        for kind in UInt8(0)...4 {
            for start in [UInt64(16), 8191, 1 << 45, .max] {
                for count: UInt32 in [0, 8192, .max] {
                    try target.forge { space, root in
                        var page = [UInt8](repeating: 0, count: Geometry.pagePlainBytes)
                        let linked = root.delta
                        page.withUnsafeMutableBytes { page in
                            page.setNumber(root.generation, DeltaLayout.generationOffset)
                            page.setNumber(UInt32(2), DeltaLayout.countOffset)
                            linked.encode(
                                into: page.slice(DeltaLayout.previousOffset, MapLayout.referenceBytes))
                            for index in 0..<2 {
                                DeltaEntry(kind: kind, count: count, start: start).encode(
                                    into: page.slice(
                                        DeltaLayout.entriesOffset + index * DeltaLayout.entryBytes,
                                        DeltaLayout.entryBytes))
                            }
                        }
                        root.delta = try target.plant(
                            space, as: { PageIdentity(role: .delta, index: $0) }, page)
                    }
                    try target.use()
                }
            }
        }
    }

    /// Map nodes, bitmaps and counts with random, equal and extreme content.
    @Test func `content of pages`() throws {
        let target = try target()
        for object in MapObject.allCases {
            for level in 0..<3 {
                for filling in 0..<6 {
                    try target.forge { space, root in
                        let old = root.objects[object.rawValue].reference
                        let node = node(filling, old, space)
                        let key = NodeKey(level: level, index: 0)
                        let made = try target.plant(space, as: { _ in .node(object, key) }, node)
                        root.objects[object.rawValue].levels = level + 1
                        root.objects[object.rawValue].reference = made
                        root.objects[object.rawValue].pageCount = max(
                            1000, root.objects[object.rawValue].pageCount)
                    }
                    try target.use()
                }
            }
            for byte: UInt8 in [0, 1, 0xAA, 0xFF] {
                try target.forge { space, root in
                    let page = [UInt8](repeating: byte, count: Geometry.pagePlainBytes)
                    let made = try target.plant(space, as: { _ in .page(object, 0) }, page)
                    let nodeBytes = encoded([made])
                    root.objects[object.rawValue].levels = 1
                    root.objects[object.rawValue].reference = try target.plant(
                        space, as: { _ in .node(object, NodeKey(level: 0, index: 0)) }, nodeBytes)
                }
                try target.use()
            }
        }
    }

    private func node(_ filling: Int, _ old: Reference, _ space: Space) -> [UInt8] {
        let count = MapLayout.fanout
        var far = old
        far.slot = UInt32(space.parts.slots.allocator.slotCount)
        switch filling {
        case 0: return encoded([Reference](repeating: old, count: count))
        case 1: return encoded([Reference](repeating: far, count: count))
        case 2:
            return encoded((0..<count).map { Reference(slot: UInt32($0), tagA: old.tagA, tagB: old.tagB) })
        case 3: return [UInt8](repeating: 0, count: Geometry.pagePlainBytes)
        case 4: return [UInt8](repeating: 0xFE, count: Geometry.pagePlainBytes)
        default: return bytes(Geometry.pagePlainBytes, seed: seed)
        }
    }

    private func encoded(_ references: [Reference]) -> [UInt8] {
        var bytes = [UInt8](repeating: 0xFF, count: Geometry.pagePlainBytes)
        bytes.withUnsafeMutableBytes { bytes in
            for (index, reference) in references.enumerated() {
                reference.encode(
                    into: bytes.slice(index * MapLayout.referenceBytes, MapLayout.referenceBytes))
            }
        }
        return bytes
    }

    /// Segments as large as only a machine's whole memory has bits for are refused by the header.
    @Test func `segments are of a bounded size`() throws {
        #expect(!Geometry.isPlausible(segmentBytes: 1 << 40))
        #expect(Geometry.isPlausible(segmentBytes: Geometry.segmentBytesMax))
    }

    /// Extents that cannot be are none, however well they open.
    @Test func `descriptors that cannot be`() {
        let good = Descriptor(role: .content, content: 5, offset: 131_072, length: 7, generation: 3, epoch: 9)
        func decoded(_ change: (inout Descriptor) -> Void) -> Descriptor? {
            var changed = good
            change(&changed)
            var bytes = [UInt8](repeating: 0, count: Geometry.descriptorBytes)
            bytes.withUnsafeMutableBytes { changed.encode(into: $0) }
            return bytes.withUnsafeBytes { Descriptor(decoding: $0) }
        }
        #expect(decoded { _ in } == good)
        #expect(decoded { $0.length = 0 } == nil)
        #expect(decoded { $0.length = 131_073 } == nil)
        #expect(decoded { $0.offset = .max - 3 } == nil)
        #expect(decoded { $0.generation = .max } == nil)
        #expect(decoded { $0.content = .max } == nil)
    }

    /// A run that a row has cross segments, or lie behind all of them, is an error to read and nothing to free.
    @Test func `runs that cannot be`() throws {
        let path = try makeVault(directory)
        let space = try openSpace(path)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Space.readBufferBytes, alignment: 16)
        defer { buffer.deallocate() }
        let free = space.sectors.allocator.freeSectors
        let sectors: [UInt64] = [UInt64(space.sectors.perSegment) - 1, 1 << 40, 1 << 61, (1 << 62) - 1]
        for sector in sectors {
            for length: UInt64 in [1000, 131_072, 1 << 50, 1 << 61] {
                let run = ExtentRun(offset: 0, length: length, sector: sector, generation: 1, epoch: 1)
                #expect(!space.segments.isPossible(run))
                space.free([run], overwriting: true)
                #expect(throws: StoreError.damaged) {
                    _ = try space.read(role: .content, content: 1, run: run, chunk: 0, into: buffer)
                }
            }
        }
        #expect(space.sectors.pendingBytes == 0 && space.sectors.allocator.freeSectors == free)
        try space.close()
    }
}
