import Foundation
import LibraryFixtures
import LinuxIO
import TestSupport
import Testing
import VaultCatalogue

@testable import FileRequests
@testable import PhotoLibrary
@testable import VaultStore

/// Daemons that were killed, and commits that failed.
@Suite("Crashes: a killed library") struct CrashTests {
    @Test func `closed files outlive a killed daemon`() throws {
        let fixture = try Fixture()
        try fixture.mkdir("albums/Trip")
        try fixture.put("albums/Trip/x.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/f", noise(400_000))
        let name = Array("user.a".utf8)
        try fixture.library.setExtendedAttribute(
            try fixture.ino("albums/f"), name: name, value: [1], policy: .any)
        try fixture.kill()
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
        #expect(try fixture.get("albums/f") == noise(400_000))
        #expect(try fixture.library.getExtendedAttribute(try fixture.ino("albums/f"), name: name) == [1])
    }

    /// Again and again: each session builds on the soft root of one that was never closed.
    @Test func `every session may be killed`() throws {
        let fixture = try Fixture()
        for round in 0..<6 {
            try fixture.put("albums/f", noise(200_000, seed: round))
            try fixture.put("albums/p\(round).jpg", jpeg("2024-05-0\(round + 1)", more: round))
            if round > 1 { try fixture.rm("moments/2024-05-0\(round - 1)/p\(round - 2).jpg") }
            try fixture.kill()
            #expect(try fixture.get("albums/f") == noise(200_000, seed: round))
            #expect(try fixture.ls("albums").count == min(round + 1, 2) + 1)
        }
        try fixture.rm("albums/f")
        try fixture.rm("moments/2024-05-05/p4.jpg")
        try fixture.rm("moments/2024-05-06/p5.jpg")
        #expect(fixture.usedBytes == 0)
        try fixture.expectNothingLeft()
    }

    @Test func `a file that was not saved is as it was before`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/f", noise(300_000))
        try leaveUnsaved(fixture)
        try fixture.kill()
        #expect(try fixture.get("albums/f") == noise(300_000))
        try fixture.rm("albums/f")
        #expect(fixture.usedBytes == 0)
        try fixture.expectNothingLeft()
    }

    /// Taken apart, the file is not saved by the committer either.
    private func leaveUnsaved(_ fixture: Fixture) throws {
        let handle = try fixture.open("albums/f")
        try fixture.write(handle, [1, 2, 3], at: 150_000)
        try fixture.write(handle, noise(131_072, seed: 9), at: 262_144)
        #expect(try fixture.read(handle, 3, at: 150_000) == [1, 2, 3])
        fixture.library.abandon(try #require(handle.state))
    }

    /// How the bytes of an open file come into a commit.
    enum Saving: CaseIterable {
        case byItsProgram, ofTheRoot, byTheCommitter, byTheFirstClose, byAllocation, byTruncation
    }

    /// A saved file is there, so it is a photo too, though it was not closed.
    @Test(arguments: [false, true], Saving.allCases)
    func `a photo that was saved but not closed is filed`(isNew: Bool, saving: Saving) throws {
        let fixture = try Fixture()
        if !isNew { try fixture.put("albums/a.jpg", jpeg("2023-01-01", more: 1)) }
        try leaveOpen(fixture, isNew: isNew, jpeg("2024-05-01", more: 2), saving)
        try fixture.kill()
        fixture.library.didGoLive()
        #expect(try fixture.moments() == ["2024-05-01/a.jpg"])
        #expect(try pendingClassification(fixture) == [])
    }

    /// An unfinished file takes no photo from its day.
    @Test func `a photo that was half rewritten and synced stays in its day`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/a.jpg", jpeg("2023-01-01", more: 1))
        try leaveOpen(fixture, isNew: false, [0, 0, 0])
        try fixture.kill()
        fixture.library.didGoLive()
        #expect(try fixture.moments() == ["2023-01-01/a.jpg"])
        #expect(try pendingClassification(fixture) == [])
    }

    private func leaveOpen(
        _ fixture: Fixture, isNew: Bool, _ bytes: [UInt8], _ saving: Saving = .byItsProgram
    ) throws {
        let handle = try isNew ? fixture.createOpen("albums/a.jpg") : fixture.open("albums/a.jpg")
        try fixture.write(handle, bytes)
        switch saving {
        case .byItsProgram: try fixture.library.fsync(handle, dataOnly: false)
        case .ofTheRoot: try fixture.library.fsyncDirectory(fixture.library.openDirectory(1))
        case .byTheCommitter: #expect(!fixture.library.session.saveFiles(unsavedBefore: .max))
        case .byTheFirstClose:
            _ = try fixture.open("albums/a.jpg")
            try fixture.library.flush(handle)
        case .byAllocation:
            try fixture.library.ranges.allocate(handle, mode: 0, offset: 0, length: UInt64(bytes.count))
        case .byTruncation: try fixture.truncate("albums/a.jpg", UInt64(bytes.count + 1))
        }
        fixture.library.abandon(try #require(handle.state))
    }

    private func pendingClassification(_ fixture: Fixture) throws -> [UInt64] {
        try fixture.library.session.locked { tree throws(FileError) in
            try tree.tables.pendingClassification.numbers()
        }
    }

    @Test func `a file that is closed after a sync is filed once`() throws {
        let fixture = try Fixture()
        let handle = try fixture.createOpen("albums/a.jpg")
        try fixture.write(handle, jpeg("2024-05-01", more: 2))
        try fixture.library.fsync(handle, dataOnly: false)
        #expect(try pendingClassification(fixture) == [handle.ino])
        try fixture.close(handle)
        #expect(try pendingClassification(fixture) == [])
        #expect(try fixture.moments() == ["2024-05-01/a.jpg"])
    }

    @Test func `files without a name are gone after a kill`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/f", noise(500_000))
        try removeWhileOpen(fixture)
        try fixture.kill()
        #expect(fixture.usedBytes == 0)
        try fixture.expectNothingLeft()
    }

    private func removeWhileOpen(_ fixture: Fixture) throws {
        let handle = try fixture.open("albums/f", O_RDONLY)
        try fixture.library.unlink(3, "f", fixture.caller)
        #expect(try fixture.read(handle, 10) == Array(noise(500_000).prefix(10)))
        #expect(fixture.usedBytes > 0)
        fixture.library.abandon(try #require(handle.state))
    }

    /// Each of the first writes and syncs after a change fails once. Answered changes are there after
    /// any of them.
    @Test func `a commit that fails is tried again`() throws {
        let fixture = try Fixture()
        let directory = try fixture.library.openDirectory(3)
        var expected: [String] = []
        for failing in 0..<24 {
            fixture.vault.calls.failOnce(after: failing)
            if (try? fixture.put("albums/f\(failing)", noise(1000, seed: failing))) != nil {
                expected.append("f\(failing)")
            }
            try? fixture.library.fsyncDirectory(directory)
            fixture.vault.calls.failOnce(after: nil)
            try fixture.library.fsyncDirectory(directory)
        }
        #expect(Set(try fixture.ls("albums")).isSuperset(of: expected))
        for name in try fixture.ls("albums") { try fixture.rm("albums/" + name) }
        #expect(fixture.usedBytes == 0)
    }

    /// A kill right after a failed commit leaves the state before it or the state after it, whole.
    @Test func `a kill after a failed commit finds a whole state`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/kept", noise(150_000))
        for failing in stride(from: 0, to: 20, by: 3) {
            fixture.vault.calls.failOnce(after: failing)
            let seen = fixture.space.generation
            _ = try? fixture.put("albums/f", noise(100_000, seed: failing))
            eventually { !fixture.vault.calls.isFailureDue || fixture.space.generation > seen }
            fixture.vault.calls.failOnce(after: nil)
            try fixture.kill()
            #expect(try fixture.get("albums/kept") == noise(150_000))
            if fixture.exists("albums/f") { try fixture.rm("albums/f") }
        }
        try fixture.rm("albums/kept")
        #expect(fixture.usedBytes == 0)
        try fixture.expectNothingLeft()
    }
}
