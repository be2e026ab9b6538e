import LibraryFixtures
import LinuxIO
import TestFixtures
import TestSupport
import VaultCrypto

@testable import PhotoLibrary
@testable import VaultStore

/// Builds the vault as it may be after a crash at any moment of a session, and judges each state: it opens without
/// repair, with a root that must or may be there, and all that this root leads to is whole. Some are mounted, read
/// through, and worked in until the next crash.
struct CrashMachine {
    /// How much is tried.
    struct Effort {
        /// Sessions one after the other, each begun with the disk that a crash left of the one before.
        var depth = 3
        var steps = 20
        /// Power cuts tried after each event.
        var cutsPerEvent = 2
        /// One in so many states is mounted.
        var mountedShare = 150
        /// Crashed sessions that are gone on with, at each depth.
        var branches = 2
    }

    let vault: MemoryVault
    var effort = Effort()
    var random: RandomSource
    /// Given to every session, so that tests see that the machine finds the faults it is for.
    var sabotage: (Space) throws -> Void = { _ in }
    /// Syncs that do nothing.
    var ignoredSyncs: MemoryDisk.SyncKinds = []
    /// Whether system calls may fail.
    var isFailing = true
    /// Whether a soft root of before the power cut could count.
    var isRebooting = true
    /// Whether the rules of a space are checked at every mount and commit.
    var isAuditing = true
    /// Whether there is little room in the space.
    var isPressed = false
    private(set) var stateCount = 0
    private(set) var mountCount = 0
    private let stretched: [String: SecretBytes]

    init(_ vault: MemoryVault, seed: UInt64) throws {
        self.vault = vault
        random = RandomSource(seed)
        let disk = MemoryDisk(vault.empty)
        let host = try hostPlace(vault.path, disk).open()
        let header = try Header.read(from: host, mayRepair: false)
        var stretched: [String: SecretBytes] = [:]
        for password in ["one", "two"] {
            stretched[password] = try header.stretched(
                MemoryVault.password(password), by: LocalStretcher())
        }
        self.stretched = stretched
    }

    /// Tries everything that begins with an empty vault, in which much was done already.
    mutating func run() throws {
        try explore(CrashState(disk: vault.empty), depth: 1, aging: Int.random(in: 0..<60, using: &random))
    }

    /// Works on in `state` and tries every crash of that.
    private mutating func explore(_ state: CrashState, depth: Int, aging: Int = 0) throws {
        let session = try CrashSession(
            vault, state, isPressed: isPressed, isAuditing: isAuditing, ignoring: ignoredSyncs,
            seed: vault.host == .cluster ? random.next() : 1)
        mountCount += 1
        session.sabotage = sabotage
        var work = CrashWork(session: session, random: RandomSource(random.next()))
        work.isFailing = isFailing
        if aging > 0 { try work.age() }
        try work.run(steps: aging + effort.steps)
        session.abandon()
        var tour = CrashTour(session)
        // States before the work proper are like those of other seeds: a few will do.
        let total = session.disk.log.count
        var next: [CrashState] = []
        while tour.advance() {
            let isEarly = aging > 0 && tour.eventCount * (aging + effort.steps) < total * aging
            if isEarly && Int.random(in: 0..<20, using: &random) > 0 { continue }
            try judgeAll(&tour, &next, total)
        }
        guard depth < effort.depth else { return }
        for state in next.shuffled(using: &random).prefix(effort.branches) {
            try explore(state, depth: depth + 1)
        }
    }

    /// Judges the disks that crashes at this moment may leave, and notes some to go on with.
    private mutating func judgeAll(
        _ tour: inout CrashTour, _ next: inout [CrashState], _ total: Int
    ) throws {
        if vault.host == .cluster { return try judgeLosses(&tour, &next, total) }
        try judge(
            tour.killed(using: &random), "kill after event \(tour.eventCount)", tour.history, &next, total)
        guard !tour.now.pending.isEmpty else { return }
        for _ in 0..<effort.cutsPerEvent {
            let survival = Survival.allCases.randomElement(using: &random) ?? .nothing
            let seed = random.next()
            var choice = RandomSource(seed)
            let image = tour.now.afterPowerCut(survival, using: &choice)
            let words = "power cut after event \(tour.eventCount): \(survival), \(seed)"
            try judge(try tour.cut(image, isRebooting: isRebooting), words, tour.history, &next, total)
        }
    }

    /// Judges the objects of a cluster as the end of a client at this moment may leave them.
    private mutating func judgeLosses(
        _ tour: inout CrashTour, _ next: inout [CrashState], _ total: Int
    ) throws {
        for _ in 0..<(tour.now.pending.isEmpty ? 1 : effort.cutsPerEvent) {
            let survival = Survival.allCases.randomElement(using: &random) ?? .nothing
            let seed = random.next()
            var choice = RandomSource(seed)
            let disk = tour.now.afterClientLoss(survival, using: &choice)
            let words = "a client's end after event \(tour.eventCount): \(survival), \(seed)"
            var crash = tour.lost(disk)
            do { crash.disk = try takenOver(disk, seed) } catch { throw CrashFailure("\(words): \(error)") }
            try judge(crash, words, tour.history, &next, total)
        }
    }

    /// The cluster once another client has the lock. Requests of the former holder may take effect until then.
    private func takenOver(_ state: DiskState, _ seed: UInt64) throws -> DiskState {
        let disk = MemoryDisk(state, isRecording: false)
        disk.pool.order(by: seed)
        try hostPlace(vault.path, disk).open().lock()
        return disk.state
    }

    private mutating func judge(
        _ crash: CrashTour.Crash, _ words: String, _ history: @autoclosure () -> String,
        _ next: inout [CrashState], _ total: Int
    ) throws {
        stateCount += 1
        do {
            let (found, isKnown) = try judge(crash)
            var state = CrashState(
                disk: crash.disk, found: found, durable: crash.durable ?? found, tried: crash.tried,
                passwords: crash.passwords)
            if crash.passwords.count > 1 {
                let opening = try passwordThatOpens(crash)
                state.passwords = [opening] + crash.passwords.filter { $0 != opening }
            }
            if Int.random(in: 0..<max(1, total / 8), using: &random) == 0 { next.append(state) }
            guard !isKnown || Int.random(in: 0..<effort.mountedShare, using: &random) == 0 else { return }
            mountCount += 1
            _ = try CrashSession(vault, state, isAuditing: isAuditing)
        } catch { throw CrashFailure("\(words) of \(total): \(error)\n\(history())") }
    }

    /// The commit that a mount begins with, and whether it is known to be whole; throws where it is not one it may
    /// begin with, or damaged.
    private func judge(_ crash: CrashTour.Crash) throws -> (PublishedCommit, isKnown: Bool) {
        _ = try passwordThatOpens(crash)
        let space: Space
        do {
            space = try vault.openSpace(MemoryDisk(crash.disk))
        } catch { throw CrashFailure("the space does not open: \(error)") }
        let generation = space.commits.newest.generation
        guard let found = crash.allowed.first(where: { $0.has(space.commits.newest) }) else {
            let due = crash.allowed.map { "\($0.generation)" }.joined(separator: " or ")
            let kind = space.commits.newest.isDurable ? "durable" : "soft"
            throw CrashFailure("the \(kind) root \(generation) counts instead of \(due)")
        }
        guard !found.isUnknown(space.commits.newest) else { return (found, false) }
        if let damage = found.damage(on: crash.disk.live) {
            throw CrashFailure("root \(generation) counts, and what it leads to is damaged: \(damage)")
        }
        return (found, true)
    }

    private func passwordThatOpens(_ crash: CrashTour.Crash) throws -> String {
        let disk = MemoryDisk(crash.disk)
        let host = try hostPlace(vault.path, disk).open()
        let header = try Header.read(from: host, mayRepair: false)
        for password in crash.passwords {
            if let key = stretched[password], try header.openKeySlots(key) != nil { return password }
        }
        throw CrashFailure("no password opens the vault")
    }
}
