import Foundation
import LinuxIO
import TestSupport
import Testing
import VaultCrypto
import VaultFormat

@testable import VaultStore

/// What a later release made is refused by its number, by every call, and nothing of it is changed.
@Suite("Format: newer versions") struct NewerVersionTests {
    private let directory = TemporaryDirectory()
    private static let release = Release(major: 1, minor: 3)

    // MARK: Making them

    /// Changes both copies of a header, with their checksums.
    private func changeHeader(_ path: String, _ change: (inout [UInt8]) -> Void) throws {
        let url = URL(fileURLWithPath: path + "/obscura.vault")
        var file = [UInt8](try Data(contentsOf: url))
        for offset in HeaderLayout.copyOffsets.map(Int.init) {
            var copy = Array(file[offset..<offset + HeaderLayout.copyBytes])
            change(&copy)
            copy.withUnsafeMutableBytes { copy in
                hash(
                    [UnsafeRawBufferPointer(copy).slice(0, HeaderLayout.checksumOffset)],
                    into: copy.slice(HeaderLayout.checksumOffset, HeaderLayout.checksumBytes))
            }
            file.replaceSubrange(offset..<offset + copy.count, with: copy)
        }
        try Data(file).write(to: url)
    }

    /// Puts a root that `change` made of the newest one into the given slots of the durable ring.
    private func changeRoot(_ path: String, slots: Int = 4, _ change: (inout RootRecord) -> Void) throws {
        let space = try openSpace(path)
        space.stage(0, 1)
        try space.commit(durable: true)
        var root = space.commits.newest
        root.generation += 1
        change(&root)
        for _ in 0..<slots { try space.parts.roots.write(root) }
    }

    /// The bytes of all files of a vault.
    private func contents(_ path: String) throws -> [String: Data] {
        var found: [String: Data] = [:]
        for name in try FileManager.default.subpathsOfDirectory(atPath: path) {
            found[name] = FileManager.default.contents(atPath: path + "/" + name) ?? Data()
        }
        return found
    }

    private func expectNewer(
        _ structure: NewerVersion.Structure, _ version: Int, location: SourceLocation = #_sourceLocation,
        _ body: () throws -> Void
    ) {
        let expected = VaultError.newer(NewerVersion(structure, version: version, release: Self.release))
        #expect(throws: expected, sourceLocation: location) { try body() }
    }

    // MARK: Header

    @Test(arguments: [1, 2]) func `a newer header is refused by every call`(spaces: Int) throws {
        let path = try makeVault(directory, spaces: spaces, bytes: spaces == 1 ? nil : 16 << 20)
        let image = try Vault.headerImage(path)
        try changeHeader(path) { copy in
            copy[HeaderLayout.versionOffset] = 2
            copy.withUnsafeMutableBytes {
                Self.release.encode(into: $0.slice(HeaderLayout.releaseOffset, Release.storedBytes))
            }
        }
        let newer = Array(try Data(contentsOf: URL(fileURLWithPath: path + "/obscura.vault")))
        let before = try contents(path)
        let one = secret("one")
        expectNewer(.header, 2) { _ = try Vault.unlock(path, password: one) }
        expectNewer(.header, 2) { _ = try Vault.unlock(path, password: one, readOnly: true) }
        expectNewer(.header, 2) { try Vault.changePassword(path, old: one, new: secret("two")) }
        expectNewer(.header, 2) { try Vault.addSpace(path, new: secret("two"), surviving: [one]) }
        expectNewer(.header, 2) { try Vault.removeSpace(path, password: one) }
        expectNewer(.header, 2) { _ = try Vault.info(path) }
        expectNewer(.header, 2) { _ = try Vault.headerImage(path) }
        // An older header would be put into the place of one that more is known of.
        expectNewer(.header, 2) { _ = try HeaderRestoration(path, image: image) }
        expectNewer(.header, 2) { _ = try HeaderRestoration(path, image: newer) }
        expectNewer(.header, 2) { try Vault.grow(path, bytesPerSpace: 64 << 20) { _, _ in } }
        let source = VaultError.newer(NewerVersion(.header, version: 2, release: Self.release))
        #expect(throws: BackupError.source(source)) {
            _ = try Vault.backup(path, to: directory.path + "/copy") { _, _ in }
        }
        #expect(try contents(path) == before)
    }

    @Test func `a newer key slot is refused, and its neighbours are not`() throws {
        let path = try makeVault(directory, spaces: 2, bytes: 16 << 20)
        try patiently { try Vault.addSpace(path, new: secret("two"), surviving: [secret("one")]) }
        var header = try Vault.open(path, calls: LinuxCalls.shared, mayRepair: false).1
        let stretched = try header.stretched(secret("one"), by: LocalStretcher())
        let (key, space) = try #require(try header.openKeySlots(stretched))
        try changeHeader(path) { copy in
            let clear = Array(copy[0..<HeaderLayout.clearBytes]) + [UInt8(space)]
            let start = HeaderLayout.keySlotOffset(space)
            copy.withUnsafeMutableBytes { copy in
                let slot = copy.slice(start, HeaderLayout.keySlotBytes)
                var plain = [UInt8](repeating: 0, count: HeaderLayout.keySlotPlainBytes)
                plain.withUnsafeMutableBytes { plain in
                    key.withUnsafeBytes { plain.copyMemory(from: $0) }
                    plain[Geometry.keyBytes] = UInt8(space)
                    plain[HeaderLayout.keySlotVersionOffset] = 2
                    Self.release.encode(
                        into: plain.slice(HeaderLayout.keySlotReleaseOffset, Release.storedBytes))
                    clear.withUnsafeBytes { clear in
                        SealingKey(deriveKey(stretched, purpose: "obscura 1 slot")).seal(
                            UnsafeRawBufferPointer(plain),
                            into: slot.slice(
                                HeaderLayout.keySlotSealedOffset, HeaderLayout.keySlotPlainBytes),
                            tag: slot.slice(HeaderLayout.keySlotTagOffset, Geometry.tagBytes),
                            nonce: UnsafeRawBufferPointer(slot.slice(0, Geometry.nonceBytes)),
                            associated: clear)
                    }
                }
            }
        }
        header = try Vault.open(path, calls: LinuxCalls.shared, mayRepair: false).1
        let before = try contents(path)
        expectNewer(.keySlot, 3) { _ = try Vault.unlock(path, password: secret("one")) }
        expectNewer(.keySlot, 3) {
            try patiently { try Vault.changePassword(path, old: secret("one"), new: secret("three")) }
        }
        #expect(try contents(path) == before)
        _ = try patiently { try Vault.unlock(path, password: secret("two")) }
    }

    /// Otherwise two states of a header would tell whose space has a hardware key.
    @Test func `a change of a key slot changes its credential slot, and no other bytes`() throws {
        let path = try makeVault(directory, spaces: 3, bytes: 16 << 20)
        func header() throws -> [UInt8] {
            Array(try Data(contentsOf: URL(fileURLWithPath: path + "/obscura.vault")).prefix(4096))
        }
        func changed(_ change: () throws -> Void) throws -> Set<Int> {
            let before = try header()
            try patiently(change)
            let after = try header()
            return Set(before.indices.filter { before[$0] != after[$0] })
        }
        func expect(_ changed: Set<Int>, location: SourceLocation = #_sourceLocation) {
            let size = HeaderLayout.credentialSlotBytes(spaces: 3)
            let slots = (0..<3).map { HeaderLayout.keySlotOffset($0)..<HeaderLayout.keySlotOffset($0 + 1) }
            guard let slot = slots.firstIndex(where: { changed.contains(where: $0.contains) }) else {
                Issue.record("no key slot changed", sourceLocation: location)
                return
            }
            let key = slots[slot]
            let start = HeaderLayout.credentialSlotOffset(slot, spaces: 3)
            let credential = start..<start + size
            let sum = HeaderLayout.checksumOffset..<HeaderLayout.copyBytes
            #expect(
                changed.allSatisfy { key.contains($0) || credential.contains($0) || sum.contains($0) },
                sourceLocation: location)
            // One of 256 random bytes is as before.
            #expect(changed.filter(credential.contains).count > size * 9 / 10, sourceLocation: location)
        }
        expect(try changed { try Vault.changePassword(path, old: secret("one"), new: secret("new")) })
        expect(try changed { try Vault.addSpace(path, new: secret("two"), surviving: [secret("new")]) })
        expect(try changed { try Vault.removeSpace(path, password: secret("two")) })
    }

    // MARK: Roots

    @Test(arguments: [1, 2], [1, 4])
    func `a newer space is refused, however it is opened`(spaces: Int, slots: Int) throws {
        let path = try makeVault(directory, spaces: spaces, bytes: spaces == 1 ? nil : 16 << 20)
        let changes: [(NewerVersion.Structure, Int, (inout SpaceFormat) -> Void)] = [
            (.space, 7, { $0.version = 7 }), (.features, 0x8000_0001, { $0.incompatible = 0x8000_0001 }),
        ]
        for (structure, version, change) in changes {
            let path = path + "-\(version)"
            try FileManager.default.copyItem(atPath: directory.path + "/vault", toPath: path)
            try changeRoot(path, slots: slots) { root in
                root.format.release = Self.release
                change(&root.format)
            }
            let before = try contents(path)
            let unlocked = try patiently { try Vault.unlock(path, password: secret("one")) }
            for access in [SpaceAccess.reading, .writing, .writingIfPossible, .repairing] {
                expectNewer(structure, version) { _ = try unlocked.openSpace(access) }
            }
            expectNewer(structure, version) {
                _ = try unlocked.openSpace(readOnly: false, takingOver: { _ in })
            }
            expectNewer(structure, version) { _ = try unlocked.openNewState() }
            expectNewer(structure, version) { _ = try unlocked.openNewState(readOnly: true) }
            expectNewer(structure, version) { try unlocked.requireKnownFeatures() }
            #expect(try contents(path) == before)
        }
    }

    /// The layout of a root of another version is not known: nothing in it is looked at but that version.
    @Test func `a newer root with other fields is not damage`() throws {
        let path = try makeVault(directory)
        try plantNewerRoot(path)
        expectNewer(.space, 2) { _ = try openSpace(path, readOnly: true) }
    }

    private func plantNewerRoot(_ path: String) throws {
        let space = try openSpace(path)
        var plain = [UInt8](repeating: 0xEE, count: Geometry.pagePlainBytes)
        plain.withUnsafeMutableBytes { plain in
            plain.setNumber(UInt16(1), RootLayout.versionOffset)
            Self.release.encode(into: plain.slice(RootLayout.releaseOffset, Release.storedBytes))
        }
        var page = [UInt8](repeating: 0, count: Geometry.pageBytes)
        for copy in 0..<2 {
            page.withUnsafeMutableBytes { page in
                plain.withUnsafeBytes {
                    _ = space.parts.codec.seal(
                        $0, as: PageIdentity(role: .root, index: 2), copy: UInt8(copy), into: page)
                }
            }
            try page.withUnsafeBytes {
                try space.parts.disk.write(RootStore.sector(2, copy: copy, space.parts.disk), $0)
            }
        }
    }

    @Test(arguments: [1, 2]) func `unknown features for writing allow reading alone`(spaces: Int) throws {
        let path = try makeVault(directory, spaces: spaces, bytes: spaces == 1 ? nil : 16 << 20)
        try changeRoot(path) { root in
            root.format.release = Self.release
            root.format.writing = 6
        }
        let before = try contents(path)
        let unlocked = try patiently { try Vault.unlock(path, password: secret("one")) }
        let stop = WriteStop.newer(NewerVersion(.writingFeatures, version: 6, release: Self.release))
        #expect(try unlocked.openSpace(.reading).page(0) == 1)
        for access in [SpaceAccess.writing, .repairing] {
            #expect(throws: VaultError.notWritable(stop)) { _ = try unlocked.openSpace(access) }
        }
        let space = try unlocked.openSpace(.writingIfPossible)
        #expect(space.isReadOnly && space.writeStop == stop)
        #expect(try space.page(0) == 1)
        #expect(throws: VaultError.notWritable(stop)) { _ = try unlocked.openNewState() }
        _ = try unlocked.openNewState(readOnly: true)
        expectNewer(.writingFeatures, 6) { try unlocked.requireKnownFeatures() }
        #expect(try contents(path) == before)
    }

    @Test func `compatible features and the room of a root are kept`() throws {
        let path = try makeVault(directory)
        let room = bytes(RootLayout.roomBytes, seed: 4)
        try changeRoot(path) { root in
            root.format.compatible = 0x1234_5678
            root.format.release = Self.release
            root.room = room
        }
        for round in UInt8(1)...3 {
            let space = try openSpace(path)
            for durable in [false, true] {
                space.stage(0, round)
                try space.commit(durable: durable)
            }
            try space.close()
        }
        func expectKept(_ root: RootRecord) {
            #expect(root.format.compatible == 0x1234_5678 && root.format.release == Self.release)
            #expect(root.room == room)
        }
        do {
            let space = try openSpace(path)
            expectKept(space.commits.newest)
            for found in RootStore.read(space.parts.disk, space.parts.codec).found { expectKept(found.root) }
            try space.close()
        }
        // A space that is built anew keeps them as well.
        let unlocked = try patiently { try Vault.unlock(path, password: secret("one")) }
        expectKept(try unlocked.openNewState().space.commits.newest)
    }

    /// Releases before knew no room there.
    @Test func `a root of more pairs than leave room is as before`() throws {
        var root = [UInt8](repeating: 0, count: Geometry.pagePlainBytes)
        let path = try makeVault(directory)
        var record = try openSpace(path).commits.newest
        record.pairs = (0..<UInt32(RootLayout.pairsMax)).map { SegmentPair(a: 2 * $0, b: 2 * $0 + 1) }
        root.withUnsafeMutableBytes { record.encode(into: $0) }
        let found = try #require(root.withUnsafeBytes { RootRecord(decoding: $0) })
        #expect(found.pairs == record.pairs && found.room.isEmpty)
    }

    // MARK: A backup's log

    @Test func `a newer log of a backup is refused`() throws {
        let path = try makeVault(directory)
        let (vault, header) = try Vault.open(path, calls: LinuxCalls.shared, mayRepair: false)
        _ = try CopyLog(makingIn: vault, header.clearFields)
        let log = URL(fileURLWithPath: path + "/" + CopyLog.name)
        var head = [UInt8](try Data(contentsOf: log))
        head.withUnsafeMutableBytes { head in
            head.setNumber(UInt16(2), 8)
            Self.release.encode(into: head.slice(12, Release.storedBytes))
            hash([UnsafeRawBufferPointer(head).slice(0, 96)], into: head.slice(96, 32))
        }
        try Data(head).write(to: log)
        // A log counts where the header does not.
        try Data(count: 131_072).write(to: URL(fileURLWithPath: path + "/obscura.vault"))
        let before = try contents(path)
        expectNewer(.backupLog, 2) { _ = try Vault.unlock(path, password: secret("one")) }
        expectNewer(.backupLog, 2) { _ = try Vault.info(path) }
        #expect(try contents(path) == before)
    }
}
