import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// A full space: ENOSPC, its files are intact, deleting works, and the room is usable at once.
@Suite("Space: a full space and a full disk", .serialized, .waiting) struct RoomTests {
    private func available(_ place: Place) -> Int {
        var found = statvfs()
        return statvfs(place.mountPoint, &found) == 0 ? Int(found.f_bavail) * Int(found.f_frsize) : 0
    }

    private func used(_ place: Place) -> Int {
        var found = statvfs()
        return statvfs(place.mountPoint, &found) == 0
            ? Int(found.f_blocks - found.f_bfree) * Int(found.f_frsize) : -1
    }

    /// Writes a file until there is no room, and returns how many bytes of it are there.
    private func fill(_ place: Place, _ name: String) throws -> Int {
        let ended = try place.run(["/bin/sh", "-c", "head -c 200000000 /dev/urandom > D/albums/\(name)"])
        #expect(ended.status != 0 && ended.errors.contains("No space left on device"))
        return Int(try status(place.albums + "/" + name).st_size)
    }

    @Test func `a full space says so, keeps what it has, and has room again at once`() throws {
        let place = try Place(spaces: 2, size: "64M")
        try place.mount()
        let photo = Photo(width: 300, height: 200).bytes
        try place.source("a.jpg", photo)
        try place.shell("cp source/a.jpg D/albums")
        let promised = available(place)
        #expect(promised > 24_000_000)
        let first = try fill(place, "big")
        // The room that df promised can be written, but for the overhead of each chunk.
        #expect(first > promised * 98 / 100)
        #expect(available(place) < 1 << 20)
        #expect(try place.bytes(place.albums + "/a.jpg") == photo)
        try place.shell("rm D/albums/big")
        #expect(try fill(place, "big") > first * 98 / 100)
        try place.shell("rm D/albums/big")
        #expect(try place.bytes(place.moments + "/2019-03-04/a.jpg") == photo)
    }

    @Test func `df shows at once what a photo in the trash gives back`() throws {
        let place = try Place(spaces: 2, size: "64M")
        try place.mount()
        let tail = [UInt8](repeating: 7, count: 4 << 20)
        try place.source("a.jpg", Photo(taken: "2019:03:04 01:02:03").bytes + tail)
        try place.shell("cp source/a.jpg D/albums; sync D")
        let before = available(place)
        try place.shell("rm D/moments/2019-03-04/a.jpg")
        // As much of it as files of 4 KB could fill.
        #expect(available(place) > before + tail.count * 3 / 4)
        // A commit may begin or end between the two.
        #expect(
            eventually {
                let told = try? place.shell(
                    "getfattr --only-values -n user.obscura.status D | sed -n s/^available=//p")
                guard let bytes = told.flatMap({ Int($0.dropLast()) }) else { return false }
                return abs(bytes - available(place)) < 65_536
            })
    }

    /// The kernel keeps names that it was shown, and with one the inode: it must hear of each that goes.
    @Test func `room of photos that went by another name than the one shown is there at once`() throws {
        let place = try Place()
        try place.mount(options: "rw,trash=0")
        let megabytes = 4
        let tail = [UInt8](repeating: 7, count: megabytes << 20)
        for (seed, day) in [(UInt8(1), "2019:03:04"), (2, "2019:03:04"), (3, "2011:12:13")] {
            try place.source("\(seed).jpg", Photo(taken: day + " 01:02:03", seed: seed).bytes + tail)
        }
        try place.shell("mkdir D/albums/U; cp source/1.jpg D/albums/a.jpg")
        try place.shell("ln D/moments/2019-03-04/a.jpg D/albums/U/m.jpg; ls -lR D >/dev/null; sync D")
        let one = used(place)
        #expect(one > megabytes << 20)
        func expectRoom(ofPhotos count: Int, location: SourceLocation = #_sourceLocation) throws {
            let most = count * one + one / 2
            #expect(eventually { used(place) < most }, sourceLocation: location)
            try place.shell("ls -lR D >/dev/null; sync D")
        }
        try place.shell("cp source/2.jpg D/albums/.t; mv D/albums/.t D/albums/a.jpg; sync D")
        try expectRoom(ofPhotos: 1)
        // Goes to another day, by a membership.
        try place.shell("cp source/3.jpg D/albums/.t; mv D/albums/.t D/albums/U/m.jpg; sync D")
        #expect(try place.shown() == ["2011-12-13/a.jpg"])
        try expectRoom(ofPhotos: 1)
        try place.shell("cat source/1.jpg >D/albums/a.jpg; ls -lR D >/dev/null; sync D")
        #expect(try place.shown() == ["2019-03-04/a.jpg"])
        try place.shell("rm D/moments/2019-03-04/a.jpg; sync D")
        try expectRoom(ofPhotos: 0)
    }

    /// The kernel writes the pages of a mapping in requests that it takes for done even if the answer says less.
    @Test func `a mapping that finds no room says so`() throws {
        let place = try Place(spaces: 2, size: "64M")
        try place.mount()
        let byteCount = 900_000
        try place.shell(
            "head -c \(byteCount) /dev/zero >D/albums/mapped; head -c 300000 /dev/zero >D/albums/spare")
        _ = try fill(place, "big")
        try place.shell("rm D/albums/spare; sync D")
        let descriptor = open(place.albums + "/mapped", O_RDWR)
        defer { close(descriptor) }
        let start = try #require(
            mmap(nil, byteCount, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0))
        try #require(start != MAP_FAILED)
        // The end of the first chunk finds room, the chunks behind it do not.
        memset(start + 50_000, 7, byteCount - 50_000)
        let synced = (msync(start, byteCount, MS_SYNC), errno)
        munmap(start, byteCount)
        #expect(synced.0 == -1 && synced.1 == ENOSPC)
    }

    /// Writing a photo anew empties it first: where the rest finds no room, its version is all that is left of it.
    @Test func `photos whose edits found no room are not lost for the room of others`() throws {
        let place = try Place(spaces: 2, size: "64M")
        try place.mount()
        var photos: [[UInt8]] = []
        for number in 0..<3 {
            let tail = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* (2 * number + 3) >> 7) }
            photos.append(Photo(width: 300, height: 200, seed: UInt8(number)).bytes + tail)
            try place.source("\(number).jpg", photos[number])
            try place.shell("cp source/\(number).jpg D/albums/\(number).jpg")
            try place.shell("head -c 100000 /dev/zero >D/albums/spare\(number)")
        }
        _ = try fill(place, "big")
        for number in 0..<3 {
            try place.source("new", photos[number].reversed())
            _ = try place.run(["/bin/sh", "-c", "cp source/new D/albums/\(number).jpg"])
            // Neither reading nor writing a part of it makes it whole.
            let path = "D/albums/\(number).jpg"
            try place.shell("rm D/albums/spare\(number); sync D; cat \(path) >/dev/null; printf x >>\(path)")
        }
        _ = try place.run(["/bin/sh", "-c", "head -c 3000000 /dev/urandom >D/albums/other"])
        for _ in 0..<2 {
            for number in 0..<3 {
                let now = try place.bytes(place.albums + "/\(number).jpg")
                let anew = Array(photos[number].reversed())
                if [photos[number], anew, anew + Array("x".utf8)].contains(now) { continue }
                let original = place.albums + "/.versions/\(number).jpg/original"
                #expect((try? place.bytes(original)) == photos[number], "\(number): \(now.count) bytes")
            }
            try place.unmount()
            try place.mount()
        }
    }

    @Test func `room that an earlier mount freed is usable at once`() throws {
        let place = try Place(spaces: 2, size: "64M")
        try place.mount()
        let first = try fill(place, "big")
        try place.unmount()
        try place.mount()
        try place.shell("rm D/albums/big")
        try place.unmount()
        try place.mount()
        // Shown is what files of 4 KB can fill: of a space as large, two thirds of what one large file can.
        #expect(available(place) > first * 2 / 3)
        #expect(try fill(place, "big") > first * 98 / 100)
    }

    /// Waits until the committer has looked for unsaved bytes: those of an open file are saved then.
    private func waitForSaving(_ place: Place) throws {
        let descriptor = open(place.albums + "/probe", O_CREAT | O_WRONLY, 0o600)
        try #require(descriptor >= 0 && write(descriptor, "x", 1) == 1)
        defer {
            close(descriptor)
            unlink(place.albums + "/probe")
        }
        let unsaved =
            "getfattr --only-values -n user.obscura.status D | grep -x 'unsaved=[1-9][0-9]*' || true"
        #expect(try eventually { try place.shell(unsaved).isEmpty })
    }

    @Test func `a full disk of the host is ENOSPC, what was there is intact, and deleting works`() throws {
        let place = try Place()
        let disk = place.root + "/disk"
        try FileManager.default.createDirectory(atPath: disk, withIntermediateDirectories: true)
        try #require(Glibc.mount("none", disk, "tmpfs", 0, "size=48M") == 0)
        defer {
            umount2(place.mountPoint, Int32(MNT_DETACH))
            _ = eventually { place.daemon == nil }
            umount2(disk, Int32(MNT_DETACH))
        }
        try place.shell("mv V disk/V; ln -s disk/V V")
        let words = [obscura, "mount", disk + "/V", place.mountPoint, "--password-stdin"]
        #expect(try place.run(words, "one\n").status == 0)
        let photo = Photo(width: 300, height: 200).bytes
        try place.source("a.jpg", photo)
        try place.shell("cp source/a.jpg D/albums")
        let first = try fill(place, "big")
        #expect(first > 24_000_000)
        #expect(try place.bytes(place.albums + "/a.jpg") == photo)
        // Filled again: part of this can not be sealed, even when the file is closed. Removed, it takes no room,
        // also not when the committer next looks for unsaved files.
        try place.shell("rm D/albums/big")
        _ = try fill(place, "big")
        try place.shell("rm D/albums/big")
        try waitForSaving(place)
        #expect(eventually { used(place) < 1 << 20 })
        try place.shell("cp source/a.jpg D/albums/b.jpg; rm D/albums/a.jpg")
        try place.unmount()
        #expect(try place.run(words, "one\n").status == 0)
        #expect(used(place) < 1 << 20)
        #expect(try place.bytes(place.albums + "/b.jpg") == photo)
        #expect(try place.bytes(place.moments + "/2019-03-04/a.jpg") == photo)
        try place.unmount()
    }

    /// The catalogue is full long before the content is: a name that a program was told is there must stay.
    @Test func `a space full of names says so, and keeps each that it took`() throws {
        let place = try Place(spaces: 2, size: "16M")
        try place.mount()
        let make = """
            long=$(printf 'n%.0s' {1..240}); mkdir D/albums/A; cd D/albums/A; n=0
            while [ $n -lt 20000 ] && { : >$n$long; } 2>/dev/null; do n=$((n + 1)); done; echo $n
            """
        let made = Int(try place.shell(make).trimmingCharacters(in: .newlines)) ?? 0
        #expect(made > 1000 && made < 20_000)
        // Room that was made for a name lasts for some more.
        let more = "n=0; while [ $n -lt 2000 ]; do : >D/albums/A/other$n || exit 1; n=$((n + 1)); done"
        let refused = try place.run(["/bin/sh", "-c", more])
        #expect(refused.status != 0 && refused.errors.contains("No space left on device"))
        try place.shell("[ $(stat -fc %d D) -lt 64 ]")
        // What is there can be made durable, renamed and removed.
        try place.shell("sync D; cd D/albums/A; mv 0* first; rm 1*; sync .; ls | wc -l > ../../../count")
        try place.unmount()
        try place.mount()
        #expect(try place.shell("ls D/albums/A | wc -l | cmp - count; ls D/albums/A/first") != "")
        try place.shell("rm -r D/albums/A; sync D; echo x >D/albums/new")
        #expect(try place.shell("stat -fc %d D") != "0\n")
        try place.unmount()
    }

    /// Small files that are removed leave holes: what `df` says is free in them can be written.
    @Test func `free room in small holes takes large files`() throws {
        let place = try Place(spaces: 2, size: "32M")
        try place.mount(options: "rw,trash=0")
        let fill = """
            head -c 3000 /dev/urandom >small; mkdir D/albums/A; n=0
            while [ $n -lt 20000 ] && { cat small >D/albums/A/$n; } 2>/dev/null; do n=$((n + 1)); done
            rm D/albums/A/*[02468]; sync D
            """
        try place.shell(fill)
        #expect(eventually { available(place) > 4_000_000 })
        try place.shell(
            "head -c 3000000 /dev/urandom >large; cp large D/albums; sync D/albums/large; cmp large D/albums/large"
        )
        try place.unmount()
        try place.mount()
        try place.shell("cmp large D/albums/large; for n in 1 3 5; do cmp small D/albums/A/$n; done")
        try place.unmount()
    }
}
