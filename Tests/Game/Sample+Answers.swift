import CGame
import PhotoLibrary
import VaultCrypto
import VaultStore

/// What the library answers to whoever has the vault and the decoy's password.
extension Sample {
    /// - Parameter runs: how often work whose time is taken is done.
    mutating func addAnswers(_ vault: String, _ history: History, runs: Int) throws {
        let info = try Vault.info(vault)
        words["info"] = "\(info)"
        add(.answers, "info: segments", info.segmentsPerSpace)
        add(.answers, "info: bytes on disk", info.bytesOnDisk)
        words["wrong password"] = addWork("wrong password", runs) { Self.refusal(vault, "none") }
        let password = Player.password(of: 0)
        words["right password"] = addWork("right password", runs) {
            Self.verdict { try patiently { _ = try Vault.unlock(vault, password: password) } }
        }
        let unlocked = try patiently { try Vault.unlock(vault, password: password, readOnly: true) }
        words["while it is open"] = Self.refusal(vault, "none")
        words["the decoy while it is open"] = Self.verdict { _ = try Vault.unlock(vault, password: password) }
        let space = try unlocked.openSpace(readOnly: true)
        try addTables(space)
        try addMount(unlocked, history)
    }

    /// What a mount of the decoy shows: statvfs(3), and counts.
    private mutating func addMount(_ unlocked: UnlockedSpace, _ history: History) throws {
        let library = try Library.open(unlocked, options: Player.options(history, readOnly: true))
        let statistics = library.statistics()
        add(.answers, "statvfs: blocks", statistics.blocks)
        add(.answers, "statvfs: free", statistics.free)
        add(.answers, "statvfs: available", statistics.available)
        add(.answers, "statvfs: files", statistics.files)
        add(.answers, "photos", try library.photoCount())
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

    /// What a piece of work costs: the least time of its runs, and the pages touched, which count the runs of the
    /// password's derivation (2,048 pages each, at 8 MiB).
    private mutating func addWork(_ name: String, _ runs: Int, _ body: () -> String) -> String {
        var answer = ""
        var (leastTime, leastFaults) = (Int64.max, Int64.max)
        for _ in 0..<runs {
            var (faults, time, faultsAfter, timeAfter) = (Int64(0), Int64(0), Int64(0), Int64(0))
            game_thread_cost(&faults, &time)
            answer = body()
            game_thread_cost(&faultsAfter, &timeAfter)
            leastTime = min(leastTime, timeAfter - time)
            leastFaults = min(leastFaults, faultsAfter - faults)
        }
        add(.answers, "\(name): nanoseconds", leastTime)
        add(.answers, "\(name): derivations", (leastFaults + 1024) / 2048)
        return answer
    }
}
