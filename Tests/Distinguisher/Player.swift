import Foundation
import LinuxIO
import PhotoLibrary
import TestSupport
import VaultCrypto
import VaultStore

/// Plays a history by the library.
final class Player: HistoryPlayer {
    let vault: String
    let history: History
    let world: World
    private let leaks: Set<Leak>
    private let pattern: [UInt8]
    private let stretcher: RememberingStretcher
    private var visitors: [Int: Visitor] = [:]
    /// Whose password opens the decoy now.
    private var decoy = 0
    /// The time between two actions of a session.
    var pause: @Sendable () -> Void = {}
    /// How long an action takes at least: sessions are as long as people like, with any actions.
    var actionMilliseconds = 0
    /// Whether the counters of the vault's host are looked at.
    var isCounted = false
    /// Whether sessions rest before they end.
    var rests = false
    /// Whether sessions and the vault's creation hide how much they write.
    var covers = true
    /// Counts the bytes of all sessions.
    let written = WrittenBytes()
    /// An action on the host before a session, once all programs have closed the vault; told the session's number.
    var interval: (Int) throws -> Void = { _ in }

    static let kdf = KDFParameters(memoryBytes: KDFParameters.memoryBytesRange.lowerBound, passes: 1)

    init(
        vault: String, history: History, world: World, leaks: Set<Leak>, stretcher: RememberingStretcher
    ) {
        self.vault = vault
        self.history = history
        self.world = world
        self.leaks = leaks
        self.stretcher = stretcher
        pattern = leaks.contains(.repeatedFill) ? randomBytes(DistinguisherCalls.patternBytes) : []
    }

    /// The password of a space; the decoy's is the attacker's.
    static func password(of space: Int) -> SecretBytes { secret("space \(space)") }

    // MARK: Spaces

    func create(_ space: Int) throws {
        let password = Self.password(of: space)
        while true {
            try withCalls { calls in
                calls.setFilling(true)
                defer { calls.setFilling(false) }
                try Vault.create(
                    at: vault, spaces: history.spaceCount, bytesPerSpace: history.bytesPerSpace,
                    kdf: Self.kdf, password: password, stretcher: stretcher, calls: calls,
                    coverBytes: covers ? nil : 0
                ) { _, _ in }
            }
            guard leaks.contains(.slotsInOrder), try Attacker(vault, password).space != 0 else { return }
            // The leak: any other slot than the first is not taken.
            try FileManager.default.removeItem(atPath: vault)
        }
    }

    func add(_ space: Int, surviving: [Int]) throws {
        try withCalls { calls in
            try patiently {
                try Vault.addSpace(
                    vault, new: Self.password(of: space), surviving: surviving.map(Self.password),
                    stretcher: stretcher, calls: calls)
            }
        }
    }

    func changePassword(_ old: Int, to new: Int) throws {
        try withCalls { calls in
            calls.forbidCounting()
            try patiently {
                try Vault.changePassword(
                    vault, old: Self.password(of: old), new: Self.password(of: new), stretcher: stretcher,
                    calls: calls)
            }
        }
        decoy = new
    }

    func remove(_ space: Int) throws {
        visitors[space] = nil
        try withCalls { calls in
            try patiently {
                try Vault.removeSpace(
                    vault, password: Self.password(of: space), stretcher: stretcher, calls: calls)
            }
        }
    }

    func grow(_ growth: History.Growth) throws {
        let calls = self.calls()
        defer { calls.end() }
        calls.setFilling(true)
        if let count = growth.killedAfter { calls.kill(afterChanges: count) }
        do {
            try Vault.grow(vault, bytesPerSpace: History.grownBytesPerSpace, calls: calls) { _, _ in }
        } catch { if growth.killedAfter == nil { throw error } }
    }

    // MARK: Sessions

    func pass(before session: Int) throws { try interval(session) }

    func visit(_ session: History.Session) throws {
        try withCalls { calls in
            let library = try open(session.space, calls)
            begin(library)
            var visitor = visitor(session.space, calls)
            defer { visitors[session.space] = visitor }
            try visitor.act(library, seed: session.seed, count: session.actionCount)
            if session.bytes > 0 {
                try visitor.put(library, "film.bin", noise(session.bytes, seed: Int(session.seed >> 33)))
            }
            try end(library, session, visitor, calls)
        }
        if leaks.contains(.growsAlone) && session.space > 0 { try addSegment() }
    }

    /// The leak: gives one space another segment.
    private func addSegment() throws {
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: vault + "/spaces"))
        defer { try? file.close() }
        try file.seekToEnd()
        try file.write(contentsOf: randomBytes(Int(DistinguisherCalls.segmentBytes)))
    }

    func look(_ session: History.Session) throws {
        try withCalls { calls in
            let library = try open(0, calls)
            begin(library)
            let visitor = visitor(0, calls)
            try visitor.look(library, count: session.actionCount)
            try end(library, session, visitor, calls)
        }
    }

    private func end(
        _ library: Library, _ session: History.Session, _ visitor: Visitor, _ calls: DistinguisherCalls
    ) throws {
        visitor.wait()
        if rests { BootClock.wait(milliseconds: Int64(session.restMilliseconds)) }
        if case .unmount = session.ending { return try library.close() }
        // Committed files survive: both vaults of a pair shall hold the same. It takes seconds.
        awaitCommit(of: library)
        visitor.pass(library)
        if case .killWhileUnmounting(let count) = session.ending {
            calls.kill(afterChanges: count)
        } else {
            calls.kill(afterChanges: 0)
        }
        try? library.close()
    }

    /// An action that waits for the next of some moments, which lie as far apart as an action takes at least, and by
    /// chance some more: what was done until then does not show in them.
    private func moments() -> () -> Void {
        guard actionMilliseconds > 0 else { return {} }
        let (first, milliseconds) = (BootClock.milliseconds, Int64(actionMilliseconds))
        var count: Int64 = 0
        return {
            count += 1
            let next = first + count * milliseconds + Int64.random(in: 0..<milliseconds / 2)
            BootClock.wait(milliseconds: next - BootClock.milliseconds)
        }
    }

    private func begin(_ library: Library) {
        if !leaks.contains(.withoutCoverTraffic) { library.startCoverTraffic(withWrites: covers) }
        library.didGoLive()
    }

    private func visitor(_ space: Int, _ calls: DistinguisherCalls) -> Visitor {
        var visitor = visitors[space] ?? Visitor()
        visitor.pause = pause
        visitor.wait = moments()
        return visitor
    }

    private func open(_ space: Int, _ calls: DistinguisherCalls) throws -> Library {
        let unlocked = try patiently {
            try Vault.unlock(
                vault, password: Self.password(of: space == 0 ? decoy : space), stretcher: stretcher,
                calls: calls)
        }
        return try Library.open(unlocked, options: Self.options(history))
    }

    static func options(_ history: History, readOnly: Bool = false) -> LibraryOptions {
        var options = LibraryOptions(owner: (getuid(), getgid()), mountedByRoot: getuid() == 0)
        options.thumbnails = .off
        options.trashDays = history.trashDays
        options.readOnly = readOnly
        return options
    }

    private func withCalls(_ body: (DistinguisherCalls) throws -> Void) rethrows {
        let calls = self.calls()
        defer { calls.end() }
        try body(calls)
    }

    private func calls() -> DistinguisherCalls {
        DistinguisherCalls(
            leaks: leaks, pattern: pattern, spaceCount: history.spaceCount, written: written,
            touchesMax: isCounted ? .max : 1)
    }
}

func secret(_ text: String) -> SecretBytes {
    Array(text.utf8).withUnsafeBytes { SecretBytes(copying: $0) }
}

func randomBytes(_ count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    bytes.withUnsafeMutableBytes { fillRandom($0) }
    return bytes
}
