import Foundation
import LibraryFixtures
import TestSupport
import Testing
import VaultFormat

@testable import PhotoLibrary
@testable import Recovery
@testable import VaultStore

/// Every kind of stored bytes, flipped, zeroed, cut and deleted: reads are right or an error, and a check
/// names it.
@Suite("Damage: check names it") struct CorruptionTests {
    @Test func `a vault that is whole has nothing to be found`() throws {
        let specimen = try Specimen()
        let report = try specimen.check()
        #expect(report.findings == [] && report.plan.lines.isEmpty)
        #expect(report.fileCount == 13)
        #expect(try specimen.unreadable().isEmpty)
    }

    @Test func `a check ends where it is asked to`() throws {
        let specimen = try Specimen()
        var complete = 0
        for last in Array(0..<30) + [200] {
            var calls = 0
            let report = try SpaceCheck.run(specimen.unlocked) { _, _ in
                calls += 1
                return calls <= last
            }
            #expect(report.isInterrupted == (calls > last) && report.findings.isEmpty)
            complete += report.isInterrupted ? 0 : 1
        }
        #expect(complete > 0)
    }

    @Test func `one copy of any page may be damaged`() throws {
        let specimen = try Specimen()
        for (part, place) in try specimen.pages() {
            for (copy, sector) in [("A", place.sectorA), ("B", place.sectorB)] {
                for offset in [0, 24, 4095] {
                    try specimen.flip(sector, offset)
                    #expect(
                        try specimen.check().findings.map(\.text)
                            == ["\(part.text): one copy of two is damaged (\(copy))"])
                    if offset == 24 { #expect(try specimen.unreadable().isEmpty, "\(part)") }
                    try specimen.flip(sector, offset)
                }
            }
        }
        #expect(try specimen.check().findings.isEmpty)
    }

    @Test func `both copies of a page are damaged: errors, and no wrong byte`() throws {
        let specimen = try Specimen()
        var lost = 0
        for (part, place) in try specimen.pages() {
            try specimen.flip(place.sectorA, 100)
            try specimen.flip(place.sectorB, 3000)
            let report = try specimen.check()
            #expect(report.findings.contains { !$0.isHarmless }, "\(part)")
            lost += try specimen.unreadable().isEmpty ? 0 : 1
            try specimen.restore([0, 1])
        }
        // Not all pages are needed to read: but some are.
        #expect(lost > 3)
    }

    @Test func `every copy of a root`() throws {
        let specimen = try Specimen()
        do {
            // Until the ring has come round: then each slot is known to have held a root.
            let space = try specimen.unlocked.openSpace(readOnly: false)
            for _ in 0..<5 { try space.publish(space.freeze(), durable: true) }
            try space.close()
        }
        let space = try specimen.unlocked.openSpace(readOnly: true)
        let found = RootStore.read(space.parts.disk, space.parts.codec).found
        #expect(found.count == 4)
        for root in found {
            for copy in 0..<2 {
                let sector = RootStore.sector(root.slot, copy: copy, space.parts.disk)
                try specimen.flip(sector, 50)
                #expect(
                    try specimen.check().findings.map(\.text)
                        == [
                            "root \(root.slot): one copy of two is damaged (\(copy == 0 ? "A" : "B"))"
                        ])
                #expect(try specimen.unreadable().isEmpty)
                try specimen.flip(sector, 50)
            }
        }
        // Without its newest root the space is shown as the one before left it.
        let newest = try #require(found.max { $0.root.generation < $1.root.generation })
        for copy in 0..<2 {
            try specimen.flip(RootStore.sector(newest.slot, copy: copy, space.parts.disk), 50)
        }
        #expect(try !specimen.check().findings.isEmpty)
    }

    private static let isOlder = "the newest state of the space: its root is lost: an older one is shown"

    /// From the first commit on, whether the ring of roots has come round or not.
    @Test func `without its newest root a space is said to be older`() throws {
        let specimen = try Specimen()
        for _ in 0..<5 {
            let space = try specimen.unlocked.openSpace(readOnly: true)
            let found = RootStore.read(space.parts.disk, space.parts.codec).found
            #expect(found.count == 4)
            let newest = try #require(found.max { $0.root.generation < $1.root.generation })
            for root in found {
                try lose(root.slot, specimen)
                let texts = try specimen.check().findings.map(\.text)
                #expect(texts.contains(Self.isOlder) == (root.slot == newest.slot))
                #expect(texts.contains("root \(root.slot): both copies are damaged"))
                try lose(root.slot, specimen)
            }
            let another = try specimen.unlocked.openSpace(readOnly: false)
            try another.publish(another.freeze(), durable: true)
            try another.close()
        }
    }

    private func lose(_ slot: Int, _ specimen: Specimen) throws {
        for copy in 0..<2 { try specimen.flip(UInt64(copy * 8192 + slot * 8), 50) }
    }

    /// As by a process that was killed in its first commit, between the copies. Of an older root that is damage.
    @Test func `a newest root of which one copy is written is no damage`() throws {
        let specimen = try Specimen()
        let space = try specimen.unlocked.openSpace(readOnly: false)
        let slot = space.parts.roots.rings.nextDurable
        let page = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 4096)
        defer { page.deallocate() }
        let sector = RootStore.sector(slot, copy: 1, space.parts.disk)
        try space.parts.disk.read(sector, into: page)
        try space.publish(space.freeze(), durable: true)
        try space.close()
        // Not as a mount that writes on.
        space.parts.disk.claim = nil
        try space.parts.disk.write(sector, UnsafeRawBufferPointer(page))
        #expect(try specimen.check().findings == [])
        let another = try specimen.unlocked.openSpace(readOnly: false)
        try another.publish(another.freeze(), durable: true)
        try another.publish(another.freeze(), durable: true)
        try another.close()
        try another.parts.disk.write(sector, UnsafeRawBufferPointer(page))
        #expect(
            try specimen.check().findings.map(\.text)
                == ["root \(slot): one copy of two is damaged (B)"])
    }

    /// Changes that were not durable are lost with a crash, and that is no damage; the root that it builds on is one.
    @Test func `after a kill nothing is said to be older, unless the durable root is lost`() throws {
        let fixture = try Fixture(bytes: 16 << 20)
        try fixture.put("albums/a.jpg", jpeg("2024-05-01", more: 1))
        try fixture.library.makeDurable()
        try fixture.put("albums/b.jpg", jpeg("2024-05-01", more: 2))
        try fixture.die()
        let unlocked = try fixture.vault.unlock(readOnly: true)
        #expect(try SpaceCheck.run(unlocked).findings == [])
        let space = try unlocked.openSpace(readOnly: true)
        #expect(!space.commits.newest.isDurable)
        let base = try #require(
            RootStore.read(space.parts.disk, space.parts.codec).found.first {
                $0.root.generation == space.commits.newest.base
            })
        for copy in 0..<2 {
            try fixture.vault.damage(
                spaceIndex: unlocked.index, segment: copy, offset: UInt64(base.slot * 4096 + 50))
        }
        #expect(
            try SpaceCheck.run(unlocked).findings.map(\.text).contains(
                "the newest state of the space: it cannot be read: an older one is shown"))
    }

    @Test func `damaged extents`() throws {
        let specimen = try Specimen()
        for checked in try specimen.runs() {
            for number in 0..<checked.run.chunkCount {
                let sector = checked.run.sector(ofChunk: number)
                let length = checked.run.plainBytes(ofChunk: number)
                let sealed = length + Geometry.extentOverheadBytes
                for offset in [0, 80, sealed - 17, sealed - 1] {
                    try specimen.flip(sector, offset)
                    let finding = try #require(try specimen.check().findings.first)
                    #expect(finding.cause.contains("cannot be authenticated"))
                    let isThumbnail = finding.subject.hasPrefix("thumbnail of ") || checked.isRecord
                    #expect(finding.isHarmless == isThumbnail)
                    let expected = Set(specimen.files.keys.filter { finding.subject.contains($0) })
                    #expect(try specimen.unreadable() == (isThumbnail ? [] : expected), "\(finding.text)")
                    try specimen.flip(sector, offset)
                }
                for offset in [24, 79] {
                    try specimen.flip(sector, offset)
                    let findings = try specimen.check().findings
                    #expect(findings.count == 1 && findings.allSatisfy(\.isHarmless))
                    #expect(findings.first?.cause.contains("descriptor") == true)
                    #expect(try specimen.unreadable().isEmpty)
                    try specimen.flip(sector, offset)
                }
                // The padding of the last sector has no meaning.
                if sealed % 512 != 0 {
                    try specimen.flip(sector, sealed)
                    #expect(try specimen.check().findings.isEmpty)
                    try specimen.flip(sector, sealed)
                }
            }
        }
    }

    @Test func `the ranges of a long file, by all of its names`() throws {
        let specimen = try Specimen()
        let long = try #require(
            try specimen.runs().filter { $0.run.length > 131_072 }.max { $0.run.length < $1.run.length })
        try specimen.flip(long.run.sector(ofChunk: 1), 1000)
        #expect(
            try specimen.check().findings.map(\.text)
                == ["albums/long.bin: bytes 131072 to 262143 cannot be authenticated"])
        try specimen.flip(long.run.sector(ofChunk: 0), 1000)
        #expect(
            try specimen.check().findings.map(\.text)
                == ["albums/long.bin: bytes 0 to 262143 cannot be authenticated"])
        try specimen.restore()
        let shared = try #require(try specimen.runs().first { $0.run.length == 20_000 })
        try specimen.flip(shared.run.sector, 1000)
        #expect(
            try specimen.check().findings.map(\.text) == [
                "moments/2024-05-02/1.jpg, albums/Trip/1.jpg, albums/copy.jpg: "
                    + "bytes 0 to 19999 cannot be authenticated"
            ])
    }

    @Test(arguments: 0..<3) func `a segment that is gone, or cut`(segment: Int) throws {
        let specimen = try Specimen(spaces: 1)
        let isContent = try specimen.runs().contains { $0.run.sector / 8192 == segment }
        try specimen.remove(segment: segment)
        let report = try specimen.check()
        let isPages = segment < 2
        let first = Finding(subject: "segment 00000\(segment)", cause: "missing", kind: .segment)
        #expect(report.findings.contains(first) == (isPages || isContent))
        let lost = try specimen.unreadable()
        #expect(lost.isEmpty == !isContent)
        for path in lost {
            #expect(report.findings.contains { $0.subject.contains(path) && $0.cause.contains("is missing") })
        }
        // Told once, once for each file (one has two runs) and thumbnail, and once for all identity records.
        #expect(report.findings.count <= 1 + specimen.files.count + 4, "\(report.findings.map(\.text))")
        let outside = try Vault.checkFiles(specimen.vault.path)
        // Without the password no segment is missed behind the last one there.
        #expect(outside.map(\.cause) == (segment < 2 ? ["00000\(segment).seg is missing"] : []))
        try specimen.restore([segment])
        try specimen.truncate(segment: segment, to: 70_000)
        let cut = try specimen.check()
        for path in try specimen.unreadable() {
            #expect(cut.findings.contains { $0.subject.contains(path) && $0.cause.contains("is truncated") })
        }
    }

    /// Anything anywhere: `seed` repeats a failing case.
    @Test(arguments: [UInt64(1), 2, 3, 4]) func `bytes damaged at random`(seed: UInt64) throws {
        let specimen = try Specimen()
        var random = RandomSource(seed)
        let used = try usedBytes(specimen)
        for number in 0..<60 {
            // Half of it where something is.
            let place =
                number % 2 == 0
                ? used.randomElement(using: &random)!.lowerBound
                : Int.random(in: 0..<16 << 20, using: &random)
            let (sector, offset) = (UInt64(place / 512), place % 512)
            let count = [1, 1, 16, 512, 4096].randomElement(using: &random)!
            let room = min(count, 8192 * 512 - place % (8192 * 512))
            let old = try specimen.bytes(sector, offset + room).dropFirst(offset)
            let new = old.map {
                Int.random(in: 0..<4, using: &random) == 0 || room == 1
                    ? $0 ^ UInt8.random(in: 1...255, using: &random) : 0
            }
            try specimen.write(sector, offset, new)
            let touched = zip(old, new).enumerated().filter { $0.element.0 != $0.element.1 }.map {
                place + $0.offset
            }
            let isUsed = touched.contains { byte in used.contains { $0.contains(byte) } }
            let report = try specimen.check()
            let comment: Comment = "seed \(seed), case \(number): \(room) bytes at \(place)"
            #expect(report.findings.isEmpty == !isUsed, comment)
            let lost = try specimen.unreadable()
            if !report.plan.mustSalvage {
                for path in lost { #expect(report.findings.contains { $0.subject.contains(path) }, comment) }
            }
            try specimen.write(sector, offset, Array(old))
        }
        #expect(try specimen.check().findings.isEmpty)
    }

    /// Bytes of the space that mean something: all but the padding of last sectors.
    private func usedBytes(_ specimen: Specimen) throws -> [Range<Int>] {
        var used: [Range<Int>] = []
        let space = try specimen.unlocked.openSpace(readOnly: true)
        for (_, place) in try specimen.pages() {
            for sector in [place.sectorA, place.sectorB] {
                used.append(Int(sector) * 512..<Int(sector) * 512 + 4096)
            }
        }
        for root in RootStore.read(space.parts.disk, space.parts.codec).found {
            for copy in 0..<2 {
                let sector = Int(RootStore.sector(root.slot, copy: copy, space.parts.disk))
                used.append(sector * 512..<sector * 512 + 4096)
            }
        }
        for checked in try specimen.runs() {
            for number in 0..<checked.run.chunkCount {
                let first = Int(checked.run.sector(ofChunk: number)) * 512
                let sealed = checked.run.plainBytes(ofChunk: number) + Geometry.extentOverheadBytes
                used.append(first..<first + sealed)
            }
        }
        return used
    }
}
