import Foundation
import Glibc
import Synchronization
import TestSupport
import TestThreads
import Testing

/// Two daemons over storage whose locks do nothing: I11, with processes. A test plays some rounds, `scripts/claims` as
/// many as it is told.
@Suite("Claims: two computers, through mounts", .serialized, .waiting) struct ClaimMountTests {
    private static func variable(_ name: String) -> String? { ProcessInfo.processInfo.environment[name] }

    /// A reading of the claim counts for half a second, a takeover waits 1.1, and a race lasts 0.1.
    private static let shortTimes = "500,1100,100"
    private static let roundsPerVault = 5
    private static let seeds: [UInt64] = {
        let rounds = variable("OBSCURA_CLAIMS_ROUNDS").flatMap { Int($0) } ?? 10
        let first = variable("OBSCURA_CLAIMS_SEED").flatMap { UInt64($0) } ?? 1
        return Array(first..<first + UInt64((rounds + roundsPerVault - 1) / roundsPerVault))
    }()
    private static var times: String? { variable("OBSCURA_CLAIMS_USUAL") == nil ? shortTimes : nil }

    @Test(arguments: seeds)
    func `each takes over from the other, stopped at any moment`(seed: UInt64) throws {
        var random = RandomSource(seed)
        let daemons = try TwoDaemons(
            spaces: 1 + Int(seed % 2), seed % 4 < 2 ? .bindfs : .noLocks, times: Self.times)
        let safe = SafeFiles()
        var stopped = 0
        try daemons.mustMount(0)
        var writer = FileWriter(daemons.directory(0) + "/albums", "\(seed)-0", safe, seed: seed)
        for round in 1...Self.roundsPerVault {
            let (old, new) = ((round + 1) % 2, round % 2)
            let oldWriter = writer
            guard
                eventually({ oldWriter.count >= Int.random(in: 3..<20, using: &random) || oldWriter.isEnded }
                ),
                let daemon = daemons.daemon(old)
            else {
                Issue.record("seed \(seed), round \(round): the mount does not write")
                return
            }
            let refused = try daemons.mount(new)
            #expect(refused.status == 5, "seed \(seed), round \(round): \(refused.errors)")
            // Stopped at any moment, and going on at any other: before it is taken over from, while, or after.
            let isStopped = Int.random(in: 0..<4, using: &random) > 0
            let stop = UInt32.random(in: 0..<300_000, using: &random)
            let resume = UInt32.random(in: 0..<(Self.times == nil ? 15_000_000 : 3_000_000), using: &random)
            if isStopped {
                stopped += 1
                usleep(stop)
                kill(daemon, SIGSTOP)
                Thread.detachNewThread {
                    usleep(resume)
                    kill(daemon, SIGCONT)
                }
            }
            try daemons.mustMount(new, options: "takeover")
            writer = FileWriter(
                daemons.directory(new) + "/albums", "\(seed)-\(round)", safe, seed: seed &+ UInt64(round))
            if isStopped { kill(daemon, SIGCONT) }
            guard eventually({ oldWriter.isEnded }) else {
                Issue.record("seed \(seed), round \(round): the old mount writes on")
                return
            }
            #expect([EROFS, EIO].contains(oldWriter.failure.withLock { $0 }), "seed \(seed), round \(round)")
            let lost = daemons.missing(safe, in: new)
            #expect(lost.isEmpty, "seed \(seed), round \(round)")
            try daemons.takeAway(old)
        }
        writer.end()
        #expect(eventually { writer.isEnded })
        let last = Self.roundsPerVault % 2
        #expect(daemons.missing(safe, in: last).isEmpty, "seed \(seed), at the end")
        try daemons.takeAway(last)
        // Nothing was left standing.
        try daemons.mustMount(1 - last)
        #expect(daemons.missing(safe, in: 1 - last).isEmpty, "seed \(seed), at the very end")
        try daemons.takeAway(1 - last)
        let check = try daemons.place.run(
            [obscura, "check", daemons.vault(0), "--password-stdin"], "one\n")
        print(
            "claims: seed \(seed): \(Self.roundsPerVault) rounds, \(stopped) with a stop, "
                + "\(safe.all.count) files safe, check \(check.status)")
        #expect(check.status == 0, "seed \(seed): \(check.output)")
    }

    /// Without claims the rounds lose files: in one of a few, as two computers need not meet.
    @Test func `without claims one undoes the other`() throws {
        let isFound = try (0..<5).contains { _ in try losesSomethingUnclaimed() }
        #expect(isFound)
    }

    private func losesSomethingUnclaimed() throws -> Bool {
        let daemons = try TwoDaemons(spaces: 2, .noLocks, times: "off")
        let safe = SafeFiles()
        try daemons.mustMount(0)
        try daemons.mustMount(1)
        let writers = (0..<2).map {
            FileWriter(daemons.directory($0) + "/albums", "\($0)", safe, seed: UInt64($0))
        }
        #expect(eventually { writers.allSatisfy { $0.count > 20 || $0.isEnded } })
        for writer in writers { writer.end() }
        #expect(eventually { writers.allSatisfy(\.isEnded) })
        for number in 0..<2 { try daemons.takeAway(number) }
        guard try daemons.mount(0).status == 0 else { return true }
        defer { try? daemons.takeAway(0) }
        return !daemons.missing(safe, in: 0).isEmpty
    }

    @Test func `after a kill the same computer mounts at once, without a question`() throws {
        // Had it to wait, it would do so for ten minutes.
        let daemons = try TwoDaemons(spaces: 1, .noLocks, times: "500,600000,100")
        try daemons.mustMount(0)
        let safe = SafeFiles()
        let writer = FileWriter(daemons.directory(0) + "/albums", "a", safe, seed: 1)
        #expect(eventually { writer.count > 3 })
        kill(try #require(daemons.daemon(0)), SIGKILL)
        #expect(eventually { writer.isEnded })
        try daemons.mustMount(0)
        #expect(daemons.missing(safe, in: 0).isEmpty)
        try daemons.takeAway(0)
    }

    @Test func `another mount is refused by every command that writes, and told how to take over`() throws {
        let daemons = try TwoDaemons(spaces: 1, .bindfs, times: nil)
        try daemons.mustMount(0)
        let safe = SafeFiles()
        let writer = FileWriter(daemons.directory(0) + "/albums", "a", safe, seed: 1)
        #expect(eventually { writer.count > 0 })
        writer.end()
        // As another computer is: its process cannot be seen from another pid namespace.
        let inside = ["unshare", "--pid", "--fork", "--propagation", "slave", "--mount-proc"]
        let words = [
            ["mount", daemons.vault(1), daemons.directory(1)],
            [
                "import", daemons.vault(1),
                try daemons.place.source("p.jpg", Photo(width: 80, height: 60, seed: 1).bytes),
            ],
        ]
        for words in words {
            let refused = try daemons.place.run(inside + [obscura] + words + ["--password-stdin"], "one\n")
            #expect(
                refused.status == 5 && refused.errors.contains("-o takeover"), "\(words): \(refused.errors)")
            // On this computer it is in use.
            let used = try daemons.place.run([obscura] + words + ["--password-stdin"], "one\n")
            #expect(used.status == 5 && used.errors.contains("in use"), "\(words): \(used.errors)")
        }
        // Commands that only read may go on.
        try daemons.mustMount(1, options: "ro")
        #expect(daemons.missing(safe, in: 1).isEmpty)
        try daemons.takeAway(1)
        let both = try daemons.mount(1, options: "ro,takeover")
        #expect(both.status == 2, "\(both.errors)")
        try daemons.takeAway(0)
        try daemons.mustMount(1)
        #expect(daemons.missing(safe, in: 1).isEmpty)
        try daemons.takeAway(1)
    }
}
