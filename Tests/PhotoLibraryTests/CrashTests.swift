import Foundation
import LinuxIO
import TestSupport
import Testing
import VaultCatalogue

@testable import PhotoLibrary
@testable import VaultStore

/// Daemons that were killed, and commits that failed.
@Suite struct CrashTests {
    @Test func whatWasClosedOutlivesAKilledDaemon() throws {
        let rig = try Rig()
        try rig.mkdir("albums/Trip")
        try rig.put("albums/Trip/x.jpg", jpeg("2024-05-01", more: 1))
        try rig.put("albums/f", noise(400_000))
        let name = Array("user.a".utf8)
        try rig.library.setExtendedAttribute(try rig.ino("albums/f"), name: name, value: [1], policy: .any)
        try rig.kill()
        #expect(try rig.moments() == ["2024-05-01/x.jpg"])
        #expect(try rig.get("albums/f") == noise(400_000))
        #expect(try rig.library.getExtendedAttribute(try rig.ino("albums/f"), name: name) == [1])
    }

    /// Again and again: each session builds on the soft root of one that was never closed.
    @Test func everySessionMayBeKilled() throws {
        let rig = try Rig()
        for round in 0..<6 {
            try rig.put("albums/f", noise(200_000, seed: round))
            try rig.put("albums/p\(round).jpg", jpeg("2024-05-0\(round + 1)", more: round))
            if round > 1 { try rig.rm("moments/2024-05-0\(round - 1)/p\(round - 2).jpg") }
            try rig.kill()
            #expect(try rig.get("albums/f") == noise(200_000, seed: round))
            #expect(try rig.ls("albums").count == min(round + 1, 2) + 1)
        }
        try rig.rm("albums/f")
        try rig.rm("moments/2024-05-05/p4.jpg")
        try rig.rm("moments/2024-05-06/p5.jpg")
        #expect(rig.usedBytes == 0)
        try rig.expectNothingLeft()
    }

    @Test func whatWasNotSavedIsAsItWasBefore() throws {
        let rig = try Rig()
        try rig.put("albums/f", noise(300_000))
        try leaveUnsaved(rig)
        try rig.kill()
        #expect(try rig.get("albums/f") == noise(300_000))
        try rig.rm("albums/f")
        #expect(rig.usedBytes == 0)
        try rig.expectNothingLeft()
    }

    /// Taken apart, the file is not saved by the committer either.
    private func leaveUnsaved(_ rig: Rig) throws {
        let handle = try rig.open("albums/f")
        try rig.write(handle, [1, 2, 3], at: 150_000)
        try rig.write(handle, noise(131_072, seed: 9), at: 262_144)
        #expect(try rig.read(handle, 3, at: 150_000) == [1, 2, 3])
        rig.library.abandon(try #require(handle.state))
    }

    /// What was synced is there, so it is a photo too, though nobody came to close it.
    @Test(arguments: [false, true]) func aPhotoThatWasSyncedButNotClosedIsFiled(isNew: Bool) throws {
        let rig = try Rig()
        if !isNew { try rig.put("albums/a.jpg", jpeg("2023-01-01", more: 1)) }
        try leaveOpen(rig, isNew: isNew, jpeg("2024-05-01", more: 2))
        try rig.kill()
        rig.library.didGoLive()
        #expect(try rig.moments() == ["2024-05-01/a.jpg"])
        #expect(try unfiled(rig) == [])
    }

    /// What was not to be that yet takes no photo from its day.
    @Test func aPhotoThatWasHalfRewrittenAndSyncedStaysInItsDay() throws {
        let rig = try Rig()
        try rig.put("albums/a.jpg", jpeg("2023-01-01", more: 1))
        try leaveOpen(rig, isNew: false, [0, 0, 0])
        try rig.kill()
        rig.library.didGoLive()
        #expect(try rig.moments() == ["2023-01-01/a.jpg"])
        #expect(try unfiled(rig) == [])
    }

    private func leaveOpen(_ rig: Rig, isNew: Bool, _ bytes: [UInt8]) throws {
        let handle = try isNew ? rig.createOpen("albums/a.jpg") : rig.open("albums/a.jpg")
        try rig.write(handle, bytes)
        try rig.library.fsync(handle, dataOnly: false)
        rig.library.abandon(try #require(handle.state))
    }

    private func unfiled(_ rig: Rig) throws -> [UInt64] {
        try rig.library.locked { tree throws(FileError) in try sql(tree.tables.unfiled()) }
    }

    @Test func aFileThatIsClosedAfterASyncIsFiledOnce() throws {
        let rig = try Rig()
        let handle = try rig.createOpen("albums/a.jpg")
        try rig.write(handle, jpeg("2024-05-01", more: 2))
        try rig.library.fsync(handle, dataOnly: false)
        #expect(try unfiled(rig) == [handle.ino])
        try rig.close(handle)
        #expect(try unfiled(rig) == [])
        #expect(try rig.moments() == ["2024-05-01/a.jpg"])
    }

    @Test func filesWithoutANameAreGoneAfterAKill() throws {
        let rig = try Rig()
        try rig.put("albums/f", noise(500_000))
        try removeWhileOpen(rig)
        try rig.kill()
        #expect(rig.usedBytes == 0)
        try rig.expectNothingLeft()
    }

    private func removeWhileOpen(_ rig: Rig) throws {
        let handle = try rig.open("albums/f", O_RDONLY)
        try rig.library.unlink(3, "f", rig.caller)
        #expect(try rig.read(handle, 10) == Array(noise(500_000).prefix(10)))
        #expect(rig.usedBytes > 0)
        rig.library.abandon(try #require(handle.state))
    }

    /// Each of the first writes and syncs after a change fails once. What was answered is there, whatever
    /// failed.
    @Test func aCommitThatFailsIsTriedAgain() throws {
        let rig = try Rig()
        let directory = try rig.library.openDirectory(3)
        var expected: [String] = []
        for failing in 0..<24 {
            rig.vault.calls.failOnce(after: failing)
            if (try? rig.put("albums/f\(failing)", noise(1000, seed: failing))) != nil {
                expected.append("f\(failing)")
            }
            try? rig.library.fsyncDirectory(directory)
            rig.vault.calls.failOnce(after: nil)
            try rig.library.fsyncDirectory(directory)
        }
        #expect(Set(try rig.ls("albums")).isSuperset(of: expected))
        for name in try rig.ls("albums") { try rig.rm("albums/" + name) }
        #expect(rig.usedBytes == 0)
    }

    /// A kill right after a commit failed finds the state before it or the state after it, whole.
    @Test func aKillAfterAFailedCommitFindsAWholeState() throws {
        let rig = try Rig()
        try rig.put("albums/kept", noise(150_000))
        for failing in stride(from: 0, to: 20, by: 3) {
            rig.vault.calls.failOnce(after: failing)
            let seen = rig.space.generation
            _ = try? rig.put("albums/f", noise(100_000, seed: failing))
            eventually { !rig.vault.calls.isFailureDue || rig.space.generation > seen }
            rig.vault.calls.failOnce(after: nil)
            try rig.kill()
            #expect(try rig.get("albums/kept") == noise(150_000))
            if rig.exists("albums/f") { try rig.rm("albums/f") }
        }
        try rig.rm("albums/kept")
        #expect(rig.usedBytes == 0)
        try rig.expectNothingLeft()
    }
}
