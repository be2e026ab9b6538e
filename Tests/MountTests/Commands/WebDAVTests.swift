import Foundation
import TestSupport
import TestThreads
import Testing

/// *Commands* of the contract: `obscura receive --webdav`, with curl as the app.
@Suite("Commands: receive --webdav", .serialized, .waiting) struct WebDAVTests {
    private let receiving: ReceivingPlace
    private var place: Place { receiving.place }

    init() throws {
        receiving = try ReceivingPlace(options: ["--webdav"])
        try place.source("a.jpg", Photo().bytes)
        try place.source("b.jpg", Photo(seed: 2).bytes)
    }

    private func dav(_ path: String, _ words: String...) throws -> String {
        let user = ["--path-as-is", "-u", "photos:\(receiving.password)"]
        return try receiving.status(user + [receiving.address + "dav/" + path] + words)
    }

    @Test func `an app adds directories and photos, and is shown what it added`() throws {
        #expect(try dav("", "-X", "OPTIONS") == "204")
        #expect(try dav("Camera", "-X", "MKCOL") == "201")
        #expect(try dav("Camera", "-X", "MKCOL") == "405")
        #expect(try dav("No/where", "-X", "MKCOL") == "409")
        #expect(try dav("Camera/a%20b.jpg", "-T", "source/a.jpg") == "201")
        #expect(try dav("Camera/a%20b.jpg", "-T", "source/a.jpg") == "204")
        #expect(try dav("No/a.jpg", "-T", "source/a.jpg") == "409")
        #expect(try dav("Camera", "-T", "source/a.jpg") == "405")
        #expect(try place.files(receiving.received) == ["Camera/a b.jpg"])
        let listing = try receiving.curl(
            "-u", "photos:\(receiving.password)", "-X", "PROPFIND", receiving.address + "dav/Camera/")
        #expect(listing.contains("<D:href>/dav/Camera/a%20b.jpg</D:href>"), "\(listing)")
        #expect(try dav("Camera/a%20b.jpg", "-I") == "200")
    }

    @Test func `it never reads, changes or removes`() throws {
        try place.shell("mkdir -p D/albums/Phone; cp source/a.jpg D/albums/Phone/a.jpg")
        #expect(try dav("a.jpg", "-I") == "404")
        #expect(try dav("a.jpg", "-T", "source/b.jpg") == "201")
        #expect(try place.bytes(receiving.received + "/a.jpg") == Photo().bytes)
        #expect(try place.bytes(receiving.received + "/a (2).jpg") == Photo(seed: 2).bytes)
        for method in ["GET", "DELETE", "MOVE", "COPY", "PROPPATCH", "LOCK", "POST", "PATCH"] {
            #expect(try dav("a.jpg", "-X", method, "-H", "Destination: /dav/c.jpg") == "403", "\(method)")
        }
        #expect(try place.files(receiving.received) == ["a (2).jpg", "a.jpg"])
    }

    @Test func `a wrong password, a path that leads elsewhere and a link are refused`() throws {
        #expect(try receiving.status("dav/", "-u", "photos:wrong", "-X", "PROPFIND") == "401")
        #expect(try receiving.status("dav/a.jpg", "-T", "source/a.jpg") == "401")
        for path in ["../a.jpg", "%2e%2e/a.jpg", "x%2Fa.jpg", "a%00.jpg"] {
            #expect(try ["400", "404", "409"].contains(dav(path, "-T", "source/a.jpg")), "\(path)")
        }
        try place.shell("ln -s \(place.root)/source D/albums/Phone/out")
        #expect(try dav("out", "-X", "MKCOL") == "500")
        #expect(try dav("out/x.jpg", "-T", "source/a.jpg") == "409")
        #expect(!exists(place.root + "/source/x.jpg") && !exists(place.root + "/a.jpg"))
    }

    @Test func `names that are too long or would forge a line are mended`() throws {
        let long = String(repeating: "x", count: 300)
        #expect(try dav("\(long).jpg", "-T", "source/a.jpg") == "201")
        #expect(try dav("a%0Ab.jpg", "-T", "source/b.jpg") == "201")
        #expect(try place.files(receiving.received) == ["a_b.jpg", "\(long.prefix(251)).jpg"])
        // It finds the file under the name that it gave.
        #expect(try dav("\(long).jpg", "-I") == "200")
    }

    @Test func `an empty file takes its name, and is made when the session ends`() throws {
        try place.source("empty", [])
        #expect(try dav("a.jpg", "-T", "source/empty") == "201")
        #expect(try dav("a.jpg", "-T", "source/a.jpg") == "204")
        #expect(try dav("notes.txt", "-T", "source/empty") == "201")
        #expect(try place.files(receiving.received) == ["a.jpg"])
        _ = try receiving.end()
        #expect(try place.files(receiving.received) == ["a.jpg", "notes.txt"])
        #expect(try place.bytes(receiving.received + "/a.jpg") == Photo().bytes)
        #expect(try place.bytes(receiving.received + "/notes.txt") == [])
    }
}
