import CDistinguisher
import FileRequests
import PhotoLibrary
import TestSupport
import VaultCrypto
import VaultStore

/// The library's answers with the vault and the decoy's password.
extension Sample {
    /// - Parameters:
    ///   - runs: how often each answer to a password is timed.
    ///   - slotRuns: how often without the password's derivation, which leaves the trying of slots.
    mutating func addAnswers(
        _ vault: String, _ history: History, _ stretcher: RememberingStretcher, runs: Int, slotRuns: Int
    ) throws {
        let info = try Vault.info(vault)
        words["info"] = "\(info)"
        add(.answers, "info: segments", info.segmentsPerSpace)
        add(.answers, "info: bytes on disk", info.bytesOnDisk)
        words["wrong password"] = addWork("wrong password", runs) {
            Self.verdict {
                try patiently { _ = try Vault.unlock(vault, password: secret("none"), readOnly: true) }
            }
        }
        let password = Player.password(of: 0)
        words["right password"] = addWork("right password", runs) {
            Self.verdict { try patiently { _ = try Vault.unlock(vault, password: password) } }
        }
        try addSlots(vault, stretcher, runs: slotRuns)
        let unlocked = try patiently {
            try Vault.unlock(vault, password: password, readOnly: true, stretcher: stretcher)
        }
        words["while it is open"] = Self.refusal(vault, "none")
        words["the decoy while it is open"] = Self.verdict { _ = try Vault.unlock(vault, password: password) }
        let space = try unlocked.openSpace(readOnly: true)
        try addTables(space)
        try addMount(unlocked, history)
    }

    /// The cost of trying the slots, for a password that opens one and for one that opens none.
    private mutating func addSlots(_ vault: String, _ stretcher: RememberingStretcher, runs: Int) throws {
        for (name, password) in [("no slot opens", secret("none")), ("a slot opens", Player.password(of: 0))]
        {
            func open() -> String {
                Self.verdict {
                    try patiently { _ = try Vault.unlock(vault, password: password, stretcher: stretcher) }
                }
            }
            // Once for the password to be known.
            _ = open()
            words[name] = addWork(name, runs, open)
        }
    }

    /// Counts of a mount of the decoy: statvfs(3), and counts.
    private mutating func addMount(_ unlocked: UnlockedSpace, _ history: History) throws {
        let library = try Library.open(unlocked, options: Player.options(history, readOnly: true))
        let statistics = library.statistics()
        add(.answers, "statvfs: blocks", statistics.blocks)
        add(.answers, "statvfs: free", statistics.free)
        add(.answers, "statvfs: available", statistics.available)
        add(.answers, "statvfs: files", statistics.files)
        add(.answers, "photos", try library.walk.photoCount())
        try library.close()
    }

    private static func refusal(_ vault: String, _ password: String) -> String {
        verdict { _ = try Vault.unlock(vault, password: secret(password), readOnly: true) }
    }

    private static func verdict(_ body: () throws -> Void) -> String {
        do {
            try body()
            return "opened"
        } catch { return "\(error)" }
    }

    /// The cost of a piece of work: the least time of its runs and the middle one, and the pages touched, which count
    /// the runs of the password's derivation (2,048 pages each, at 8 MiB).
    private mutating func addWork(_ name: String, _ runs: Int, _ body: () -> String) -> String {
        var answer = ""
        var (times, leastFaults) = ([Int64](), Int64.max)
        for _ in 0..<runs {
            var (faults, time, faultsAfter, timeAfter) = (Int64(0), Int64(0), Int64(0), Int64(0))
            game_thread_cost(&faults, &time)
            answer = body()
            game_thread_cost(&faultsAfter, &timeAfter)
            times.append(timeAfter - time)
            leastFaults = min(leastFaults, faultsAfter - faults)
        }
        times.sort()
        add(.answers, "\(name): nanoseconds", times[0])
        add(.answers, "\(name): nanoseconds, median", times[times.count / 2])
        add(.answers, "\(name): derivations", (leastFaults + 1024) / 2048)
        return answer
    }
}
