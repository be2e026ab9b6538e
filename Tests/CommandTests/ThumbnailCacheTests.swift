import Foundation
import Glibc
import LinuxIO
import PhotoImaging
import TestSupport
import Testing

@testable import DesktopTraces

/// Pictures that are removed from a cache of thumbnails, and those that stay.
@Suite("Secrets: the desktop's thumbnails, their files") struct ThumbnailCacheTests {
    private static let root = "/tmp/obscura-cache-\(UUID().uuidString)"

    /// A directory of its own, removed when it is let go.
    private final class Room {
        let path = ThumbnailCacheTests.root + "-\(UUID().uuidString)"

        init() { make("thumbnails") }

        deinit { try? FileManager.default.removeItem(atPath: path) }

        func make(_ directory: String) {
            try? FileManager.default.createDirectory(
                atPath: path + "/" + directory, withIntermediateDirectories: true)
        }

        func put(_ name: String, _ bytes: [UInt8]) throws {
            make((name as NSString).deletingLastPathComponent)
            try Data(bytes).write(to: URL(fileURLWithPath: path + "/" + name))
        }

        func exists(_ name: String) -> Bool {
            var found = stat()
            return lstat(path + "/" + name, &found) == 0
        }

        /// Removes pictures of files below the directory `D`.
        func sweep(since: Int? = nil, owner: uid_t = geteuid(), mounts: [String] = []) {
            var below = PathsBelow(path + "/D", near: path, mounts: mounts)
            let home = try? OwnedDirectory(Array(path.utf8), of: owner)
            ThumbnailCache(in: home).removeEntries(changedSince: since) { below.contains($0) }
        }
    }

    @Test(arguments: [
        ("file:///a/b%20c.jpg", "/a/b c.jpg"), ("file://localhost/a", "/a"), ("file://here/a", "/a"),
        ("file:/a", "/a"), ("FILE:///a", "/a"), ("file:///%C3%A9%zz%4", "/é%zz%4"), ("file://there/a", nil),
        ("file://", nil), ("file:a", nil), ("/a", nil), ("./a", nil), ("http:///a", nil), ("trash:///a", nil),
        ("", nil),
    ])
    func `URIs of files here`(uri: String, path: String?) {
        let found = localPath(ofURI: Array(uri.utf8), hosts: [Array("here".utf8)])
        #expect(found == path.map { Array($0.utf8) })
    }

    @Test func `pictures of the mount go, in every directory and form`() throws {
        let room = Room()
        let uri = "file://\(room.path)/D/albums/a%20b.jpg"
        let gone: [String: [UInt8]] = [
            "normal/a.png": cacheEntry(uri), "large/a.png": cacheEntry(uri, packed: true),
            "x-large/a.png": cacheEntry(uri, padding: 9000), "xx-large/a.png.XY12Z3": cacheEntry(uri),
            "fail/gnome-thumbnail-factory/a.png": cacheEntry(uri),
            "normal/b.png": cacheEntry("file://localhost\(room.path)/./D//albums/x"),
            "normal/c.png": cacheEntry("file://\(room.path)/E/../D/x"),
            "normal/d.png": cacheEntry("file://\(room.path)/D/none/../x"),
        ]
        for (name, bytes) in gone { try room.put("thumbnails/" + name, bytes) }
        room.sweep()
        for name in gone.keys { #expect(!room.exists("thumbnails/" + name), "\(name)") }
        #expect(room.exists("thumbnails/fail/gnome-thumbnail-factory"))
    }

    @Test func `everything else stays`() throws {
        let room = Room()
        let ours = cacheEntry("file://\(room.path)/D/x")
        let kept: [String: [UInt8]] = [
            "normal/other.png": cacheEntry("file://\(room.path)/other/x"),
            "normal/alike.png": cacheEntry("file://\(room.path)/Da/x"),
            "normal/shorter.png": cacheEntry("file://\(room.path)"),
            "normal/out.png": cacheEntry("file://\(room.path)/D/../x"),
            "normal/encoded.png": cacheEntry("file://\(room.path)/%2544/x"),
            "normal/remote.png": cacheEntry("sftp://host\(room.path)/D/x"),
            "normal/relative.png": cacheEntry("./D/x"),
            "normal/cut.png": Array(ours.prefix(70)), "normal/short.png": Array(ours.prefix(20)),
            "normal/empty.png": [], "normal/text.png": Array("file://\(room.path)/D/x".utf8),
            "normal/lies.png": Array(ours.prefix(33)) + [0xFF, 0xFF, 0xFF, 0xFF] + ours.dropFirst(37),
            "normal/behind.png": Array(ours.prefix(33)) + [0, 0, 0, 0] + Array("IDAT".utf8) + [0, 0, 0, 0]
                + ours.dropFirst(33),
            "fail/program/deeper/a.png": ours,
        ]
        for (name, bytes) in kept { try room.put("thumbnails/" + name, bytes) }
        room.make("thumbnails/normal/directory.png")
        try room.put("outside.png", ours)
        try room.put("elsewhere/a.png", ours)
        symlink(room.path + "/outside.png", room.path + "/thumbnails/normal/link.png")
        symlink(room.path + "/elsewhere", room.path + "/thumbnails/linked")
        mkfifo(room.path + "/thumbnails/normal/fifo.png", 0o600)
        room.sweep()
        let names = ["normal/directory.png", "normal/link.png", "normal/fifo.png", "linked/a.png"]
        for name in Array(kept.keys) + names { #expect(room.exists("thumbnails/" + name), "\(name)") }
        #expect(room.exists("outside.png"))
    }

    @Test func `another user's pictures, and earlier ones, stay`() throws {
        let room = Room()
        try room.put("thumbnails/normal/a.png", cacheEntry("file://\(room.path)/D/x"))
        room.sweep(owner: geteuid() + 1)
        #expect(room.exists("thumbnails/normal/a.png"))
        room.sweep(since: Int.max)
        #expect(room.exists("thumbnails/normal/a.png"))
        room.sweep(since: Int(time(nil)) - 3600)
        #expect(!room.exists("thumbnails/normal/a.png"))
    }

    @Test func `a cache that is a link stays as it is, or is not there`() throws {
        let room = Room()
        room.sweep()
        try FileManager.default.removeItem(atPath: room.path + "/thumbnails")
        room.sweep()
        try room.put("disk/normal/a.png", cacheEntry("file://\(room.path)/D/x"))
        symlink("disk", room.path + "/thumbnails")
        room.sweep()
        #expect(room.exists("disk/normal/a.png"))
    }

    @Test func `paths through links`() throws {
        let room = Room()
        for name in ["D", "home/Pictures", "other", "far"] { room.make(name) }
        func link(_ name: String, _ target: String) { symlink(target, room.path + "/" + name) }
        link("home/Photos", "../D")
        link("home/Album", room.path + "/home/Photos/albums/Trip")
        link("home/photo.jpg", "Album/1.jpg")
        link("round", "round")
        link("far/D", "../D")
        var below = PathsBelow(
            room.path + "/home/Photos", near: room.path, mounts: ["/", room.path + "/far"])
        func contains(_ path: String) -> Bool { below.contains(Array((room.path + path).utf8)) }
        #expect(contains("/D/a") && contains("/home/Photos/a") && contains("/home/Album/a"))
        #expect(contains("/home/photo.jpg") && contains("/home/Pictures/../Photos/x") && contains("/D"))
        #expect(!contains("/home/Pictures/a") && !contains("/other/a") && !contains("/round/a"))
        // Another filesystem may not answer: nothing there is looked at.
        #expect(!contains("/far/D/a"))
    }

    @Test func `its command line is read back`() {
        for sweep in [
            DesktopSweep(user: 1000, since: nil, directory: "/a b"),
            DesktopSweep(user: 0, since: 12, directory: "/", waitSeconds: 5),
        ] {
            #expect(DesktopSweep(commandLine: Array(sweep.commandLine.dropFirst())) == sweep)
        }
        #expect(DesktopSweep(commandLine: [DesktopSweep.word, "me", "-", "/", "0"]) == nil)
    }
}
