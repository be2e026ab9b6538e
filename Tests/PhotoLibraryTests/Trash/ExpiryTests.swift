import FileRequests
import LibraryFixtures
import LinuxIO
import PhotoLibrary
import TestSupport
import Testing
import VaultStore

private let files = ".Trash-0/files"
private let day: Int64 = 86_400
private let start: Int64 = 1_800_000_000

/// Two clocks that tests set.
private final class TestClock: @unchecked Sendable {
    private let lock = Lock()
    private var times = (wall: start, boot: Int64(1000))

    var clocks: Clocks {
        var clocks = Clocks()
        clocks.wall = { self.lock.withLock { self.times.wall } }
        clocks.boot = { self.lock.withLock { self.times.boot } }
        return clocks
    }

    /// Time passes.
    func pass(_ seconds: Int64) {
        lock.withLock { times = (times.wall + seconds, times.boot + seconds) }
    }

    /// Somebody sets the wall clock.
    func set(by seconds: Int64) { lock.withLock { times.wall += seconds } }
}

/// Files that leave the trash by themselves, and when they do not.
@Suite("Trash: destroyed after its days") struct ExpiryTests {
    private let clock = TestClock()

    @Test func `an old photo is noted, and destroyed a day later`() throws {
        let fixture = try Fixture.withAlbums(clocks: clock.clocks)
        try fixture.put("albums/young.jpg", jpeg("2024-05-01", more: 2))
        try fixture.rm("moments/2024-05-01/x.jpg")
        clock.pass(10 * day)
        try fixture.rm("moments/2024-05-01/young.jpg")
        clock.pass(20 * day - 1)
        TrashExpiry(fixture.library.session).expire()
        clock.pass(day)
        try fixture.remount()
        #expect(try fixture.ls(files) == ["x.jpg", "young.jpg"], "noted only now")
        clock.pass(day - 1)
        TrashExpiry(fixture.library.session).expire()
        #expect(try fixture.ls(files) == ["x.jpg", "young.jpg"])
        clock.pass(1)
        TrashExpiry(fixture.library.session).expire()
        #expect(try fixture.ls(files) == ["young.jpg"])
        #expect(try fixture.ls(".Trash-0/info") == ["young.jpg.trashinfo"])
        #expect(fixture.observer.entries.contains { $0.1 == "x.jpg.trashinfo" })
        clock.pass(20 * day)
        try fixture.remount()
        clock.pass(2 * day)
        try fixture.kill()
        TrashExpiry(fixture.library.session).expire()
        #expect(try fixture.ls(files).isEmpty)
        #expect(fixture.usedBytes == 0)
        try fixture.expectNothingLeft()
    }

    @Test func `a clock that jumps within a session destroys nothing`() throws {
        let fixture = try Fixture.withAlbums(clocks: clock.clocks)
        try fixture.rm("moments/2024-05-01/x.jpg")
        clock.set(by: 400 * day)
        for _ in 0..<3 {
            TrashExpiry(fixture.library.session).expire()
            clock.pass(2 * day)
        }
        #expect(try fixture.ls(files) == ["x.jpg"])
        // A file dated before the clock was set is as old as the time since.
        try fixture.remount()
        clock.pass(2 * day)
        try fixture.remount()
        #expect(try fixture.ls(files) == ["x.jpg"])
        clock.pass(30 * day)
        try fixture.remount()
        clock.pass(day)
        try fixture.remount()
        TrashExpiry(fixture.library.session).expire()
        #expect(try fixture.ls(files).isEmpty)
    }

    @Test func `a clock that was wrong for a session destroys nothing`() throws {
        let fixture = try Fixture.withAlbums(clocks: clock.clocks)
        try fixture.rm("moments/2024-05-01/x.jpg")
        try fixture.close()
        clock.set(by: 400 * day)
        try fixture.reopen()
        clock.pass(day - 600)
        TrashExpiry(fixture.library.session).expire()
        try fixture.close()
        clock.set(by: -400 * day)
        try fixture.reopen()
        try fixture.close()
        // The note was taken back: the second time it is wrong is a first one.
        clock.set(by: 402 * day)
        try fixture.reopen()
        #expect(try fixture.ls(files) == ["x.jpg"])
    }

    @Test func `directories go without younger files`() throws {
        let fixture = try Fixture.withAlbums(clocks: clock.clocks)
        try fixture.mkdir("albums/A/sub")
        try fixture.put("albums/A/sub/notes.txt", [1])
        for path in [".Trash-0", files, ".Trash-0/info"] { try fixture.mkdir(path) }
        try fixture.mv("albums/A", files + "/A")
        try fixture.put(".Trash-0/info/A.trashinfo", [1])
        try fixture.mv("albums/B", files + "/B")
        clock.pass(5 * day)
        try fixture.put("albums/late.txt", [2])
        try fixture.mv("albums/late.txt", files + "/B/late.txt")
        try fixture.mv(files + "/A", files + "/renamed")
        try fixture.mv(".Trash-0/info/A.trashinfo", ".Trash-0/info/renamed.trashinfo")
        clock.pass(25 * day)
        TrashExpiry(fixture.library.session).expire()
        clock.pass(day)
        TrashExpiry(fixture.library.session).expire()
        #expect(try fixture.everything() == ["2024-05-01/x.jpg", files + "/B/late.txt"])
        #expect(try fixture.ls(files) == ["B"])
        #expect(try fixture.ls(".Trash-0/info").isEmpty)
        #expect(try fixture.stat("moments/2024-05-01/x.jpg").nlink == 1)
        clock.pass(6 * day)
        for _ in 0..<2 {
            TrashExpiry(fixture.library.session).expire()
            clock.pass(day)
        }
        #expect(try fixture.ls(files).isEmpty)
        try fixture.remount()
        #expect(try fixture.get("moments/2024-05-01/x.jpg") == jpeg("2024-05-01", more: 1))
    }

    @Test func `a day goes as a whole, and open files last`() throws {
        let fixture = try Fixture.withAlbums(clocks: clock.clocks)
        for path in [".Trash-0", files] { try fixture.mkdir(path) }
        try fixture.mv("moments/2024-05-01", files + "/2024-05-01")
        try expireWhileOpen(fixture, files + "/2024-05-01/x.jpg")
        #expect(fixture.usedBytes == 0)
        try fixture.expectNothingLeft()
    }

    private func expireWhileOpen(_ fixture: Fixture, _ path: String) throws {
        let handle = try fixture.open(path, 0)
        clock.pass(30 * day)
        TrashExpiry(fixture.library.session).expire()
        clock.pass(day)
        TrashExpiry(fixture.library.session).expire()
        #expect(try fixture.ls(files).isEmpty)
        #expect(try fixture.read(handle) == jpeg("2024-05-01", more: 1))
        #expect(fixture.usedBytes > 0)
        fixture.library.release(handle)
    }

    @Test func `a restored photo is not old any more`() throws {
        let fixture = try Fixture.withAlbums(clocks: clock.clocks)
        for path in [".Trash-0", files] { try fixture.mkdir(path) }
        try fixture.mv("albums/A", files + "/A")
        try fixture.rm("moments/2024-05-01/x.jpg")
        clock.pass(30 * day)
        TrashExpiry(fixture.library.session).expire()
        try fixture.mv(files + "/A", "albums/A")
        clock.pass(2 * day)
        TrashExpiry(fixture.library.session).expire()
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
        #expect(try fixture.ls("albums/A") == ["x.jpg"])
        try fixture.remount()
    }

    @Test func `before there is no room, the oldest go`() throws {
        let fixture = try Fixture(bytes: 24 << 20, trashDays: 30, clocks: clock.clocks)
        let photo = 2_000_000
        for number in 0..<4 {
            try fixture.put("albums/p\(number).jpg", jpeg("2024-05-01", more: number) + noise(photo))
            try fixture.rm("moments/2024-05-01/p\(number).jpg")
            clock.pass(60)
        }
        try fixture.put("albums/plain", noise(1_000_000))
        try fixture.rm("albums/plain")
        // Freed room is taken first.
        let free = Int(fixture.space.sectors.capacity.available)
        // Trash that can be purged counts as free, once the photos are in a commit.
        var shown = fixture.library.statistics()
        #expect(
            eventually {
                shown = fixture.library.statistics()
                return shown.available >= UInt64(free + 4 * photo) / shown.blockBytes * 3 / 4
            })
        #expect(shown.available <= shown.free && shown.free <= shown.blocks)
        try fixture.put("albums/a", noise(free - 300_000))
        #expect(try fixture.ls(files) == (0..<4).map { "p\($0).jpg" })
        try fixture.put("albums/b", noise(1_500_000))
        #expect(try fixture.ls(files) == (1..<4).map { "p\($0).jpg" })
        #expect(try fixture.ls(".Trash-0/info").count == 3)
        try fixture.put("albums/c", noise(3_000_000))
        #expect(try fixture.ls(files) == ["p3.jpg"])
        #expect(throws: FileError.noRoom) { try fixture.put("albums/d", noise(8_000_000)) }
        #expect(try fixture.ls(files).isEmpty)
        #expect(try fixture.get("albums/c") == noise(3_000_000))
        try fixture.remount()
    }
}
