import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// *Outside the vault* of the contract: nothing but the traces of the mount changes.
@Suite("Secrets: everything outside the vault stays", .serialized, .waiting) struct OutsideTests {
    private static let script = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Outside/outside.py").path

    private static func variable(_ name: String) -> Int? {
        ProcessInfo.processInfo.environment[name].flatMap { Int($0) }
    }

    /// More of them by scripts/outside.
    private static let modes = geteuid() == 0 ? ["user", "root", "uid"] : ["user"]

    @Test(arguments: modes) func `of hostile home directories and disks`(mode: String) throws {
        let rounds = Self.variable("OBSCURA_OUTSIDE_ROUNDS") ?? 4
        let seed = Self.variable("OBSCURA_OUTSIDE_SEED") ?? 1
        let root = "/tmp/obscura-outside-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: root) }
        let words = ["/usr/bin/python3", "-B", Self.script, obscura, root, mode, "\(seed)", "\(rounds)"]
        let ended = try Child(
            words, environment: Child.plainEnvironment, directory: "/tmp", input: .text(""),
            output: .collected, errors: .collected, asSession: true
        ).finish()
        #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
        if rounds > 4 { print(ended.output) }
    }

    private let place: Place
    private var trash: String { place.root + "/.local/share/Trash" }

    init() throws {
        place = try Place()
        try place.shell(
            """
            mkdir -p Documents .local/share/Trash/info
            echo letter >Documents/letter; echo other >Documents/other
            info() {
                printf '[Trash Info]\\nPath=%s\\nDeletionDate=2026-01-02T03:04:05\\n' "$PWD/D/albums/$1" \\
                    >".local/share/Trash/info/$2.trashinfo"
            }
            declare -f info >info.sh
            """)
    }

    /// What is in the home directory, with all times; the mount, the vault and the trash's own names left out.
    private func outside() throws -> String {
        try place.shell("find Documents -printf '%p %y %m %T@ %s %l\\n' | LC_ALL=C sort; cat Documents/*")
    }

    @Test func `a trash whose directory of files is a link`() throws {
        try place.mount()
        try place.shell(
            ". ./info.sh; ln -s \"$PWD/Documents\" '\(trash)/files'; info letter letter; info x other")
        let before = try outside()
        try place.unmount()
        #expect(try outside() == before)
        #expect(exists(trash + "/info/letter.trashinfo"))
        try place.mount()
        #expect(try !place.files(place.mountPoint).contains { $0.contains("letter") })
        try place.unmount()
    }

    @Test func `an entry whose name leads out of the trash`() throws {
        try place.mount()
        try place.shell(
            """
            . ./info.sh; mkdir '\(trash)/files'; echo kept >'\(trash)/kept'
            info evil ..; info evil .; info evil ''; ls -A '\(trash)/info' | wc -l
            """)
        let before = try outside()
        try place.unmount()
        #expect(try outside() == before)
        #expect(
            try place.files(trash) == ["info/...trashinfo", "info/..trashinfo", "info/.trashinfo", "kept"])
        try place.mount()
        #expect(try place.files(place.mountPoint) == [])
        try place.unmount()
    }

    @Test func `view settings that are a link into the mount`() throws {
        try place.mount(options: "sweep=off")
        let views = place.root + "/.local/share/dolphin/view_properties"
        let inner = place.albums + "/L" + place.mountPoint + "/albums"
        try place.shell(
            "mkdir -p '\(views)' '\(inner)'; echo x >'\(inner)/.directory'; echo y >'\(inner)/note'")
        try place.shell("ln -s '\(place.albums)/L' '\(views)/local'")
        try place.unmount()
        try place.mount()
        let sweeps = ["pgrep", "-f", "--", "--swee[p] .*\(place.root)/"]
        #expect(try eventually { try place.run(sweeps).status == 1 })
        #expect(try place.bytes(inner + "/.directory") == Array("x\n".utf8))
        #expect(try place.bytes(inner + "/note") == Array("y\n".utf8))
        try place.unmount()
    }

    @Test func `a hard link loses its name in the trash alone`() throws {
        try place.mount()
        try place.shell(
            """
            . ./info.sh; mkdir -p '\(trash)/files/T/inner'; echo one >'\(trash)/files/T/one'; info T T
            ln Documents/letter '\(trash)/files/letter'; info letter letter
            """)
        let before = try outside()
        try place.unmount()
        #expect(try place.files(trash) == [])
        // Of a hard link only the trash's name is gone.
        #expect(try outside() == before)
    }

    @Test func `files of another user`() throws {
        guard geteuid() == 0 else { return }
        try place.mount()
        try place.shell(
            """
            . ./info.sh; mkdir -p '\(trash)/files/T'; echo one >'\(trash)/files/T/one'; echo two >'\(trash)/files/two'
            info T T; info two two; chown 12345 '\(trash)/files/T/one' '\(trash)/files/two'
            """)
        let before = try place.files(trash)
        let ended = try place.run([obscura, "unmount", "D"])
        #expect(
            ended.status == 0 && ended.errors.contains("2 deleted files are unencrypted"), "\(ended.errors)")
        #expect(try place.files(trash) == before)
    }
}
