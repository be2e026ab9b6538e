import Foundation
import LibraryFixtures
import LinuxIO
import TestSupport
import Testing

@testable import FileRequests
@testable import PhotoLibrary
@testable import VaultStore

@Suite("Albums: bytes of files") struct FileTests {
    @Test(arguments: [0, 1, 4095, 131_071, 131_072, 131_073, 400_000, 3_000_001])
    func `bytes come out as they went in`(size: Int) throws {
        let fixture = try Fixture()
        let bytes = noise(size)
        try fixture.put("albums/f", bytes)
        #expect(try fixture.get("albums/f") == bytes)
        #expect(try fixture.stat("albums/f").size == UInt64(size))
        #expect(try fixture.stat("albums/f").blocks == UInt64((size + 511) / 512))
        try fixture.remount()
        #expect(try fixture.get("albums/f") == bytes)
        try fixture.rm("albums/f")
        #expect(fixture.usedBytes == 0)
        try fixture.expectNothingLeft()
    }

    @Test func `bytes that a program will sync go to the disk as they come`() throws {
        let fixture = try Fixture()
        let handle = try fixture.library.create(
            fixture.ino("albums"), "f", mode: 0o600, flags: O_RDWR, fixture.caller
        ).1
        // A machine that stands still for a second between the syncs tells of no haste.
        let isSoon = try eventually {
            for _ in 0..<2 {
                try fixture.write(handle, noise(1000), at: 0)
                try fixture.library.fsync(handle, dataOnly: false)
            }
            let before = fixture.vault.calls.soonCount
            try fixture.write(handle, noise(300_000), at: 0)
            return fixture.vault.calls.soonCount > before
        }
        #expect(isSoon)
        try fixture.close(handle)
    }

    @Test func `chunks that were split are read as one`() throws {
        let fixture = try Fixture(isFragmented: true)
        let bytes = noise(300_000)
        try fixture.put("albums/f", bytes)
        #expect(try fixture.get("albums/f") == bytes)
        do {
            let handle = try fixture.open("albums/f")
            #expect(handle.state?.map.pieces.count == 7)
            try fixture.write(handle, [1, 2, 3], at: 130_000)
            try fixture.close(handle)
        }
        var expected = bytes
        expected.replaceSubrange(130_000..<130_003, with: [1, 2, 3])
        #expect(try fixture.get("albums/f") == expected)
        try fixture.truncate("albums/f", 131_072)
        #expect(try fixture.get("albums/f") == Array(expected.prefix(131_072)))
        try fixture.remount()
        #expect(try fixture.get("albums/f") == Array(expected.prefix(131_072)))
        try fixture.rm("albums/f")
        #expect(fixture.usedBytes == 0)
        try fixture.expectNothingLeft()
    }

    /// One call on the disk takes about half a millisecond, for any number of bytes.
    @Test func `neighbouring chunks of one request are read by one call`() throws {
        let fixture = try Fixture()
        let bytes = noise(600_000)
        try fixture.put("albums/f", bytes)
        // A commit reads, too.
        try fixture.close()
        try fixture.reopen { $0.commitsByHand = true }
        let handle = try fixture.open("albums/f", O_RDONLY)
        defer { fixture.library.release(handle) }
        func read(_ offset: Int, _ count: Int) throws -> Int {
            let before = fixture.vault.calls.readCount
            let got = try fixture.library.read(handle, offset: UInt64(offset), count: count) { Array($0) }
            #expect(got == Array(bytes[offset..<min(offset + count, bytes.count)]))
            return fixture.vault.calls.readCount - before
        }
        #expect(try read(0, 262_144) == 1)
        #expect(try read(100_000, 200_000) == 1)
        #expect(try read(5, 600_000) == 2)
        #expect(try read(400_000, 400_000) == 1)
    }

    @Test func `written bytes are seen before close`() throws {
        let fixture = try Fixture()
        let writer = try fixture.createOpen("albums/f")
        let reader = try fixture.open("albums/f", O_RDONLY)
        try fixture.write(writer, [1, 2, 3], at: 5)
        #expect(try fixture.read(reader) == [0, 0, 0, 0, 0, 1, 2, 3])
        #expect(try fixture.stat("albums/f").size == 8)
        try fixture.close(writer)
        fixture.library.release(reader)
    }

    @Test func `truncating makes holes and ends`() throws {
        let fixture = try Fixture()
        let handle = try fixture.createOpen("albums/f")
        try fixture.write(handle, noise(300_000))
        try fixture.truncate("albums/f", 200_000)
        try fixture.truncate("albums/f", 300_000)
        #expect(
            try fixture.get("albums/f") == Array(noise(300_000).prefix(200_000))
                + Array(repeating: 0, count: 100_000))
        try fixture.truncate("albums/f", 10_000_000)
        #expect(try fixture.library.ranges.seek(handle, offset: 0, whence: .hole) == 200_000)
        expectError(.noSuchDeviceOrAddress) {
            _ = try fixture.library.ranges.seek(handle, offset: 300_000, whence: .data)
        }
        try fixture.write(handle, [9], at: 9_000_000)
        let data = try fixture.library.ranges.seek(handle, offset: 300_000, whence: .data)
        #expect(data == 9_000_000 / 131_072 * 131_072)
        #expect(try fixture.library.ranges.seek(handle, offset: 9_000_001, whence: .hole) == 9_000_001)
        // Punching and zeroing.
        try fixture.library.ranges.allocate(handle, mode: 3, offset: 1000, length: 150_000)
        var expected = Array(noise(300_000).prefix(200_000))
        expected.replaceSubrange(1000..<151_000, with: Array(repeating: 0, count: 150_000))
        #expect(try fixture.read(handle, 200_000) == expected)
        try fixture.library.ranges.allocate(handle, mode: 0x10, offset: 9_999_000, length: 2000)
        #expect(try fixture.stat("albums/f").size == 10_001_000)
        try fixture.library.ranges.allocate(handle, mode: 1, offset: 20_000_000, length: 1)
        #expect(try fixture.stat("albums/f").size == 10_001_000)
        try fixture.library.ranges.allocate(handle, mode: 0, offset: 20_000_000, length: 1)
        #expect(try fixture.stat("albums/f").size == 20_000_001)
        expectError(.notSupported) {
            try fixture.library.ranges.allocate(handle, mode: 8, offset: 0, length: 4096)
        }
        try fixture.close(handle)
        try fixture.rm("albums/f")
        #expect(fixture.usedBytes == 0)
    }

    @Test func `unlinked files live while they are open`() throws {
        let fixture = try Fixture()
        let handle = try fixture.createOpen("albums/f")
        try fixture.write(handle, noise(200_000))
        try fixture.rm("albums/f")
        try fixture.write(handle, [1, 2], at: 200_000)
        #expect(try fixture.read(handle, 10, at: 199_998) == Array(noise(200_000).suffix(2)) + [1, 2])
        #expect(try fixture.library.attributes(handle.ino, handle: handle).0.nlink == 0)
        try fixture.close(handle)
        #expect(fixture.usedBytes == 0)
    }

    @Test(arguments: [2, 3]) func `a kill between the batches of a removal leaves nothing to check`(rows: Int)
        throws
    {
        let fixture = try Fixture()
        try removePartly(fixture, rows: rows)
        // Opening audits the space; the second opening does so after the orphan was destroyed.
        try fixture.kill()
        #expect(fixture.usedBytes == 0)
        try fixture.remount()
    }

    /// Removes a file in batches of `rows` extents. The last batch is missing.
    private func removePartly(_ fixture: Fixture, rows: Int) throws {
        let handle = try fixture.createOpen("albums/f")
        // With holes between them, so that each has a row.
        for place in 0..<6 { try fixture.write(handle, noise(1000), at: UInt64(place) * 300_000) }
        try fixture.close(handle)
        try fixture.library.unlink(3, "f", fixture.caller)
        for _ in 0..<2 {
            let isGone = try fixture.library.session.change(for: .removal) { change throws(FileError) in
                try fixture.library.session.destroySome(change.tree.inode(handle.ino), rows: rows, change)
            }
            #expect(!isGone)
        }
    }

    @Test func `an unlinked file lives until it is forgotten`() throws {
        let fixture = try Fixture()
        let ino = try fixture.put("albums/f", noise(1000))
        try fixture.library.unlink(3, "f", fixture.caller)
        do {
            let handle = try fixture.library.open(ino, flags: O_RDONLY, fixture.caller)
            #expect(try fixture.read(handle) == noise(1000))
            fixture.library.release(handle)
        }
        #expect(fixture.usedBytes > 0)
        try fixture.remount()
        #expect(fixture.usedBytes == 0)
        expectError(.stale) { _ = try fixture.library.attributes(ino) }
        try fixture.expectNothingLeft()
    }

    @Test func `copying ranges shares their extents`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/a", noise(500_000))
        let from = try fixture.open("albums/a", O_RDONLY)
        let to = try fixture.createOpen("albums/b")
        #expect(
            try fixture.library.ranges.copyRange(from: from, offset: 1000, to: to, offset: 0, count: 1 << 30)
                == 499_000)
        #expect(
            try fixture.library.ranges.copyRange(from: from, offset: 500_000, to: to, offset: 0, count: 5)
                == 0)
        try fixture.close(to)
        #expect(try fixture.get("albums/b") == Array(noise(500_000).dropFirst(1000)))
        expectError(.invalid) {
            let both = try fixture.open("albums/a")
            _ = try fixture.library.ranges.copyRange(from: both, offset: 0, to: both, offset: 10, count: 100)
        }
    }

    @Test func `damage is an error, and never other bytes`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/a", noise(300_000))
        try fixture.damage("albums/a", at: 131_072)
        let handle = try fixture.open("albums/a", O_RDONLY)
        #expect(try fixture.read(handle, 131_072) == Array(noise(300_000).prefix(131_072)))
        expectError(.damaged) { _ = try fixture.read(handle, 10, at: 131_072) }
        #expect(try fixture.read(handle, 10, at: 262_144).count == 10)
        fixture.library.release(handle)
        // Damaged bytes can be overwritten, and removed.
        let writer = try fixture.open("albums/a")
        expectError(.damaged) { try fixture.write(writer, [1], at: 131_073) }
        try fixture.write(writer, noise(131_072, seed: 2), at: 131_072)
        try fixture.close(writer)
        #expect(try fixture.read(writer, 131_072, at: 131_072) == noise(131_072, seed: 2))
        try fixture.damage("albums/a", at: 0)
        try fixture.rm("albums/a")
        #expect(fixture.usedBytes == 0)
    }

    @Test func `a full space harms nothing`() throws {
        let fixture = try Fixture(bytes: 16 << 20)
        try fixture.put("albums/kept", noise(700_000))
        let written = try fill(fixture, "albums/big")
        #expect(try fixture.stat("albums/big").size == UInt64(written))
        #expect(try fixture.get("albums/kept") == noise(700_000))
        try fixture.truncate("albums/big", 100_001)
        try fixture.rm("albums/big")
        try fixture.put("albums/again", noise(1_000_000))
        #expect(try fixture.get("albums/again") == noise(1_000_000))
        try fixture.remount()
        #expect(try fixture.get("albums/again") == noise(1_000_000))
        #expect(try fixture.get("albums/kept") == noise(700_000))
        try fixture.rm("albums/again")
        try fixture.rm("albums/kept")
        #expect(fixture.usedBytes == 0)
        try fixture.expectNothingLeft()
    }

    /// Writes until there is no room; returns how many bytes were written.
    private func fill(_ fixture: Fixture, _ path: String) throws -> Int {
        let handle = try fixture.createOpen(path)
        var written = 0
        do {
            while written < 16 << 20 {
                written += try fixture.write(handle, noise(65_536), at: UInt64(written))
            }
            Issue.record("never full")
        } catch let error as FileError {
            #expect(error == .noRoom)
        }
        try fixture.close(handle)
        return written
    }

    @Test func `many open dirty files stay within bounds`() throws {
        let fixture = try Fixture()
        var handles: [Handle] = []
        for number in 0..<400 {
            let handle = try fixture.createOpen("albums/f\(number)")
            try fixture.write(handle, noise(5000, seed: number))
            handles.append(handle)
        }
        for handle in handles { try fixture.close(handle) }
        for number in stride(from: 0, to: 400, by: 37) {
            #expect(try fixture.get("albums/f\(number)") == noise(5000, seed: number))
        }
    }

    @Test func `writing clears the set-user-ID bit`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/f", [1])
        let user = Caller(uid: 1000, gid: 1000)
        for (mode, expected) in [(0o6777, 0o777), (0o2666, 0o2666)] as [(UInt32, UInt32)] {
            _ = try fixture.library.setAttributes(
                try fixture.ino("albums/f"), AttributeChanges(mode: mode), fixture.caller)
            let handle = try fixture.open("albums/f")
            _ = try [UInt8(1)].withUnsafeBytes { try fixture.library.write(handle, offset: 0, $0, user) }
            try fixture.close(handle)
            #expect(try fixture.stat("albums/f").mode & 0o7777 == expected)
        }
    }

    @Test func `fsync commits once for many`() throws {
        let fixture = try Fixture()
        let handle = try fixture.createOpen("albums/f")
        try fixture.write(handle, [1])
        func durable() -> UInt64 { fixture.space.newestDurable }
        let before = durable()
        try fixture.library.fsync(handle, dataOnly: false)
        let after = durable()
        #expect(after > before)
        try fixture.library.fsync(handle, dataOnly: false)
        #expect(durable() == after)
        fixture.vault.calls.failSyncs(.inputOutput)
        try fixture.write(handle, [2])
        expectError(.damaged) { try fixture.library.fsync(handle, dataOnly: false) }
        fixture.vault.calls.failSyncs(nil)
        try fixture.library.fsync(handle, dataOnly: false)
        #expect(durable() > after)
        try fixture.close(handle)
    }

    @Test func `a write that fails is told, and its bytes are not lost`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/kept", noise(200_000))
        let handle = try fixture.createOpen("albums/f")
        try fixture.write(handle, noise(50_000))
        fixture.vault.calls.failWrites(.inputOutput)
        expectError(.damaged) { try fixture.write(handle, noise(131_072), at: 131_072) }
        expectError(.damaged) { try fixture.library.flush(handle) }
        #expect(try fixture.read(handle, 50_000) == noise(50_000))
        fixture.vault.calls.failWrites(.noSpace)
        expectError(.noRoom) { try fixture.library.flush(handle) }
        fixture.vault.calls.failWrites(nil)
        try fixture.close(handle)
        #expect(try fixture.get("albums/f") == noise(50_000))
        #expect(try fixture.get("albums/kept") == noise(200_000))
        for name in ["f", "kept"] { try fixture.rm("albums/" + name) }
        #expect(fixture.usedBytes == 0)
    }

    @Test func `changes are published soon, and nothing without changes`() throws {
        let fixture = try Fixture()
        let directory = try fixture.library.openDirectory(3)
        try fixture.library.fsyncDirectory(directory)
        let idle = fixture.space.generation
        expectError(.noEntry) { try fixture.library.unlink(3, "none", fixture.caller) }
        expectError(.exists) {
            try fixture.library.rename(1, "albums", 1, "moments", .noReplace, fixture.caller)
        }
        _ = try fixture.ls("albums")
        try fixture.library.fsyncDirectory(directory)
        #expect(fixture.space.generation == idle, "what fails changes nothing")
        try fixture.put("albums/f", [1])
        #expect(eventually { fixture.space.generation > idle })
        // The bytes of an open file are sealed and published before it is closed.
        let handle = try fixture.open("albums/f")
        try fixture.write(handle, [7])
        #expect(eventually { !handle.hasUnsavedBytes })
        #expect(fixture.space.parts.lock.withLock { fixture.space.sectors.allocator.reservedSectors } == 0)
        try fixture.close(handle)
    }
}

extension PhotoLibrary.FileHandle {
    fileprivate var hasUnsavedBytes: Bool { state?.hasUnsaved ?? false }
}
