import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// The requests of file managers to a mount, without their windows.
@Suite("Trash: gio and Xfce", .serialized, .waiting) struct FileManagerTests {
    private let place: Place

    init() throws {
        place = try Place()
        try place.mount()
    }

    // MARK: Thumbnails

    /// tumbler takes a picture of the shared repository where its time is the file's, both as seconds with six
    /// decimals; else it makes one and keeps it in `~/.cache`.
    @Test func `Xfce finds thumbnails of files of any name`() throws {
        let names = ["a.jpg", "Größe 10%.JPG", "#1 [x];&?.jpg", "no extension", "\u{202E}abc.jpg"]
        for (index, name) in names.enumerated() {
            try place.source(name, Photo(width: 300, height: 200, seed: UInt8(index + 1)).bytes)
        }
        try place.shell("touch -d '2020-01-02 03:04:05.0123456' source/*; cp -rp source D/albums/T")
        try place.shell("touch -d '2021-01-02 03:04:05' D/albums/T/a.jpg")
        for name in names {
            // libxfce4util up to 4.18, then from 4.19.4.
            for hashed in [name, "./" + name] {
                let digest = try place.run(["md5sum"], hashed).output.prefix(32)
                let path = place.albums + "/T/.sh_thumbnails/large/\(digest).png"
                let bytes = try place.bytes(path)
                let begin = try #require(bytes.firstRange(of: Array("Thumb::MTime\0".utf8))).upperBound
                let text = bytes[begin...].prefix { (0x2E...0x39).contains($0) }
                let time = try status(place.albums + "/T/" + name).st_mtim
                let told = try #require(Double(String(decoding: text, as: UTF8.self)))
                #expect(told == Double(time.tv_sec) + Double(time.tv_nsec / 1000) / 1e6, "\(name)")
            }
        }
    }

    // MARK: Trash

    @Test(arguments: ["albums/T/a.jpg", "moments/2019-03-04/a.jpg"])
    func `gio trashes, lists, restores and empties`(path: String) throws {
        try place.source("a.jpg", Photo().bytes)
        try place.shell("mkdir D/albums/T; cp source/a.jpg D/albums/T")
        let everything = { try place.files(place.mountPoint) }
        let before = try everything()
        #expect(before == ["albums/T/a.jpg", "moments/2019-03-04/a.jpg"])
        let isMoment = path.hasPrefix("moments")

        try place.shell("gio trash D/\(path)")
        #expect(try place.shown().isEmpty == isMoment)
        #expect(!exists(place.albums + "/T/a.jpg"))
        try place.gio(
            "gio trash --list | grep \"$PWD/D/\(path)\\$\"; gio trash --restore \"$(trashed a.jpg)\"")
        #expect(try everything() == before)
        #expect(try place.bytes(place.mountPoint + "/" + path) == Photo().bytes)

        // Emptying is removing each; gvfs does that in the background, and dies with the session.
        try place.shell("gio trash D/\(path)")
        let emptied = "for _ in {1..300}; do find D/.Trash-* -type f | grep -q . || break; sleep 0.1; done"
        try place.gio("gio remove \"$(trashed a.jpg)\"; \(emptied)")
        let left = isMoment ? [] : ["moments/2019-03-04/a.jpg"]
        #expect(try eventually { try everything() == left })
    }
}
