import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// Files with holes, through the commands and through a mount.
@Suite("Space: files with holes, through a mount", .serialized, .waiting) struct SparseMountTests {
    private let size: off_t = 1 << 28

    /// A picture of 256 MiB, of which little is stored.
    private func makeSparse(_ path: String, _ seed: UInt8, size: off_t) throws {
        let parent = URL(fileURLWithPath: path).deletingLastPathComponent().path
        try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
        let descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC, 0o644)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        let head = Photo(taken: "2024:05:01 12:00:00", seed: seed).bytes
        #expect(pwrite(descriptor, head, head.count, 0) == head.count)
        #expect(ftruncate(descriptor, size) == 0)
        let middle = noise(5000, seed: Int(seed) + 1)
        #expect(pwrite(descriptor, middle, middle.count, size / 2 + 77) == middle.count)
        #expect(pwrite(descriptor, [7], 1, size - 1) == 1)
    }

    private func diskBytes(_ path: String) throws -> Int { try Int(status(path).st_blocks) * 512 }

    private func vaultBytes(_ place: Place) throws -> Int {
        try Int(place.shell("du -s -B1 V | cut -f1").trimmingCharacters(in: .whitespacesAndNewlines)) ?? 0
    }

    @Test func `import and export keep holes`() throws {
        let place = try Place()
        try makeSparse(place.root + "/source/a.jpg", 1, size: size)
        try makeSparse(place.root + "/source/b.jpg", 1, size: size)
        try makeSparse(place.root + "/source/c.jpg", 2, size: size)
        let before = try vaultBytes(place)
        let ended = try place.run(
            [obscura, "import", place.vault, "source", "--quiet", "--password-stdin"], "one\n")
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(ended.output.contains("2 photos"))
        #expect(try vaultBytes(place) - before < 32 << 20)
        let out = try place.run(
            [obscura, "export", place.vault, "out", "--quiet", "--password-stdin"], "one\n")
        #expect(out.status == 0, "\(out.errors)")
        for (name, original) in [("a.jpg", "a.jpg"), ("c.jpg", "c.jpg")] {
            let path = place.root + "/out/moments/2024-05-01/" + name
            try place.shell("cmp source/\(original) out/moments/2024-05-01/\(name)")
            #expect(try diskBytes(path) < 2 << 20)
        }
        // Exported files come in again as they are.
        let back = try place.run(
            [obscura, "import", place.vault, "out", "--quiet", "--password-stdin"], "one\n")
        #expect(back.status == 0, "\(back.errors)")
        let moved = try place.run(
            [obscura, "import", place.vault, "source", "--move", "--quiet", "--password-stdin"], "one\n")
        #expect(moved.status == 0, "\(moved.errors)")
        #expect(try place.files(place.root + "/source").isEmpty)
    }

    @Test func `programs copy holes into a mount and out of it`() throws {
        let place = try Place()
        try makeSparse(place.root + "/source/a.jpg", 1, size: size)
        try place.mount()
        let before = try vaultBytes(place)
        try place.shell(
            """
            cp --sparse=auto source/a.jpg D/albums/cp.jpg
            rsync -aS source/a.jpg D/albums/rsync.jpg
            mkdir out
            cp --sparse=auto D/albums/cp.jpg out/cp.jpg
            rsync -aS D/albums/rsync.jpg out/rsync.jpg
            cp D/albums/cp.jpg D/albums/again.jpg
            for copy in out/cp.jpg out/rsync.jpg D/albums/again.jpg; do cmp source/a.jpg $copy; done
            """)
        for name in ["cp.jpg", "rsync.jpg", "again.jpg"] {
            #expect(try diskBytes(place.albums + "/" + name) < 2 << 20, "\(name)")
        }
        for name in ["cp.jpg", "rsync.jpg"] { #expect(try diskBytes(place.root + "/out/" + name) < 2 << 20) }
        // All of them are one photo.
        #expect(try place.shown() == ["2024-05-01/cp.jpg"])
        #expect(try vaultBytes(place) - before < 32 << 20)
        try place.unmount()
    }

    @Test func `equal photos of 1 PiB are closed, synced and mounted again at once`() throws {
        let place = try Place()
        try place.mount()
        for name in ["a.jpg", "b.jpg"] { try makeSparse(place.albums + "/" + name, 1, size: 1 << 50) }
        try place.shell("sync D/albums/b.jpg")
        #expect(try place.shown() == ["2024-05-01/a.jpg"])
        try place.unmount()
        try place.mount()
        #expect(try place.shown() == ["2024-05-01/a.jpg"])
        #expect(try status(place.albums + "/b.jpg").st_size == 1 << 50)
        try place.unmount()
    }
}
