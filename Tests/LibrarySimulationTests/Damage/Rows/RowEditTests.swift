import CatalogueRows
import FileRequests
import Foundation
import LibraryFixtures
import LinuxIO
import PhotoLibrary
import Recovery
import TestSupport
import Testing
import VaultCatalogue
import VaultFormat
import VaultStore

/// Rows of any values: with all of them a check and a repair come to their end, a space that a check calls whole can be
/// listed and read, and after a repair nothing is left that could be repaired.
///
/// `OBSCURA_ROW_EDITS` says how many changes are tried, from `OBSCURA_ROW_SEED` on, as `scripts/fuzz rows` sets it;
/// then each round is told on standard error before it begins. A crash ends the process: the last one told is at fault.
@Suite("Damage: rows with invalid values", .serialized) struct RowEditTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let wanted = environment["OBSCURA_ROW_EDITS"].flatMap { Int($0) }
    private static let firstSeed = environment["OBSCURA_ROW_SEED"].flatMap { UInt64($0) } ?? 1
    private static let editsOfTests = 60
    private static let editsPerRoundMax = 4

    /// Rounds that failed once.
    private static let keptSeeds: [UInt64] = [
        // An index by sector that says something else than its table.
        50009, 50058, 50137, 50190, 51125, 51785, 52075, 52185,
        // Numbers whose blocks of `retired` would be those of others.
        50073, 50105, 50506,
        // Extents that lie elsewhere in their file than their row says; with counts that are wrong, too.
        50083, 50325, 51169, 51319,
        // Rows of extents that are gone.
        50270, 50710, 51706,
        // Directories that every space has, and that are days.
        50107, 51214, 51470,
        // Files where the trash is, and copies that are photos.
        50318, 50388, 50390, 51997, 50431, 52021,
        // Names that are no UTF-8.
        51872, 52114,
        // A space rebuilt from rows of which some are gone, with counters that cannot be read.
        50104, 50264, 50366, 50480, 50752, 51848, 52200,
        // A segment that is punched behind its end.
        52245,
        // Blocks of `retired` that no number has; contents of entries that are no files; counts of stored bytes that
        // cannot be.
        52324, 52411, 70082, 52626, 70056, 70152,
        // Files without bytes that have the same content.
        52416, 70671,
        // Directories that are called files, or have two names of one number; inodes with numbers that cannot be.
        52445, 52792, 52982, 52640,
        // A copy under a day, built anew.
        90461,
        // An extent that left its content, of which no file is known.
        77061,
    ]

    @Test func `row edits that were found`() throws {
        if Self.wanted != nil { return }
        let vaults = try Self.vaults()
        for seed in Self.keptSeeds { _ = round(seed, vaults) }
    }

    private static func vaults() throws -> [EditedVault] {
        [try EditedVault(spaces: 2), try EditedVault(spaces: 1)]
    }

    /// Makes one round; how many rows it changed, and whether it failed.
    private func round(_ seed: UInt64, _ vaults: [EditedVault]) -> (count: Int, hasFailed: Bool) {
        var random = RandomSource(seed)
        let count = Int.random(in: 1...Self.editsPerRoundMax, using: &random)
        let round = RowRound(vaults[seed % 3 == 0 ? 1 : 0], seed: seed)
        do { try round.run(count, random) } catch { round.record("\(error)") }
        return (count, round.hasFailed)
    }

    @Test func `row edits at random`() throws {
        let vaults = try Self.vaults()
        var (seed, left, rounds) = (Self.firstSeed, Self.wanted ?? Self.editsOfTests, 0)
        while left > 0 {
            tell("seed \(seed): \(left) changes left")
            let (count, hasFailed) = round(seed, vaults)
            if hasFailed, Self.wanted == nil { return }
            (left, seed, rounds) = (left - count, seed + 1, rounds + 1)
        }
        tell("done: \(rounds) rounds, next seed \(seed)")
    }

    private func tell(_ text: String) {
        if Self.wanted != nil { FileHandle.standardError.write(Data("rows: \(text)\n".utf8)) }
    }
}

/// One vault with some changes.
private final class RowRound {
    private let vault: EditedVault
    private let seed: UInt64
    private var edits: [String] = []
    private(set) var hasFailed = false

    init(_ vault: EditedVault, seed: UInt64) { (self.vault, self.seed) = (vault, seed) }

    func record(_ text: String, location: SourceLocation = #_sourceLocation) {
        hasFailed = true
        Issue.record("seed \(seed): \(text)\n\(edits.joined(separator: "\n"))", sourceLocation: location)
    }

    func run(_ count: Int, _ random: RandomSource) throws {
        let (disk, edits) = try vault.edited(count, random)
        self.edits = edits
        let report = try check(disk)
        if report.findings.isEmpty { try read(disk, after: report, "clean at once") }
        try checkMounted(disk)
        try repair(disk, report)
        let repaired = try check(disk)
        if !repaired.plan.lines.isEmpty || repaired.plan.mustSalvage {
            record("left after a repair: \(repaired.plan.lines) \(repaired.findings.map(\.text))")
        }
        try read(disk, after: repaired, "after a repair")
        try use(disk)
        if seed % 8 == 0 { try salvage(count, random) }
    }

    private func check(_ disk: MemoryDisk) throws -> SpaceReport {
        defer { disk.closeAll() }
        return try SpaceCheck.run(try vault.unlock(disk))
    }

    private func repair(_ disk: MemoryDisk, _ report: SpaceReport) throws {
        defer { disk.closeAll() }
        let unlocked = try vault.unlock(disk)
        var salvage: Salvage?
        if report.plan.mustSalvage {
            salvage = try Salvage.survey(unlocked, options: .forChecks) { _, _ in }
        }
        try SpaceRepair.run(unlocked, report.plan, salvage: salvage)
    }

    /// The check of a space in use goes through all of it, with any answer.
    private func checkMounted(_ original: MemoryDisk) throws {
        let disk = MemoryDisk(original.state, isRecording: false)
        guard let user = try? vault.mount(disk) else { return }
        var (cursor, steps): (CheckCursor?, Int) = (.start, 0)
        while let now = cursor, steps < 10_000 {
            guard let step = try? LiveCheck(user.library.session).step(now) else { break }
            (cursor, steps) = (step.next, steps + 1)
        }
        if steps >= 10_000 { record("the check of the mounted space goes on for ever") }
        try? user.close()
    }

    /// Reads everything. Nothing may fail but bytes that a finding is about, and no byte may be another one.
    private func read(_ original: MemoryDisk, after report: SpaceReport, _ when: String) throws {
        let disk = MemoryDisk(original.state, isRecording: false)
        let user = try vault.mount(disk)
        do {
            try user.walk { path, attributes in
                for name in try user.library.listExtendedAttributes(attributes.ino) {
                    _ = try user.library.getExtendedAttribute(attributes.ino, name: name)
                }
                if attributes.isRegular {
                    try readFile(user, path, attributes, report, when)
                    _ = try? user.own("captured", path)
                } else if attributes.isDirectory {
                    _ = try? user.ls("\(path)/.thumbs")
                } else if attributes.mode & UInt32(S_IFMT) == UInt32(S_IFLNK), report.findings.isEmpty {
                    _ = try user.library.readLink(attributes.ino)
                }
            }
        } catch { record("\(when), the walk: \(error) \(report.findings.map(\.text))") }
        _ = user.library.statistics()
        do { try user.close() } catch { record("\(when), closing: \(error)") }
    }

    private static let pieceBytes = 65_536

    private func readFile(
        _ user: MemoryUser, _ path: String, _ attributes: Attributes, _ report: SpaceReport, _ when: String
    ) throws {
        let content = try user.library.session.locked { tree throws(FileError) in
            try tree.inode(attributes.ino).row.content
        }
        let handle = try user.library.open(attributes.ino, flags: O_RDONLY, user.caller)
        defer { user.library.release(handle) }
        let end = min(attributes.size, 1 << 20)
        let offsets =
            Array(stride(from: 0, to: end, by: Self.pieceBytes)) + [attributes.size / 2, attributes.size]
        for offset in offsets where offset <= attributes.size {
            do {
                let bytes = try user.read(handle, Self.pieceBytes, at: offset)
                if !vault.isRight(bytes, at: offset, of: content) {
                    record("\(when), \(path) is wrong at \(offset): \(report.findings.map(\.text))")
                    return
                }
            } catch FileError.damaged {
                if !report.findings.contains(where: \.isOfFile) {
                    record("\(when), \(path) cannot be read at \(offset): \(report.findings.map(\.text))")
                    return
                }
            }
        }
    }

    private static let newBytes = noise(300_000, seed: 5)

    /// Works in the repaired space, then removes all that is in it: nothing is refused, and nothing is left.
    private func use(_ original: MemoryDisk) throws {
        let disk = MemoryDisk(original.state, isRecording: false)
        let user = try vault.mount(disk)
        do {
            try user.put("albums/new \(seed).jpg", jpeg("2024-05-01", more: 90, size: 5000))
            try user.put("albums/new \(seed)", Self.newBytes)
            try user.removeAll(in: user.ino("albums"), but: Name("new \(seed)"))
            try user.removeAll(in: user.ino("moments"))
            user.library.session.committer.commitByHand(durable: true)
            if try user.get("albums/new \(seed)") != Self.newBytes { record("what was written is wrong") }
        } catch { record("in use: \(error)") }
        do { try user.close() } catch { record("closing after use: \(error)") }
        let report = try check(disk)
        if !report.plan.lines.isEmpty || report.plan.mustSalvage {
            record("after use: \(report.findings.map(\.text))")
        }
    }

    /// The same rows, rebuilt from the records.
    private func salvage(_ count: Int, _ random: RandomSource) throws {
        let (disk, _) = try vault.edited(count, random)
        do {
            let salvage = try Salvage.survey(try vault.unlock(disk), options: .forChecks) { _, _ in }
            try salvage.rebuild()
        } catch { record("built anew: \(error)") }
        disk.closeAll()
        let report = try check(disk)
        if !report.plan.lines.isEmpty || report.plan.mustSalvage {
            record("after it was built anew: \(report.findings.map(\.text))")
        }
        try read(disk, after: report, "built anew")
    }
}

extension LibraryOptions {
    fileprivate static var forChecks: LibraryOptions {
        var options = LibraryOptions(owner: (0, 0), mountedByRoot: true)
        options.thumbnails = .off
        return options
    }
}
