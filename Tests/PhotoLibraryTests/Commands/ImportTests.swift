import CatalogueRows
import FileRequests
import LibraryFixtures
import LinuxIO
import PhotoImaging
import PhotoImport
import PhotoLibrary
import TestSupport
import Testing
import VaultCatalogue
import VaultStore

extension LibraryUser {
    fileprivate func row(_ path: String) throws -> PhotoRow {
        let number = try ino(path)
        return try library.session.locked { tree throws(FileError) in
            try tree.photos.photo(try tree.inode(number))
        }
    }
}

@Suite("Commands: import, into a library") struct ImportTests {
    @Test func `a photo lies under its day with its bytes, times, mode and attributes`() throws {
        let fixture = try Fixture()
        let bytes = largeJPEG(size: 1_500_000)
        let added = try #require(try fixture.bring("a.jpg", bytes))
        for round in 1...3 {
            #expect(try fixture.moments() == ["2024-05-01/a.jpg"])
            #expect(try fixture.get("moments/2024-05-01/a.jpg") == bytes)
            let status = try fixture.stat("moments/2024-05-01/a.jpg")
            #expect(status.ino == added.photo && status.nlink == 1 && status.mode == 0o100640)
            #expect(status.modified == importTime && status.accessed == importTime)
            #expect(status.uid == 7 && status.gid == 8)
            #expect(
                try fixture.library.getExtendedAttribute(added.photo, name: Array("user.note".utf8)) == [
                    1, 2, 3,
                ])
            #expect(try fixture.captured("moments/2024-05-01/a.jpg").hasPrefix("2024-05-01 12:30:00"))
            #expect(try !fixture.row("moments/2024-05-01/a.jpg").isPinned)
            if round == 1 { try fixture.kill() } else if round == 2 { try fixture.remount() }
        }
        try fixture.rm("moments/2024-05-01/a.jpg")
        try fixture.expectNothingLeft()
    }

    @Test func `one of another's name is numbered, in its day and in an album`() throws {
        let fixture = try Fixture()
        let album = try #require(try fixture.library.importer.album(["Trip", "Day 2"], makes: true))
        #expect(try fixture.library.importer.album(["Trip", "Day 2"], makes: false) == album)
        for number in 0..<3 {
            try fixture.bring("a.jpg", jpeg(more: number), to: ImportPlace(album: album))
        }
        let names = ["a (2).jpg", "a (3).jpg", "a.jpg"]
        #expect(try fixture.ls("albums/Trip/Day 2") == names)
        #expect(try fixture.ls("moments/2024-05-01") == names)
        for name in names {
            #expect(try fixture.ino("albums/Trip/Day 2/" + name) == fixture.ino("moments/2024-05-01/" + name))
        }
        #expect(try fixture.stat("albums/Trip/Day 2/a.jpg").nlink == 2)
        #expect(try fixture.library.importer.album(["Nowhere"], makes: false) == nil)
        expectError(.notDirectory) {
            _ = try fixture.library.importer.album(["Trip", "Day 2", "a.jpg", "x"], makes: true)
        }
        try fixture.close()
    }

    @Test func `the same bytes are a duplicate, and may join an album once`() throws {
        let fixture = try Fixture()
        let photo = try fixture.put("albums/a.jpg", largeJPEG(size: 300_000))
        let source = MemorySource(largeJPEG(size: 300_000))
        guard
            case .duplicate(photo) = try fixture.library.importer.classifyImport(
                source, SourceFacts(source), named: "b.jpg", modified: importTime)
        else {
            Issue.record("not known as a duplicate")
            return
        }
        let album = try #require(try fixture.library.importer.album(["X"], makes: true))
        try fixture.put("albums/X/b.jpg", jpeg(more: 1))
        #expect(try fixture.library.importer.addToAlbum(photo, album, named: "b.jpg"))
        #expect(try !fixture.library.importer.addToAlbum(photo, album, named: "b.jpg"))
        #expect(try fixture.ls("albums/X") == ["b (2).jpg", "b.jpg"])
        #expect(try fixture.library.importer.lies(photo, in: album))
        #expect(try fixture.library.search.holds(photo, source))
        #expect(try !fixture.library.search.holds(photo, MemorySource(largeJPEG(size: 300_001))))
        #expect(try !fixture.library.search.holds(photo, MemorySource(largeJPEG(more: 2, size: 300_000))))
        try fixture.close()
    }

    @Test func `a file that is no photo is not taken for one`() throws {
        let fixture = try Fixture()
        for bytes in [[], Array("text".utf8), noise(5000)] {
            let appraisal = try fixture.library.importer.classifyImport(
                MemorySource(bytes), SourceFacts(MemorySource(bytes)), named: "a.jpg", modified: importTime)
            guard case .notPhoto = appraisal else {
                Issue.record("\(bytes.count) bytes are \(appraisal)")
                continue
            }
        }
        try fixture.close()
    }

    @Test func `a sidecar dates its photo and lies beside it, numbered like it`() throws {
        let fixture = try Fixture()
        let date = xmp("2020-02-02")
        for number in 0..<2 {
            let added = try fixture.bring(
                "a.jpg", jpeg(more: number), sidecars: [("a.jpg.xmp", date + [UInt8(0x20 + number)])])
            #expect(added?.sidecars.count == 1)
        }
        let all = ["a (2).jpg", "a (2).jpg.xmp", "a.jpg", "a.jpg.xmp"]
        #expect(try fixture.ls("moments/2020-02-02") == all)
        #expect(try fixture.get("moments/2020-02-02/a (2).jpg.xmp") == date + [0x21])
        let album = try fixture.library.importer.album(["A"], makes: true)
        try fixture.bring("b.jpg", jpeg(more: 5), sidecars: [("b.xmp", date)], to: ImportPlace(album: album))
        #expect(try fixture.ls("albums/A") == ["b.jpg", "b.xmp"])
        #expect(try fixture.ls("moments/2020-02-02") == all + ["b.jpg"])
        // A raw file and its JPEG share one.
        let again = try fixture.bring(
            "b.jpeg", jpeg(more: 6), sidecars: [("b.xmp", date)], to: ImportPlace(album: album))
        #expect(try again?.sidecars == [fixture.ino("albums/A/b.xmp")])
        #expect(try fixture.ls("albums/A") == ["b.jpeg", "b.jpg", "b.xmp"])
        try fixture.remount()
        #expect(try fixture.source("albums/A/b.jpeg") == "sidecar")
        try fixture.close()
    }

    @Test func `a sidecar of a photo that is there comes too, unless it has one`() throws {
        let fixture = try Fixture()
        let photo = try #require(try fixture.bring("a.jpg", jpeg())).photo
        let sidecar = importFile("a.jpg.xmp", MemorySource(xmp("2020-02-02")))
        let added = try #require(
            try fixture.library.importer.add(sidecar: sidecar, of: photo, named: "a.jpg", in: nil))
        #expect(added.isNew)
        // Both are in the day it says.
        #expect(try fixture.moments() == ["2020-02-02/a.jpg", "2020-02-02/a.jpg.xmp"])
        let album = try #require(try fixture.library.importer.album(["A"], makes: true))
        #expect(try fixture.library.importer.addToAlbum(photo, album, named: "b.jpg"))
        let beside = try #require(
            try fixture.library.importer.add(sidecar: sidecar, of: photo, named: "a.jpg", in: album))
        #expect(try beside.isNew && fixture.ls("albums/A") == ["b.jpg", "b.jpg.xmp"])
        let again = try #require(
            try fixture.library.importer.add(sidecar: sidecar, of: photo, named: "a.jpg", in: nil))
        #expect(again.ino == added.ino && !again.isNew)
        let other = importFile("a.jpg.xmp", MemorySource(xmp("2021-01-01")))
        #expect(try fixture.library.importer.add(sidecar: other, of: photo, named: "a.jpg", in: album) == nil)
        try fixture.close()
    }

    @Test func `a file that cannot be read, changes or is given up leaves nothing`() throws {
        let fixture = try Fixture()
        let bytes = largeJPEG(size: 3_000_000)
        let used = fixture.usedBytes
        for trial in 0..<4 {
            let source = MemorySource(bytes, readableCount: trial == 0 ? 2_000_000 : .max)
            source.isUnchanged = trial != 1
            let appraisal = try fixture.library.importer.classifyImport(
                MemorySource(bytes), SourceFacts(MemorySource(bytes)), named: "a.jpg", modified: importTime)
            guard case .photo(let candidate) = appraisal else { continue }
            var pieces = 0
            let sidecar = importFile(
                "a.xmp", MemorySource(xmp("2020-01-01"), readableCount: trial == 3 ? 5 : .max))
            let added = try fixture.library.importer.add(
                candidate, importFile("a.jpg", source), sidecars: [sidecar], to: ImportPlace()
            ) { _ in
                pieces += 1
                return trial != 2 || pieces < 2
            }
            #expect(added == nil)
            #expect(fixture.usedBytes == used)
        }
        #expect(try fixture.moments().isEmpty)
        try fixture.expectNothingLeft()
    }

    @Test func `a space that is full says so, and takes smaller ones`() throws {
        let fixture = try Fixture(bytes: 48 << 20)
        expectError(.noRoom) { try fixture.bring("big.jpg", largeJPEG(size: 60_000_000)) }
        let used = fixture.usedBytes
        try fixture.bring("small.jpg", jpeg(more: 1))
        #expect(try fixture.moments() == ["2024-05-01/small.jpg"])
        #expect(fixture.usedBytes > used)
        try fixture.rm("moments/2024-05-01/small.jpg")
        try fixture.expectNothingLeft()
    }

    @Test func `writes that fail leave a library that is sound`() throws {
        let fixture = try Fixture()
        var failed = 0
        for count in 0..<6 {
            fixture.vault.calls.failOnce(after: count)
            do {
                try fixture.bring(
                    "p\(count).jpg", largeJPEG(more: count, size: 600_000),
                    sidecars: [("p\(count).xmp", xmp("2020-01-01"))])
            } catch {
                failed += 1
            }
            fixture.vault.calls.failOnce(after: nil)
        }
        #expect(failed > 0)
        let shown = try fixture.moments()
        #expect(shown.filter { $0.hasSuffix(".jpg") }.count == 6 - failed)
        try fixture.remount()
        #expect(try fixture.moments() == shown)
        for path in shown { try fixture.rm("moments/" + path) }
        try fixture.expectNothingLeft()
    }

    @Test func `a photo of an export lies where it lay, pinned only where it must be`() throws {
        let fixture = try Fixture()
        let own = try #require(ImportPlace(day: "2024-05-01"))
        let other = try #require(ImportPlace(day: "2011-11-11"))
        #expect(ImportPlace(day: "2011-02-30") == nil)
        try fixture.bring("own.jpg", jpeg(), to: own)
        let moved = try #require(try fixture.bring("moved.jpg", jpeg(more: 1), to: other))
        #expect(try fixture.moments() == ["2011-11-11/moved.jpg", "2024-05-01/own.jpg"])
        #expect(try !fixture.row("moments/2024-05-01/own.jpg").isPinned)
        #expect(try fixture.row("moments/2011-11-11/moved.jpg").isPinned)
        // A sidecar in an album says the day it lay in: not the user pinned it.
        try fixture.ln("moments/2011-11-11/moved.jpg", "albums/m.jpg")
        _ = try fixture.library.importer.add(
            plain: importFile("m.jpg.xmp", MemorySource(xmp("2011-11-11"))), to: fixture.ino("albums"))
        try fixture.library.importer.pinIfNeeded(moved.photo, in: other)
        #expect(try !fixture.row("moments/2011-11-11/moved.jpg").isPinned)
        #expect(try fixture.source("albums/m.jpg") == "sidecar")
        // And one that says another day: it was pinned.
        try fixture.ln("moments/2024-05-01/own.jpg", "albums/o.jpg")
        _ = try fixture.library.importer.add(
            plain: importFile("o.xmp", MemorySource(xmp("2000-01-02"))), to: fixture.ino("albums"))
        try fixture.library.importer.pinIfNeeded(fixture.ino("albums/o.jpg"), in: own)
        #expect(try fixture.row("moments/2024-05-01/own.jpg").isPinned)
        #expect(try fixture.moments() == ["2011-11-11/moved.jpg", "2024-05-01/own.jpg"])
        // Equal bytes may stand in moments twice.
        try fixture.bring("own again.jpg", jpeg(), to: own, asNew: true)
        #expect(try fixture.ls("moments/2024-05-01") == ["own again.jpg", "own.jpg"])
        try fixture.close()
    }

    @Test func `a directory is listed whole, and a damaged file is told`() throws {
        let fixture = try Fixture()
        for number in 0..<40 { try fixture.bring("p\(number).jpg", jpeg(more: number)) }
        let day = try fixture.ino("moments/2024-05-01")
        #expect(try fixture.library.walk.entries(of: day).count == 40)
        try fixture.bring("big.jpg", largeJPEG(more: 50, size: 2_000_000))
        try fixture.remount()
        let big = try fixture.ino("moments/2024-05-01/big.jpg")
        var bytes: [UInt8] = []
        try fixture.library.walk.readStored(big, fixture.caller) { _, piece in
            bytes += piece
            return true
        }
        #expect(bytes == largeJPEG(more: 50, size: 2_000_000))
        try fixture.damage("moments/2024-05-01/big.jpg", at: 1_500_000)
        expectError(.damaged) { try fixture.library.walk.readStored(big, fixture.caller) { _, _ in true } }
        try fixture.close()
    }
}
