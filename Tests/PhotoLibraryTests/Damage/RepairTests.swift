import Foundation
import LibraryFixtures
import LinuxIO
import TestSupport
import Testing
import VaultFormat

@testable import PhotoLibrary
@testable import Recovery
@testable import VaultCatalogue
@testable import VaultStore

/// `check --repair`: repairable faults are repaired, and nothing readable is lost.
@Suite("Damage: repair") struct RepairTests {
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

    @Test func `damaged copies of pages`() throws {
        let specimen = try Specimen()
        let pages = try specimen.pages().filter { if case .delta = $0.part { false } else { true } }
        for (number, page) in pages.enumerated() {
            try specimen.flip(number % 2 == 0 ? page.place.sectorA : page.place.sectorB, 77)
        }
        try repair(specimen, ["rewrite \(pages.count) pages with one damaged copy"])
    }

    @Test func `a damaged delta`() throws {
        let specimen = try Specimen()
        let delta = try #require(
            try specimen.pages().first { if case .delta = $0.part { true } else { false } })
        try specimen.flip(delta.place.sectorB, 77)
        try repair(specimen, ["rewrite a page with one damaged copy"])
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

    @Test func `damaged roots`() throws {
        let specimen = try Specimen()
        let space = try specimen.unlocked.openSpace(readOnly: true)
        for slot in 0..<3 {
            try specimen.flip(RootStore.sector(slot, copy: slot % 2, space.parts.disk), 1)
        }
        try repair(specimen, ["rewrite the second copies of 3 roots"])
    }

    @Test func `a root of which nothing is left`() throws {
        let specimen = try Specimen()
        let space = try specimen.unlocked.openSpace(readOnly: true)
        for copy in 0..<2 {
            try specimen.flip(
                RootStore.sector(space.parts.roots.rings.nextDurable, copy: copy, space.parts.disk), 1)
        }
        try repair(
            specimen, ["replace a lost root with the newest state that can be read"])
    }

    @Test func `a root's copy comes back with the next durable commit`() throws {
        let specimen = try Specimen()
        let space = try specimen.unlocked.openSpace(readOnly: true)
        try specimen.flip(RootStore.sector(space.parts.roots.rings.durable, copy: 1, space.parts.disk), 1)
        #expect(try specimen.check().findings.count == 1)
        try specimen.change([])
        #expect(try specimen.check().findings == [])
    }

    @Test func `descriptors get the bytes that they had`() throws {
        let specimen = try Specimen()
        let runs = try specimen.runs()
        for checked in runs { try specimen.flip(checked.run.sector, 30) }
        let segments = Set(runs.map { Int($0.run.sector / 8192) })
        #expect(try !segments.contains { try specimen.isWhole($0) })
        try repair(specimen, ["rewrite \(runs.count) descriptors"])
        for segment in segments where segment > 1 { #expect(try specimen.isWhole(segment)) }
    }

    @Test func `thumbnails are dropped`() throws {
        let specimen = try Specimen()
        let thumbnail = try specimen.thumbnail()
        try specimen.flip(thumbnail.run.sector, 100)
        #expect(try specimen.check().findings.map(\.isHarmless) == [true])
        try repair(specimen, ["drop a damaged thumbnail"])
    }

    @Test(arguments: 0..<2) func `a lost segment of pages`(segment: Int) throws {
        let specimen = try Specimen(spaces: 1)
        try specimen.remove(segment: segment)
        let report = try specimen.check()
        #expect(
            report.findings == [
                Finding(subject: "segment 00000\(segment)", cause: "missing", kind: .segment)
            ])
        #expect(report.plan.lines.count == 2)
        try SpaceRepair.run(specimen.unlocked, report.plan)
        #expect(try specimen.check().findings == [])
        #expect(try Vault.checkFiles(specimen.vault.path) == [])
        #expect(try specimen.unreadable().isEmpty)
    }

    @Test func `damaged files stay, and their whole parts are served`() throws {
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
            space.parts.lock.withLock {
                guard var row = try? space.sectors.allocator.usedRow(of: segment) else { return }
                row.clear(first..<first + 1)
                row.set(7000..<7010)
                space.sectors.allocator.replace(segment, with: row)
                space.parts.slots.allocator.take(found: slot)
                space.parts.next.noteChange()
            }
            try space.close()
        }
        let findings = try specimen.check().findings.map(\.text)
        #expect(
            findings == [
                "the allocation: 10 sectors are allocated but not in use",
                "the allocation: 1 page slots are allocated but not in use",
                "the allocation: 1 sectors are in use but marked as free",
            ])
        try repair(
            specimen, ["mark a sector in use as allocated", "free 26 sectors that are not in use"])
        let space = try specimen.unlocked.openSpace(readOnly: true)
        #expect(space.sectors.pendingBytes == 0)
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
            ["rebuild the bitmap\(pages.count == 1 ? " of a segment" : "s of \(pages.count) segments")"])
    }

    @Test func `two extents in one place`() throws {
        let specimen = try Specimen()
        try specimen.change(
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
            try specimen.change(
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
