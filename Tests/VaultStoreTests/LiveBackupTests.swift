import Foundation
import LinuxIO
import Testing
import VaultFormat

@testable import VaultStore

/// Copies of a vault that is written to meanwhile.
@Suite("Commands: backup, of a mount") struct LiveBackupTests {
    let directory = TemporaryDirectory()
    private var copy: String { directory.path + "/copy" }

    /// A space nearly full of contents, all in the newest durable root.
    private struct Full {
        let path: String
        let space: Space
        var contents: [UInt64: [ExtentRun]] = [:]

        static func data(_ content: UInt64) -> [UInt8] { bytes(250_000, seed: content) }

        init(_ directory: TemporaryDirectory) throws {
            path = try makeVault(directory, spaces: 2, bytes: 16 << 20, calls: DyingCalls())
            space = try openSpace(path, calls: DyingCalls())
            space.stage(0, 1)
            while let runs = try? space.writeAll(UInt64(contents.count), Self.data(UInt64(contents.count))) {
                space.adopt(runs)
                contents[UInt64(contents.count)] = runs
            }
            try space.commit(durable: true)
            try space.commit(durable: true)
        }

        /// Frees everything for good, and writes as much as there is room for, page by page with durable roots.
        func replaceAll(_ round: UInt8) throws {
            for runs in contents.values { space.free(runs) }
            for page in 0..<40 { space.stage(UInt32(page), round) }
            for _ in 0..<3 {
                space.stage(0, round)
                try space.commit(durable: true)
            }
            var content = UInt64(round) * 1000
            while let runs = try? space.writeAll(content, Self.data(content)) {
                space.adopt(runs)
                content += 1
            }
            for step in 0..<30 {
                for page in 0..<40 { space.stage(UInt32(page), round &+ UInt8(step)) }
                try space.commit(durable: true)
            }
        }

        /// Whether a copy has the state from before `replaceAll`.
        func isFirst(_ copy: String) throws -> Bool {
            let found = try openSpace(copy, readOnly: true)
            guard try found.page(0) == 1 else { return false }
            return try contents.allSatisfy { content, runs in
                try found.readAll(content, runs) == Self.data(content)
            }
        }
    }

    /// All that the copied state refers to is given back and there is no other room: it stays until the copy is made.
    @Test func `a mount keeps what a copy needs`() throws {
        let full = try Full(directory)
        var isDone = false
        var failure: (any Error)?
        // When the heads have been read, and nothing else yet.
        _ = try Vault.backup(full.path, to: copy, calls: DyingCalls()) { _, _ in
            if isDone { return }
            isDone = true
            do { try full.replaceAll(7) } catch { failure = error }
        }
        if let failure { throw failure }
        #expect(isDone)
        #expect(try full.isFirst(copy))

        // All of the room comes back when the copy is made.
        let before = full.space.sectors.capacity.free
        for _ in 0..<4 { try full.space.commit(durable: true) }
        #expect(full.space.sectors.capacity.free == before)
        #expect(full.space.parts.lock.withLock { full.space.parts.freed.keptEntries.isEmpty })
        #expect(try full.space.writeAll(9000, Full.data(9000)).count > 0)
    }

    /// A mount that begins anew meanwhile finds the kept sectors among those that its predecessor gave back.
    @Test func `what was kept is not lost in a crash`() throws {
        let path: String
        var free: UInt64 = 0
        do {
            let full = try Full(directory)
            path = full.path
            free = full.space.sectors.capacity.free
            var isDone = false
            _ = try Vault.backup(path, to: copy, calls: DyingCalls()) { _, _ in
                if isDone { return }
                isDone = true
                for runs in full.contents.values { full.space.free(runs) }
                for _ in 0..<4 {
                    full.space.stage(0, 2)
                    try? full.space.commit(durable: true)
                }
            }
            #expect(isDone)
            #expect(try full.isFirst(copy))
            // The space is dropped and not closed.
        }
        let space = try openSpace(path, calls: DyingCalls())
        for round in 0..<4 {
            space.stage(0, UInt8(round))
            try space.commit(durable: true)
        }
        #expect(space.sectors.pendingBytes == 0)
        #expect(space.sectors.capacity.free > free + 6 << 20)
    }

    /// Users come first: where room runs out the copy is begun anew, and is the newer state.
    @Test func `a mount that needs the room makes the copy begin anew`() throws {
        let full = try Full(directory)
        var passes = 0
        _ = try Vault.backup(full.path, to: copy, calls: DyingCalls()) { done, _ in
            if done < 1 << 20 { passes += 1 }
            guard passes == 1, done > 4 << 20 else { return }
            passes += 100
            full.space.releaseBackupHolds()
            try? full.replaceAll(7)
        }
        #expect(passes > 101)
        #expect(try openSpace(copy, readOnly: true).page(0) == 7 + 29)
    }

    /// Where nobody answers, as on another machine, two durable roots end a pass.
    @Test func `a copy that nobody keeps room for is never made of two states`() throws {
        let full = try Full(directory)
        // Another copy under way: this one has no promise.
        let other = try VaultFiles.open(full.path, calls: LinuxCalls.shared)
        try ByteLock.hold(other.header, CopyLocks.copies.lowerBound + 5)
        var round: UInt8 = 10
        #expect(throws: BackupError.changing) {
            _ = try Vault.backup(full.path, to: copy, calls: DyingCalls()) { _, _ in
                round &+= 1
                full.space.stage(0, round)
                try? full.space.commit(durable: true)
            }
        }
        #expect(throws: VaultError.unfinishedCopy) { try openSpace(copy) }
        var isDone = false
        _ = try Vault.backup(full.path, to: copy, calls: DyingCalls()) { _, _ in
            if isDone { return }
            isDone = true
            full.space.stage(0, 200)
            try? full.space.commit(durable: true)
        }
        #expect(try openSpace(copy, readOnly: true).page(0) == round)
    }
}
