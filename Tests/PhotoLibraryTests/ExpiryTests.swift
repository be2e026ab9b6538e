import LinuxIO
import TestSupport
import Testing
import VaultStore

@testable import PhotoLibrary

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

/// What leaves the trash by itself, and when it does not.
@Suite struct ExpiryTests {
    private let clock = TestClock()

    @Test func whatIsOldIsNotedAndDestroyedADayLater() throws {
        let rig = try Rig.withAlbums(clocks: clock.clocks)
        try rig.put("albums/young.jpg", jpeg("2024-05-01", more: 2))
        try rig.rm("moments/2024-05-01/x.jpg")
        clock.pass(10 * day)
        try rig.rm("moments/2024-05-01/young.jpg")
        clock.pass(20 * day - 1)
        rig.library.expireTrash()
        clock.pass(day)
        try rig.remount()
        #expect(try rig.ls(files) == ["x.jpg", "young.jpg"], "noted only now")
        clock.pass(day - 1)
        rig.library.expireTrash()
        #expect(try rig.ls(files) == ["x.jpg", "young.jpg"])
        clock.pass(1)
        rig.library.expireTrash()
        #expect(try rig.ls(files) == ["young.jpg"])
        #expect(try rig.ls(".Trash-0/info") == ["young.jpg.trashinfo"])
        #expect(rig.observer.entries.contains { $0.1 == "x.jpg.trashinfo" })
        clock.pass(20 * day)
        try rig.remount()
        clock.pass(2 * day)
        try rig.kill()
        rig.library.expireTrash()
        #expect(try rig.ls(files).isEmpty)
        #expect(rig.usedBytes == 0)
        try rig.expectNothingLeft()
    }

    @Test func aClockThatJumpsWithinASessionDestroysNothing() throws {
        let rig = try Rig.withAlbums(clocks: clock.clocks)
        try rig.rm("moments/2024-05-01/x.jpg")
        clock.set(by: 400 * day)
        for _ in 0..<3 {
            rig.library.expireTrash()
            clock.pass(2 * day)
        }
        #expect(try rig.ls(files) == ["x.jpg"])
        // What was dated by the clock before it was set is as old as it is since.
        try rig.remount()
        clock.pass(2 * day)
        try rig.remount()
        #expect(try rig.ls(files) == ["x.jpg"])
        clock.pass(30 * day)
        try rig.remount()
        clock.pass(day)
        try rig.remount()
        rig.library.expireTrash()
        #expect(try rig.ls(files).isEmpty)
    }

    @Test func aClockThatWasWrongForASessionDestroysNothing() throws {
        let rig = try Rig.withAlbums(clocks: clock.clocks)
        try rig.rm("moments/2024-05-01/x.jpg")
        try rig.close()
        clock.set(by: 400 * day)
        try rig.reopen()
        clock.pass(day - 600)
        rig.library.expireTrash()
        try rig.close()
        clock.set(by: -400 * day)
        try rig.reopen()
        try rig.close()
        // The note was taken back: the second time it is wrong is a first one.
        clock.set(by: 402 * day)
        try rig.reopen()
        #expect(try rig.ls(files) == ["x.jpg"])
    }

    @Test func directoriesGoWithoutWhatIsYounger() throws {
        let rig = try Rig.withAlbums(clocks: clock.clocks)
        try rig.mkdir("albums/A/sub")
        try rig.put("albums/A/sub/notes.txt", [1])
        for path in [".Trash-0", files, ".Trash-0/info"] { try rig.mkdir(path) }
        try rig.mv("albums/A", files + "/A")
        try rig.put(".Trash-0/info/A.trashinfo", [1])
        try rig.mv("albums/B", files + "/B")
        clock.pass(5 * day)
        try rig.put("albums/late.txt", [2])
        try rig.mv("albums/late.txt", files + "/B/late.txt")
        try rig.mv(files + "/A", files + "/renamed")
        try rig.mv(".Trash-0/info/A.trashinfo", ".Trash-0/info/renamed.trashinfo")
        clock.pass(25 * day)
        rig.library.expireTrash()
        clock.pass(day)
        rig.library.expireTrash()
        #expect(try rig.everything() == ["2024-05-01/x.jpg", files + "/B/late.txt"])
        #expect(try rig.ls(files) == ["B"])
        #expect(try rig.ls(".Trash-0/info").isEmpty)
        #expect(try rig.stat("moments/2024-05-01/x.jpg").nlink == 1)
        clock.pass(6 * day)
        for _ in 0..<2 {
            rig.library.expireTrash()
            clock.pass(day)
        }
        #expect(try rig.ls(files).isEmpty)
        try rig.remount()
        #expect(try rig.get("moments/2024-05-01/x.jpg") == jpeg("2024-05-01", more: 1))
    }

    @Test func aDayGoesAsAWholeAndOpenFilesLast() throws {
        let rig = try Rig.withAlbums(clocks: clock.clocks)
        for path in [".Trash-0", files] { try rig.mkdir(path) }
        try rig.mv("moments/2024-05-01", files + "/2024-05-01")
        try expireWhileOpen(rig, files + "/2024-05-01/x.jpg")
        #expect(rig.usedBytes == 0)
        try rig.expectNothingLeft()
    }

    private func expireWhileOpen(_ rig: Rig, _ path: String) throws {
        let handle = try rig.open(path, 0)
        clock.pass(30 * day)
        rig.library.expireTrash()
        clock.pass(day)
        rig.library.expireTrash()
        #expect(try rig.ls(files).isEmpty)
        #expect(try rig.read(handle) == jpeg("2024-05-01", more: 1))
        #expect(rig.usedBytes > 0)
        rig.library.release(handle)
    }

    @Test func restoredItIsNotOldAnyMore() throws {
        let rig = try Rig.withAlbums(clocks: clock.clocks)
        for path in [".Trash-0", files] { try rig.mkdir(path) }
        try rig.mv("albums/A", files + "/A")
        try rig.rm("moments/2024-05-01/x.jpg")
        clock.pass(30 * day)
        rig.library.expireTrash()
        try rig.mv(files + "/A", "albums/A")
        clock.pass(2 * day)
        rig.library.expireTrash()
        #expect(try rig.moments() == ["2024-05-01/x.jpg"])
        #expect(try rig.ls("albums/A") == ["x.jpg"])
        try rig.remount()
    }

    @Test func beforeThereIsNoRoomTheOldestGo() throws {
        let rig = try Rig(bytes: 24 << 20, trashDays: 30, clocks: clock.clocks)
        let photo = 2_000_000
        for number in 0..<4 {
            try rig.put("albums/p\(number).jpg", jpeg("2024-05-01", more: number) + noise(photo))
            try rig.rm("moments/2024-05-01/p\(number).jpg")
            clock.pass(60)
        }
        try rig.put("albums/plain", noise(1_000_000))
        try rig.rm("albums/plain")
        // What was freed is taken first.
        let free = Int(rig.space.capacity.available)
        // What room can be made of counts as free, once the photos are in a commit.
        var shown = rig.library.statistics()
        #expect(
            eventually {
                shown = rig.library.statistics()
                return shown.available >= UInt64(free + 4 * photo) / shown.blockBytes
            })
        #expect(shown.available <= shown.free && shown.free <= shown.blocks)
        try rig.put("albums/a", noise(free - 300_000))
        #expect(try rig.ls(files) == (0..<4).map { "p\($0).jpg" })
        try rig.put("albums/b", noise(1_500_000))
        #expect(try rig.ls(files) == (1..<4).map { "p\($0).jpg" })
        #expect(try rig.ls(".Trash-0/info").count == 3)
        try rig.put("albums/c", noise(3_000_000))
        #expect(try rig.ls(files) == ["p3.jpg"])
        #expect(throws: FileError.noRoom) { try rig.put("albums/d", noise(8_000_000)) }
        #expect(try rig.ls(files).isEmpty)
        #expect(try rig.get("albums/c") == noise(3_000_000))
        try rig.remount()
    }
}
