import Foundation
import Glibc
import TestThreads
import Testing

/// *Thumbnails* of the contract: their names, and their absence from listings.
@Suite("Thumbnails: names and listings, through a mount", .serialized, .waiting)
struct ThumbnailPathMountTests {
    private func placeWithPhotos(options: String = "rw") throws -> Place {
        let place = try Place()
        try place.mount(options: options)
        try place.source("Trip/a b.jpg", Photo(width: 800, height: 600).bytes)
        try place.source("Trip/Day 2/c.jpg", Photo(width: 300, height: 600, seed: 2).bytes)
        try place.source("notes.txt", Array("none".utf8))
        try place.shell("cp -r source/* D/albums")
        return place
    }

    @Test func `find, cp -r, rsync and du never see any of them`() throws {
        let place = try placeWithPhotos()
        let used = try place.shell("du -sb D/albums D/moments")
        let asked = ["512/a b.jpg", "a b.jpg", "64x64-fill/a b.jpg", "fast/a b.jpg"]
        for name in asked { #expect(exists(place.albums + "/Trip/.thumbs/" + name)) }
        #expect(exists(place.mountPoint + "/.thumbs/albums/Trip/Day 2/c.jpg"))
        #expect(try place.shell("find D -name '.*thumb*' -o -name '512'").isEmpty)
        #expect(try place.shell("ls -A D D/albums/Trip | grep thumb || true").isEmpty)
        try place.shell(
            "cp -r D/albums out1; rsync -a D/albums/ out2; diff -r source out1; diff -r source out2")
        #expect(try place.shell("rsync -ai D/albums/ out2").isEmpty)
        #expect(try place.shell("du -sb D/albums D/moments") == used)
        #expect(try place.shell("cd D; tar -cf - albums | tar -tf - | grep -c thumb || true") == "0\n")
    }

    @Test func `any size, fitting or filling, and below the root`() throws {
        let place = try placeWithPhotos()
        let sizes = [
            "512": (512, 384), "1024x768": (800, 600), "100x300": (100, 75), "64x64-fill": (64, 64),
            "4096": (800, 600), "16": (16, 12), "fast": (256, 192),
        ]
        for (name, size) in sizes {
            let path = place.albums + "/Trip/.thumbs/\(name)/a b.jpg"
            let told = try status(path)
            let bytes = try place.bytes(path)
            #expect(told.st_size == bytes.count, "\(name)")
            let picture = try #require(Decoded(bytes), "\(name)")
            #expect((picture.width, picture.height) == size, "\(name)")
            #expect(picture.isRed(2, 2), "\(name)")
            let mirrored = try status(place.mountPoint + "/.thumbs/albums/Trip/\(name)/a b.jpg")
            #expect(mirrored.st_ino == told.st_ino, "\(name)")
        }
        for name in ["8", "5000", "0512", "512-fill", "x", "256x"] {
            #expect(!exists(place.albums + "/Trip/.thumbs/\(name)"), "\(name)")
        }
        #expect(
            try place.shell("ls D/.thumbs D/.thumbs/albums")
                == "D/.thumbs:\nalbums\nmoments\n\nD/.thumbs/albums:\nTrip\n")
        #expect(try place.shell("ls D/.thumbs/albums/Trip") == "Day 2\na b.jpg\nfast\n")
        #expect(try place.shell("ls D/.thumbs/512/albums/Trip") == "Day 2\na b.jpg\n")
        #expect(!exists(place.albums + "/.thumbs"))
    }

    @Test func `the freedesktop repository by both names`() throws {
        let place = try placeWithPhotos()
        for name in ["a%20b.jpg", "./a%20b.jpg"] {
            let digest = try place.shell("printf %s '\(name)' | md5sum | cut -c1-32").prefix(32)
            for (directory, side) in [("normal", 128), ("large", 256), ("x-large", 512), ("xx-large", 1024)] {
                let path = place.albums + "/Trip/.sh_thumbnails/\(directory)/\(digest).png"
                let bytes = try place.bytes(path)
                #expect(try status(path).st_size == bytes.count)
                #expect(bytes.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]))
                let numbers = stride(from: 16, to: 24, by: 4).map {
                    bytes[$0..<$0 + 4].reduce(0) { $0 << 8 | Int($1) }
                }
                #expect(numbers == [min(side, 800), min(side, 800) * 3 / 4])
                let text = try #require(bytes.firstRange(of: Array("Thumb::URI\0./a%20b.jpg".utf8)))
                #expect(text.lowerBound < bytes.firstRange(of: Array("IDAT".utf8))?.lowerBound ?? 0)
            }
        }
    }

    @Test func `a cover and a contact sheet, made anew when the directory changes`() throws {
        let place = try placeWithPhotos()
        let stack = place.albums + "/Trip/.thumbs/stack.jpg"
        let sheet = place.mountPoint + "/.thumbs/albums/Trip/sheet.jpg"
        let first = [try place.bytes(stack), try place.bytes(sheet)]
        for (path, bytes) in zip([stack, sheet], first) {
            #expect(Decoded(bytes) != nil)
            #expect(try status(path).st_size == bytes.count)
            #expect(try place.bytes(path) == bytes)
        }
        try place.shell("cp 'D/albums/Trip/Day 2/c.jpg' D/albums/Trip")
        #expect(try place.bytes(stack) != first[0])
        #expect(try place.bytes(sheet) != first[1])
        try place.shell("rm D/albums/Trip/c.jpg")
        #expect(try place.bytes(stack) == first[0])
        #expect(!exists(place.mountPoint + "/.thumbs/albums/stack.jpg"))
    }

    @Test func `listed where the mount says so`() throws {
        let place = try placeWithPhotos(options: "thumbs=listed")
        #expect(try place.shell("ls -A D/albums/Trip") == ".thumbs\nDay 2\na b.jpg\n")
        #expect(
            try place.shell("ls -A -I '.Trash-*' D D/albums")
                == "D:\n.thumbs\nalbums\nmoments\n\nD/albums:\nTrip\nnotes.txt\n")
        try place.shell("cp -r D/albums/Trip out")
        #expect(try place.files(place.root + "/out/.thumbs") == ["a b.jpg", "fast/a b.jpg"])
        try place.unmount()
        try place.mount(options: "thumbs=off")
        #expect(!exists(place.albums + "/Trip/.thumbs"))
        #expect(!exists(place.mountPoint + "/.thumbs"))
        #expect(!exists(place.albums + "/Trip/.sh_thumbnails"))
    }

    @Test func `the kernel gives numbers back and asks anew`() throws {
        let place = try placeWithPhotos()
        let path = place.albums + "/Trip/.thumbs/512/a b.jpg"
        let file = open(path, O_RDONLY)
        defer { close(file) }
        for _ in 0..<3 {
            // Dentries and inodes; where that is not allowed they stay, and all must hold as well.
            try? Data("2".utf8).write(to: URL(fileURLWithPath: "/proc/sys/vm/drop_caches"))
            var open = stat()
            #expect(fstat(file, &open) == 0)
            #expect(try status(path).st_ino == open.st_ino)
            #expect(Decoded(try place.bytes(path))?.width == 512)
            #expect(exists(place.mountPoint + "/.thumbs/moments/2019-03-04/300/a b.jpg"))
        }
    }
}
