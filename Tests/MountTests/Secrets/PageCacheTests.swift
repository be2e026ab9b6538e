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
        try place.mount(password: "two", options: "idle=1s")
        try use(place)
        #expect(eventually { place.daemon == nil })
        #expect(try resident(place) == 0)
        #expect(try place.run([obscura, "check", "V", "--password-stdin"], "two\n").status == 0)
        #expect(try resident(place) == 0)
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
