import LibraryFixtures
import LinuxIO
import Synchronization
import TestFixtures
import TestSupport
import VaultCatalogue
import VaultFormat

@testable import CatalogueRows
@testable import FileRequests
@testable import PhotoLibrary
@testable import VaultStore

/// Computers that work in one space at once, each stopped at any system call for any time, each taking the space over
/// from the other. Files that one of them was told are safe must be there for any later mount.
final class ClaimRounds: @unchecked Sendable {
    /// The files that must be there, by path: the version of a file that a program was told is safe. A later one may
    /// be.
    private struct Ledger {
        var safe: [String: UInt64] = [:]
        /// Up to which version a file was removed: a report of an earlier one comes late.
        var removed: [String: UInt64] = [:]
        /// Versions that were written, told safe or not.
        var version: UInt64 = 0
        var losses: [String] = []
        var acknowledged = 0
        var mounts = 0
        var takeovers = 0
        var stops = 0
        /// Mounts in a row that failed for another reason than a claim.
        var failures = 0
    }

    let seed: UInt64
    let turns: Turns
    let vault: MemoryVault
    let disk: MemoryDisk
    private let computers: [Computer]
    /// Only whose turn it is uses it.
    private var ledger = Ledger()
    private var mountsLeft: Int
    private var dices: [RandomSource]

    /// - Parameter mounts: how often the space is mounted, by all together.
    init(
        _ vault: MemoryVault, seed: UInt64, computers count: Int = 2, mounts: Int, claims: Bool = true,
        stopShare: Int = 300, stopMilliseconds: ClosedRange<Int64> = 100...12_000
    ) throws {
        (self.seed, self.vault, mountsLeft) = (seed, vault, mounts)
        let turns = Turns(seed: seed, stopShare: stopShare, stopMilliseconds: stopMilliseconds)
        let disk = MemoryDisk(vault.empty, isRecording: false)
        (self.turns, self.disk) = (turns, disk)
        // Now and then one of them has the disk, and the others have it from there.
        computers = try (0..<count).map { number in
            try Computer(
                "computer \(number)", vault, disk, turns, isLocal: number == 0 && seed % 3 == 0,
                claims: claims)
        }
        dices = (0..<count).map { RandomSource(seed &* 31 &+ UInt64($0)) }
    }

    var losses: [String] { ledger.losses }
    var summary: String {
        "\(ledger.mounts) mounts, \(ledger.takeovers) by takeover, \(ledger.stops) stopped by another's claim, "
            + "\(ledger.acknowledged) files told safe, \(ledger.losses.count) lost"
    }
    var takeovers: Int { ledger.takeovers }
    var acknowledged: Int { ledger.acknowledged }

    func run() throws {
        turns.run(computers.indices.map { number in { @Sendable [self] in work(number) } })
        // It is free; the last process may not have given it up.
        guard ledger.losses.isEmpty else { return }
        let last = computers[0].start()
        try last.mount(takingOver: true)
        verify(last, "at the end", ledger.safe.count)
        last.kill()
    }

    // MARK: A computer

    private func work(_ number: Int) {
        while mountsLeft > 0 && ledger.losses.isEmpty {
            let process = computers[number].start()
            guard mount(process, number) else {
                turns.wait(milliseconds: Int64.random(in: 0..<3000, using: &dices[number]))
                continue
            }
            mountsLeft -= 1
            ledger.failures = 0
            ledger.mounts += 1
            verify(process, "mount \(ledger.mounts) on \(computers[number].name)", Self.filesRead)
            do { try play(process, number) } catch {
                // It has lost the space, or finds something damaged that another writes over.
                if process.space.writeStop == .claimLost { ledger.stops += 1 }
            }
            if Bool.random(using: &dices[number]) { try? process.unmount() } else { process.kill() }
        }
    }

    private func mount(_ process: ComputerProcess, _ number: Int) -> Bool {
        do {
            try process.mount()
            return true
        } catch VaultError.claimed {
            guard Int.random(in: 0..<3, using: &dices[number]) == 0 else { return false }
            do { try process.mount(takingOver: true) } catch { return false }
            ledger.takeovers += 1
            return true
        } catch {
            // Torn while it was read, as another writes; but not again and again.
            ledger.failures += 1
            if ledger.failures > Self.failuresMax { ledger.losses.append("it does not open: \(error)") }
            return false
        }
    }

    private func play(_ process: ComputerProcess, _ number: Int) throws {
        func random(_ range: Range<Int>) -> Int { Int.random(in: range, using: &dices[number]) }
        for _ in 0..<random(1..<40) {
            switch random(0..<12) {
            case 0..<4: try write("albums/f\(random(0..<300))", random(1..<20_000), process, isSafe: true)
            case 4..<6: try write("albums/f\(random(0..<20))", random(1..<300_000), process, isSafe: true)
            case 6..<8: try write("albums/f\(random(0..<20))", random(1..<20_000), process, isSafe: false)
            case 8: try remove(number, process)
            case 9: process.commit(durable: random(0..<4) == 0)
            case 10: _ = process.space.checkClaimIfDue()
            default: turns.wait(milliseconds: Int64(random(0..<9000)))
            }
        }
    }

    private func write(_ path: String, _ count: Int, _ process: ComputerProcess, isSafe: Bool) throws {
        ledger.version += 1
        let version = ledger.version
        let handle = try process.createOpen(path)
        defer { process.library.release(handle) }
        try process.write(handle, Self.bytes(version, count))
        guard isSafe else { return try process.library.flush(handle) }
        try process.library.fsync(handle, dataOnly: false)
        ledger.acknowledged += 1
        if version > ledger.removed[path] ?? 0 { ledger.safe[path] = max(version, ledger.safe[path] ?? 0) }
    }

    private func remove(_ number: Int, _ process: ComputerProcess) throws {
        guard let path = ledger.safe.keys.sorted().randomElement(using: &dices[number]) else { return }
        ledger.safe[path] = nil
        ledger.removed[path] = ledger.version
        try process.rm(path)
    }

    // MARK: Files that must be there

    /// A file's bytes: its version, then bytes derived from it.
    private static func bytes(_ version: UInt64, _ count: Int) -> [UInt8] {
        let first = Int(version % 1000)
        return (0..<8).map { UInt8(truncatingIfNeeded: version >> UInt64(8 * $0)) }
            + noise[first..<first + count]
    }

    private static let noise: [UInt8] = {
        var random = RandomSource(7)
        return (0..<400_000).map { _ in UInt8(truncatingIfNeeded: random.next() >> 32) }
    }()

    private static let failuresMax = 100

    /// How many files are read after each mount; after the last all are.
    private static let filesRead = 20

    private func verify(_ process: ComputerProcess, _ words: String, _ count: Int) {
        let all = ledger.safe.sorted { $0.key < $1.key }
        for (path, safe) in all.shuffled(using: &dices[0]).prefix(count) {
            // While it is read others go on.
            let found: [UInt8]
            do { found = try process.get(path) } catch {
                guard isStillSafe(path, safe, process) else { continue }
                ledger.losses.append(
                    "\(words): \(path), version \(safe): \(error)\(history(of: path, process))")
                continue
            }
            let version = found.prefix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            if version >= safe, found.count > 8, found == Self.bytes(version, found.count - 8) {
                continue
            }
            guard isStillSafe(path, safe, process) else { continue }
            ledger.losses.append(
                "\(words): \(path), version \(safe): version \(version) of \(found.count) bytes")
        }
    }

    /// The writes to a file's runs, for the message of a failing test.
    private func history(of path: String, _ process: ComputerProcess) -> String {
        guard let ino = try? process.ino(path),
            let runs = try? process.library.session.locked({ tree throws(FileError) in
                let inode = try tree.inode(ino)
                return try tree.tables.extents.runs(of: inode.row.content)
            })
        else { return "" }
        let lines = runs.flatMap { run in
            let sectors = run.sector..<run.sector + UInt64(run.sectorCount)
            let writes = computers.flatMap { $0.writes.withLock { $0 } }
                .filter { $0.touches(sectors, vault.layout) }
                .sorted { $0.time < $1.time }
            return ["  sectors \(sectors), generation \(run.generation), epoch \(run.epoch)"]
                + writes.map {
                    "    \($0.time) \($0.process): \($0.path) \($0.offset / 512) + \($0.count / 512)"
                }
        }
        return "\n" + lines.joined(separator: "\n")
    }

    /// Whether this process must show the file: it was not removed meanwhile, and no other process writes.
    private func isStillSafe(_ path: String, _ safe: UInt64, _ process: ComputerProcess) -> Bool {
        (try? process.space.parts.gate.requireOpen()) != nil && ledger.safe[path] == safe
    }
}
