import Foundation
import LinuxIO
import Synchronization

/// The full distinguisher, from the command line: `PAIRS MOUNTED-PAIRS TIMED-PAIRS PROGRAM DIRECTORY…`.
///
/// In each directory the library plays PAIRS pairs; in the first also TIMED-PAIRS, each answer to a password being
/// timed 200 times with the derivation and 200 times without, and the program MOUNTED-PAIRS. SIGINT and SIGTERM have
/// the pairs judged that are done by then.
///
/// `disks PAIRS DIRECTORY [KIND…]`: as many pairs on each kind of file system (ext4, xfs, exfat) that this machine
/// can mount from a file, each vault on a disk of its own, with sessions of up to some minutes; then some with mistakes
/// that only such disks show, which must be found.
///
/// `written PAIRS DIRECTORY`: as many pairs with one session of each space, of which nothing is looked at but the bytes
/// that were written: they may tell 65 % of the vaults.
public func playFromCommandLine(_ arguments: [String]) -> Int32 {
    if arguments.count >= 3, arguments[0] == "disks", let pairs = Int(arguments[1]), pairs >= 20 {
        let kinds = arguments.dropFirst(3).compactMap { HostImage.Kind(rawValue: $0) }
        if kinds.count == arguments.count - 3 {
            return whileInterruptible {
                try playOnDisks(pairs, in: arguments[2], kinds.isEmpty ? HostImage.Kind.allCases : kinds)
            }
        }
    }
    if arguments.count == 3, arguments[0] == "written", let pairs = Int(arguments[1]), pairs >= 20 {
        return whileInterruptible { try playWritten(pairs, in: arguments[2]) }
    }
    let counts = arguments.prefix(3).compactMap { Int($0) }
    guard arguments.count >= 5, counts.count == 3, counts.allSatisfy({ $0 == 0 || $0 >= 20 }) else {
        FileHandle.standardError.write(
            Data(
                """
                usage: obscura-distinguisher PAIRS MOUNTED-PAIRS TIMED-PAIRS PROGRAM DIRECTORY…
                       obscura-distinguisher disks PAIRS DIRECTORY [KIND…]
                       obscura-distinguisher written PAIRS DIRECTORY

                """.utf8))
        return 2
    }
    return whileInterruptible {
        var isHonest = true
        for (what, distinguisher) in plays(counts, program: arguments[3], in: Array(arguments[4...]))
        where distinguisher.pairs > 0 && !isInterrupted.load(ordering: .relaxed) {
            isHonest = try play(distinguisher, what).isHonest && isHonest
        }
        return isHonest
    }
}

/// Returns the status to exit with.
private func whileInterruptible(_ body: () throws -> Bool) -> Int32 {
    for number in [SIGINT, SIGTERM] { signal(number) { _ in isInterrupted.store(true, ordering: .relaxed) } }
    let isHonest: Bool
    do { isHonest = try body() } catch {
        say("the distinguisher broke off: \(error)")
        return 1
    }
    if isInterrupted.load(ordering: .relaxed) { return 130 }
    return isHonest ? 0 : 1
}

/// Returns whether the bytes written tell no more than they may, and a session that hides nothing.
private func playWritten(_ pairs: Int, in directory: String) throws -> Bool {
    var distinguisher = Distinguisher(
        pairs: pairs, seed: .random(in: 0..<1 << 32), directory: directory,
        limit: .share(0.65, standardErrors: 3))
    distinguisher.countsBytes = true
    distinguisher.fittedPairs = pairs / 4
    let isHonest = try play(distinguisher, "of one session each, bytes written").isHonest
    if isInterrupted.load(ordering: .relaxed) { return isHonest }
    distinguisher.pairs = 20
    distinguisher.fittedPairs = 5
    return try isFound(.withoutCoverWrites, distinguisher, "bytes written") && isHonest
}

/// Plays pairs with a mistake. Returns whether it is found.
private func isFound(_ leak: Leak, _ distinguisher: Distinguisher, _ what: String) throws -> Bool {
    var distinguisher = distinguisher
    distinguisher.leaks = [leak]
    let told = try play(distinguisher, "with \(leak.rawValue), \(what)").failures.map(\.name)
    let isFound = leak.isFound(by: told)
    say("\(isFound ? "PASSED: that must fail" : "FAILED: that must be found")\n")
    return isFound
}

/// Returns whether only planted leaks were found.
private func playOnDisks(_ pairs: Int, in directory: String, _ kinds: [HostImage.Kind]) throws -> Bool {
    var isRight = true
    for (number, kind) in kinds.enumerated() where !isInterrupted.load(ordering: .relaxed) {
        if let obstacle = HostImage.obstacle(kind, in: directory) {
            say("NOT PLAYED: \(kind.rawValue) (\(obstacle))\n")
            continue
        }
        let seed = UInt64.random(in: 0..<1 << 32) &+ UInt64(number)
        var distinguisher = Distinguisher(
            pairs: pairs, seed: seed, directory: directory, limit: .standardErrors(4.5))
        distinguisher.disk = kind
        distinguisher.last = .hidden
        distinguisher.sectorsPerSegment = 512
        distinguisher.rests = true
        // Such sessions mostly wait.
        distinguisher.width = 16
        isRight = try play(distinguisher, "by the library, on disks of \(kind.rawValue)").isHonest && isRight
        guard kind != .exfat else { continue }
        (distinguisher.pairs, distinguisher.fittedPairs) = (30, 10)
        // XFS logs no state of a file that was only written, and so does not show commits by itself.
        let mistakes: [Leak] = (kind == .ext4 ? [.withoutCoverTraffic] : []) + [.filesOfTheirOwnLevelled]
        for leak in mistakes
        where !isInterrupted.load(ordering: .relaxed) {
            distinguisher.rests = leak == .withoutCoverTraffic
            isRight = try isFound(leak, distinguisher, "on disks of \(kind.rawValue)") && isRight
        }
        guard kind == .ext4, !isInterrupted.load(ordering: .relaxed) else { continue }
        distinguisher.countsBytes = true
        distinguisher.limit = .share(0.65, standardErrors: 3)
        (distinguisher.pairs, distinguisher.fittedPairs) = (pairs, pairs / 4)
        isRight = try play(distinguisher, "of one session each, on disks of ext4").isHonest && isRight
    }
    return isRight
}

/// The histories to play. `counts`: PAIRS, MOUNTED-PAIRS, TIMED-PAIRS.
private func plays(_ counts: [Int], program: String, in directories: [String]) -> [(
    what: String, Distinguisher
)] {
    let seed = UInt64.random(in: 0..<1 << 32)
    func distinguisher(_ pairs: Int, _ number: Int, _ directory: String) -> Distinguisher {
        Distinguisher(
            pairs: pairs, seed: seed &+ UInt64(number), directory: directory, limit: .standardErrors(4.5))
    }
    var timed = distinguisher(counts[2], 1000, directories[0])
    timed.runsPerAnswer = 200
    timed.runsPerSlots = 200
    var mounted = distinguisher(counts[1], 2000, directories[0])
    mounted.program = program
    return directories.enumerated().map { ("by the library", distinguisher(counts[0], $0, $1)) } + [
        ("by the library, answers timed 200 times", timed), ("by the program and mounts", mounted),
    ]
}

private let isInterrupted = Atomic(false)

/// Plays, and says how it went.
private func play(_ distinguisher: Distinguisher, _ what: String) throws -> Judgement {
    let name = "\(what), in \(distinguisher.directory) (\(hostName(distinguisher.directory)))"
    say("\(distinguisher.pairs) pairs \(name), seed \(distinguisher.seed)")
    var distinguisher = distinguisher
    let done = Mutex(0)
    distinguisher.isEnough = { isInterrupted.load(ordering: .relaxed) }
    distinguisher.progress = { count in
        done.withLock { $0 = max($0, count) }
        if count % 100 == 0 { say("  \(count) pairs") }
    }
    let judgement = try distinguisher.play()
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
