import Foundation
import Glibc
import TestSupport

@testable import PhotoImaging

/// A data directory with thumbnailers that are scripts, which is gone with this object.
final class DataHome {
    let root = "/tmp/obscura-thumbnailers-\(UUID().uuidString)"
    /// A number of seconds that nobody else sleeps.
    let nap = Int.random(in: 100_000...999_999)
    private var entries: String { root + "/thumbnailers" }

    init() throws {
        try FileManager.default.createDirectory(atPath: entries, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: root) }

    /// Installs a script of the shell that is given the input, the output and the size.
    func add(
        _ script: String, named name: String = "a", types: String = "video/mp4;", shell: String = "/bin/sh",
        more: String = ""
    ) throws {
        let program = root + "/" + name + ".sh"
        try "#!\(shell)\n\(script)\n".write(toFile: program, atomically: true, encoding: .utf8)
        guard chmod(program, 0o755) == 0 else { throw POSIXError(.EPERM) }
        try entry(name, "Exec=\(program) %i %o %s\nMimeType=\(types)\n" + more)
    }

    func entry(_ name: String, _ lines: String) throws {
        let text = "[Thumbnailer Entry]\n" + lines
        try text.write(toFile: entries + "/" + name + ".thumbnailer", atomically: true, encoding: .utf8)
    }

    func remove(_ name: String) throws {
        try FileManager.default.removeItem(atPath: entries + "/" + name + ".thumbnailer")
    }

    /// The programs installed here and nowhere else; read at each request. They may take any time.
    func installed(
        bubblewrap: String = "/usr/bin/bwrap", _ change: (inout ThumbnailerLimits) -> Void = { _ in }
    ) -> InstalledThumbnailers {
        var sandbox = ThumbnailerSandbox(bubblewrap: bubblewrap)
        sandbox.limits.milliseconds = 600_000
        change(&sandbox.limits)
        return InstalledThumbnailers(dataDirectories: [root], sandbox: sandbox, lookMilliseconds: 0)
    }

    /// Processes that run a script of this directory, or take its nap.
    var processes: [Int32] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.compactMap { Int32($0) }.filter { process in
            let words = (kernelText("/proc/\(process)/cmdline") ?? "").split(separator: "\0")
            return words.contains { $0.contains(root) || $0 == "\(nap)" }
        }
    }

    /// Lines of a script that write these bytes as its picture.
    static func writing(_ bytes: [UInt8]) -> String {
        "base64 -d >\"$2\" <<'END'\n\(Data(bytes).base64EncodedString())\nEND"
    }

    /// The first bytes of a JPEG, behind which a script may write a report, as the shell's printf has them.
    static let reportHead = "\\377\\330\\377\\340"
}

/// The file of a script's report, in place of a picture.
extension InstalledThumbnailers {
    func report(_ bytes: [UInt8] = Array("picture".utf8)) throws(ThumbnailError) -> [String: String] {
        let drawn = try draw(MemorySource(bytes: bytes), type: .mp4, side: 128)
        return reportLines(drawn.bytes)
    }
}

func reportLines(_ bytes: [UInt8]) -> [String: String] {
    var report: [String: String] = [:]
    for line in String(decoding: bytes.dropFirst(4), as: UTF8.self).split(separator: "\n") {
        let words = line.split(separator: " ", maxSplits: 1)
        report[String(words[0])] = words.count > 1 ? String(words[1]) : ""
    }
    return report
}
