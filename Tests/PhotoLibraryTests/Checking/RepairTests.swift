import Foundation
import LinuxIO
import TestSupport
import Testing
import VaultFormat

@testable import PhotoLibrary
@testable import VaultCatalogue
@testable import VaultStore

/// `check --repair`: what can be set right is, and nothing that could be read is lost.
@Suite struct RepairTests {
    /// Checks, repairs, and expects that then there is nothing to be found and every file comes whole.
    private func repair(
        _ specimen: Specimen, _ lines: [String], location: SourceLocation = #_sourceLocation
    ) throws {
        let report = try specimen.check()
        #expect(!report.findings.isEmpty, sourceLocation: location)
        #expect(report.plan.lines == lines, sourceLocation: location)
        try SpaceRepair.run(specimen.unlocked, report.plan)
        #expect(try specimen.check().findings == [], sourceLocation: location)
        #expect(try specimen.unreadable().isEmpty, sourceLocation: location)
    }

    /// Changes the catalogue by statements, behind the library's back.
    private func change(_ specimen: Specimen, _ statements: [String]) throws {
        let space = try specimen.unlocked.openSpace(readOnly: false)
        let catalogue = try Catalogue(storage: space)
        try catalogue.locked { tables in
            for statement in statements { try tables.connection.execute(statement) }
        }
        let frozen = try catalogue.commitTransaction(before: { _ in }, freeze: { space.freeze() })
        try space.publish(frozen, durable: true)
        try space.close()
    }

    @Test func `copies of pages`() throws {
        let specimen = try Specimen()
        let pages = try specimen.pages().filter { if case .delta = $0.part { false } else { true } }
        for (number, page) in pages.enumerated() {
            try specimen.flip(number % 2 == 0 ? page.place.sectorA : page.place.sectorB, 77)
        }
        try repair(specimen, ["write \(pages.count) pages again, of which one copy is damaged"])
    }

    @Test func `a delta`() throws {
        let specimen = try Specimen()
        let delta = try #require(
            try specimen.pages().first { if case .delta = $0.part { true } else { false } })
        try specimen.flip(delta.place.sectorB, 77)
        try repair(specimen, ["write a page again, of which one copy is damaged"])
    }

    @Test func `a delta of which nothing is left`() throws {
        let specimen = try Specimen()
        let delta = try #require(
            try specimen.pages().first { if case .delta = $0.part { true } else { false } })
        for sector in [delta.place.sectorA, delta.place.sectorB] { try specimen.flip(sector, 77) }
        let report = try specimen.check()
        #expect(report.findings.map(\.subject) == [delta.part.text, "the allocation", "the allocation"])
        try SpaceRepair.run(specimen.unlocked, report.plan)
        #expect(try specimen.check().findings == [])
        #expect(try specimen.unreadable().isEmpty)
    }

    @Test func `roots`() throws {
        let specimen = try Specimen()
        let space = try specimen.unlocked.openSpace(readOnly: true)
        for slot in 0..<3 {
            try specimen.flip(Space.rootSector(slot, copy: slot % 2, files: space.files), 1)
        }
        try repair(specimen, ["write the second copies of 3 roots again"])
    }

    @Test func `a root of which nothing is left`() throws {
        let specimen = try Specimen()
        let space = try specimen.unlocked.openSpace(readOnly: true)
        for copy in 0..<2 {
            try specimen.flip(Space.rootSector(space.rings.nextDurable, copy: copy, files: space.files), 1)
        }
        try repair(
            specimen, ["go on from the state that can be read, in the place of a root that is lost"])
    }

    @Test func `a root's copy comes back with the next durable commit`() throws {
        let specimen = try Specimen()
        let space = try specimen.unlocked.openSpace(readOnly: true)
        try specimen.flip(Space.rootSector(space.rings.durable, copy: 1, files: space.files), 1)
        #expect(try specimen.check().findings.count == 1)
        try change(specimen, [])
        #expect(try specimen.check().findings == [])
    }

    @Test func `descriptors get the bytes that they had`() throws {
        let specimen = try Specimen()
        let runs = try specimen.runs()
        for checked in runs { try specimen.flip(checked.run.sector, 30) }
        let segments = Set(runs.map { Int($0.run.sector / 8192) })
        #expect(try !segments.contains { try specimen.isWhole($0) })
        try repair(specimen, ["write \(runs.count) descriptors again"])
        for segment in segments where segment > 1 { #expect(try specimen.isWhole(segment)) }
    }

    @Test func `thumbnails are dropped`() throws {
        let specimen = try Specimen()
        let thumbnail = try specimen.thumbnail()
        try specimen.flip(thumbnail.run.sector, 100)
        #expect(try specimen.check().findings.map(\.isHarmless) == [true])
        try repair(specimen, ["drop a damaged thumbnail"])
    }

    @Test(arguments: 0..<2) func `a segment of pages`(segment: Int) throws {
        let specimen = try Specimen()
        try specimen.remove(segment: segment)
        let report = try specimen.check()
        #expect(report.findings == [Finding(subject: "segment 00000\(segment)", cause: "is missing")])
        #expect(report.plan.lines.count == 2)
        try SpaceRepair.run(specimen.unlocked, report.plan)
        #expect(try specimen.check().findings == [])
        #expect(try Vault.checkFiles(specimen.vault.path) == [])
        #expect(try specimen.unreadable().isEmpty)
    }

    @Test func `damaged files stay, and what is whole of them is served`() throws {
        let specimen = try Specimen()
        let long = try #require(try specimen.runs().max { $0.run.length < $1.run.length })
        try specimen.flip(long.run.sector(ofChunk: 1), 1000)
        try specimen.flip(try specimen.pages()[0].place.sectorA, 9)
        try SpaceRepair.run(specimen.unlocked, specimen.check().plan)
        #expect(
            try specimen.check().findings.map(\.text)
                == ["albums/long.bin: bytes 131072 to 262143 cannot be authenticated"])
        #expect(try specimen.unreadable() == ["albums/long.bin"])
    }

    @Test func `sectors and slots that are marked wrong`() throws {
        let specimen = try Specimen()
        let runs = try specimen.runs()
        let (segment, first) = (Int(runs[0].run.sector) / 8192, Int(runs[0].run.sector) % 8192)
        let slot = 600
        do {
            let space = try specimen.unlocked.openSpace(readOnly: false)
            space.lock.withLock {
                guard var row = try? space.sectors.usedRow(of: segment) else { return }
                row.clear(first..<first + 1)
                row.set(7000..<7010)
                space.sectors.replace(segment, with: row)
                space.slots.take(found: slot)
                space.isChanged = true
            }
            try space.close()
        }
        let findings = try specimen.check().findings.map(\.text)
        #expect(
            findings == [
                "the allocation: 10 sectors are taken that nobody has",
                "the allocation: 1 page slots are taken that nobody has",
                "the allocation: 1 sectors are in use and marked as free",
            ])
        try repair(
            specimen, ["mark a sector as taken that is in use", "free 26 sectors that nobody has"])
        let space = try specimen.unlocked.openSpace(readOnly: true)
        #expect(space.pendingBytes == 0)
    }

    @Test func `a bitmap of which nothing is left`() throws {
        let specimen = try Specimen()
        let pages = try specimen.pages().filter {
            if case .page(.sectorBitmap, _) = $0.part { true } else { false }
        }
        #expect(!pages.isEmpty)
        for page in pages {
            try specimen.flip(page.place.sectorA, 5)
            try specimen.flip(page.place.sectorB, 5)
        }
        #expect(try specimen.unreadable().isEmpty)
        try repair(
            specimen,
            ["make the bitmap\(pages.count == 1 ? " of a segment" : "s of \(pages.count) segments") anew"])
    }

    @Test func `every rule finds what breaks it, and what can be mended is`() throws {
        let isFile = "mode & 61440 = 32768"
        let breaks: [(rule: String, statements: [String], mends: Bool)] = [
            ("its link count is wrong", ["UPDATE inode SET nlink = 9 WHERE \(isFile)"], true),
            ("its count of entries is wrong", ["UPDATE inode SET size = 99 WHERE ino = 3"], true),
            ("its count of directories is wrong", ["UPDATE inode SET nlink = 7 WHERE ino = 3"], true),
            ("its count of stored bytes is wrong", ["UPDATE inode SET allocated = 1 WHERE \(isFile)"], true),
            ("the count of files that share its bytes is wrong", ["UPDATE share SET users = 5"], true),
            (
                "a name means nothing",
                [
                    "INSERT INTO dentry VALUES(3, 99999, x'41', 88888, 0)",
                    "UPDATE inode SET size = size + 1 WHERE ino = 3",
                ], true
            ),
            ("an attribute is of no file", ["INSERT INTO xattr VALUES(88888, x'41', x'42')"], true),
            ("a link's target is of no link", ["INSERT INTO symlink VALUES(88888, x'41')"], true),
            (
                "a thumbnail is of no photo", ["UPDATE thumbnail SET ino = 88888"], true
            ),
            (
                "it is marked as a photo and is not known as one, or the other way round",
                ["UPDATE inode SET flags = flags & ~4 WHERE ino = (SELECT min(ino) FROM photo)"], true
            ),
            (
                "it does not stand under its day, once",
                ["UPDATE photo SET day = 20010101 WHERE ino = (SELECT min(ino) FROM photo)"], false
            ),
            ("it has bytes behind its end", ["UPDATE inode SET size = 1 WHERE size = 300000"], false),
            (
                "it says of its bytes what cannot be",
                [
                    "UPDATE extent SET sector = -5 WHERE content = (SELECT content FROM inode WHERE size = 5000)"
                ],
                false
            ),
            (
                "it is marked as a copy and is not known as one, or the other way round",
                ["DELETE FROM copy"], false
            ),
            ("the bytes of all photos are counted wrongly", ["UPDATE counter SET photo_bytes = 7"], true),
            ("the cost of all thumbnails is counted wrongly", ["UPDATE counter SET picture_bytes = 7"], true),
            ("photos without thumbnails are noted twice", ["INSERT INTO unpictured VALUES(9, 8)"], true),
            (
                "an identity record is of no file",
                [
                    "UPDATE identity SET id = 88888 WHERE id = (SELECT max(id) FROM identity WHERE id < 1 << 62)"
                ], true
            ),
            (
                "it has no identity record",
                ["DELETE FROM identity WHERE id = (SELECT max(id) FROM identity WHERE id < 1 << 62)"], true
            ),
            ("it is a copy of no photo", ["UPDATE copy SET photo = 88888"], false),
            ("an extent belongs to no file", ["UPDATE inode SET content = 88888 WHERE size = 300000"], false),
            ("it has no name", ["DELETE FROM dentry WHERE name = CAST('long.bin' AS BLOB)"], false),
            (
                "a name lies in no directory",
                ["UPDATE dentry SET parent = 88888 WHERE name = CAST('long.bin' AS BLOB)"], false
            ),
            (
                "it is marked as taken out of moments and is not known as that, or the other way round",
                ["UPDATE inode SET flags = flags & ~64"], false
            ),
            (
                "it lies in the trash and stands under a day",
                [
                    """
                    UPDATE inode SET day = 20230101
                        WHERE ino = (SELECT parent FROM dentry JOIN trash USING(ino) WHERE trash.id = 0)
                    """
                ],
                false
            ),
        ]
        #expect(Set(breaks.map(\.rule)) == Set(CatalogueRule.all.map(\.violation)))
        for broken in breaks {
            let specimen = try Specimen()
            try change(specimen, broken.statements)
            let report = try specimen.check()
            #expect(
                report.findings.contains { $0.cause == broken.rule }, "\(broken.rule): \(report.findings)")
            #expect(report.plan.lines.contains("set right: \(broken.rule)") == broken.mends, "\(broken.rule)")
            guard broken.mends else { continue }
            try SpaceRepair.run(specimen.unlocked, report.plan)
            #expect(try specimen.check().findings == [], "\(broken.rule)")
            #expect(try specimen.unreadable().isEmpty)
        }
    }

    @Test func `two extents in one place`() throws {
        let specimen = try Specimen()
        try change(
            specimen,
            [
                """
                UPDATE extent SET sector = (SELECT sector FROM extent JOIN inode USING(content) WHERE size = 300000)
                    WHERE content = (SELECT content FROM inode WHERE size = 5000)
                """
            ])
        let texts = try specimen.check().findings.map(\.text)
        #expect(
            texts.contains { $0.contains("late.jpg") && $0.contains("two extents have the same sectors") })
        #expect(texts.contains { $0.contains("late.jpg") && $0.contains("cannot be authenticated") })
    }

    @Test func `an extent where nothing can lie`() throws {
        for place in [
            "sector = 1 << 60", "sector = 8191", "length = 1 << 55", "length = 0",
            "offset = 77, length = 200000",
        ] {
            let specimen = try Specimen()
            try change(
                specimen,
                ["UPDATE extent SET \(place) WHERE content = (SELECT content FROM inode WHERE size = 5000)"])
            #expect(try specimen.check().findings.contains { $0.subject.contains("late.jpg") }, "\(place)")
        }
    }

    @Test func `without its catalogue nothing is changed`() throws {
        let specimen = try Specimen()
        for page in try specimen.pages() {
            guard case .page(.catalogue, 0) = page.part else { continue }
            try specimen.flip(page.place.sectorA, 5)
            try specimen.flip(page.place.sectorB, 5)
        }
        let report = try specimen.check()
        #expect(report.plan.mustSalvage)
        #expect(throws: VaultError.self) { try SpaceRepair.run(specimen.unlocked, report.plan) }
    }
}
