import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// *Commands* of the contract: `obscura receive DIR --album NAME`, with curl as the phone.
@Suite("Commands: receive", .serialized, .waiting) struct ReceiveTests {
    private let receiving: ReceivingPlace
    private var place: Place { receiving.place }

    init() throws { receiving = try ReceivingPlace() }

    @Test func `a photo goes into the album and under its day, and nothing else is left`() throws {
        #expect(try receiving.join() == "204")
        try place.source("a.jpg", Photo().bytes)
        #expect(try receiving.status("photo/IMG%201.jpg", "-b", "jar", "-T", "source/a.jpg") == "201")
        #expect(try place.bytes(receiving.received + "/IMG 1.jpg") == Photo().bytes)
        #expect(try place.shown() == ["2019-03-04/IMG 1.jpg"])
        #expect(try place.files(receiving.received) == ["IMG 1.jpg"])
        let ended = try receiving.end()
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(ended.output.contains("1 file, "), "\(ended.output)")
    }

    @Test func `a file that comes twice is stored once, another of its name is numbered`() throws {
        _ = try receiving.join()
        try place.source("a.jpg", Photo().bytes)
        try place.source("b.jpg", Photo(seed: 2).bytes)
        #expect(try receiving.status("photo/x.jpg", "-b", "jar", "-T", "source/a.jpg") == "201")
        #expect(try receiving.status("photo/x.jpg", "-b", "jar", "-T", "source/a.jpg") == "200")
        #expect(try receiving.status("photo/x.jpg", "-b", "jar", "-T", "source/b.jpg") == "201")
        #expect(try receiving.status("photo/x.jpg", "-b", "jar", "-T", "source/b.jpg") == "200")
        #expect(try place.files(receiving.received) == ["x (2).jpg", "x.jpg"])
        // The device sees each once.
        let state = try receiving.curl("-b", "jar", receiving.address + "state")
        #expect(state.components(separatedBy: "\"name\"").count == 3, "\(state)")
    }

    @Test func `a stranger gets the page and nothing else, with any request`() throws {
        try place.source("a.jpg", Photo().bytes)
        #expect(try receiving.status("") == "200")
        for path in [
            "state", "thumbnail/1", "photo/a.jpg", "known", "dav/", "x", "join", "../", "%00", "photo/",
        ] {
            #expect(try receiving.status(path, "--path-as-is") == "404", "\(path)")
        }
        #expect(try receiving.status("photo/a.jpg", "-T", "source/a.jpg") == "404")
        #expect(try receiving.status("join", "--data", "00000-00000-00000-00000-00000-0") == "404")
        let cookie = "__Host-session=00000-00000-00000-00000-00000-0"
        #expect(try receiving.status("state", "-H", "Cookie: \(cookie)") == "404")
        #expect(try place.files(receiving.received).isEmpty)
    }

    @Test func `a code is exchanged once, and n gives another`() throws {
        #expect(try receiving.join() == "204")
        #expect(try receiving.join("other") == "404")
        #expect(try receiving.status("state", "-b", "jar") == "200")
        #expect(try receiving.status("state", "-b", "other") == "404")
        let first = receiving.code
        try receiving.type("n\n")
        try receiving.readCode()
        #expect(receiving.code != first)
        #expect(try receiving.join("other", device: String(repeating: "2", count: 32)) == "204")
        #expect(try receiving.status("state", "-b", "other") == "200")
    }

    @Test func `a piece goes on where the last one ended, and nowhere else`() throws {
        _ = try receiving.join()
        let bytes = Photo(width: 400, height: 300).bytes
        let (half, total) = (bytes.count / 2, bytes.count)
        try place.source("1", Array(bytes[..<half]))
        try place.source("2", Array(bytes[half...]))
        let (first, second) = ("bytes 0-\(half - 1)/\(total)", "bytes \(half)-\(total - 1)/\(total)")
        func send(_ range: String, _ file: String) throws -> String {
            try receiving.status(
                "photo/a.jpg", "-b", "jar", "-T", "source/\(file)", "-H", "Content-Range: \(range)")
        }
        func offset() throws -> String {
            try receiving.curl("-I", "-b", "jar", receiving.address + "photo/a.jpg?size=\(total)")
        }
        #expect(try send(second, "2") == "409")
        #expect(try send(first, "1") == "204")
        #expect(try offset().contains("Upload-Offset: \(half)\r"))
        // Also for another receiver: received files are in the space.
        try receiving.restart()
        _ = try receiving.join()
        #expect(try offset().contains("Upload-Offset: \(half)\r"))
        #expect(try send(second, "2") == "201")
        #expect(try place.bytes(receiving.received + "/a.jpg") == bytes)
        #expect(try place.shown() == ["2019-03-04/a.jpg"])
        #expect(try offset().contains("Upload-Offset: 0\r"))
    }

    @Test func `bytes that are not those of their digest are not kept`() throws {
        _ = try receiving.join()
        try place.source("a.jpg", Photo().bytes)
        let good = try place.shell("openssl dgst -sha256 -binary source/a.jpg | base64").dropLast()
        let bad = Data(repeating: 7, count: 32).base64EncodedString()
        for field in ["Content-Digest", "Repr-Digest"] {
            func send(_ digest: some StringProtocol) throws -> String {
                try receiving.status(
                    "photo/a.jpg", "-b", "jar", "-T", "source/a.jpg", "-H", "\(field): sha-256=:\(digest):")
            }
            #expect(try send(bad) == "422")
            #expect(try !place.files(receiving.received).contains("a.jpg"))
            #expect(try send("nonsense") == "400")
            #expect(try send(good) == "201")
            try place.shell("rm D/albums/Phone/a.jpg")
        }
    }

    @Test func `what is asked about or sent twice counts once in the report`() throws {
        _ = try receiving.join()
        try place.source("a.txt", [UInt8](repeating: 7, count: 900))
        // The size, 900, and all of a small file.
        let sample = try place.shell(
            #"(printf '\0\0\0\0\0\0\003\204'; cat source/a.txt) | sha256sum | head -c 64"#)
        let path = "photo/a.txt?size=900&modified=1000000000000&sample=\(sample)"
        for status in ["201", "200"] {
            let question = "900 1000000000000 \(sample) a.txt"
            #expect(try receiving.status("known", "-b", "jar", "--data-binary", question) == "200")
            #expect(try receiving.status(path, "-b", "jar", "-T", "source/a.txt") == status)
        }
        let report = try receiving.end().output
        #expect(report.contains("\n1 file, 900 bytes received into albums/Phone\n"), "\(report)")
    }

    @Test func `what is said to have arrived is durable already`() throws {
        _ = try receiving.end()
        try place.unmount()
        // Nothing else is to change the space.
        try place.mount(options: "thumbs=off")
        try receiving.restart()
        _ = try receiving.join()
        for name in ["a.jpg", "b.jpg", "c.jpg"] {
            try place.source(name, Photo(seed: name.utf8.first ?? 0).bytes)
            #expect(try receiving.status("photo/\(name)", "-b", "jar", "-T", "source/\(name)") == "201")
            let status = try place.run([obscura, "status", place.mountPoint, "--json"]).output
            #expect(status.contains("\"durable\": true"), "\(status)")
        }
    }

    @Test func `one file by many connections at once is stored once, others of its name are numbered`() throws
    {
        _ = try receiving.join()
        try place.source("a.jpg", Photo().bytes)
        try place.source("b.jpg", Photo(seed: 2).bytes)
        // Different times make different working files, as from several phones.
        let senders = (0..<6).map { number in
            "curl -sk -b jar -o /dev/null -w '%{http_code} ' -T source/\(number % 2 == 0 ? "a" : "b").jpg "
                + "'\(receiving.address)photo/x.jpg?modified=\(1_000_000_000_000 + number)' &"
        }
        let statuses = try place.shell(senders.joined(separator: "\n") + "\nwait")
        #expect(statuses.split(separator: " ").count { $0 == "201" } == 2, "\(statuses)")
        #expect(statuses.split(separator: " ").count { $0 == "200" } == 4, "\(statuses)")
        #expect(try place.files(receiving.received) == ["x (2).jpg", "x.jpg"])
    }

    @Test func `it ends with the mount, which it does not keep busy`() throws {
        _ = try receiving.join()
        try place.unmount()
        let ended = try receiving.finish()
        #expect(ended.status == 0)
        #expect(ended.errors.contains("not mounted any more"))
        #expect(try place.files(place.mountPoint).isEmpty)
    }

    /// The next mount gets the device number of the last.
    @Test func `nothing of it comes into what is mounted there next`() throws {
        _ = try receiving.join()
        try place.unmount()
        try place.mount()
        try place.source("late.jpg", Photo(seed: 9).bytes)
        let late = "\(receiving.address)photo/late.jpg?modified=1000000000000"
        // Its status depends on how soon the receiver ends.
        try place.shell("curl -sk -b jar -T source/late.jpg '\(late)' || true")
        let ended = try receiving.finish()
        #expect(ended.status == 0)
        #expect(ended.errors.contains("not mounted any more"))
        #expect(try place.files(place.albums).isEmpty)
        #expect(try place.shown().isEmpty)
    }

    @Test func `it ends when the mount's process dies, which the kernel does not say`() throws {
        _ = try receiving.join()
        kill(try #require(place.daemon), SIGKILL)
        let ended = try receiving.finish()
        #expect(ended.status == 0)
        #expect(ended.errors.contains("not mounted any more"))
    }

    @Test func `it ends when nothing has come for a while`() throws {
        try receiving.restart(["--idle", "1s"])
        let ended = try receiving.finish()
        #expect(ended.status == 0)
        #expect(ended.errors.contains("nothing came for 1 s"))
    }

    @Test func `the page is one small file that needs nothing from elsewhere`() throws {
        let page = try receiving.curl("-i", receiving.address)
        #expect(page.utf8.count < 40_000)
        #expect(page.contains("Content-Security-Policy: default-src 'none'; script-src 'nonce-"))
        for outside in ["http://", "https://", "src=\"", "@import", "url("] {
            #expect(!page.contains(outside), "\(outside)")
        }
    }

    @Test func `only new versions of TLS are spoken, and the cookie is for this server alone`() throws {
        let address = receiving.address.dropFirst(8).dropLast()
        for (version, result) in [("tls1", false), ("tls1_1", false), ("tls1_2", true), ("tls1_3", true)] {
            let ended = try place.run(
                [
                    "openssl", "s_client", "-\(version)", "-cipher", "ALL:@SECLEVEL=0", "-connect",
                    "\(address)",
                ])
            #expect((ended.status == 0) == result, "\(version): \(ended.output)")
        }
        let joined = try receiving.curl("-i", "--data-binary", receiving.code, receiving.address + "join")
        #expect(joined.contains("; Path=/; Max-Age=86400; Secure; HttpOnly; SameSite=Strict\r"), "\(joined)")
    }

    @Test func `a file that could not be stored is told on the terminal`() throws {
        _ = try receiving.join()
        try place.source("a.jpg", Photo().bytes)
        // The piece has room, the file has not.
        let range = "Content-Range: bytes 0-\(Photo().bytes.count - 1)/\(UInt64(1) << 50)"
        #expect(try receiving.status("photo/a.jpg", "-b", "jar", "-T", "source/a.jpg", "-H", range) == "507")
        #expect(try place.files(receiving.received).isEmpty)
        let ended = try receiving.end()
        #expect(ended.errors.contains("a.jpg: not stored: the space has no room"), "\(ended.errors)")
    }

    @Test func `a space that becomes full while a file comes keeps nothing of it`() throws {
        let receiving = try ReceivingPlace(spaces: 2)
        let place = receiving.place
        _ = try receiving.join()
        try place.source("a.jpg", Photo().bytes)
        try place.shell("head -c 64M /dev/urandom >large")
        // Its length is not told.
        let chunked = "Transfer-Encoding: chunked"
        #expect(
            try receiving.status(
                "photo/large", "-b", "jar", "-H", chunked, "-H", "Expect:", "-T", "large") == "507")
        #expect(try place.files(receiving.received).isEmpty)
        #expect(try receiving.status("photo/a.jpg", "-b", "jar", "-T", "source/a.jpg") == "201")
        #expect(try receiving.end().errors.contains("large: not stored: the space is full"))
    }

    @Test func `a space that is mounted read-only is refused`() throws {
        _ = try receiving.end()
        try place.unmount()
        try place.mount(options: "ro")
        let ended = try place.run([obscura, "receive", place.mountPoint, "--album", "Phone"])
        #expect(ended.status == 1 && ended.errors.contains("mounted read-only"), "\(ended.errors)")
    }

    @Test func `the picture of the code goes, and what another program puts in its place stays`() throws {
        let picture = place.root + "/code.png"
        try receiving.restart(["--qr", picture])
        #expect(exists(picture))
        // Without a terminal there is no code to scan but this.
        #expect(receiving.greeting.contains(" on your phone, or scan \(picture).\n"), "\(receiving.greeting)")
        #expect(try receiving.end().status == 0)
        #expect(!exists(picture))
        try receiving.restart(["--qr", picture])
        try place.shell("echo other >other && mv other code.png")
        #expect(try receiving.end().status == 0)
        #expect(exists(picture))
        try receiving.restart()
        #expect(receiving.greeting.contains(" on your phone.\n"), "\(receiving.greeting)")
    }

    @Test func `wrong words and places are refused`() throws {
        try place.shell("ln -s /tmp D/albums/Link; touch D/albums/file")
        for (words, status, why) in [
            (["receive", place.mountPoint], 2, "--album: missing"),
            (["receive", place.mountPoint, "--album", ".."], 2, "cannot be part"),
            (["receive", place.mountPoint, "--album", "A", "--idle", "x"], 2, "not a time"),
            (["receive", place.mountPoint, "--album", "A", "--listen", "::1:99999"], 1, "address"),
            (["receive", place.mountPoint, "--album", "A", "--listen", "127.0.0.1:x"], 2, "not an address"),
            (["receive", place.mountPoint, "--album", "A", "--listen", "0.0.0.0"], 1, "127.0.0.1"),
            (["receive", place.mountPoint, "--album", "A", "--listen", "[::]:0"], 1, "a link needs one"),
            (["receive", place.mountPoint, "--album", "A", "--listen", "fe80::1%lo"], 1, "link-local"),
            (["receive", place.mountPoint, "--album", "A", "--listen", "localhost:0"], 1, "not an address"),
            (["receive", place.mountPoint, "--album", "Link"], 1, "a file or a link has this name"),
            (["receive", place.mountPoint, "--album", "file/A"], 1, "a file or a link has this name"),
            (["receive", place.root, "--album", "A"], 1, "no space is mounted here"),
        ] {
            let ended = try place.run([obscura] + words)
            #expect(ended.status == Int32(status) && ended.errors.contains(why), "\(words): \(ended.errors)")
        }
    }
}
