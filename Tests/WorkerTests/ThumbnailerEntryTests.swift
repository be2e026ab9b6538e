import Foundation
import Testing

@testable import PhotoImaging

/// The contents of `.thumbnailer` files, and which of them count.
@Suite("Decoders: entries of installed programs") struct ThumbnailerEntryTests {
    private let fields = ThumbnailerEntry.Fields(
        input: "/in file", uri: "file:///in%20file", output: "/out", side: 256)

    @Test func `Debian's entries are understood`() throws {
        let entry = try #require(
            ThumbnailerEntry(
                """
                # made by hand
                [Thumbnailer Entry]
                TryExec=ffmpegthumbnailer
                Exec = ffmpegthumbnailer -i %i -o %o -s %s -f
                MimeType=video/mp4;video/quicktime;;
                [Another Group]
                Exec=no
                """))
        #expect(entry.requirement == "ffmpegthumbnailer")
        #expect(entry.mimeTypes == ["video/mp4", "video/quicktime"])
        #expect(
            entry.commandLine(fields)
                == ["ffmpegthumbnailer", "-i", "/in file", "-o", "/out", "-s", "256", "-f"])
    }

    @Test func `codes within words`() throws {
        let entry = try #require(
            ThumbnailerEntry("[Thumbnailer Entry]\nExec=p --size=%s %u%x 100%% %o\nMimeType=a/b"))
        #expect(entry.commandLine(fields) == ["p", "--size=256", "file:///in%20file", "100%", "/out"])
        #expect(entry.requirement == nil)
    }

    @Test(
        arguments: [
            ("", []), ("a  b\tc", ["a", "b", "c"]), ("a 'b c' \"d e\"", ["a", "b c", "d e"]),
            ("a'b'\"c\"d", ["abcd"]), ("'' \"\"", ["", ""]),
            (#"a\ b "c\"d\$\e" 'f\g'"#, ["a b", #"c"d$\e"#, #"f\g"#]),
            ("'a", nil), ("\"a", nil), (#"a\"#, nil),
        ] as [(String, [String]?)])
    func `quoted words`(command: String, words: [String]?) {
        #expect(ThumbnailerEntry.words(of: command) == words)
    }

    /// The file's escapes come before the command's.
    @Test func `escaped characters`() throws {
        let entry = try #require(
            ThumbnailerEntry("[Thumbnailer Entry]\nExec=p\\s%i \"a\\\\\"b\" %o\\\\q\nMimeType=a/b"))
        #expect(entry.words == ["p", "%i", "a\"b", "%oq"])
    }

    @Test(arguments: [
        "", "Exec=p %i %o\nMimeType=a/b", "[Desktop Entry]\nExec=p %i %o\nMimeType=a/b",
        "[Thumbnailer Entry]\nMimeType=a/b", "[Thumbnailer Entry]\nExec=p %i %o",
        "[Thumbnailer Entry]\nExec=p %o\nMimeType=a/b", "[Thumbnailer Entry]\nExec=p %i\nMimeType=a/b",
        "[Thumbnailer Entry]\nExec='p %i %o\nMimeType=a/b",
        "[Thumbnailer Entry]\nExec='' %i %o\nMimeType=a/b",
        "[Thumbnailer Entry]\n=\n===\n", "[Thumbnailer Entry]\nExec=\nMimeType=;;;",
    ])
    func `invalid entries are none`(text: String) {
        #expect(ThumbnailerEntry(text) == nil)
    }

    @Test func `directories by the specification`() {
        let system = ["/usr/local/share", "/usr/share"]
        #expect(dataDirectories(home: nil, dataHome: nil, dataDirectories: nil) == system)
        #expect(
            dataDirectories(home: "/h", dataHome: nil, dataDirectories: "") == ["/h/.local/share"] + system)
        #expect(
            dataDirectories(home: "/h", dataHome: "/d", dataDirectories: "/a::b:/c") == ["/d", "/a", "/c"])
        #expect(dataDirectories(home: "h", dataHome: "d", dataDirectories: "b") == system)
    }

    @Test func `the more important comes first and hides its namesake`() throws {
        let (own, system) = (try DataHome(), try DataHome())
        try own.add("", named: "b", types: "video/mp4")
        try own.add("", named: "hidden", types: "image/bmp")
        try system.add("", named: "a", types: "video/mp4;video/webm")
        try system.add("", named: "hidden", types: "video/mp4;image/bmp")
        var catalogue = ThumbnailerCatalogue(dataDirectories: [own.root, system.root, "/nonexistent"])
        #expect(catalogue.types.isEmpty)
        catalogue.refresh()
        #expect(
            catalogue.thumbnailers(for: .mp4).map(\.program) == [own.root + "/b.sh", system.root + "/a.sh"])
        #expect(catalogue.thumbnailers(for: .bmp).map(\.program) == [own.root + "/hidden.sh"])
        #expect(catalogue.thumbnailers(for: .psd).isEmpty)
        #expect(catalogue.types == [.mp4, .m4v, .matroska, .bmp])
    }

    @Test func `programs must be there`() throws {
        let home = try DataHome()
        try home.add("", named: "gone", types: "video/mp4")
        try home.entry("name", "Exec=cp %i %o\nMimeType=image/bmp")
        try home.entry("path", "Exec=../../usr/bin/cp %i %o\nMimeType=image/vnd.adobe.photoshop")
        try home.entry("none", "Exec=obscura-none %i %o\nMimeType=image/vnd.adobe.photoshop")
        try home.add("", named: "wants", types: "video/mpeg", more: "TryExec=obscura-none")
        try home.add("", named: "has", types: "video/quicktime", more: "TryExec=/usr/bin/cp")
        var catalogue = ThumbnailerCatalogue(dataDirectories: [home.root])
        catalogue.refresh()
        #expect(catalogue.types == [.mp4, .m4v, .bmp, .mov])
        #expect(catalogue.thumbnailers(for: .bmp).first?.program == "/usr/bin/cp")
        #expect(chmod(home.root + "/gone.sh", 0o644) == 0)
        catalogue.refresh()
        #expect(catalogue.types == [.bmp, .mov])
    }

    @Test func `files that are no entries are left alone`() throws {
        let home = try DataHome()
        let directory = home.root + "/thumbnailers/"
        #expect(mkfifo(directory + "a.thumbnailer", 0o644) == 0)
        #expect(mkdir(directory + "b.thumbnailer", 0o755) == 0)
        let text = "[Thumbnailer Entry]\nExec=cp %i %o\nMimeType=image/bmp\n"
        try text.write(toFile: directory + "c.txt", atomically: false, encoding: .utf8)
        try (text + String(repeating: "#", count: 70_000)).write(
            toFile: directory + "d.thumbnailer", atomically: false, encoding: .utf8)
        var catalogue = ThumbnailerCatalogue(dataDirectories: [home.root])
        catalogue.refresh()
        #expect(catalogue.types.isEmpty)
    }

    /// Formats that the workers decode themselves go to no other program.
    @Test func `only formats that are not decoded here`() throws {
        let home = try DataHome()
        try home.add("", named: "a", types: MediaType.allCases.map(\.mimeType).joined(separator: ";"))
        var catalogue = ThumbnailerCatalogue(dataDirectories: [home.root])
        catalogue.refresh()
        #expect(catalogue.types == Set(MediaType.allCases.filter { $0.isVideo } + [.bmp, .psd, .jp2]))
    }

    @Test func `the whole of small ones and parts of large ones`() {
        let mebi = 1 << 20
        #expect(excerptRanges(byteCount: 512 * mebi, budget: 512 * mebi) == [0..<512 * mebi])
        for byteCount in [513 * mebi, 700 * mebi + 1, 2048 * mebi + 77, 4096 * mebi, 40_960 * mebi, 1 << 50] {
            let parts = excerptRanges(byteCount: byteCount, budget: 512 * mebi)
            #expect(parts.first?.lowerBound == 0)
            #expect(parts.last?.upperBound == byteCount)
            #expect(parts.allSatisfy { $0.lowerBound % 65_536 == 0 && !$0.isEmpty })
            for (one, next) in zip(parts, parts.dropFirst()) { #expect(one.upperBound < next.lowerBound) }
            for place in [byteCount / 10, byteCount / 3] { #expect(parts.contains { $0.contains(place) }) }
            #expect(parts.reduce(0) { $0 + $1.count } <= 512 * mebi + 4 * 65_536)
        }
    }
}
