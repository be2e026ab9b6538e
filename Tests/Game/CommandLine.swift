import Foundation
import LinuxIO
import Synchronization

/// The full game, from the command line: `PAIRS MOUNTED-PAIRS TIMED-PAIRS PROGRAM DIRECTORY…`.
///
/// In each directory the library plays PAIRS pairs; in the first also TIMED-PAIRS, each answer to a password being
/// timed 200 times with the derivation and 200 times without, and the program MOUNTED-PAIRS. SIGINT and SIGTERM have
/// the pairs judged that are done by then.
///
/// `disks PAIRS DIRECTORY`: as many pairs on each kind of file system that this machine can mount from a file, each
/// vault on a disk of its own; then some with spaces in files of their own, which must be found.
public func playFromCommandLine(_ arguments: [String]) -> Int32 {
    if arguments.count == 3, arguments[0] == "disks", let pairs = Int(arguments[1]), pairs >= 20 {
        return whileInterruptible { try playOnDisks(pairs, in: arguments[2]) }
    }
    let counts = arguments.prefix(3).compactMap { Int($0) }
    guard arguments.count >= 5, counts.count == 3, counts.allSatisfy({ $0 == 0 || $0 >= 20 }) else {
        FileHandle.standardError.write(
            Data(
                """
                usage: obscura-game PAIRS MOUNTED-PAIRS TIMED-PAIRS PROGRAM DIRECTORY…
                       obscura-game disks PAIRS DIRECTORY

                """.utf8))
        return 2
    }
    return whileInterruptible {
        var isHonest = true
        for (what, game) in plays(counts, program: arguments[3], in: Array(arguments[4...]))
        where game.pairs > 0 && !isInterrupted.load(ordering: .relaxed) {
            isHonest = try play(game, what).isHonest && isHonest
        }
        return isHonest
    }
}

/// Returns the status to exit with.
private func whileInterruptible(_ body: () throws -> Bool) -> Int32 {
    for number in [SIGINT, SIGTERM] { signal(number) { _ in isInterrupted.store(true, ordering: .relaxed) } }
    let isHonest: Bool
    do { isHonest = try body() } catch {
        say("the game broke off: \(error)")
        return 1
    }
    if isInterrupted.load(ordering: .relaxed) { return 130 }
    return isHonest ? 0 : 1
}

/// Returns whether nothing told but what was to be found.
private func playOnDisks(_ pairs: Int, in directory: String) throws -> Bool {
    var isRight = true
    for (number, kind) in HostImage.Kind.allCases.enumerated() where !isInterrupted.load(ordering: .relaxed) {
        if let obstacle = HostImage.obstacle(kind, in: directory) {
            say("NOT PLAYED: \(kind.rawValue) (\(obstacle))\n")
            continue
        }
        let seed = UInt64.random(in: 0..<1 << 32) &+ UInt64(number)
        var game = Game(pairs: pairs, seed: seed, directory: directory, limit: .standardErrors(4.5))
        game.disk = kind
        game.last = .hidden
        game.sectorsPerSegment = 512
        isRight = try play(game, "by the library, on disks of \(kind.rawValue)").isHonest && isRight
        let leak = Leak.filesOfTheirOwnLevelled
        guard kind != .exfat, !isInterrupted.load(ordering: .relaxed) else { continue }
        (game.pairs, game.fittedPairs, game.leaks) = (30, 10, [leak])
        let told = try play(game, "with files of their own, on disks of \(kind.rawValue)").failures.map(
            \.name)
        let isFound = leak.finders.contains { told.contains($0) }
        say("\(isFound ? "PASSED: that must fail" : "FAILED: that must be found by \(leak.finders)")\n")
        isRight = isRight && isFound
    }
    return isRight
}

/// What is to be played, and how. `counts`: PAIRS, MOUNTED-PAIRS, TIMED-PAIRS.
private func plays(_ counts: [Int], program: String, in directories: [String]) -> [(what: String, Game)] {
    let seed = UInt64.random(in: 0..<1 << 32)
    func game(_ pairs: Int, _ number: Int, _ directory: String) -> Game {
        Game(pairs: pairs, seed: seed &+ UInt64(number), directory: directory, limit: .standardErrors(4.5))
    }
    var timed = game(counts[2], 1000, directories[0])
    timed.runsPerAnswer = 200
    timed.runsPerSlots = 200
    var mounted = game(counts[1], 2000, directories[0])
    mounted.program = program
    return directories.enumerated().map { ("by the library", game(counts[0], $0, $1)) } + [
        ("by the library, answers timed 200 times", timed), ("by the program and mounts", mounted),
    ]
}

private let isInterrupted = Atomic(false)

/// Plays, and says how it went.
private func play(_ game: Game, _ what: String) throws -> Judgement {
    let name = "\(what), in \(game.directory) (\(hostName(game.directory)))"
    say("\(game.pairs) pairs \(name), seed \(game.seed)")
    var game = game
    let done = Mutex(0)
    game.isEnough = { isInterrupted.load(ordering: .relaxed) }
    game.progress = { count in
        done.withLock { $0 = max($0, count) }
        if count % 100 == 0 { say("  \(count) pairs") }
    }
    let judgement = try game.play()
    say(judgement.text)
    let count = done.withLock { $0 }
    say("\(judgement.isHonest ? "PASSED" : "FAILED"): \(count) pairs \(name)\n")
    return judgement
}

private func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }

/// The kind of file system a directory lies on (statfs(2)).
private func hostName(_ path: String) -> String {
    let calls = LinuxCalls.shared
    guard let descriptor = try? calls.open(AT_FDCWD, path, flags: O_RDONLY, mode: 0) else { return "?" }
    defer { calls.close(descriptor) }
    let names: [UInt64: String] = [
        0xEF53: "ext4", 0x0102_1994: "tmpfs", 0x794C_7630: "overlay", 0x9123_683E: "btrfs",
        0x5846_5342: "xfs",
    ]
    let type = (try? calls.hostStatus(descriptor).typeMagic) ?? 0
    return names[type] ?? String(type, radix: 16)
}
