import Foundation
import Glibc
import LinuxIO
import TestSupport
import TestThreads
import Testing
import VaultCrypto

@testable import VaultStore

/// Pages of a vault of several spaces in the page cache, which fincore(1) tells any reader of the file.
@Suite("Secrets: the page cache", .serialized, .waiting) struct PageCacheTests {
    private static let tmpfs: UInt64 = 0x0102_1994

    /// How many of the bytes of one space, or of the whole file, are in memory.
    private func resident(_ place: Place, space: Int? = nil, in vault: String? = nil) throws -> Int {
        let path = (vault ?? place.vault) + "/spaces"
        let file = open(path, O_RDONLY | O_CLOEXEC)
        defer { close(file) }
        let size = Int(try status(path).st_size)
        let map = try #require(mmap(nil, size, PROT_READ, MAP_SHARED, file, 0))
        defer { munmap(map, size) }
        var pages = [UInt8](repeating: 0, count: size / 4096)
        try #require(mincore(map, size, &pages) == 0)
        guard let space else { return pages.count { $0 & 1 == 1 } * 4096 }
        var count = 0
        for number in 0... {
            let segment = try SegmentFile(place.vault, space: space, number)
            guard Int(segment.start) < size else { break }
            let first = Int(segment.start) / 4096
            count += pages[first..<first + Int(segment.length) / 4096].count { $0 & 1 == 1 } * 4096
        }
        return count
    }

    /// The number of the space that a password opens. The vault is locked for as long.
    private func space(_ place: Place, _ password: String) throws -> Int {
        let secret = Array(password.utf8).withUnsafeBytes { SecretBytes(copying: $0) }
        return try patiently { try Vault.unlock(place.vault, password: secret, readOnly: true).index }
    }

    private func hostType(_ place: Place) throws -> UInt64 {
        let calls = LinuxCalls.shared
        let directory = try calls.open(AT_FDCWD, place.vault, flags: O_RDONLY | O_DIRECTORY, mode: 0)
        defer { calls.close(directory) }
        return try calls.hostStatus(directory).typeMagic
    }

    private func use(_ place: Place) throws {
        try place.shell(
            "cp source/* D/albums/; sync D/albums/a; cat D/albums/* >/dev/null; ls -lR D >/dev/null")
    }

    @Test func `nothing of a space stays in memory after its mount`() throws {
        let place = try Place(spaces: 2)
        // There the file is nowhere but in memory.
        guard try hostType(place) != Self.tmpfs else { return }
        #expect(try place.run([obscura, "space", "add", "V", "--password-stdin"], "two\none\n").status == 0)
        let hidden = try space(place, "two")
        #expect(try resident(place) == 0)
        for name in ["a", "b"] { try place.source(name, [UInt8](repeating: 1, count: 3_000_000)) }

        try place.mount(password: "two")
        try use(place)
        try place.unmount()
        #expect(try resident(place) == 0)

        // Reading leaves as little.
        for options in ["rw", "ro"] {
            try place.mount(password: "two", options: options)
            try place.shell("cat D/albums/* >/dev/null")
            try place.unmount()
            #expect(try resident(place) == 0, "\(options)")
        }

        // A command that was killed, and then a mount of the other space.
        try place.mount(password: "two")
        try use(place)
        // Not on the disk yet.
        try place.shell("cp D/albums/a D/albums/late")
        kill(try #require(place.daemon), SIGKILL)
        #expect(eventually { place.daemon == nil })
        try place.shell("umount -l D")
        try place.mount(password: "one")
        #expect(try resident(place, space: hidden) == 0)
        try use(place)
        #expect(try resident(place, space: hidden) == 0)
        try place.unmount()
        #expect(try resident(place) == 0)

        // A mount that ends by itself.
        try place.mount(password: "two", options: "idle=10s")
        try use(place)
        #expect(eventually { place.daemon == nil })
        #expect(try resident(place) == 0)
        #expect(try place.run([obscura, "check", "V", "--password-stdin"], "two\n").status == 0)
        #expect(try resident(place) == 0)
    }

    // MARK: After a kill

    /// A command that opens the vault V; nil: the answer does not matter.
    private struct Command {
        var words: [String]
        var input = ""
        var status: Int32? = 0

        init(_ words: String, _ input: String = "", _ status: Int32? = 0) {
            self.words = words.split(separator: " ").map(String.init)
            (self.input, self.status) = (input, status)
            if !input.isEmpty {
                self.words.insert("--password-stdin", at: 1 + (self.words[0] == "space" ? 1 : 0))
            }
        }
    }

    private static let commands = [
        Command("mount V D", "none\n", 4), Command("check V", "none\n", 4), Command("info V"),
        Command("mount V D -o ro", "none\n", 4), Command("mount V no/where", "one\n", nil),
        Command("check V", "one\n"), Command("check V --repair", "one\n"),
        Command("passwd V", "none\nnew\n", 4), Command("passwd V", "one\ntwo\n", nil),
        Command("passwd V", "one\nthree\n"), Command("passwd V", "three\none\n"),
        Command("space add V", "three\nnone\n", 4), Command("space add V", "three\none\ntwo\n", nil),
        Command("space remove V --yes", "none\n", 4),
        Command("header export V H"), Command("header restore V H"),
        Command("header restore V source/a", "", 6),
        Command("backup V W"), Command("backup V W"), Command("grow V 16M", "", nil), Command("grow V 50M"),
        Command("create V --spaces=2 --size=16M", "new\n", nil),
        Command("import V source", "none\n", 4), Command("import V source", "one\n"),
        Command("export V E", "none\n", 4), Command("export V E", "one\n"),
        Command("private V", "none\n", nil), Command("unmount V", "", nil),
    ]

    private func run(_ command: Command, _ place: Place) throws {
        let ended = try place.run([obscura] + command.words, command.input)
        if let status = command.status {
            #expect(ended.status == status, "\(command.words): \(ended.errors)")
        }
    }

    /// Leaves pages of a space in memory as a killed mount does, one of them not on the disk yet.
    private func leavePages(at start: UInt64, in place: Place) throws {
        let file = open(place.vault + "/spaces", O_RDWR | O_CLOEXEC)
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 32 << 10)
        try #require(pread(file, &bytes, bytes.count, off_t(start)) == bytes.count)
        try #require(pwrite(file, bytes, 4096, off_t(start)) == 4096)
        #expect(try resident(place) > 0)
    }

    @Test func `every command drops what a killed mount has left, whatever it answers`() throws {
        let place = try Place(spaces: 2)
        guard try hostType(place) != Self.tmpfs else { return }
        #expect(try place.run([obscura, "space", "add", "V", "--password-stdin"], "two\none\n").status == 0)
        let hidden = try space(place, "two")
        let start = try SegmentFile(place.vault, space: hidden, 2).start
        for name in ["a", "b"] { try place.source(name, [UInt8](repeating: 1, count: 300_000)) }

        for (number, command) in Self.commands.enumerated() {
            if number < 3 {
                try place.mount(password: "two")
                try use(place)
                try place.shell("cp D/albums/a D/albums/late; cat D/albums/* > /dev/null")
                kill(try #require(place.daemon), SIGKILL)
                #expect(eventually { place.daemon == nil })
                try place.shell("umount -l D")
                #expect(try resident(place, space: hidden) > 0)
            } else {
                try leavePages(at: start, in: place)
            }
            try run(command, place)
            #expect(try resident(place) == 0, "\(command.words)")
        }
        // While another space is mounted.
        try place.mount(password: "one")
        for command in [
            Command("mount V D", "two\n", 5), Command("check V", "none\n", nil), Command("info V"),
            Command("passwd V", "none\nnew\n", 5), Command("backup V W"),
        ] {
            try leavePages(at: start, in: place)
            try run(command, place)
            #expect(try resident(place, space: hidden) == 0, "\(command.words)")
        }
        try place.unmount()
        #expect(try resident(place) == 0)
    }

    @Test func `commands also drop them where the header is damaged or missing`() throws {
        let place = try Place(spaces: 2, size: "16M")
        guard try hostType(place) != Self.tmpfs else { return }
        let header = place.vault + "/obscura.vault"
        let bytes = try Data(contentsOf: URL(fileURLWithPath: header))
        try Data(count: bytes.count).write(to: URL(fileURLWithPath: header))
        for command in [
            Command("mount V D", "one\n", 6), Command("check V", "one\n", 6), Command("info V", "", 6),
            Command("header export V H", "", 6),
        ] {
            try leavePages(at: 0, in: place)
            try run(command, place)
            #expect(try resident(place) == 0, "\(command.words)")
        }
        unlink(header)
        for command in [Command("mount V D", "one\n", 3), Command("info V", "", 3)] {
            try leavePages(at: 0, in: place)
            try run(command, place)
            #expect(try resident(place) == 0, "\(command.words)")
        }
    }

    @Test func `nothing of any space stays in memory after a backup`() throws {
        let place = try Place(spaces: 2)
        guard try hostType(place) != Self.tmpfs else { return }
        // A first copy is written directly, the second through a log.
        for name in ["a", "b"] {
            try place.source(name, [UInt8](repeating: 1, count: 3_000_000))
            try place.mount()
            try place.shell("cp source/\(name) D/albums/")
            try place.unmount()
            #expect(try place.run([obscura, "backup", "V", "W"]).status == 0)
            #expect(try resident(place) == 0)
            #expect(try resident(place, in: place.vault + "/../W") == 0)
        }
        // Of a mounted vault.
        #expect(try place.run([obscura, "space", "add", "V", "--password-stdin"], "two\none\n").status == 0)
        let hidden = try space(place, "two")
        try place.mount(password: "one")
        #expect(try place.run([obscura, "backup", "V", "W"]).status == 0)
        #expect(try resident(place, space: hidden) == 0)
        try place.unmount()
    }
}
