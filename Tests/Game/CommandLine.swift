import Foundation
import LinuxIO
import Synchronization

/// The full game, from the command line: `PAIRS MOUNTED-PAIRS PROGRAM DIRECTORY…`, the library's pairs shared by the
/// directories.
public func playFromCommandLine(_ arguments: [String]) -> Int32 {
    guard arguments.count >= 4, let pairs = Int(arguments[0]), let mounted = Int(arguments[1]), pairs >= 20
    else {
        FileHandle.standardError.write(
            Data("usage: obscura-game PAIRS MOUNTED-PAIRS PROGRAM DIRECTORY…\n".utf8))
        return 2
    }
    let seed = UInt64.random(in: 0..<1 << 32)
    let directories = Array(arguments[3...])
    var isHonest = true
    func play(_ what: String, _ game: Game) throws {
        let name = "\(game.pairs) pairs \(what), in \(game.directory) (\(hostName(game.directory)))"
        say("\(name), seed \(game.seed)")
        var game = game
        game.progress = { if $0 % 100 == 0 { say("  \($0) pairs") } }
        let judgement = try game.play()
        say(judgement.text)
        say(judgement.isHonest ? "PASSED: \(name)\n" : "FAILED: \(name)\n")
        isHonest = isHonest && judgement.isHonest
    }
    do {
        for (number, directory) in directories.enumerated() {
            let share = pairs * (number + 1) / directories.count - pairs * number / directories.count
            try play(
                "by the library",
                Game(
                    pairs: share, seed: seed &+ UInt64(number), directory: directory,
                    limit: .standardErrors(4.5)))
        }
        if mounted > 0 {
            var game = Game(
                pairs: mounted, seed: seed &+ 1000, directory: directories[0], limit: .standardErrors(4.5))
            game.program = arguments[2]
            try play("by the program and mounts", game)
        }
    } catch {
        say("the game broke off: \(error)")
        return 1
    }
    return isHonest ? 0 : 1
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
