import LinuxIO
import PhotoImaging
import TestSupport
import Testing
import VaultCatalogue

@testable import PhotoLibrary
@testable import VaultStore

/// A file outside the vault, in memory.
private final class MemorySource: ImportSource {
    let bytes: [UInt8]
    /// Bytes that can be read; then the disk fails.
    let readableCount: Int
    var isUnchanged = true

    init(_ bytes: [UInt8], readableCount: Int = .max) {
        self.bytes = bytes
        self.readableCount = readableCount
    }

    var byteCount: UInt64 { UInt64(bytes.count) }

    func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        if Int(offset) + buffer.count > readableCount { return -1 }
        return MemoryByteSource(bytes).read(at: offset, into: buffer)
    }
}

/// A photo of that many bytes, most of them behind the picture.
private func large(_ count: Int, more: Int = 0) -> [UInt8] {
    let picture = jpeg(more: more)
    return picture + noise(count - picture.count, seed: more + 1)
}

private let someTime = Timestamp(seconds: 1_000_000_000, nanoseconds: 123_456_789)

private func file(_ name: String, _ source: MemorySource, mode: UInt32 = 0o640) -> ImportFile<MemorySource> {
    let attribute = ExtendedAttribute(name: Array("user.note".utf8), value: [1, 2, 3])
    return ImportFile(
        name: Name(name),
        details: FileDetails(
            mode: mode, owner: Caller(uid: 7, gid: 8), accessed: someTime, modified: someTime,
            attributes: [attribute]),
        source: source)
}

extension LibraryUser {
    /// Imports a photo as the command does. Nil: its bytes are there, or nothing was added.
    @discardableResult
    func bring(
        _ name: String, _ bytes: [UInt8], sidecars: [(String, [UInt8])] = [],
        to place: ImportPlace = ImportPlace(),
        asNew: Bool = false
    ) throws -> Added? {
        let source = MemorySource(bytes)
        let sidecar = sidecars.first.flatMap { readSidecar(MemoryByteSource($0.1)) }
        let appraisal = try library.appraise(
            source, named: Name(name), modified: someTime, sidecar: sidecar, asNew: asNew)
        guard case .photo(let candidate) = appraisal else { return nil }
        return try library.add(
            candidate, file(name, source), sidecars: sidecars.map { file($0.0, MemorySource($0.1)) },
            to: place)
    }

    fileprivate func row(_ path: String) throws -> PhotoRow {
        let number = try ino(path)
        return try library.locked { tree throws(FileError) in try tree.photo(try tree.inode(number)) }
    }
}

@Suite struct ImportTests {
    @Test func `a photo lies under its day with its bytes, times, mode and attributes`() throws {
        let rig = try Rig()
        let bytes = large(1_500_000)
        let added = try #require(try rig.bring("a.jpg", bytes))
        for round in 1...3 {
            #expect(try rig.moments() == ["2024-05-01/a.jpg"])
            #expect(try rig.get("moments/2024-05-01/a.jpg") == bytes)
            let status = try rig.stat("moments/2024-05-01/a.jpg")
            #expect(status.ino == added.photo && status.nlink == 1 && status.mode == 0o100640)
            #expect(status.modified == someTime && status.accessed == someTime)
            #expect(status.uid == 7 && status.gid == 8)
            #expect(
                try rig.library.getExtendedAttribute(added.photo, name: Array("user.note".utf8)) == [1, 2, 3])
            #expect(try rig.captured("moments/2024-05-01/a.jpg").hasPrefix("2024-05-01 12:30:00"))
            #expect(try !rig.row("moments/2024-05-01/a.jpg").isPinned)
            if round == 1 { try rig.kill() } else if round == 2 { try rig.remount() }
        }
        try rig.rm("moments/2024-05-01/a.jpg")
        try rig.expectNothingLeft()
    }

    @Test func `one of another's name is numbered, in its day and in an album`() throws {
        let rig = try Rig()
        let album = try #require(try rig.library.album(["Trip", "Day 2"], makes: true))
        #expect(try rig.library.album(["Trip", "Day 2"], makes: false) == album)
        for number in 0..<3 {
            try rig.bring("a.jpg", jpeg(more: number), to: ImportPlace(album: album))
        }
        let names = ["a (2).jpg", "a (3).jpg", "a.jpg"]
        #expect(try rig.ls("albums/Trip/Day 2") == names)
        #expect(try rig.ls("moments/2024-05-01") == names)
        for name in names {
            #expect(try rig.ino("albums/Trip/Day 2/" + name) == rig.ino("moments/2024-05-01/" + name))
        }
        #expect(try rig.stat("albums/Trip/Day 2/a.jpg").nlink == 2)
        #expect(try rig.library.album(["Nowhere"], makes: false) == nil)
        expectError(.notDirectory) {
            _ = try rig.library.album(["Trip", "Day 2", "a.jpg", "x"], makes: true)
        }
        try rig.close()
    }

    @Test func `the same bytes are a duplicate, and may join an album once`() throws {
        let rig = try Rig()
        let photo = try rig.put("albums/a.jpg", large(300_000))
        let source = MemorySource(large(300_000))
        guard case .duplicate(photo) = try rig.library.appraise(source, named: "b.jpg", modified: someTime)
        else {
            Issue.record("not known as a duplicate")
            return
        }
        let album = try #require(try rig.library.album(["X"], makes: true))
        try rig.put("albums/X/b.jpg", jpeg(more: 1))
        #expect(try rig.library.addToAlbum(photo, album, named: "b.jpg"))
        #expect(try !rig.library.addToAlbum(photo, album, named: "b.jpg"))
        #expect(try rig.ls("albums/X") == ["b (2).jpg", "b.jpg"])
        #expect(try rig.library.lies(photo, in: album))
        #expect(try rig.library.holds(photo, source))
        #expect(try !rig.library.holds(photo, MemorySource(large(300_001))))
        #expect(try !rig.library.holds(photo, MemorySource(large(300_000, more: 2))))
        try rig.close()
    }

    @Test func `what is no photo is not taken for one`() throws {
        let rig = try Rig()
        for bytes in [[], Array("text".utf8), noise(5000)] {
            let appraisal = try rig.library.appraise(
                MemorySource(bytes), named: "a.jpg", modified: someTime)
            guard case .notPhoto = appraisal else {
                Issue.record("\(bytes.count) bytes are \(appraisal)")
                continue
            }
        }
        try rig.close()
    }

    @Test func `a sidecar dates its photo and lies beside it, numbered like it`() throws {
        let rig = try Rig()
        let date = xmp("2020-02-02")
        for number in 0..<2 {
            let added = try rig.bring(
                "a.jpg", jpeg(more: number), sidecars: [("a.jpg.xmp", date + [UInt8(0x20 + number)])])
            #expect(added?.sidecars.count == 1)
        }
        let all = ["a (2).jpg", "a (2).jpg.xmp", "a.jpg", "a.jpg.xmp"]
        #expect(try rig.ls("moments/2020-02-02") == all)
        #expect(try rig.get("moments/2020-02-02/a (2).jpg.xmp") == date + [0x21])
        let album = try rig.library.album(["A"], makes: true)
        try rig.bring("b.jpg", jpeg(more: 5), sidecars: [("b.xmp", date)], to: ImportPlace(album: album))
        #expect(try rig.ls("albums/A") == ["b.jpg", "b.xmp"])
        #expect(try rig.ls("moments/2020-02-02") == all + ["b.jpg"])
        // A raw file and its JPEG share one.
        let again = try rig.bring(
            "b.jpeg", jpeg(more: 6), sidecars: [("b.xmp", date)], to: ImportPlace(album: album))
        #expect(try again?.sidecars == [rig.ino("albums/A/b.xmp")])
        #expect(try rig.ls("albums/A") == ["b.jpeg", "b.jpg", "b.xmp"])
        try rig.remount()
        #expect(try rig.source("albums/A/b.jpeg") == "sidecar")
        try rig.close()
    }

    @Test func `a sidecar of a photo that is there comes too, unless it has one`() throws {
        let rig = try Rig()
        let photo = try #require(try rig.bring("a.jpg", jpeg())).photo
        let sidecar = file("a.jpg.xmp", MemorySource(xmp("2020-02-02")))
        let added = try #require(try rig.library.add(sidecar: sidecar, of: photo, named: "a.jpg", in: nil))
        #expect(added.isNew)
        // Both are in the day it says.
        #expect(try rig.moments() == ["2020-02-02/a.jpg", "2020-02-02/a.jpg.xmp"])
        let album = try #require(try rig.library.album(["A"], makes: true))
        #expect(try rig.library.addToAlbum(photo, album, named: "b.jpg"))
        let beside = try #require(try rig.library.add(sidecar: sidecar, of: photo, named: "a.jpg", in: album))
        #expect(try beside.isNew && rig.ls("albums/A") == ["b.jpg", "b.jpg.xmp"])
        let again = try #require(try rig.library.add(sidecar: sidecar, of: photo, named: "a.jpg", in: nil))
        #expect(again.ino == added.ino && !again.isNew)
        let other = file("a.jpg.xmp", MemorySource(xmp("2021-01-01")))
        #expect(try rig.library.add(sidecar: other, of: photo, named: "a.jpg", in: album) == nil)
        try rig.close()
    }

    @Test func `what cannot be read, changes or is given up leaves nothing`() throws {
        let rig = try Rig()
        let bytes = large(3_000_000)
        let used = rig.usedBytes
        for trial in 0..<4 {
            let source = MemorySource(bytes, readableCount: trial == 0 ? 2_000_000 : .max)
            source.isUnchanged = trial != 1
            let appraisal = try rig.library.appraise(
                MemorySource(bytes), named: "a.jpg", modified: someTime)
            guard case .photo(let candidate) = appraisal else { continue }
            var pieces = 0
            let sidecar = file("a.xmp", MemorySource(xmp("2020-01-01"), readableCount: trial == 3 ? 5 : .max))
            let added = try rig.library.add(
                candidate, file("a.jpg", source), sidecars: [sidecar], to: ImportPlace()
            ) { _ in
                pieces += 1
                return trial != 2 || pieces < 2
            }
            #expect(added == nil)
            #expect(rig.usedBytes == used)
        }
        #expect(try rig.moments().isEmpty)
        try rig.expectNothingLeft()
    }

    @Test func `a space that is full says so, and takes smaller ones`() throws {
        let rig = try Rig(bytes: 48 << 20)
        expectError(.noRoom) { try rig.bring("big.jpg", large(60_000_000)) }
        let used = rig.usedBytes
        try rig.bring("small.jpg", jpeg(more: 1))
        #expect(try rig.moments() == ["2024-05-01/small.jpg"])
        #expect(rig.usedBytes > used)
        try rig.rm("moments/2024-05-01/small.jpg")
        try rig.expectNothingLeft()
    }

    @Test func `writes that fail leave a library that is sound`() throws {
        let rig = try Rig()
        var failed = 0
        for count in 0..<6 {
            rig.vault.calls.failOnce(after: count)
            do {
                try rig.bring(
                    "p\(count).jpg", large(600_000, more: count),
                    sidecars: [("p\(count).xmp", xmp("2020-01-01"))])
            } catch {
                failed += 1
            }
            rig.vault.calls.failOnce(after: nil)
        }
        #expect(failed > 0)
        let shown = try rig.moments()
        #expect(shown.filter { $0.hasSuffix(".jpg") }.count == 6 - failed)
        try rig.remount()
        #expect(try rig.moments() == shown)
        for path in shown { try rig.rm("moments/" + path) }
        try rig.expectNothingLeft()
    }

    @Test func `a photo of an export lies where it lay, pinned only where it must be`() throws {
        let rig = try Rig()
        let own = try #require(ImportPlace(day: "2024-05-01"))
        let other = try #require(ImportPlace(day: "2011-11-11"))
        #expect(ImportPlace(day: "2011-02-30") == nil)
        try rig.bring("own.jpg", jpeg(), to: own)
        let moved = try #require(try rig.bring("moved.jpg", jpeg(more: 1), to: other))
        #expect(try rig.moments() == ["2011-11-11/moved.jpg", "2024-05-01/own.jpg"])
        #expect(try !rig.row("moments/2024-05-01/own.jpg").isPinned)
        #expect(try rig.row("moments/2011-11-11/moved.jpg").isPinned)
        // A sidecar in an album says the day it lay in: not the user pinned it.
        try rig.ln("moments/2011-11-11/moved.jpg", "albums/m.jpg")
        _ = try rig.library.add(
            plain: file("m.jpg.xmp", MemorySource(xmp("2011-11-11"))), to: rig.ino("albums"))
        try rig.library.settle(moved.photo, in: other)
        #expect(try !rig.row("moments/2011-11-11/moved.jpg").isPinned)
        #expect(try rig.source("albums/m.jpg") == "sidecar")
        // And one that says another day: it was pinned.
        try rig.ln("moments/2024-05-01/own.jpg", "albums/o.jpg")
        _ = try rig.library.add(plain: file("o.xmp", MemorySource(xmp("2000-01-02"))), to: rig.ino("albums"))
        try rig.library.settle(rig.ino("albums/o.jpg"), in: own)
        #expect(try rig.row("moments/2024-05-01/own.jpg").isPinned)
        #expect(try rig.moments() == ["2011-11-11/moved.jpg", "2024-05-01/own.jpg"])
        // Equal bytes may stand in moments twice.
        try rig.bring("own again.jpg", jpeg(), to: own, asNew: true)
        #expect(try rig.ls("moments/2024-05-01") == ["own again.jpg", "own.jpg"])
        try rig.close()
    }

    @Test func `a directory is listed whole, and a damaged file is told`() throws {
        let rig = try Rig()
        for number in 0..<40 { try rig.bring("p\(number).jpg", jpeg(more: number)) }
        let day = try rig.ino("moments/2024-05-01")
        #expect(try rig.library.entries(of: day).count == 40)
        try rig.bring("big.jpg", large(2_000_000, more: 50))
        try rig.remount()
        let big = try rig.ino("moments/2024-05-01/big.jpg")
        var bytes: [UInt8] = []
        try rig.library.readStored(big, rig.caller) { _, piece in
            bytes += piece
            return true
        }
        #expect(bytes == large(2_000_000, more: 50))
        try rig.damage("moments/2024-05-01/big.jpg", at: 1_500_000)
        expectError(.damaged) { try rig.library.readStored(big, rig.caller) { _, _ in true } }
        try rig.close()
    }
}
