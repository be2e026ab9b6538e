import Foundation
import LibraryFixtures
import LinuxIO
import TestSupport
import Testing

@testable import FileRequests
@testable import PhotoLibrary
@testable import VaultStore

/// The vault's files are changed while it is closed: reads afterwards are right, or an error, or
/// all of an older state; never wrong bytes, and never files of two states side by side.
@Suite("Damage: segments exchanged, cut or replaced") struct ActiveChangeTests {
    /// The contents of a space: a file's bytes by path, nil if reading gives EIO. Unlike arrays, Data is compared at
    /// once also by tests that are not optimised.
    private typealias Tree = [String: Data?]

    /// A vault with an older and a newer state, both at hand as files.
    private final class Target {
        let fixture: Fixture
        let old: String
        let older: Tree
        let newer: Tree
        /// Of the space that was used.
        let space: Int
        let segments: [SegmentFile]
        /// How often a changed vault could be mounted, and how many files answered EIO then.
        private(set) var mountCount = 0
        private(set) var errorCount = 0

        init() throws {
            fixture = try Fixture(bytes: 32 << 20)
            try fixture.mkdir("albums/Trip")
            for number in 0..<8 {
                try fixture.put(
                    "albums/Trip/p\(number).jpg", jpeg("2024-05-0\(number % 3 + 1)", more: number))
                try fixture.put("albums/f\(number)", noise(1_200_000 + number * 1000, seed: number))
            }
            space = try #require(fixture.library.unlocked).index
            older = try Self.tree(fixture)
            try fixture.close()
            old = try makeTemporaryDirectory()
            try Self.copy(fixture.vault.path, old + "/vault")
            try fixture.reopen()
            for number in 0..<4 {
                try fixture.put("albums/f\(number)", noise(1_100_000 + number * 1000, seed: 100 + number))
                try fixture.rm("moments/2024-05-0\(number % 3 + 1)/p\(number).jpg")
            }
            try fixture.mv("albums/f7", "albums/Trip/g7")
            try fixture.put("albums/new", noise(900_000, seed: 200))
            newer = try Self.tree(fixture)
            try fixture.close()
            segments = try (0..<8).map { [fixture, space] in
                try SegmentFile(fixture.vault.path, space: space, $0)
            }
        }

        deinit { try? FileManager.default.removeItem(atPath: old) }

        private static func copy(_ from: String, _ to: String) throws {
            try FileManager.default.copyItem(atPath: from, toPath: to)
        }

        /// Every file's bytes.
        static func tree(_ fixture: Fixture, below path: String = "") throws -> Tree {
            var found: Tree = [:]
            for entry in try fixture.list(path) {
                let place = path.isEmpty ? entry.name.description : "\(path)/\(entry.name)"
                if entry.mode & S_IFMT == S_IFDIR {
                    found.merge(try tree(fixture, below: place)) { first, _ in first }
                } else {
                    found[place] = .some((try? fixture.get(place)).map { Data($0) })
                }
            }
            return found
        }

        /// A segment's bytes as they were in the older state.
        func before(_ index: Int) throws -> Data {
            try SegmentFile(old + "/vault", space: space, index).read()
        }

        /// The contents now, by a mount that changes nothing; nil if the mount fails.
        func shown() throws -> Tree? {
            do {
                try fixture.reopen(auditing: false) { $0.readOnly = true }
            } catch {
                return nil
            }
            defer { try? fixture.close() }
            return try? Self.tree(fixture)
        }

        /// Whether `found` is part of one state: of each file its bytes or an error.
        private func isPart(_ found: Tree, of state: Tree) -> Bool {
            found.allSatisfy { path, bytes in
                guard let whole = state[path] else { return false }
                return bytes == nil || bytes == whole
            }
        }

        func expectOneState(_ what: String) throws {
            guard let found = try shown() else { return }
            mountCount += 1
            errorCount += found.values.count { $0 == nil }
            #expect(isPart(found, of: newer) || isPart(found, of: older), "\(what)")
        }
    }

    /// Segments `a` and `b` get each other's bytes.
    private func exchange(_ a: SegmentFile, _ b: SegmentFile) throws {
        let (first, second) = (try a.read(), try b.read())
        try a.write(second)
        try b.write(first)
    }

    /// Files `a` and `b` take each other's names.
    private func exchange(_ a: String, _ b: String) throws {
        let aside = a + ".aside"
        for (from, to) in [(a, aside), (b, a), (aside, b)] { try #require(rename(from, to) == 0) }
    }

    /// Runs `body` with other bytes in place of some of a segment.
    private func replacing(
        _ segment: SegmentFile, at offset: UInt64 = 0, by other: Data, _ body: () throws -> Void
    ) throws {
        let own = try segment.read()
        try segment.write(other, at: offset)
        try body()
        try segment.write(own)
    }

    @Test func `segments that are exchanged, duplicated or overwritten give errors`() throws {
        let target = try Target()
        #expect(try target.shown() == target.newer)
        for (index, segment) in target.segments.enumerated() {
            for other in target.segments[(index + 1)...] {
                try exchange(segment, other)
                try target.expectOneState("exchanged \(index)")
                try exchange(segment, other)
            }
            let next = target.segments[(index + 1) % target.segments.count]
            try replacing(segment, by: next.read()) {
                try target.expectOneState("\(index) is a copy of the next")
            }
            try replacing(segment, by: Data(count: Int(segment.length))) {
                try target.expectOneState("\(index) is gone")
            }
        }
        #expect(try target.shown() == target.newer)
        // All but those that lost both copies of the roots.
        #expect(target.mountCount >= 40 && target.errorCount > 0)
    }

    @Test func `segments of other spaces are not taken for theirs`() throws {
        let target = try Target()
        let others = try target.segments.indices.map {
            try SegmentFile(target.fixture.vault.path, space: 1 - target.space, $0)
        }
        for (own, other) in zip(target.segments, others) { try exchange(own, other) }
        #expect(try target.shown() == nil)
        for (own, other) in zip(target.segments, others) { try exchange(own, other) }
        for (index, own) in target.segments.enumerated() {
            try exchange(own, others[index])
            try target.expectOneState("of another space: \(index)")
            try exchange(own, others[index])
        }
        #expect(try target.shown() == target.newer)
    }

    /// One segment, each two of them, and all but one of an older day, with the rest of today: among them the roots
    /// and tables of the older day with the photos of the newer one, and the reverse.
    @Test func `older segments give errors or the older state`() throws {
        let target = try Target()
        let count = target.segments.count
        var sets = (0..<count).map { [$0] }
        for first in 0..<count { for second in 0..<first { sets.append([second, first]) } }
        for kept in 0..<count { sets.append((0..<count).filter { $0 != kept }) }
        for set in sets {
            let own = try set.map { try target.segments[$0].read() }
            for index in set { try target.segments[index].write(target.before(index)) }
            try target.expectOneState("older: \(set)")
            for (index, bytes) in zip(set, own) { try target.segments[index].write(bytes) }
        }
        #expect(try target.shown() == target.newer)
        #expect(target.mountCount == sets.count && target.errorCount > 0)
    }

    /// Nothing shows that the whole vault is of an older day: it is as it was then.
    @Test func `the whole older vault is the older state`() throws {
        let target = try Target()
        try exchange(target.fixture.vault.path, target.old + "/vault")
        #expect(try target.shown() == target.older)
        try exchange(target.fixture.vault.path, target.old + "/vault")
    }

    @Test func `segments that are cut off give errors`() throws {
        let target = try Target()
        for (index, segment) in target.segments.enumerated() {
            let size = Int(segment.length)
            for rest in [0, 4096, 70_001, size / 2, size - 1] {
                try replacing(segment, at: UInt64(rest), by: Data(count: size - rest)) {
                    try target.expectOneState("segment \(index) cut off at \(rest)")
                }
            }
        }
        #expect(try target.shown() == target.newer)
        #expect(target.mountCount >= 5 * (target.segments.count - 1) && target.errorCount > 0)
    }

    @Test func `a file of all spaces that is cut off gives errors`() throws {
        let target = try Target()
        let file = target.fixture.vault.path + "/spaces"
        let whole = try Data(contentsOf: URL(fileURLWithPath: file))
        for segment in target.segments {
            for more in [0, 1, 70_001, segment.length / 2] {
                try #require(truncate(file, off_t(segment.start + more)) == 0)
                try target.expectOneState("cut off at \(segment.start + more)")
                try whole.write(to: URL(fileURLWithPath: file))
            }
        }
        #expect(try target.shown() == target.newer)
        #expect(target.mountCount > 0 && target.errorCount > 0)
    }
}
