import FileRequests
import Glibc
import LibraryFixtures
import LinuxIO
import TestSupport
import Testing
import VaultFormat

@testable import CatalogueRows
@testable import PhotoLibrary
@testable import Recovery
@testable import VaultCatalogue
@testable import VaultStore

/// Versions of photos that are edited in place: they name the photo's extents, and cost what the edit changes.
@Suite("Albums: versions share bytes with their photo") struct SnapshotTests {
    /// A fixture of which each edit makes a version, because a minute passes before it.
    private final class Edited {
        let wall = VersionTests.Wall()
        let fixture: Fixture
        static let path = "albums/x.jpg"

        init(isFragmented: Bool = false, limits: Limits = .production) throws {
            fixture = try Fixture(isFragmented: isFragmented, clocks: wall.clocks, limits: limits)
        }

        /// The function closes its handle: an open one keeps the vault locked.
        func edit(_ body: (Handle) throws -> Void) throws {
            wall.now += 61
            let handle = try fixture.open(Self.path)
            do { try body(handle) } catch {
                fixture.library.release(handle)
                throw error
            }
            try fixture.close(handle)
        }

        func write(_ bytes: [UInt8], at offset: Int) throws {
            try edit { try fixture.write($0, bytes, at: UInt64(offset)) }
        }

        var versions: [String] {
            get throws {
                fixture.exists("albums/.versions/x.jpg") ? try fixture.ls("albums/.versions/x.jpg") : []
            }
        }

        func version(_ name: String) throws -> [UInt8] { try fixture.get("albums/.versions/x.jpg/" + name) }

        /// Ends a version, as its age does.
        func end(_ name: String) throws {
            let ino = try fixture.ino(Self.path)
            let version = try fixture.ino("albums/.versions/x.jpg/" + name)
            try fixture.library.session.change { change throws(FileError) in
                guard let directory = try change.tree.versions.versionsDirectory(of: ino) else {
                    throw .noEntry
                }
                for row in try change.tree.rows(of: directory) where row.ino == version {
                    try change.tree.versions.discardVersion(row, change)
                }
            }
        }

        /// All rows of extents, by content.
        func rows() throws -> [UInt64: [ExtentRun]] {
            try fixture.library.session.locked { tree throws(FileError) in
                let rows = try tree.tables.runs.runs(in: 0..<1 << 61)
                return Dictionary(grouping: rows.filter { !$0.isRecord }) { $0.content }.mapValues {
                    $0.map(\.run)
                }
            }
        }
    }

    private static func photo(_ size: Int, _ seed: Int = 1) -> [UInt8] {
        jpeg("2024-05-01", more: seed) + noise(size, seed: seed)
    }

    @Test func `an edit of a part costs what it changes`() throws {
        let edited = try Edited()
        var bytes = Self.photo(12_000_000)
        let original = bytes
        try edited.fixture.put(Edited.path, bytes)
        let used = edited.fixture.usedBytes
        let available = edited.fixture.library.statistics().available
        try edited.write([1, 2, 3], at: 7_000_000)
        bytes.replaceSubrange(7_000_000..<7_000_003, with: [1, 2, 3])
        // One chunk, and what the catalogue grew by.
        #expect(edited.fixture.usedBytes < used + 400_000)
        #expect(edited.fixture.library.statistics().available + 400_000 / 4096 > available)
        let totals = try edited.fixture.library.session.locked { tree throws(FileError) in
            try tree.storeChanges()
            return try tree.tables.versions.totals()
        }
        #expect(totals.count == 1)
        #expect(totals.bytes == Chunk.bytes)
        #expect(try edited.fixture.get(Edited.path) == bytes)
        #expect(try edited.version("original") == original)
        #expect(try edited.fixture.stat("albums/.versions/x.jpg/original").size == UInt64(original.count))
        try edited.fixture.remount()
        #expect(try edited.fixture.get(Edited.path) == bytes)
        #expect(try edited.version("original") == original)
        try edited.fixture.rm("moments/2024-05-01/x.jpg")
        try edited.fixture.expectNothingLeft()
    }

    /// Two extents of the same bytes, for one content, of one commit could be exchanged on the disk.
    @Test func `an extent of the photo never opens in place of the version's`() throws {
        let edited = try Edited()
        try edited.fixture.close()
        try edited.fixture.reopen { $0.commitsByHand = true }
        try edited.fixture.put(Edited.path, Self.photo(400_000))
        try edited.write(noise(131_072, seed: 7), at: 131_072)
        try edited.write(noise(131_072, seed: 8), at: 131_072)
        let extents = try edited.rows().flatMap(\.value).filter { $0.offset <= 131_072 && $0.end > 131_072 }
        #expect(Set(extents.map { $0.sector(ofChunk: Int((131_072 - $0.offset) / Chunk.bytes)) }).count == 3)
        #expect(Set(extents.map(\.generation)).count == 3)
        try edited.fixture.remount()
    }

    /// Rows that share sectors stay equal, whatever part is changed and by whom.
    @Test func `rows are cut alike`() throws {
        let edited = try Edited()
        try edited.fixture.put(Edited.path, Self.photo(12 * 131_072))
        try edited.write([1], at: 3 * 131_072)
        try edited.write([1], at: 8 * 131_072)
        try edited.edit {
            try edited.fixture.library.ranges.allocate($0, mode: 3, offset: 5 * 131_072, length: 131_072)
        }
        let rows = try edited.rows()
        #expect(rows.count == 4)
        let bySector = Dictionary(grouping: rows.flatMap(\.value)) { $0.sector }
        for runs in bySector.values { #expect(Set(runs).count == 1) }
        try edited.fixture.remount()
        try edited.end("original")
        try edited.fixture.remount()
        for name in try edited.versions { try edited.end(name) }
        #expect(try edited.rows().count == 1)
        #expect(!edited.fixture.exists("albums/.versions"))
        try edited.fixture.rm("moments/2024-05-01/x.jpg")
        try edited.fixture.expectNothingLeft()
    }

    @Test func `a content of many runs is copied`() throws {
        let edited = try Edited(limits: .least)
        let bytes = Self.photo(300_000)
        try edited.fixture.put(Edited.path, bytes)
        try edited.write([9], at: 150_000)
        try edited.write([8], at: 280_000)
        let names = try edited.versions
        #expect(names.count == 2)
        var first = bytes
        first[150_000] = 9
        #expect(try edited.version("original") == bytes)
        #expect(try edited.version(names[0]) == first)
        first[280_000] = 8
        #expect(try edited.fixture.get(Edited.path) == first)
    }

    // MARK: Without a catalogue

    @Test func `a salvage finds photo and versions`() throws {
        let edited = try Edited()
        var states = [Self.photo(900_000)]
        try edited.fixture.put(Edited.path, states[0])
        for (number, offset) in [300_000, 500_000, 310_000].enumerated() {
            try edited.write(noise(70_000, seed: number), at: offset)
            states.append(states[number])
            states[number + 1].replaceSubrange(offset..<offset + 70_000, with: noise(70_000, seed: number))
        }
        let names = try edited.versions
        #expect(names.count == 3)
        try edited.fixture.destroyCatalogue()
        let report = try edited.fixture.salvage()
        #expect(report.photos == 1 && report.nameless == 0)
        #expect(try edited.versions == names)
        #expect(try edited.fixture.get(Edited.path) == states[3])
        #expect(try edited.version("original") == states[0])
        #expect(try edited.version(names[0]) == states[1])
        #expect(try edited.version(names[1]) == states[2])
        try edited.fixture.rm("moments/2024-05-01/x.jpg")
        try edited.fixture.expectNothingLeft()
    }

    /// Its extents are the newest of the content that the versions' are sealed for.
    @Test func `a salvage finds a photo without its record`() throws {
        let edited = try Edited()
        var bytes = Self.photo(900_000)
        let original = bytes
        try edited.fixture.put(Edited.path, bytes)
        try edited.write(noise(70_000, seed: 3), at: 300_000)
        bytes.replaceSubrange(300_000..<370_000, with: noise(70_000, seed: 3))
        let ino = try edited.fixture.ino(Edited.path)
        try edited.fixture.remount()
        try scramble(recordOf: ino, edited.fixture)
        let report = try edited.fixture.salvage()
        #expect(report.nameless == 1)
        let names = try edited.fixture.ls("albums/Recovered")
        let found = try names.filter {
            try edited.fixture.stat("albums/Recovered/" + $0).mode & 0o170000 == 0o100000
        }
        #expect(try found.map { try edited.fixture.get("albums/Recovered/" + $0) }.contains(bytes))
        #expect(original != bytes)
    }

    /// Destroys all records of an inode that lie anywhere, and the catalogue.
    private func scramble(recordOf ino: UInt64, _ fixture: Fixture) throws {
        let perSegment = UInt64(fixture.space.sectors.perSegment)
        let index = try #require(fixture.library.unlocked).index
        var sectors: [UInt64] = []
        let space = fixture.space
        for segment in 0..<space.segments.count where !space.segments.pageSegments.contains(segment) {
            ExtentScan(of: space).scan(segment: segment) { found, _ in
                if found.descriptor.role == .identity, found.descriptor.content == ino {
                    sectors.append(found.sector)
                }
            }
        }
        try fixture.destroyCatalogue()
        for sector in sectors {
            try fixture.vault.damage(
                spaceIndex: index, segment: Int(sector / perSegment), offset: sector % perSegment * 512 + 30)
        }
    }

    // MARK: All of it

    /// A kind of space, and a seed.
    struct Work: Sendable, CustomTestStringConvertible {
        var seed: UInt64
        var isFragmented = false
        var isLeast = false

        var testDescription: String {
            "\(seed)\(isFragmented ? " fragmented" : "")\(isLeast ? " least" : "")"
        }

        static let all =
            (1...5).map { Work(seed: $0) } + [
                Work(seed: 6, isFragmented: true), Work(seed: 7, isFragmented: true),
                Work(seed: 8, isLeast: true),
            ]
    }

    /// Random edits, ends of versions, copies, saves, kills and salvages, compared byte for byte with what should be
    /// there. The catalogue and the sectors are audited at every mount.
    @Test(arguments: Work.all) func `photo and versions keep their bytes`(work: Work) throws {
        var model = try VersionModel(work)
        for step in 0..<70 { try model.step(step) }
        try model.finish()
    }

    private struct VersionModel {
        let work: Work
        let edited: Edited
        var random: RandomSource
        var photo: [UInt8]
        var versions: [String: [UInt8]] = [:]
        var copy: [UInt8]?
        var done = ""

        init(_ work: Work) throws {
            self.work = work
            edited = try Edited(isFragmented: work.isFragmented, limits: work.isLeast ? .least : .production)
            random = RandomSource(work.seed)
            photo = SnapshotTests.photo(600_000)
            try edited.fixture.put(Edited.path, photo)
        }

        private mutating func pick(_ range: Range<Int>) -> Int { Int.random(in: range, using: &random) }

        mutating func step(_ number: Int) throws {
            let before = photo
            let kind = pick(0..<24)
            switch kind {
            case 0..<9: try write(isWhole: kind < 3)
            case 9, 10: try truncate()
            case 11, 12: try punch()
            case 13: try several()
            case 14: try replace()
            case 15: try overwrite()
            case 16: try makeCopy()
            case 17: try removeCopy()
            case 18, 19: try endOne()
            case 20: try endMany()
            case 21: try edited.fixture.remount()
            case 22: if !work.isFragmented { try edited.fixture.kill() }
            default: if number % 3 == 0, !work.isFragmented { try salvage() }
            }
            done += "\(number): \(kind), "
            for name in try edited.versions where versions[name] == nil { versions[name] = before }
            try compare()
            if versions.count > 6 { try endMany() }
        }

        private mutating func write(isWhole: Bool) throws {
            let chunk = Int(Chunk.bytes)
            var offset = pick(4096..<photo.count + 200_000)
            if isWhole { offset = max(offset / chunk, 1) * chunk }
            let bytes = noise(isWhole ? pick(1..<4) * chunk : pick(1..<300_000), seed: pick(0..<1000))
            try edited.write(bytes, at: offset)
            put(bytes, at: offset)
        }

        private mutating func put(_ bytes: [UInt8], at offset: Int) {
            if photo.count < offset + bytes.count {
                photo += [UInt8](repeating: 0, count: offset + bytes.count - photo.count)
            }
            photo.replaceSubrange(offset..<offset + bytes.count, with: bytes)
        }

        private mutating func truncate() throws {
            let size = pick(4096..<photo.count + 300_000)
            edited.wall.now += 61
            try edited.fixture.truncate(Edited.path, UInt64(size))
            if size < photo.count { photo.removeSubrange(size...) } else { put([], at: size) }
        }

        private mutating func punch() throws {
            let offset = pick(4096..<photo.count + 1)
            let length = pick(1..<400_000)
            try edited.edit {
                try edited.fixture.library.ranges.allocate(
                    $0, mode: 3, offset: UInt64(offset), length: UInt64(length))
            }
            let end = min(photo.count, offset + length)
            if offset < end {
                photo.replaceSubrange(offset..<end, with: [UInt8](repeating: 0, count: end - offset))
            }
        }

        /// Several writes by one program, with an fsync between them.
        private mutating func several() throws {
            let parts = (0..<4).map { _ in
                (pick(4096..<photo.count), noise(pick(1..<150_000), seed: pick(0..<1000)))
            }
            try edited.edit { handle in
                for (index, (offset, bytes)) in parts.enumerated() {
                    try edited.fixture.write(handle, bytes, at: UInt64(offset))
                    if index == 1 { try edited.fixture.library.fsync(handle, dataOnly: false) }
                }
            }
            for (offset, bytes) in parts { put(bytes, at: offset) }
        }

        private mutating func replace() throws {
            photo = SnapshotTests.photo(pick(5000..<700_000), pick(0..<1000))
            edited.wall.now += 61
            try edited.fixture.put("albums/.t", photo)
            try edited.fixture.mv("albums/.t", Edited.path)
        }

        private mutating func overwrite() throws {
            photo = SnapshotTests.photo(pick(5000..<700_000), pick(0..<1000))
            edited.wall.now += 61
            try edited.fixture.put(Edited.path, photo)
        }

        private mutating func makeCopy() throws {
            guard copy == nil else { return }
            try edited.fixture.put("albums/c.jpg", photo)
            copy = photo
        }

        private mutating func removeCopy() throws {
            guard copy != nil else { return }
            try edited.fixture.rm("albums/c.jpg")
            copy = nil
        }

        private mutating func endOne() throws {
            let names = versions.keys.sorted()
            guard !names.isEmpty else { return }
            let name = names[pick(0..<names.count)]
            try edited.end(name)
            versions[name] = nil
        }

        private mutating func endMany() throws {
            for name in versions.keys.sorted() where pick(0..<2) == 0 {
                try edited.end(name)
                versions[name] = nil
            }
        }

        private mutating func salvage() throws {
            try edited.fixture.destroyCatalogue()
            _ = try edited.fixture.salvage()
        }

        private func compare() throws {
            let comment: Comment = "seed \(work): \(done)"
            let isPhoto = try edited.fixture.get(Edited.path) == photo
            try #require(isPhoto, comment)
            try #require(try edited.versions == versions.keys.sorted(), comment)
            for (name, bytes) in versions {
                let isVersion = try edited.version(name) == bytes
                try #require(isVersion, "\(name), \(comment)")
            }
            if let copy {
                let isCopy = try edited.fixture.get("albums/c.jpg") == copy
                try #require(isCopy, comment)
            }
        }

        mutating func finish() throws {
            if !work.isFragmented { try edited.fixture.remount() }
            try compare()
            if work.isFragmented { return try edited.fixture.close() }
            for photo in try edited.fixture.moments() { try edited.fixture.rm("moments/" + photo) }
            try edited.fixture.expectNothingLeft("seed \(work): \(done)")
        }
    }
}
