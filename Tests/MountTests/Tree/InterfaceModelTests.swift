import Foundation
import Glibc
import TestThreads
import Testing

@testable import TestSupport

/// Random operations over the whole interface, through a real mount, against the reference model: moments, albums,
/// memberships, copies, saving and the trash; with unmounts and kills between. A failure names its seed;
/// `scripts/model` tries many more.
@Suite("The tree: random programs against a model of the contract", .serialized, .waiting)
struct InterfaceModelTests {
    /// Seeds to try: few, unless the environment asks for more.
    static let seeds: [UInt64] = {
        let environment = ProcessInfo.processInfo.environment
        let first = environment["OBSCURA_MODEL_SEED"].flatMap { UInt64($0) } ?? 1
        let count = environment["OBSCURA_MODEL_SEEDS"].flatMap { UInt64($0) } ?? 2
        return Array(first..<first + count)
    }()

    /// The model's files have the modes that this gives them.
    init() { umask(0o022) }

    @Test(arguments: seeds) func `one program at work, and mounts that end well or not`(seed: UInt64) throws {
        let place = try Place(isLeast: seed % 2 == 0)
        try place.mount()
        var player = ModelPlayer(root: place.mountPoint, number: nil, seed: seed)
        try player.begin()
        for turn in 0..<6 {
            for step in 0..<60 {
                try player.step()
                if step % 6 == 5 { try player.compare() }
            }
            if turn % 2 == 1 {
                try place.killAndMount(syncing: place.mountPoint)
            } else {
                try place.mountAnew()
            }
            player.remounted()
            try player.compare("mounted anew: ")
        }
        try #require(player.mounted.sync() == 0)
        player.beginHistory()
        for _ in 0..<25 { try player.step() }
        try place.killAndMount()
        try player.expectHistory()
    }

    @Test(arguments: seeds) func `four programs at work at a time`(seed: UInt64) throws {
        let place = try Place(isLeast: seed % 2 == 0)
        try place.mount()
        let players = (0..<4).map { Seat(ModelPlayer(root: place.mountPoint, number: $0, seed: seed)) }
        try all(players) { try $0.begin() }
        for turn in 0..<3 {
            try all(players) { player in
                for step in 0..<60 {
                    try player.step()
                    if step % 15 == 14 { try player.compare() }
                }
            }
            try expectNothingElse(place, players)
            if turn % 2 == 1 {
                try place.killAndMount(syncing: place.mountPoint)
            } else {
                try place.mountAnew()
            }
            try all(players) { player in
                player.remounted()
                try player.compare("mounted anew: ")
            }
        }
    }

    /// Where a player sits. Unchecked Sendable: one thread at a time uses it.
    private final class Seat: @unchecked Sendable {
        var player: ModelPlayer
        init(_ player: ModelPlayer) { self.player = player }
    }

    /// Lets all players do the same, each in a thread; throws the first failure.
    private func all(_ seats: [Seat], _ body: @escaping @Sendable (inout ModelPlayer) throws -> Void) throws {
        let failures = Failures()
        DispatchQueue.concurrentPerform(iterations: seats.count) { number in
            do { try body(&seats[number].player) } catch { failures.add(error) }
        }
        if let first = failures.first { throw first }
    }

    /// The mount has the files that the players know, and no others.
    private func expectNothingElse(_ place: Place, _ seats: [Seat]) throws {
        let known = Set(seats.flatMap { $0.player.model.shown(isAlone: true).keys })
        let listed = try place.shell("cd D; find . -mindepth 1 -printf '%P\\n'").split(separator: "\n")
        #expect(Set(listed.map(String.init)).subtracting(known) == [])
    }
}
