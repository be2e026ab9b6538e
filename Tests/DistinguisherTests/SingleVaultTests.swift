import Foundation
import TestSupport
import Testing

@testable import Distinguisher

/// Facts about single vaults.
@Suite("Secrets: one vault") struct SingleVaultTests {
    /// Plays `sessions` in a vault of two spaces, both in use, and looks at it with the decoy's password.
    private func sample(_ sessions: [(space: Int, ending: History.Ending)]) throws -> Sample {
        let root = "/tmp/obscura-distinguisher-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: root) }
        var history = History(seed: 1, last: .any, isPlain: true)
        history.sessions = sessions.map {
            History.Session(space: $0.space, seed: 5, actionCount: 2, ending: $0.ending)
        }
        let vault = root + "/vault"
        let stretcher = RememberingStretcher()
        try Player(
            vault: vault, history: history, world: .hidden, leaks: [], stretcher: stretcher
        ).play()
        let attacker = try Attacker(vault, Player.password(of: 0))
        var sample = Sample()
        let files = try VaultFiles(vault, attacker)
        try sample.addFiles(files, decoy: attacker.space)
        try sample.addOpening(attacker, files.segments, sectorsPerSegment: 512)
        try sample.addAnswers(vault, history, stretcher, runs: 2, slotRuns: 2)
        return sample
    }

    private func value(_ name: String, _ sample: Sample) -> Double? {
        sample.features.first { $0.name == name }?.value
    }

    @Test func `a wrong password costs one derivation, and so does a right one`() throws {
        let sample = try sample([(0, .unmount)])
        #expect(value("wrong password: derivations", sample) == 1)
        #expect(value("right password: derivations", sample) == 1)
        #expect(value("no slot opens: derivations", sample) == 0)
        #expect(value("a slot opens: derivations", sample) == 0)
        #expect(sample.words["no slot opens"] == "noSpaceOpens" && sample.words["a slot opens"] == "opened")
        // The attacker finds the planted facts: else the absence of others would mean nothing.
        #expect((value("extents", sample) ?? 0) > 0 && (value("photo: rows", sample) ?? 0) > 0)
        #expect(sample.words["wrong password"] == "noSpaceOpens")
        #expect(sample.words["while it is open"] == "inUse")
    }

    /// The threat model says so: no other space can change it.
    @Test func `a space that was killed shows so inside until it is itself mounted again`() throws {
        let killed: (space: Int, ending: History.Ending) = (0, .kill)
        let sampleBefore = try sample([killed, (1, .unmount)])
        #expect((value("soft roots", sampleBefore) ?? 0) > 0)
        // The other space's end set the times of both files, one after the other.
        #expect((0...60e9).contains(value("mtime: header - spaces", sampleBefore) ?? -1))
        #expect(try value("soft roots", sample([killed, (1, .unmount), (0, .unmount)])) == 0)
    }
}
