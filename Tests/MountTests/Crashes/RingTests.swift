import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// Mounts by FUSE over io_uring, where root may switch it on.
@Suite("Kernel: mounts over io_uring", .serialized, .waiting, .enabled(if: RingSwitch.isAvailable))
struct RingTests {
    private func transport(_ place: Place) throws -> String {
        let lines = try place.run([obscura, "status", place.mountPoint]).lines
        return String((lines.first { $0.hasPrefix("Requests") } ?? "").dropFirst(16))
    }

    @Test func `each mount decides, and says which it is`() throws {
        let place = try Place(usesRings: true)
        try RingSwitch.on {
            for (options, expected) in [
                ("rw", "by FUSE over io_uring"), ("io_uring=off", "by /dev/fuse"),
                ("io_uring=on", "by FUSE over io_uring"),
            ] {
                try place.mount(options: options)
                #expect(try transport(place) == expected)
                try place.unmount()
            }
            // Root's switch is looked at when mounting, and changes nothing later.
            try place.mount()
        }
        try place.shell("head -c 300000 /dev/zero > D/albums/later; cmp -n 300000 D/albums/later /dev/zero")
        #expect(try transport(place) == "by FUSE over io_uring")
        try place.unmount()
    }

    @Test func `what was closed a tenth of a second before a kill is there`() throws {
        let place = try Place(usesRings: true)
        try RingSwitch.on {
            for round in 0..<5 {
                try place.mount()
                #expect(try transport(place) == "by FUSE over io_uring")
                let bytes = noise(400_000, seed: round)
                try Data(bytes).write(to: URL(fileURLWithPath: place.albums + "/f\(round)"))
                usleep(100_000)
                kill(try #require(place.daemon), SIGKILL)
                #expect(eventually { place.daemon == nil })
                try place.mount()
                #expect(try place.bytes(place.albums + "/f\(round)") == bytes)
                try place.unmount()
            }
            let ended = try place.run([obscura, "check", "V", "--password-stdin"], "one\n")
            #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
        }
    }

    @Test func `it goes when idle, and nothing is left`() throws {
        let place = try Place(usesRings: true)
        try RingSwitch.on {
            try place.mount(options: "idle=1s")
            #expect(try transport(place) == "by FUSE over io_uring")
            try place.shell("echo x > D/albums/f")
            #expect(eventually { place.daemon == nil })
            #expect(!exists(place.albums))
        }
    }

    @Test func `a lazily unmounted mount ends with its last file`() throws {
        let place = try Place(usesRings: true)
        try RingSwitch.on {
            try place.mount()
            let file = open(place.albums + "/f", O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
            #expect(umount2(place.mountPoint, Int32(MNT_DETACH)) == 0)
            #expect(pwrite(file, "later", 5, 0) == 5)
            #expect(place.daemon != nil)
            close(file)
            #expect(eventually { place.daemon == nil })
            try place.mount()
            #expect(try place.bytes(place.albums + "/f") == Array("later".utf8))
            try place.unmount()
        }
    }

    /// Threads that wait use no processor: otherwise a laptop's battery pays for it.
    @Test func `a mount that nobody uses does nothing`() throws {
        let place = try Place(usesRings: true)
        try RingSwitch.on {
            try place.mount()
            try place.shell("ls -lR D >/dev/null")
            sleep(2)
            let daemon = try #require(place.daemon)
            func ticks() throws -> Int {
                let words = try String(contentsOfFile: "/proc/\(daemon)/stat", encoding: .utf8)
                    .split(separator: " ")
                return try #require(Int(words[13])) + #require(Int(words[14]))
            }
            let before = try ticks()
            sleep(3)
            // In hundredths of a second; cover traffic and the committer have their share.
            #expect(try ticks() - before <= 5)
            try place.unmount()
        }
    }
}
