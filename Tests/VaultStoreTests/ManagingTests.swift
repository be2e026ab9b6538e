import Foundation
import LinuxIO
import TestSupport
import Testing
import VaultCrypto
import VaultFormat

@testable import VaultStore

/// Passwords set, changed and removed: the effects on a vault.
@Suite("Passwords: slots of the header") struct ManagingTests {
    private let directory = TemporaryDirectory()
    private let calls = TracedCalls()
    private let stretcher = QuickStretcher()

    /// A vault whose first space opens with "one".
    private func makeQuickVault(_ spaces: Int, name: String = "vault", holes: Bool = false) throws -> String {
        if holes { calls.leaveHoles() }
        let path = directory.path + "/" + name
        try Vault.create(
            at: path, spaces: spaces, bytesPerSpace: spaces == 1 ? nil : 16 << 20, kdf: quickKDF,
            password: secret("one"), stretcher: stretcher, calls: calls, coverBytes: 0
        ) { _, _ in }
        _ = stretcher.runs()
        return path
    }

    private func unlock(_ path: String, _ password: String, readOnly: Bool = false) throws -> UnlockedSpace {
        try patiently {
            try Vault.unlock(
                path, password: secret(password), readOnly: readOnly, stretcher: stretcher, calls: calls)
        }
    }

    private func add(_ path: String, _ new: String, _ surviving: [String]) throws {
        try patiently {
            try Vault.addSpace(
                path, new: secret(new), surviving: surviving.map { secret($0) }, stretcher: stretcher,
                calls: calls)
        }
    }

    private func verdict(_ body: () throws -> Void) -> VaultError? {
        do {
            try patiently(body)
            return nil
        } catch { return error as? VaultError }
    }

    private func headerBytes(_ path: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: path + "/obscura.vault")))
    }

    private func writeHeader(_ path: String, _ bytes: [UInt8]) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: path + "/obscura.vault"))
    }

    /// Every file of the vault, by its path.
    private func files(_ path: String) throws -> [String: Data] {
        var files: [String: Data] = [:]
        for name in try FileManager.default.subpathsOfDirectory(atPath: path) {
            let url = URL(fileURLWithPath: path + "/" + name)
            if let bytes = try? Data(contentsOf: url) { files[name] = bytes }
        }
        return files
    }

    /// Offsets in a copy of the header that a change of this slot's may touch.
    private func mayChange(_ slot: Int) -> Set<Int> {
        let start = HeaderLayout.keySlotOffset(slot)
        let credential = HeaderLayout.credentialSlotOffset(slot, spaces: 3)
        return Set(start..<start + HeaderLayout.keySlotBytes).union(HeaderLayout.checksumOffset..<4096)
            .union(credential..<credential + HeaderLayout.credentialSlotBytes(spaces: 3))
    }

    private func changedOffsets(_ old: [UInt8], _ new: [UInt8]) -> (
        inA: Set<Int>, inB: Set<Int>, elsewhere: Int
    ) {
        var (a, b, elsewhere) = (Set<Int>(), Set<Int>(), 0)
        for offset in old.indices where old[offset] != new[offset] {
            if offset < 4096 {
                a.insert(offset)
            } else if (65_536..<69_632).contains(offset) {
                b.insert(offset - 65_536)
            } else {
                elsewhere += 1
            }
        }
        return (a, b, elsewhere)
    }

    @Test func `a changed password changes its slot in both copies and nothing else`() throws {
        let path = try makeQuickVault(3)
        try add(path, "two", ["one"])
        try add(path, "three", ["one", "two"])
        for password in ["one", "two", "three"] {
            let slot = try unlock(path, password).index
            let before = try files(path)
            try Vault.changePassword(
                path, old: secret(password), new: secret("new " + password), stretcher: stretcher,
                calls: calls)
            let after = try files(path)
            #expect(after.filter { before[$0.key] != $0.value }.map(\.key) == ["obscura.vault"])
            #expect(after.keys == before.keys)
            let changed = changedOffsets(
                Array(before["obscura.vault"] ?? Data()), Array(after["obscura.vault"] ?? Data()))
            #expect(changed.elsewhere == 0 && changed.inA == changed.inB)
            // All but a few of the slot's random bytes and of the checksum's.
            #expect(changed.inA.isSubset(of: mayChange(slot)) && changed.inA.count > 140)
            #expect(try unlock(path, "new " + password).index == slot)
            #expect(verdict { _ = try unlock(path, password) } == .noSpaceOpens)
        }
    }

    @Test func `every change is written to one copy, synced, and only then to the other`() throws {
        let path = try makeQuickVault(3)
        let header = path + "/obscura.vault"
        let expected: [TracedCalls.Event] = [
            .write(offset: 0, bytes: 4096), .sync, .write(offset: 65_536, bytes: 4096), .sync,
        ]
        try calls.trace(header)
        try add(path, "two", ["one"])
        #expect(calls.events == expected)
        try calls.trace(header)
        try Vault.changePassword(
            path, old: secret("two"), new: secret("zwei"), stretcher: stretcher, calls: calls)
        #expect(calls.events == expected)
        let slot = try unlock(path, "zwei").index
        let before = try headerBytes(path)
        try calls.trace(header)
        try Vault.removeSpace(path, password: secret("zwei"), stretcher: stretcher, calls: calls)
        #expect(calls.events == expected)
        let changed = changedOffsets(before, try headerBytes(path))
        #expect(
            changed.inA.isSubset(of: mayChange(slot)) && changed.inA == changed.inB && changed.elsewhere == 0)
        #expect(changed.inA.count > 140)
        // The key is gone, so that the password it had opens nothing, and the slot is as any unused one.
        #expect(verdict { _ = try unlock(path, "zwei") } == .noSpaceOpens)
        _ = try unlock(path, "one")
    }

    @Test func `a header that is torn at any sector opens with the old or the new password`() throws {
        let path = try makeQuickVault(2)
        let old = try headerBytes(path)
        try Vault.changePassword(
            path, old: secret("one"), new: secret("uno"), stretcher: stretcher, calls: calls)
        let new = try headerBytes(path)
        for tornCopy in [0, 65_536] {
            for sectors in 0...8 {
                var torn = tornCopy == 0 ? old : new
                for offset in tornCopy..<tornCopy + 4096 {
                    torn[offset] = offset - tornCopy < sectors * 512 ? new[offset] : old[offset]
                }
                try writeHeader(path, torn)
                let isNew = tornCopy != 0 || sectors == 8
                let (opens, fails) = isNew ? ("uno", "one") : ("one", "uno")
                _ = try unlock(path, opens, readOnly: true)
                #expect(verdict { _ = try unlock(path, fails, readOnly: true) } == .noSpaceOpens)
                #expect(try headerBytes(path) == torn)
                _ = try unlock(path, opens)
                #expect(try headerBytes(path) == (isNew ? new : old))
            }
        }
    }

    @Test func `a space is taken at random`() throws {
        let path = try makeQuickVault(8, holes: true)
        try Vault.removeSpace(path, password: secret("one"), stretcher: stretcher, calls: calls)
        let header = try headerBytes(path)
        var counts = [Double](repeating: 0, count: 8)
        let runs = 240
        for _ in 0..<runs {
            try add(path, "new", [])
            counts[try unlock(path, "new").index] += 1
            try writeHeader(path, header)
        }
        let expected = Double(runs) / 8
        let chiSquare = counts.reduce(0) { $0 + ($1 - expected) * ($1 - expected) / expected }
        // Seven degrees of freedom: one in ten million even throws gives more.
        #expect(chiSquare < 45, "\(counts)")
    }

    @Test func `the first password gets a space at random`() throws {
        var taken: Set<Int> = []
        for number in 0..<40 where taken.count < 2 {
            let path = try makeQuickVault(2, name: "vault\(number)", holes: true)
            taken.insert(try unlock(path, "one").index)
            try FileManager.default.removeItem(atPath: path)
        }
        #expect(taken == [0, 1])
    }

    @Test func `a space whose password is given is never taken`() throws {
        let path = try makeQuickVault(2, holes: true)
        do {
            let space = try unlock(path, "one").openSpace(readOnly: false)
            space.stage(0, 7)
            try space.commit(durable: true)
            try space.close()
        }
        let own = try unlock(path, "one").index
        func bytes() throws -> [Data] {
            try (0..<4).map {
                try SegmentFile(path, space: own, $0).read()
            }
        }
        let before = try bytes()
        for _ in 0..<30 {
            try add(path, "two", ["one"])
            try Vault.removeSpace(path, password: secret("two"), stretcher: stretcher, calls: calls)
        }
        #expect(try bytes() == before)
        #expect(try unlock(path, "one").openSpace(readOnly: true).page(0) == 7)
        try add(path, "two", ["one"])
        #expect(verdict { try add(path, "three", ["one", "two"]) } == .noUnusedSpace)
        #expect(verdict { try add(path, "three", ["one", "wrong"]) } == .noSpaceOpens)
        #expect(verdict { try add(path, "two", ["one"]) } == .passwordTaken)
        #expect(verdict { try add(path, "two", []) } == .passwordTaken)
    }

    @Test func `the one space of a vault is never taken`() throws {
        let path = try makeQuickVault(1)
        let before = try files(path)
        #expect(verdict { try add(path, "two", []) } == .singleSpace)
        #expect(verdict { try add(path, "two", ["one"]) } == .singleSpace)
        #expect(try files(path) == before)
    }

    @Test func `a space that survives is known with its key file or without`() throws {
        let path = try makeQuickVault(3, holes: true)
        let (first, second) = (KeyFile(secret("a file")), KeyFile(secret("another")))
        try patiently {
            try Vault.addSpace(
                path, new: first.combined(with: secret("two")), surviving: [secret("one")],
                stretcher: stretcher, calls: calls)
        }
        func addAnother(_ keyFiles: [KeyFile]) -> VaultError? {
            verdict {
                try Vault.addSpace(
                    path, new: secret("three"), surviving: [secret("one"), secret("two")], keyFiles: keyFiles,
                    stretcher: stretcher, calls: calls)
            }
        }
        #expect(addAnother([]) == .noSpaceOpens)
        #expect(addAnother([second]) == .noSpaceOpens)
        #expect(addAnother([second, first]) == nil)
        for password in [secret("one"), first.combined(with: secret("two")), secret("three")] {
            _ = try patiently {
                try Vault.unlock(path, password: password, stretcher: stretcher, calls: calls)
            }
        }
    }

    /// Work is counted, not timed: runs of the derivation and slots that are tried.
    @Test func `a wrong password, an unused slot and a damaged one are the same work`() throws {
        let path = try makeQuickVault(4, holes: true)
        try add(path, "two", ["one"])
        _ = stretcher.runs()
        func tries(_ password: String) throws -> [Int] {
            let header = try Header.read(image: try headerBytes(path))
            var tried: [Int] = []
            let stretched = try header.stretched(secret(password), by: QuickStretcher())
            _ = try header.openKeySlots(stretched) { tried.append($0) }
            return tried
        }
        for password in ["one", "two"] {
            _ = try unlock(path, password)
            #expect(stretcher.runs() == 1)
            #expect(try tries(password) == [0, 1, 2, 3])
        }
        #expect(verdict { _ = try unlock(path, "wrong") } == .noSpaceOpens)
        #expect(stretcher.runs() == 1)
        let slot = try unlock(path, "two").index
        var header = try Header.read(image: try headerBytes(path))
        _ = stretcher.runs()
        // Damaged and with a right checksum; then unused.
        for change in 0..<2 {
            if change == 0 { header.damageSlot(slot) } else { header.clearKeySlot(slot) }
            try writeHeader(path, header.image())
            #expect(verdict { _ = try unlock(path, "two") } == .noSpaceOpens)
            #expect(stretcher.runs() == 1)
            #expect(try tries("two") == [0, 1, 2, 3])
        }
    }
}

extension Header {
    /// One bit of a slot, with the checksum that belongs to it.
    fileprivate mutating func damageSlot(_ slot: Int) {
        var copy = bytes
        copy[HeaderLayout.keySlotOffset(slot) + HeaderLayout.keySlotSealedOffset] ^= 1
        copy.withUnsafeMutableBytes {
            hash(
                [UnsafeRawBufferPointer(rebasing: $0[..<HeaderLayout.checksumOffset])],
                into: UnsafeMutableRawBufferPointer(rebasing: $0[HeaderLayout.checksumOffset...]))
        }
        guard let damaged = try? Header.read(image: copy) else { return }
        self = damaged
    }
}
