import Foundation
import LinuxIO
import TestSupport
import Testing

@testable import PhotoLibrary
@testable import VaultStore

@Suite struct FileTests {
    @Test(arguments: [0, 1, 4095, 131_071, 131_072, 131_073, 400_000, 3_000_001])
    func whatWentInComesOut(size: Int) throws {
        let rig = try Rig()
        let bytes = noise(size)
        try rig.put("albums/f", bytes)
        #expect(try rig.get("albums/f") == bytes)
        #expect(try rig.stat("albums/f").size == UInt64(size))
        #expect(try rig.stat("albums/f").blocks == UInt64((size + 511) / 512))
        try rig.remount()
        #expect(try rig.get("albums/f") == bytes)
        try rig.rm("albums/f")
        #expect(rig.usedBytes == 0)
        try rig.expectNothingLeft()
    }

    @Test func chunksThatWereSplitAreReadAsOne() throws {
        let rig = try Rig(isFragmented: true)
        let bytes = noise(300_000)
        try rig.put("albums/f", bytes)
        #expect(try rig.get("albums/f") == bytes)
        do {
            let handle = try rig.open("albums/f")
            #expect(handle.state?.map.pieces.count == 7)
            try rig.write(handle, [1, 2, 3], at: 130_000)
            try rig.close(handle)
        }
        var expected = bytes
        expected.replaceSubrange(130_000..<130_003, with: [1, 2, 3])
        #expect(try rig.get("albums/f") == expected)
        try rig.truncate("albums/f", 131_072)
        #expect(try rig.get("albums/f") == Array(expected.prefix(131_072)))
        try rig.remount()
        #expect(try rig.get("albums/f") == Array(expected.prefix(131_072)))
        try rig.rm("albums/f")
        #expect(rig.usedBytes == 0)
        try rig.expectNothingLeft()
    }

    @Test func whatIsWrittenIsSeenBeforeClose() throws {
        let rig = try Rig()
        let writer = try rig.createOpen("albums/f")
        let reader = try rig.open("albums/f", O_RDONLY)
        try rig.write(writer, [1, 2, 3], at: 5)
        #expect(try rig.read(reader) == [0, 0, 0, 0, 0, 1, 2, 3])
        #expect(try rig.stat("albums/f").size == 8)
        try rig.close(writer)
        rig.library.release(reader)
    }

    @Test func truncatingAndHoles() throws {
        let rig = try Rig()
        let handle = try rig.createOpen("albums/f")
        try rig.write(handle, noise(300_000))
        try rig.truncate("albums/f", 200_000)
        try rig.truncate("albums/f", 300_000)
        #expect(
            try rig.get("albums/f") == Array(noise(300_000).prefix(200_000))
                + Array(repeating: 0, count: 100_000))
        try rig.truncate("albums/f", 10_000_000)
        #expect(try rig.library.seek(handle, offset: 0, whence: .hole) == 200_000)
        expectError(.noSuchDeviceOrAddress) {
            _ = try rig.library.seek(handle, offset: 300_000, whence: .data)
        }
        try rig.write(handle, [9], at: 9_000_000)
        let data = try rig.library.seek(handle, offset: 300_000, whence: .data)
        #expect(data == 9_000_000 / 131_072 * 131_072)
        #expect(try rig.library.seek(handle, offset: 9_000_001, whence: .hole) == 9_000_001)
        // Punching and zeroing.
        try rig.library.allocate(handle, mode: 3, offset: 1000, length: 150_000)
        var expected = Array(noise(300_000).prefix(200_000))
        expected.replaceSubrange(1000..<151_000, with: Array(repeating: 0, count: 150_000))
        #expect(try rig.read(handle, 200_000) == expected)
        try rig.library.allocate(handle, mode: 0x10, offset: 9_999_000, length: 2000)
        #expect(try rig.stat("albums/f").size == 10_001_000)
        try rig.library.allocate(handle, mode: 1, offset: 20_000_000, length: 1)
        #expect(try rig.stat("albums/f").size == 10_001_000)
        try rig.library.allocate(handle, mode: 0, offset: 20_000_000, length: 1)
        #expect(try rig.stat("albums/f").size == 20_000_001)
        expectError(.notSupported) { try rig.library.allocate(handle, mode: 8, offset: 0, length: 4096) }
        try rig.close(handle)
        try rig.rm("albums/f")
        #expect(rig.usedBytes == 0)
    }

    @Test func unlinkedButOpenFilesLive() throws {
        let rig = try Rig()
        let handle = try rig.createOpen("albums/f")
        try rig.write(handle, noise(200_000))
        try rig.rm("albums/f")
        try rig.write(handle, [1, 2], at: 200_000)
        #expect(try rig.read(handle, 10, at: 199_998) == Array(noise(200_000).suffix(2)) + [1, 2])
        #expect(try rig.library.attributes(handle.ino, handle: handle).0.nlink == 0)
        try rig.close(handle)
        #expect(rig.usedBytes == 0)
    }

    @Test func anUnlinkedFileLivesUntilItIsForgotten() throws {
        let rig = try Rig()
        let ino = try rig.put("albums/f", noise(1000))
        try rig.library.unlink(3, "f", rig.caller)
        do {
            let handle = try rig.library.open(ino, flags: O_RDONLY, rig.caller)
            #expect(try rig.read(handle) == noise(1000))
            rig.library.release(handle)
        }
        #expect(rig.usedBytes > 0)
        try rig.remount()
        #expect(rig.usedBytes == 0)
        expectError(.stale) { _ = try rig.library.attributes(ino) }
        try rig.expectNothingLeft()
    }

    @Test func copyingRanges() throws {
        let rig = try Rig()
        try rig.put("albums/a", noise(500_000))
        let from = try rig.open("albums/a", O_RDONLY)
        let to = try rig.createOpen("albums/b")
        #expect(
            try rig.library.copyRange(from: from, offset: 1000, to: to, offset: 0, count: 1 << 30) == 499_000)
        #expect(try rig.library.copyRange(from: from, offset: 500_000, to: to, offset: 0, count: 5) == 0)
        try rig.close(to)
        #expect(try rig.get("albums/b") == Array(noise(500_000).dropFirst(1000)))
        expectError(.invalid) {
            let both = try rig.open("albums/a")
            _ = try rig.library.copyRange(from: both, offset: 0, to: both, offset: 10, count: 100)
        }
    }

    @Test func damageIsAnErrorAndNothingElse() throws {
        let rig = try Rig()
        try rig.put("albums/a", noise(300_000))
        try rig.damage("albums/a", at: 131_072)
        let handle = try rig.open("albums/a", O_RDONLY)
        #expect(try rig.read(handle, 131_072) == Array(noise(300_000).prefix(131_072)))
        expectError(.damaged) { _ = try rig.read(handle, 10, at: 131_072) }
        #expect(try rig.read(handle, 10, at: 262_144).count == 10)
        rig.library.release(handle)
        // What is damaged can be written over, and removed.
        let writer = try rig.open("albums/a")
        expectError(.damaged) { try rig.write(writer, [1], at: 131_073) }
        try rig.write(writer, noise(131_072, seed: 2), at: 131_072)
        try rig.close(writer)
        #expect(try rig.read(writer, 131_072, at: 131_072) == noise(131_072, seed: 2))
        try rig.damage("albums/a", at: 0)
        try rig.rm("albums/a")
        #expect(rig.usedBytes == 0)
    }

    @Test func aFullSpaceHarmsNothing() throws {
        let rig = try Rig(bytes: 16 << 20)
        try rig.put("albums/kept", noise(700_000))
        let written = try fill(rig, "albums/big")
        #expect(try rig.stat("albums/big").size == UInt64(written))
        #expect(try rig.get("albums/kept") == noise(700_000))
        try rig.truncate("albums/big", 100_001)
        try rig.rm("albums/big")
        try rig.put("albums/again", noise(1_000_000))
        #expect(try rig.get("albums/again") == noise(1_000_000))
        try rig.remount()
        #expect(try rig.get("albums/again") == noise(1_000_000))
        #expect(try rig.get("albums/kept") == noise(700_000))
        try rig.rm("albums/again")
        try rig.rm("albums/kept")
        #expect(rig.usedBytes == 0)
        try rig.expectNothingLeft()
    }

    /// Writes until there is no room; returns how many bytes were written.
    private func fill(_ rig: Rig, _ path: String) throws -> Int {
        let handle = try rig.createOpen(path)
        var written = 0
        do {
            while written < 16 << 20 {
                written += try rig.write(handle, noise(65_536), at: UInt64(written))
            }
            Issue.record("never full")
        } catch let error as FileError {
            #expect(error == .noRoom)
        }
        try rig.close(handle)
        return written
    }

    @Test func manyOpenDirtyFilesStayWithinBounds() throws {
        let rig = try Rig()
        var handles: [Handle] = []
        for number in 0..<400 {
            let handle = try rig.createOpen("albums/f\(number)")
            try rig.write(handle, noise(5000, seed: number))
            handles.append(handle)
        }
        for handle in handles { try rig.close(handle) }
        for number in stride(from: 0, to: 400, by: 37) {
            #expect(try rig.get("albums/f\(number)") == noise(5000, seed: number))
        }
    }

    @Test func writingClearsSetUserID() throws {
        let rig = try Rig()
        try rig.put("albums/f", [1])
        let user = Caller(uid: 1000, gid: 1000)
        for (mode, expected) in [(0o6777, 0o777), (0o2666, 0o2666)] as [(UInt32, UInt32)] {
            _ = try rig.library.setAttributes(
                try rig.ino("albums/f"), AttributeChanges(mode: mode), rig.caller)
            let handle = try rig.open("albums/f")
            _ = try [UInt8(1)].withUnsafeBytes { try rig.library.write(handle, offset: 0, $0, user) }
            try rig.close(handle)
            #expect(try rig.stat("albums/f").mode & 0o7777 == expected)
        }
    }

    @Test func fsyncMakesDurableOnceForMany() throws {
        let rig = try Rig()
        let handle = try rig.createOpen("albums/f")
        try rig.write(handle, [1])
        func durable() -> UInt64 { rig.space.lock.withLock { rig.space.durableGeneration } }
        let before = durable()
        try rig.library.fsync(handle, dataOnly: false)
        let after = durable()
        #expect(after > before)
        try rig.library.fsync(handle, dataOnly: false)
        #expect(durable() == after)
        rig.vault.calls.failSyncs(.inputOutput)
        try rig.write(handle, [2])
        expectError(.damaged) { try rig.library.fsync(handle, dataOnly: false) }
        rig.vault.calls.failSyncs(nil)
        try rig.library.fsync(handle, dataOnly: false)
        #expect(durable() > after)
        try rig.close(handle)
    }

    @Test func whatCannotBeWrittenIsToldAndNotLost() throws {
        let rig = try Rig()
        try rig.put("albums/kept", noise(200_000))
        let handle = try rig.createOpen("albums/f")
        try rig.write(handle, noise(50_000))
        rig.vault.calls.failWrites(.inputOutput)
        expectError(.damaged) { try rig.write(handle, noise(131_072), at: 131_072) }
        expectError(.damaged) { try rig.library.flush(handle) }
        #expect(try rig.read(handle, 50_000) == noise(50_000))
        rig.vault.calls.failWrites(.noSpace)
        expectError(.noRoom) { try rig.library.flush(handle) }
        rig.vault.calls.failWrites(nil)
        try rig.close(handle)
        #expect(try rig.get("albums/f") == noise(50_000))
        #expect(try rig.get("albums/kept") == noise(200_000))
        for name in ["f", "kept"] { try rig.rm("albums/" + name) }
        #expect(rig.usedBytes == 0)
    }

    @Test func changesArePublishedSoonAndNothingWithoutChanges() throws {
        let rig = try Rig()
        let directory = try rig.library.openDirectory(3)
        try rig.library.fsyncDirectory(directory)
        let idle = rig.space.generation
        expectError(.noEntry) { try rig.library.unlink(3, "none", rig.caller) }
        expectError(.exists) { try rig.library.rename(1, "albums", 1, "moments", .noReplace, rig.caller) }
        _ = try rig.ls("albums")
        try rig.library.fsyncDirectory(directory)
        #expect(rig.space.generation == idle, "what fails changes nothing")
        try rig.put("albums/f", [1])
        #expect(eventually { rig.space.generation > idle })
        // What an open file was given is sealed and published before it is closed.
        let handle = try rig.open("albums/f")
        try rig.write(handle, [7])
        #expect(eventually { !handle.hasUnsavedBytes })
        #expect(rig.space.lock.withLock { rig.space.sectors.reservedSectors } == 0)
        try rig.close(handle)
    }
}

extension PhotoLibrary.FileHandle {
    fileprivate var hasUnsavedBytes: Bool { state?.hasUnsaved ?? false }
}
