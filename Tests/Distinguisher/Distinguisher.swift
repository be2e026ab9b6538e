import Dispatch
import FileRequests
import Foundation
import PhotoLibrary
import Synchronization
import TestSupport
import VaultStore

/// The distinguisher of deniability: vaults in pairs, alike but for the hidden spaces of one, and an attacker with a
/// copy and the decoy's password who tries to tell which is which.
public struct Distinguisher: Sendable {
    public var pairs: Int
    /// Pairs that the classifier is fitted on; on the others it is judged.
    public var fittedPairs: Int
    public var seed: UInt64
    /// Where vaults are made, and removed as soon as they have been looked at.
    public var directory: String
    public var last = History.LastSession.any
    public var leaks: Set<Leak> = []
    public var limit: Limit
    /// Sectors of each of the decoy's segments that are tried with its key.
    public var sectorsPerSegment = 8192
    /// How often the answer to a password is timed, and how often without the derivation.
    public var runsPerAnswer = 2
    public var runsPerSlots = 20
    /// The built program, to play by it and real mounts; nil: by the library.
    public var program: String?
    /// The kind of disk that each vault has for itself, which is looked at as well; nil: all are in `directory`.
    public var disk: HostImage.Kind?
    /// How long an action takes at least, on a disk of its own: so that a session's length tells nothing.
    public var actionMilliseconds = 60
    /// Whether sessions on disks of their own last up to some minutes, with nothing to do at their end.
    public var rests = false
    /// Whether the vaults of a pair have one session of each space, and nothing is looked at but how much was written.
    public var countsBytes = false
    /// Whether vaults hide how much their creation and their sessions write.
    public var covers = true
    /// How many pairs are played at once; nil: as many as there are processors.
    public var width: Int?
    /// Told how many pairs are done.
    public var progress: @Sendable (Int) -> Void = { _ in }
    /// Whether the pairs that are not begun shall not be played: those that are done are judged.
    public var isEnough: @Sendable () -> Bool = { false }

    public init(pairs: Int, seed: UInt64, directory: String, limit: Limit) {
        self.pairs = pairs
        fittedPairs = pairs / 2
        self.seed = seed
        self.directory = directory
        self.limit = limit
    }

    /// Plays all pairs and judges them.
    public func play() throws -> Judgement {
        struct Results {
            var pairs: [Int: (alone: Sample, hidden: Sample)] = [:]
            var failure: (any Error)?
        }
        let results = Mutex(Results())
        @Sendable func play(_ number: Int) {
            if isEnough() || results.withLock({ $0.failure != nil }) { return }
            do {
                let pair = try playPair(number)
                let count = results.withLock { results in
                    results.pairs[number] = pair
                    return results.pairs.count
                }
                progress(count)
            } catch { results.withLock { $0.failure = error } }
        }
        if let width {
            concurrently(width, play)
        } else {
            DispatchQueue.concurrentPerform(iterations: pairs, execute: play)
        }
        return try results.withLock { results in
            if let failure = results.failure { throw failure }
            return Judgement(
                (0..<pairs).compactMap { results.pairs[$0] },
                fittedCount: fittedPairs * results.pairs.count / pairs, limit: limit)
        }
    }

    /// Plays every pair, `width` at a time with any number of processors: pairs that rest use none.
    private func concurrently(_ width: Int, _ play: @escaping @Sendable (Int) -> Void) {
        let next = Atomic(0)
        let group = DispatchGroup()
        for _ in 0..<width {
            group.enter()
            Thread.detachNewThread {
                while true {
                    let number = next.wrappingAdd(1, ordering: .relaxed).oldValue
                    if number >= pairs { break }
                    play(number)
                }
                group.leave()
            }
        }
        group.wait()
    }

    private func playPair(_ number: Int) throws -> (alone: Sample, hidden: Sample) {
        var generator = Generator(seed &+ UInt64(number) &* 0x1000_0000_01B3)
        let history =
            countsBytes
            ? History(bytesSeed: generator.next(), isSmall: !leaks.isEmpty)
            : History(seed: generator.next(), last: last, isPlain: !leaks.isEmpty)
        var samples: [World: Sample] = [:]
        // Which is made first is no feature.
        for world in World.allCases.shuffled(using: &generator) {
            let path = "\(directory)/distinguisher-\(getpid())-\(number)-\(world.rawValue)"
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(atPath: path) }
            samples[world] = try sample(path, history, world)
        }
        guard let alone = samples[.alone], let hidden = samples[.hidden] else {
            preconditionFailure("both were played")
        }
        return (alone, hidden)
    }

    private func sample(_ path: String, _ history: History, _ world: World) throws -> Sample {
        let vault = path + "/vault"
        if let program {
            let player = ProgramPlayer(program, path, history, world)
            defer { player.leave() }
            try player.play()
            var sample = try look(vault, history, RememberingStretcher())
            try player.addAnswers(&sample)
            return sample
        }
        let stretcher = RememberingStretcher()
        if let disk { return try sample(on: disk, path, history, world, stretcher) }
        let player = player(vault, history, world, stretcher)
        try player.play()
        if countsBytes { return try written(player, history, stretcher) }
        return try look(vault, history, stretcher)
    }

    private func player(
        _ vault: String, _ history: History, _ world: World, _ stretcher: RememberingStretcher
    ) -> Player {
        let player = Player(
            vault: vault, history: history, world: world, leaks: leaks, stretcher: stretcher)
        player.covers = covers && !leaks.contains(.withoutCoverWrites)
        return player
    }

    /// The bytes that were written, less those that the decoy explains: the size of all spaces, which is public, and
    /// what is in the decoy.
    private func written(
        _ player: Player, _ history: History, _ stretcher: RememberingStretcher
    ) throws -> Sample {
        var sample = Sample()
        sample.add(
            .written, bytesWrittenFeature,
            Double(player.written.value) - Double(try explained(player.vault, history, stretcher)))
        return sample
    }

    private func explained(
        _ vault: String, _ history: History, _ stretcher: RememberingStretcher
    ) throws -> UInt64 {
        let unlocked = try patiently {
            try Vault.unlock(
                vault, password: Player.password(of: 0), readOnly: true, stretcher: stretcher)
        }
        let library = try Library.open(unlocked, options: Player.options(history, readOnly: true))
        let use = library.statistics()
        try library.close()
        return (use.blocks - use.free) * use.blockBytes
            + history.bytesPerSpace * UInt64(history.spaceCount)
    }

    /// As `sample`, the vault having a disk of its own.
    private func sample(
        on kind: HostImage.Kind, _ path: String, _ history: History, _ world: World,
        _ stretcher: RememberingStretcher
    ) throws -> Sample {
        let host = try HostImage(kind, in: path)
        defer { host.leave() }
        let vault = host.mountPoint + "/vault"
        let player = player(vault, history, world, stretcher)
        player.isCounted = true
        player.pause = { host.sync() }
        player.actionMilliseconds = actionMilliseconds
        player.rests = rests
        // A stick that is taken along: memory has only pages of the session itself.
        player.interval = { _ in
            usleep(.random(in: 0...1500 * UInt32(actionMilliseconds)))
            try host.unmount()
            try host.mount()
        }
        try player.play()
        if countsBytes {
            let explained = try explained(vault, history, stretcher)
            var sample = try written(player, history, stretcher)
            try host.unmount()
            try sample.addBytes(of: host, explained: explained)
            return sample
        }
        var sample = Sample()
        let attacker = try Attacker(vault, Player.password(of: 0))
        let files = try VaultFiles(vault, attacker)
        try sample.addMemory(files, decoy: attacker.space)
        try host.unmount()
        try sample.addDisk(host, files, decoy: attacker.space)
        try host.mount()
        return try look(vault, history, stretcher, sample)
    }

    /// Looks at a vault, files first: later readings may change their times.
    private func look(
        _ vault: String, _ history: History, _ stretcher: RememberingStretcher, _ sample: Sample = Sample()
    ) throws -> Sample {
        var sample = sample
        let attacker = try Attacker(vault, Player.password(of: 0))
        let files = try VaultFiles(vault, attacker)
        try sample.addFiles(files, decoy: attacker.space)
        try sample.addBytes(files.segments, decoy: attacker.space)
        sample.addHeader(attacker)
        try sample.addOpening(attacker, files.segments, sectorsPerSegment: sectorsPerSegment)
        try sample.addAnswers(
            vault, history, stretcher, runs: runsPerAnswer, slotRuns: runsPerSlots)
        return sample
    }
}
