import LinuxIO
import TestFixtures
import TestSupport
import VaultFormat

@testable import VaultStore

/// Roots, map nodes, deltas, bitmaps and counts by somebody who knows the key: the input says which parts of a sound
/// space are something else, all of it sealed as it should be, and everything that a mount and a check do is done.
func fuzzStructure(_ bytes: UnsafeRawBufferPointer) {
    // Structures that cannot be forged, such as a page where no slot is free, is no finding.
    try? Forgery.base.fork().forge(bytes)
}

/// A space in memory that is changed.
private final class Forgery: Sendable {
    private let vault: MemoryVault
    private let disk: MemoryDisk

    /// A space with pages, content, and sectors given back.
    static let base: Forgery = {
        do {
            let vault = try MemoryVault(spaces: 1, segments: 0)
            let forgery = Forgery(vault, MemoryDisk(vault.empty, isRecording: false))
            for round in UInt8(1)...5 {
                let space = try vault.openSpace(forgery.disk)
                for page in 0..<20 { space.stage(UInt32(page), round) }
                let runs = try space.writeSome(round)
                space.adopt(runs)
                try space.publish(space.freeze(), durable: true)
                if round % 2 == 0 { space.free(runs) }
                try space.publish(space.freeze(), durable: true)
                try space.close()
            }
            return forgery
        } catch { preconditionFailure("\(error)") }
    }()

    private init(_ vault: MemoryVault, _ disk: MemoryDisk) { (self.vault, self.disk) = (vault, disk) }

    func fork() -> Forgery {
        var state = disk.state
        state.settleAll()
        return Forgery(vault, MemoryDisk(state, isRecording: false))
    }

    func forge(_ bytes: UnsafeRawBufferPointer) throws {
        var input = Input(bytes)
        let space = try vault.openSpace(disk)
        var root = space.commits.newest
        let kind = input.number(UInt8.self)
        let object = MapObject.allCases[Int(input.number(UInt8.self)) % MapObject.allCases.count]
        let level = Int(input.number(UInt8.self) % 3)
        let isSoft = kind & 8 != 0
        switch kind % 4 {
        case 0: break
        case 1:
            root.delta = try plant(space, &input, in: root.delta) { PageIdentity(role: .delta, index: $0) }
        case 2:
            let old = root.objects[object.rawValue].reference
            root.objects[object.rawValue].reference = try plant(space, &input, in: old) { _ in
                .node(object, NodeKey(level: level, index: 0))
            }
            root.objects[object.rawValue].levels = level + 1
        default:
            let page = try plant(space, &input, in: .absent) { _ in .page(object, 0) }
            var node = [UInt8](repeating: 0xFF, count: Geometry.pageBytes)
            node.withUnsafeMutableBytes { page.encode(into: $0.slice(0, MapLayout.referenceBytes)) }
            root.objects[object.rawValue].reference = try seal(space, node) { _ in
                .node(object, NodeKey(level: 0, index: 0))
            }
            root.objects[object.rawValue].levels = 1
        }
        var plain = [UInt8](repeating: 0, count: Geometry.pageBytes)
        plain.withUnsafeMutableBytes { root.encode(into: $0) }
        if kind % 4 == 0 { input.patch(&plain) }
        if isSoft {
            plain[RootLayout.kindOffset] = RootLayout.kindSoft
            plain.replaceSubrange(
                RootLayout.bootHashOffset..<RootLayout.baseOffset, with: space.options.bootHash)
        }
        try writeRoots(space, plain, isSoft ? RootLayout.softSlots : RootLayout.durableSlots)
        use(isReadOnly: true)
        use(isReadOnly: false)
    }

    /// Seals the page of a reference, changed, into a free slot.
    private func plant(
        _ space: Space, _ input: inout Input, in old: Reference, as identity: (UInt32) -> PageIdentity
    ) throws -> Reference {
        var page = [UInt8](repeating: 0, count: Geometry.pageBytes)
        let filling = input.number(UInt8.self)
        if filling > 1 { page = [UInt8](repeating: filling, count: Geometry.pageBytes) }
        if filling == 1, !old.isAbsent {
            try page.withUnsafeMutableBytes {
                try space.parts.pages.openPage(old, as: identity(old.slot), into: $0)
            }
        }
        input.patch(&page)
        return try seal(space, page, as: identity)
    }

    private func seal(
        _ space: Space, _ page: [UInt8], as identity: (UInt32) -> PageIdentity
    ) throws -> Reference {
        guard let slot = space.parts.slots.allocator.take() else { throw StoreError.noRoom }
        var writer = PageWriter(disk: space.parts.disk, codec: space.parts.codec)
        let place = try space.parts.pages.place(slot)
        let reference = try page.withUnsafeBytes {
            try writer.add($0, as: identity(slot), slot: slot, at: place)
        }
        try writer.flush()
        return reference
    }

    private func writeRoots(_ space: Space, _ plain: [UInt8], _ slots: Range<Int>) throws {
        for slot in slots {
            for copy in 0..<2 {
                var sealed = [UInt8](repeating: 0, count: Geometry.pageBytes)
                plain.withUnsafeBytes { plain in
                    sealed.withUnsafeMutableBytes {
                        _ = space.parts.codec.seal(
                            plain, as: PageIdentity(role: .root, index: UInt32(slot)), copy: UInt8(copy),
                            into: $0)
                    }
                }
                try sealed.withUnsafeBytes {
                    try space.parts.disk.write(RootStore.sector(slot, copy: copy, space.parts.disk), $0)
                }
            }
        }
    }

    /// All that mounts, checks and repairs do with a space.
    private func use(isReadOnly: Bool) {
        guard let space = try? vault.openSpace(disk, isReadOnly: isReadOnly) else { return }
        for page in 0..<min(space.pageCount, 24) { _ = try? space.page(page) }
        _ = (space.sectors.capacity, space.storedBytes, space.sectors.pendingBytes)
        let report = StructureCheck(of: space).run()
        _ = AllocationCheck(of: space).compareSlots(report, mending: !isReadOnly)
        let window = 0..<min(4, space.segments.count)
        _ = AllocationCheck(of: space).compareSectors(
            AllocationCheck(of: space).expectedUse(of: window), mending: !isReadOnly)
        if isReadOnly { return }
        for round in UInt8(1)...3 {
            space.stage(0, round)
            if let runs = try? space.writeSome(round) {
                space.adopt(runs)
                space.free(runs, overwriting: true)
            }
            try? space.publish(space.freeze(), durable: round > 1)
            space.eraser.overwrite(most: 1 << 20)
        }
        try? space.close()
    }
}

extension Space {
    fileprivate func stage(_ page: UInt32, _ byte: UInt8) {
        [UInt8](repeating: byte, count: Geometry.pageBytes).withUnsafeBytes { stagePage(page, $0) }
    }

    fileprivate func page(_ index: UInt32) throws -> UInt8 {
        var bytes = [UInt8](repeating: 0, count: Geometry.pageBytes)
        try bytes.withUnsafeMutableBytes { try readPage(index, into: $0) }
        return bytes[17]
    }

    fileprivate func writeSome(_ content: UInt8) throws -> [ExtentRun] {
        try [UInt8](repeating: content, count: 140_000).withUnsafeBytes {
            try write(role: .content, content: UInt64(content), offset: 0, $0, near: nil)
        }
    }
}
