import Foundation
import LinuxIO
import TestSupport
import Testing

@testable import PhotoLibrary
@testable import VaultStore

/// Somebody changes the vault's files while nobody has it open: what is served afterwards is right, or an error, or
/// all of an older state; never wrong bytes, and never files of two states side by side.
@Suite struct ActiveChangeTests {
    /// What a space shows: a file's bytes by path, nil where they answer EIO.
    private typealias Tree = [String: [UInt8]?]

    /// A vault with an older and a newer state, both at hand as files.
    private final class Target {
        let rig: Rig
        let old: String
        let older: Tree
        let newer: Tree
        /// Of the space that was used.
        let space: Int
        let segments: [String]
        /// How often a changed vault could be mounted, and how many files answered EIO then.
        private(set) var mountCount = 0
        private(set) var errorCount = 0

        init() throws {
            rig = try Rig(bytes: 32 << 20)
            try rig.mkdir("albums/Trip")
            for number in 0..<8 {
                try rig.put("albums/Trip/p\(number).jpg", jpeg("2024-05-0\(number % 3 + 1)", more: number))
                try rig.put("albums/f\(number)", noise(1_200_000 + number * 1000, seed: number))
            }
            space = try #require(rig.library.unlocked).index
            older = try Self.tree(rig)
            try rig.close()
            old = try makeTemporaryDirectory()
            try Self.copy(rig.vault.path, old + "/vault")
            try rig.reopen()
            for number in 0..<4 {
                try rig.put("albums/f\(number)", noise(1_100_000 + number * 1000, seed: 100 + number))
                try rig.rm("moments/2024-05-0\(number % 3 + 1)/p\(number).jpg")
            }
            try rig.mv("albums/f7", "albums/Trip/g7")
            try rig.put("albums/new", noise(900_000, seed: 200))
            newer = try Self.tree(rig)
            try rig.close()
            let directory = rig.vault.path + "/spaces/\(space)"
            segments = try FileManager.default.contentsOfDirectory(atPath: directory).sorted().map {
                "\(directory)/\($0)"
            }
            #expect(segments.count == 8)
        }

        deinit { try? FileManager.default.removeItem(atPath: old) }

        private static func copy(_ from: String, _ to: String) throws {
            try FileManager.default.copyItem(atPath: from, toPath: to)
        }

        /// Every file's bytes.
        static func tree(_ rig: Rig, below path: String = "") throws -> Tree {
            var found: Tree = [:]
            for entry in try rig.list(path) {
                let place = path.isEmpty ? entry.name.description : "\(path)/\(entry.name)"
                if entry.mode & S_IFMT == S_IFDIR {
                    found.merge(try tree(rig, below: place)) { first, _ in first }
                } else {
                    found[place] = .some(try? rig.get(place))
                }
            }
            return found
        }

        /// The same segment as it was in the older state.
        func before(_ segment: String) -> String {
            segment.replacingOccurrences(of: rig.vault.path, with: old + "/vault")
        }

        /// What is shown now, by a mount that changes nothing; nil where there is an error instead of a mount.
        func shown() throws -> Tree? {
            do {
                try rig.reopen(auditing: false) { $0.readOnly = true }
            } catch {
                return nil
            }
            defer { try? rig.close() }
            return try? Self.tree(rig)
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

    /// Files `a` and `b` take each other's names.
    private func exchange(_ a: String, _ b: String) throws {
        let aside = a + ".aside"
        for (from, to) in [(a, aside), (b, a), (aside, b)] { try #require(rename(from, to) == 0) }
    }

    /// Runs `body` with other bytes in place of a file.
    private func replacing(_ file: String, by other: String?, _ body: () throws -> Void) throws {
        let aside = file + ".aside"
        try #require(rename(file, aside) == 0)
        if let other { try FileManager.default.copyItem(atPath: other, toPath: file) }
        try body()
        unlink(file)
        try #require(rename(aside, file) == 0)
    }

    @Test func segmentsThatAreExchangedDuplicatedOrDeletedGiveErrors() throws {
        let target = try Target()
        #expect(try target.shown() == target.newer)
        for (index, segment) in target.segments.enumerated() {
            for other in target.segments[(index + 1)...] {
                try exchange(segment, other)
                try target.expectOneState("exchanged \(index)")
                try exchange(segment, other)
            }
            let next = target.segments[(index + 1) % target.segments.count]
            try replacing(segment, by: next) { try target.expectOneState("\(index) is a copy of the next") }
            try replacing(segment, by: nil) { try target.expectOneState("\(index) is gone") }
        }
        #expect(try target.shown() == target.newer)
        // All but those that lost both copies of the roots.
        #expect(target.mountCount >= 40 && target.errorCount > 0)
    }

    @Test func segmentsOfOtherSpacesAreNotTakenForTheirs() throws {
        let target = try Target()
        let spaces = target.rig.vault.path + "/spaces/"
        let other = 1 - target.space
        try exchange(spaces + "0", spaces + "1")
        #expect(try target.shown() == nil)
        try exchange(spaces + "0", spaces + "1")
        for segment in target.segments {
            let stranger = segment.replacingOccurrences(of: "spaces/\(target.space)", with: "spaces/\(other)")
            try exchange(segment, stranger)
            try target.expectOneState("of another space: \(segment)")
            try exchange(segment, stranger)
        }
        #expect(try target.shown() == target.newer)
    }

    /// One segment, each two of them, and all but one of an older day, with the rest of today: among them the roots
    /// and tables of the older day with the photos of the newer one, and the reverse.
    @Test func olderSegmentsGiveErrorsOrTheOlderState() throws {
        let target = try Target()
        let count = target.segments.count
        var sets = (0..<count).map { [$0] }
        for first in 0..<count { for second in 0..<first { sets.append([second, first]) } }
        for kept in 0..<count { sets.append((0..<count).filter { $0 != kept }) }
        for set in sets {
            for index in set {
                let segment = target.segments[index]
                try #require(rename(segment, segment + ".aside") == 0)
                try FileManager.default.copyItem(atPath: target.before(segment), toPath: segment)
            }
            try target.expectOneState("older: \(set)")
            for index in set {
                let segment = target.segments[index]
                try #require(rename(segment + ".aside", segment) == 0)
            }
        }
        #expect(try target.shown() == target.newer)
        #expect(target.mountCount == sets.count && target.errorCount > 0)
    }

    /// Nothing tells that the whole vault is of an older day: it is what it was then.
    @Test func theWholeOlderVaultIsTheOlderState() throws {
        let target = try Target()
        try exchange(target.rig.vault.path, target.old + "/vault")
        #expect(try target.shown() == target.older)
        try exchange(target.rig.vault.path, target.old + "/vault")
    }

    @Test func segmentsThatAreCutOffGiveErrors() throws {
        let target = try Target()
        for (index, segment) in target.segments.enumerated() {
            let size = try #require(FileManager.default.attributesOfItem(atPath: segment)[.size] as? Int)
            for rest in [0, 4096, 70_001, size / 2, size - 1] {
                try replacing(segment, by: segment + ".aside") {
                    try #require(truncate(segment, off_t(rest)) == 0)
                    try target.expectOneState("segment \(index) cut off at \(rest)")
                }
            }
        }
        #expect(try target.shown() == target.newer)
        #expect(target.mountCount == 5 * target.segments.count && target.errorCount > 0)
    }
}
