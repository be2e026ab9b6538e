import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// Facts that a vault shows without a password.
@Suite("Secrets: traces in vault and host", .serialized, .waiting) struct TracesTests {
    /// Content, size, blocks and both times of every file of the vault.
    private func snapshot(_ place: Place) throws -> String {
        try place.shell(
            "find V -printf '%p %s %b %T@ %C@\\n' | sort; find V -type f | sort | xargs cksum")
    }

    @Test(arguments: [1, 2])
    func `after unmount nothing readable is in the vault`(spaces: Int) throws {
        let place = try Place(spaces: spaces)
        try place.mount()
        try place.source("Zanzibar.jpg", Photo(width: 300, height: 200).bytes)
        try place.source("Timbuktu.txt", [UInt8](repeating: UInt8(ascii: "Q"), count: 200_000))
        try place.shell("mkdir D/albums/Samarkand; cp source/* D/albums/Samarkand")
        try place.shell("setfattr -n user.Marrakesh -v Casablanca D/albums/Samarkand/Timbuktu.txt")
        try place.shell("cat D/albums/Samarkand/.thumbs/Zanzibar.jpg > thumbnail")
        try place.unmount()
        // None of four letters: in two spaces of random bytes every twentieth run would find one.
        let words = "Zanzibar|Timbuktu|Samarkand|Marrakesh|Casablanca|QQQQQQQQ|SQLite|2019:03:04|albums"
        #expect(try place.run(["grep", "-rlaE", words, "V"]).output.isEmpty)
        let markers = "\\xff\\xd8\\xff[\\xe0\\xe1]..(JFIF|Exif)|\\xff\\xd9\\x00{8}"
        #expect(try place.run(["grep", "-rlaP", markers, "V"]).output.isEmpty)
        #expect(try place.files(place.mountPoint).isEmpty)
    }

    @Test func `no photo's name is outside the mount, while it is used and after`() throws {
        let place = try Place()
        try place.mount()
        let word = "Zanzibar" + UUID().uuidString.prefix(8)
        let photo = place.albums + "/\(word)/\(word).jpg"
        try FileManager.default.createDirectory(
            atPath: place.albums + "/" + word, withIntermediateDirectories: false)
        let bytes = Data(Photo(width: 300, height: 200).bytes)
        try bytes.write(to: URL(fileURLWithPath: photo))
        #expect(try place.bytes(place.albums + "/\(word)/.thumbs/\(word).jpg").count > 100)
        let file = open(photo, O_RDWR)
        var tail = Array("tail".utf8)
        #expect(pread(file, &tail, 4, 0) == 4 && fsync(file) == 0)
        #expect(try place.traces(of: word) == [])
        close(file)
        try place.unmount()
        #expect(try place.traces(of: word) == [])
        // It is found where it is.
        try place.run(["/bin/bash"], "echo \(word) >trace")
        #expect(try place.traces(of: word) == [place.root + "/trace"])
    }

    @Test(arguments: [1, 2])
    func `a read-only mount writes nothing to the vault`(spaces: Int) throws {
        let place = try Place(spaces: spaces)
        // An empty space, one never mounted before, and one with photos.
        let empty = try snapshot(place)
        try place.mount(options: "ro")
        #expect(try place.shell("ls D") == "albums\nmoments\n")
        try place.unmount()
        #expect(try snapshot(place) == empty)
        try place.mount()
        try place.source("a.jpg", Photo().bytes)
        try place.shell("cp source/a.jpg D/albums")
        try place.unmount()
        let before = try snapshot(place)
        try place.mount(options: "ro")
        try place.shell("cat D/albums/a.jpg D/moments/*/a.jpg > copy; ls D/albums/.thumbs")
        #expect(open(place.albums + "/x", O_CREAT | O_WRONLY, 0o644) == -1 && errno == EROFS)
        #expect(errorNumber(unlink(place.albums + "/a.jpg")) == EROFS)
        try place.unmount()
        #expect(try snapshot(place) == before)
    }

    @Test func `a mount that changes nothing writes nothing`() throws {
        let place = try Place()
        try place.mount()
        try place.source("a.jpg", Photo().bytes)
        try place.shell("cp source/a.jpg D/albums")
        try place.unmount()
        let before = try snapshot(place)
        try place.mount()
        try place.shell("find D -ls > listing; cat D/albums/a.jpg > copy")
        try place.unmount()
        #expect(try snapshot(place) == before)
    }

    @Test func `with two spaces there is one file without holes, and each session changes its times`() throws
    {
        let place = try Place(spaces: 2)
        func expectAlike(location: SourceLocation = #_sourceLocation) throws {
            #expect(
                try place.shell("cd V; find . -type f | sort") == "./obscura.vault\n./spaces\n",
                sourceLocation: location)
            let holes = "find V/spaces -printf '%s %b\\n' | awk '$1 > $2 * 512'"
            #expect(try place.shell(holes).isEmpty, sourceLocation: location)
        }
        func times() throws -> String { try place.shell("stat -c '%y' V/spaces V/obscura.vault") }
        // The first mount makes the space's directories.
        try place.mount()
        try place.unmount()
        try expectAlike()
        // A session that only reads leaves the same traces as one that writes.
        let before = try times().split(separator: "\n")
        try place.mount()
        try place.unmount()
        #expect(zip(before, try times().split(separator: "\n")).allSatisfy { $0 != $1 })
        try place.mount()
        try expectAlike()
        try place.source("a.jpg", Photo().bytes)
        try place.shell("cp source/a.jpg D/albums")
        try place.unmount()
        try expectAlike()
        #expect(try place.run([obscura, "grow", "V", "64M"]).status == 0)
        try expectAlike()
    }
}
