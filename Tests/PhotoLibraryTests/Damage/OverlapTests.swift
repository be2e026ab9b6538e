import Glibc
import LibraryFixtures
import LinuxIO
import TestFixtures
import TestSupport
import Testing
import VaultFormat

@testable import CatalogueRows
@testable import FileRequests
@testable import PhotoLibrary
@testable import Recovery
@testable import VaultCatalogue
@testable import VaultStore

/// Sectors that two extents claim, as an allocator left them that forgot sectors in use: of two files with the same
/// sectors the one whose bytes open keeps them, the other is named, and reads as an error where it is lost.
@Suite("Damage: two files in one place") struct OverlapTests {
    /// A vault in memory whose bitmap is made to forget sectors, so that they are given out again.
    private final class Forgetful {
        private let vault: MemoryVault
        private let disk: MemoryDisk

        init(spaces: Int) throws {
            vault = try MemoryVault(spaces: spaces, segments: 6)
            disk = MemoryDisk(vault.empty, isRecording: false)
        }

        func use(_ body: (MemoryUser) throws -> Void) throws { try mount(body) }

        /// As with an allocator that does not check whether sectors are in use.
        func useUnguarded(_ body: (MemoryUser) throws -> Void) throws {
            try mount { user in
                user.library.session.space.rows = nil
                try body(user)
            }
        }

        private func mount<R>(_ body: (MemoryUser) throws -> R) throws -> R {
            let user = try MemoryUser(vault, disk)
            let result = try body(user)
            try user.close()
            return result
        }

        func withSpace<R>(readOnly: Bool = true, _ body: (Space) throws -> R) throws -> R {
            defer { disk.closeAll() }
            return try body(try vault.openSpace(disk, isReadOnly: readOnly))
        }

        /// The rows of a file's extents, or of its identity record.
        func runs(_ path: String, isRecord: Bool = false) throws -> [ExtentRun] {
            let (ino, content) = try mount { user in
                let ino = try user.ino(path)
                return (
                    ino,
                    try user.library.session.locked { tree throws(FileError) in
                        try tree.inode(ino).row.content
                    }
                )
            }
            return try withSpace { space in
                try Catalogue(storage: space, readOnly: true).locked {
                    try $0.runs.runs(of: isRecord ? ino : content, isRecord: isRecord).map(\.run)
                }
            }
        }

        /// Marks sectors as free though they are in use.
        func forget(_ sectors: Range<UInt64>) throws {
            try withSpace(readOnly: false) { space in
                try space.parts.lock.withLock {
                    let (segment, first) = (
                        Int(sectors.lowerBound) / space.sectors.perSegment,
                        Int(sectors.lowerBound) % space.sectors.perSegment
                    )
                    var row = try space.sectors.allocator.usedRow(of: segment)
                    row.clear(first..<first + sectors.count)
                    space.sectors.allocator.replace(segment, with: row)
                    space.parts.next.noteChange()
                }
                try space.publish(space.freeze(), durable: true)
                try space.close()
            }
        }

        func change(_ statement: String) throws {
            try withSpace(readOnly: false) { space in
                let catalogue = try Catalogue(storage: space)
                try catalogue.locked { try $0.connection.execute(statement) }
                try space.publish(
                    catalogue.commitTransaction(before: { _ in }, freeze: { space.freeze() }), durable: true)
                try space.close()
            }
        }

        func check() throws -> SpaceReport {
            defer { disk.closeAll() }
            return try SpaceCheck.run(try vault.unlock(disk))
        }

        @discardableResult
        func repair() throws -> SpaceReport {
            let report = try check()
            defer { disk.closeAll() }
            try SpaceRepair.run(try vault.unlock(disk), report.plan)
            return report
        }

        /// Builds the catalogue anew, though it can be read.
        func salvage() throws {
            defer { disk.closeAll() }
            var options = LibraryOptions(owner: (0, 0), mountedByRoot: true)
            options.thumbnails = .off
            try Salvage.survey(try vault.unlock(disk), options: options) { _, _ in }.rebuild()
        }

        func auditIt() throws { try withSpace { try audit($0) } }
    }

    /// A file's bytes, chunk by chunk; nil for an error.
    private func chunks(_ user: MemoryUser, _ path: String) throws -> [[UInt8]?] {
        let handle = try user.open(path, O_RDONLY)
        defer { user.library.release(handle) }
        let size = try user.stat(path).size
        return stride(from: 0, to: size, by: Int(Chunk.bytes)).map { offset in
            try? user.read(handle, Int(min(Chunk.bytes, size - offset)), at: offset)
        }
    }

    /// A file of four chunks, whose second one was given to another file, and overwritten.
    private func overwritten(_ vault: Forgetful) throws {
        try vault.use { user in
            try user.put("albums/old", noise(500_000, seed: 1))
            try user.put("albums/other.jpg", jpeg(more: 1, size: 9000))
        }
        let run = try #require(try vault.runs("albums/old").first)
        try #require(run.chunkCount == 4)
        let second = run.sector(ofChunk: 1)
        try vault.forget(second..<second + 257)
        try vault.useUnguarded { try $0.put("albums/new", noise(130_000, seed: 2)) }
        try #require(try vault.runs("albums/new").map(\.sector) == [second])
    }

    private func expectNew(_ user: MemoryUser, location: SourceLocation = #_sourceLocation) throws {
        let isRight = try user.get("albums/new") == noise(130_000, seed: 2)
        #expect(isRight, sourceLocation: location)
    }

    private static let isShared = "albums/old and albums/new: two extents have the same sectors"
    private static let isLost = "albums/old: bytes 131072 to 262143 are lost"

    @Test(arguments: [1, 2]) func `the file that opens keeps sectors of both`(spaces: Int) throws {
        let vault = try Forgetful(spaces: spaces)
        try overwritten(vault)
        let texts = try vault.repair().findings.map(\.text)
        #expect(texts.contains(Self.isShared), "\(texts)")
        #expect(texts.contains("albums/old: bytes 131072 to 262143 cannot be authenticated"), "\(texts)")
        for _ in 0..<2 {
            let report = try vault.check()
            #expect(report.findings.map(\.text) == [Self.isLost] && report.plan.lines.isEmpty)
        }
        try vault.auditIt()
        let old = noise(500_000, seed: 1)
        try vault.use { user in
            let found = try chunks(user, "albums/old")
            let isRight =
                found == [
                    Array(old[..<131_072]), nil, Array(old[262_144..<393_216]), Array(old[393_216...]),
                ]
            #expect(isRight)
            try expectNew(user)
            // Chunks written anew are readable again.
            let handle = try user.open("albums/old")
            try user.write(handle, noise(131_072, seed: 5), at: 131_072)
            try user.close(handle)
            let isNew = try chunks(user, "albums/old")[1] == noise(131_072, seed: 5)
            #expect(isNew)
        }
        #expect(try vault.check().findings.isEmpty)
    }

    /// With any fate of the damaged file, the other one's bytes stay: also when the space fills up.
    @Test func `removing the damaged file frees nothing of the other`() throws {
        let vault = try Forgetful(spaces: 2)
        try overwritten(vault)
        try vault.repair()
        try vault.use { user in
            try user.rm("albums/old")
            for _ in 0..<3 { user.library.session.committer.commitByHand(durable: true) }
            fill(user)
            try expectNew(user)
        }
        try vault.use { user in try expectNew(user) }
        #expect(try vault.check().findings.isEmpty)
        try vault.auditIt()
    }

    /// A photo of four chunks that share the first, second and fourth one with its version.
    private func edited(_ vault: Forgetful) throws -> [UInt8] {
        let old = jpeg(more: 1) + noise(500_000, seed: 1)
        try vault.use { user in
            try user.put("albums/old.jpg", old)
            let handle = try user.open("albums/old.jpg")
            try user.write(handle, noise(1000, seed: 3), at: 300_000)
            try user.close(handle)
        }
        return old
    }

    /// Each content that names the lost extent reads as an error there; both stay as they are elsewhere.
    @Test func `photo and version lose only what was overwritten`() throws {
        let vault = try Forgetful(spaces: 2)
        let old = try edited(vault)
        let second = try #require(try vault.runs("albums/old.jpg").first).sector(ofChunk: 1)
        #expect(try vault.check().findings.isEmpty)
        try vault.forget(second..<second + 257)
        try vault.useUnguarded { try $0.put("albums/new", noise(130_000, seed: 2)) }
        try #require(try vault.runs("albums/new").map(\.sector) == [second])
        let found = try vault.repair().findings.map(\.text)
        #expect(found.contains { $0.contains("two extents have the same sectors") }, "\(found)")
        let report = try vault.check()
        #expect(report.findings.count == 2 && report.plan.lines.isEmpty, "\(report.findings.map(\.text))")
        try vault.auditIt()
        var new = old
        new.replaceSubrange(300_000..<301_000, with: noise(1000, seed: 3))
        try vault.use { user in
            for (path, bytes) in [("albums/old.jpg", new), ("albums/.versions/old.jpg/original", old)] {
                let expected = stride(from: 0, to: bytes.count, by: 131_072).map {
                    $0 == 131_072 ? nil : Array(bytes[$0..<min($0 + 131_072, bytes.count)])
                }
                let isRight = try chunks(user, path) == expected
                #expect(isRight, "\(path)")
            }
            try expectNew(user)
            try user.rm("moments/2024-05-01/old.jpg")
            try user.rmrf(".Trash-0")
            for _ in 0..<3 { user.library.session.committer.commitByHand(durable: true) }
            try expectNew(user)
        }
        let texts = try vault.check().findings.map(\.text)
        #expect(texts.isEmpty, "\(texts)")
        try vault.auditIt()
    }

    /// Only the version has it, and its row begins before the photo's rows that surround it.
    @Test func `sectors of a version are not given out again`() throws {
        let vault = try Forgetful(spaces: 2)
        let old = try edited(vault)
        let rows = try vault.withSpace { space in
            try Catalogue(storage: space, readOnly: true).locked {
                try $0.runs.runs(from: 1 << 61, 0, limit: 9)
            }
        }
        let third = try #require(rows.first { $0.run.offset == 262_144 }).run.sector
        try vault.forget(third..<third + 257)
        try vault.use { user in
            for number in 0..<9 { _ = try? user.put("albums/new \(number)", noise(130_000, seed: number)) }
        }
        try vault.use { user in
            let isKept = try user.get("albums/.versions/old.jpg/original") == old
            #expect(isKept)
        }
    }

    /// The repair of a wrong row gives it back its extents, and those of the others stay.
    @Test func `a version's row with wrong sectors is mended`() throws {
        let vault = try Forgetful(spaces: 2)
        let old = try edited(vault)
        try vault.change("UPDATE extent SET sector = sector + 257 WHERE content >= 1 << 61 AND offset = 0")
        #expect(try vault.check().findings.contains { $0.text.contains("same sectors") })
        try vault.repair()
        try vault.auditIt()
        try vault.use { user in
            var new = old
            new.replaceSubrange(300_000..<301_000, with: noise(1000, seed: 3))
            let isPhoto = try user.get("albums/old.jpg") == new
            let isKept = try user.get("albums/.versions/old.jpg/original") == old
            #expect(isPhoto)
            #expect(isKept)
        }
        #expect(try vault.check().findings.isEmpty)
    }

    /// Writes until nothing more is taken.
    private func fill(_ user: MemoryUser) {
        for number in 0... {
            guard (try? user.put("albums/filling \(number)", noise(600_000, seed: number))) != nil else {
                return
            }
        }
    }

    /// It was removed before a check: the sectors it gave back are the other one's.
    @Test(arguments: [1, 2, 3]) func `sectors given back that are in use are kept`(commits: Int) throws {
        let vault = try Forgetful(spaces: 2)
        try overwritten(vault)
        try vault.use { user in
            try user.rm("albums/old")
            for _ in 0..<commits { user.library.session.committer.commitByHand(durable: true) }
        }
        let words = try vault.repair().findings.map(\.cause)
        #expect(
            words.contains { $0.hasPrefix("254 sectors are in use but ") }
                || words.contains { $0.contains("in use") }, "\(words)")
        #expect(try vault.check().findings.isEmpty)
        try vault.auditIt()
        try vault.use { user in
            for _ in 0..<3 { user.library.session.committer.commitByHand(durable: true) }
            fill(user)
            try expectNew(user)
        }
        try vault.auditIt()
    }

    /// Where both were overwritten by a third that is gone, the one that was written last keeps the place.
    @Test func `neither of two opens`() throws {
        let vault = try Forgetful(spaces: 2)
        try overwritten(vault)
        let run = try #require(try vault.runs("albums/new").first)
        try vault.withSpace(readOnly: false) { space in
            let bytes = noise(512, seed: 77)
            try bytes.withUnsafeBytes { try space.parts.disk.write(run.sector + 3, $0) }
        }
        try vault.repair()
        #expect(
            try vault.check().findings.map(\.text).sorted() == [
                "albums/new: bytes 0 to 129999 cannot be authenticated", Self.isLost,
            ])
        try vault.auditIt()
        try vault.use { user in
            #expect(try chunks(user, "albums/new") == [nil])
            try user.rm("albums/new")
            try user.rm("albums/old")
        }
        #expect(try vault.check().findings.isEmpty)
    }

    /// An identity record was overwritten, and a small file: one is written anew, the other is lost.
    @Test func `records and small files over each other`() throws {
        let vault = try Forgetful(spaces: 2)
        try vault.use { user in
            for number in 0..<8 { try user.put("albums/\(number)", noise(300, seed: number)) }
        }
        let record = try #require(try vault.runs("albums/3", isRecord: true).first)
        try vault.forget(record.sector..<record.sector + 1)
        try vault.useUnguarded { try $0.put("albums/new", noise(250, seed: 20)) }
        let small = try #require(try vault.runs("albums/5").first)
        try vault.forget(small.sector..<small.sector + 1)
        try vault.useUnguarded { try $0.put("albums/newer", noise(250, seed: 21)) }
        let report = try vault.repair()
        #expect(report.findings.contains { $0.cause == "two extents have the same sectors" })
        #expect(
            try vault.check().findings.map(\.text).allSatisfy { $0.hasSuffix(": bytes 0 to 299 are lost") })
        try vault.use { user in
            let expected = (0..<8).filter { $0 != 5 }.map { ("\($0)", noise(300, seed: $0)) }
            for (name, bytes) in expected + [("new", noise(250, seed: 20)), ("newer", noise(250, seed: 21))] {
                let isRight = try user.get("albums/\(name)") == bytes
                #expect(isRight, "\(name)")
            }
        }
        try vault.auditIt()
    }

    private static let shapes = [
        // Equal, nested, partial; within a file and between files.
        "sector = (SELECT min(sector) FROM extent)",
        "sector = (SELECT min(sector) FROM extent) + offset / 131072",
        "sector = (SELECT min(sector) FROM extent) + 100 WHERE offset = 0",
        "sector = sector + 1", "sector = sector - 300", "sector = sector + (content % 3) * 257",
        // Across segments, and into the last.
        "sector = 3 * 8192 - 257 - content % 2", "sector = 3 * 8192 - 1 - content % 300",
        "sector = 6 * 8192 - 1",
        "sector = 4 * 8192 - 257 * (content % 4), length = 131072 * (1 + content % 4)",
        // Longer than anything.
        "length = 8000000", "length = 1 << 33", "length = 1 << 62", "length = 9223372036854775807",
        "length = 0",
        "length = 131072 * 60, sector = 2 * 8192 + content % 64",
        "offset = 131072 * 3, length = 131072 * 20 WHERE offset > 0",
        // Negative, and where sums end.
        "sector = -1", "sector = -9223372036854775808", "sector = 9223372036854775807",
        "sector = (1 << 61) + content",
        "offset = -131072 - offset", "offset = 9223372036854775807 - offset",
        "offset = (1 << 62) - 131072 + offset",
        "length = -1", "length = -9223372036854775808", "length = (1 << 61) - 1, offset = offset + (1 << 61)",
        // In the pages of the catalogue.
        "sector = content % 8192",
    ]

    /// Files of several sizes, and a picture with a thumbnail.
    private func fill(_ vault: Forgetful) throws {
        try vault.use { user in
            for (number, size) in Self.sizes.enumerated() {
                try user.put("albums/\(number)", noise(size, seed: number))
            }
            try user.put("albums/p.jpg", jpeg(more: 1, size: 4000))
            _ = try user.get("albums/.thumbs/p.jpg")
        }
    }

    private static let sizes = [1, 400, 500_000, 131_072, 700_000, 9000]

    /// Readable bytes of the files are right. Then they are removed.
    private func expectRightOrDamaged(_ user: MemoryUser) throws {
        for (number, size) in Self.sizes.enumerated() {
            let bytes = noise(size, seed: number)
            for (index, found) in try chunks(user, "albums/\(number)").enumerated() {
                guard let found else { continue }
                let start = index * Int(Chunk.bytes)
                let isRight = found.elementsEqual(bytes[start..<min(size, start + found.count)])
                #expect(isRight, "file \(number), chunk \(index)")
            }
            try user.rm("albums/\(number)")
        }
    }

    /// Rows that claim more than any space has are not gone through chunk by chunk.
    @Test(arguments: [
        "length = 1 << 60", "length = 1 << 33, offset = offset + (1 << 50)",
        "length = 131072, sector = 1 << 61",
        "sector = (SELECT min(sector) FROM extent)", "offset = (1 << 60) - offset, length = 1 << 40",
    ])
    func `built anew from runs that make no sense`(shape: String) throws {
        let vault = try Forgetful(spaces: 2)
        try fill(vault)
        try vault.change("UPDATE OR REPLACE extent SET \(shape)")
        try vault.salvage()
        #expect(try vault.check().plan.lines == [])
        try vault.use { try expectRightOrDamaged($0) }
        #expect(try vault.check().plan.lines == [])
    }

    /// Rows over each other in every way: nothing ends the process, a repair leaves nothing that could be repaired, and
    /// each read is right or an error.
    @Test(arguments: shapes) func `runs over each other`(shape: String) throws {
        let vault = try Forgetful(spaces: 2)
        try fill(vault)
        try vault.change("UPDATE OR REPLACE extent SET \(shape)")
        try vault.use { user in
            var cursor: CheckCursor? = .start
            while let now = cursor { cursor = try LiveCheck(user.library.session).step(now).next }
        }
        try vault.repair()
        let report = try vault.check()
        #expect(report.plan.lines.isEmpty, "\(report.findings.map(\.text)) \(report.plan.lines)")
        try vault.use { try expectRightOrDamaged($0) }
        #expect(try vault.check().plan.lines.isEmpty)
    }
}
