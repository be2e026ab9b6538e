import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing
import VaultStore

@testable import obscura

/// Programs that are interrupted, and programs that find no room: the files that they leave.
@Suite("Exit codes: interrupted commands", .serialized, .waiting) final class InterruptionTests {
    private let directory = "/tmp/obscura-interruption-\(UUID().uuidString)"
    private var vault: String { directory + "/V" }

    init() throws {
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    }

    deinit {
        umount2(directory, Int32(MNT_DETACH))
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// Starts a command and sends it a signal once it has made `file`, and that has more bytes than `least`; nil where
    /// it was too fast for that.
    private func interrupt(
        _ words: [String], _ signal: Int32, when file: String, isLargerThan least: Int = -1
    ) throws -> (status: Int32, errors: String)? {
        let process = try Child([Program.path] + words, directory: directory, errors: .collected)
        while (try? fileBytes(file)) ?? -1 <= least && process.isRunning { usleep(500) }
        process.kill(signal)
        let ended = try process.finish()
        return ended.status == 0 ? nil : (ended.status, ended.errors)
    }

    private func create(_ size: String) -> [String] {
        [
            "create", "V", "--size=\(size)", "--kdf-memory=8M", "--kdf-passes=1",
            "--password-command=echo one",
        ]
    }

    @Test(arguments: [SIGINT, SIGTERM, SIGHUP], [false, true])
    func `an interrupted create leaves the directory as it was`(signal: Int32, isDirectoryThere: Bool) throws
    {
        var ended: (status: Int32, errors: String)?
        // Large enough for the signal to come in time, on any machine.
        for size in ["512M", "2G", "4G"] where ended == nil {
            try? FileManager.default.removeItem(atPath: vault)
            if isDirectoryThere { #expect(mkdir(vault, 0o755) == 0) }
            ended = try interrupt(create(size), signal, when: vault + "/spaces")
        }
        let (status, errors) = try #require(ended)
        #expect(status == 130, "\(errors)")
        #expect(errors.split(separator: "\n").last == "obscura: V: \(failure(.interrupted, vault: "V").why)")
        #expect(
            try FileManager.default.subpathsOfDirectory(atPath: directory) == (isDirectoryThere ? ["V"] : []))
        // Nothing is in the way of the next try.
        #expect(try Program(create("16M"), in: directory).status == 0)
    }

    @Test func `a create without room leaves the directory as it was`() throws {
        // A disk that has room for the bytes and not for the header behind them.
        try #require(mount("none", directory, "tmpfs", 0, "size=256M,nr_inodes=3") == 0)
        for isDirectoryThere in [false, true] {
            if isDirectoryThere { #expect(mkdir(vault, 0o755) == 0) }
            let ended = try Program(create("64M"), in: directory)
            #expect(ended.status == 7, "\(ended.errors)")
            #expect(ended.errors.contains("not enough room"))
            #expect(
                try FileManager.default.subpathsOfDirectory(atPath: directory)
                    == (isDirectoryThere ? ["V"] : []))
        }
    }

    @Test func `an interrupted grow is finished by the same command`() throws {
        #expect(try Program(create("16M"), in: directory).status == 0)
        var ended: (status: Int32, errors: String)?
        // In MiB.
        var (size, next) = (16, 16)
        while ended == nil, next < 8192 {
            (size, next) = (next, max(512, next * 4))
            let file = vault + "/spaces"
            ended = try interrupt(
                ["grow", "V", "\(next)M"], SIGINT, when: file, isLargerThan: size * 2 << 20)
        }
        let (status, errors) = try #require(ended)
        #expect(status == 130 && errors.contains("run the same command again"), "\(errors)")
        // To the size that it just passed, so that it does not take long.
        let reached = try fileBytes(vault + "/spaces") / (8 << 20) + 1
        let again = try Program(["grow", "V", "\(reached * 4)M"], in: directory)
        #expect(again.status == 0, "\(again.errors)")
        #expect(try fileBytes(vault + "/spaces") == reached * 8 << 20)
    }

    private func fileBytes(_ path: String) throws -> Int {
        try #require(try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int)
    }
}
