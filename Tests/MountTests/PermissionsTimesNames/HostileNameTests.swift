import CShims
import Foundation
import Glibc
import LinuxIO
import TestSupport
import TestThreads
import Testing

/// A path of bytes of no particular encoding, as C has it.
private func withPath<R>(_ path: [UInt8], _ body: (UnsafePointer<CChar>) -> R) -> R {
    (path + [0]).withUnsafeBytes { raw in raw.withMemoryRebound(to: CChar.self) { body($0.baseAddress!) } }
}

/// Everything below a directory: path, kind, bytes or target, and attributes.
private struct Listing: Equatable {
    var entries: [[UInt8]: [[UInt8]]] = [:]

    init(_ root: String) throws { try add(Array(root.utf8), []) }

    private mutating func add(_ root: [UInt8], _ below: [UInt8]) throws {
        let path = root + below
        guard let stream = withPath(path, { opendir($0) }) else { throw Errno.last }
        defer { closedir(stream) }
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
            if name == Array(".".utf8) || name == Array("..".utf8) { continue }
            let found = below + [UInt8(ascii: "/")] + name
            try addEntry(root, found)
        }
    }

    private mutating func addEntry(_ root: [UInt8], _ found: [UInt8]) throws {
        let path = root + found
        var status = stat()
        guard withPath(path, { lstat($0, &status) }) == 0 else { throw Errno.last }
        var facts: [[UInt8]] = [Array("\(status.st_mode) \(status.st_mtim.tv_sec)".utf8)]
        switch status.st_mode & S_IFMT {
        case S_IFLNK:
            var target = [UInt8](repeating: 0, count: 4096)
            let count = withPath(path) { path in
                target.withUnsafeMutableBytes { readlink(path, $0.baseAddress!, $0.count) }
            }
            facts.append(Array(target.prefix(count)))
        case S_IFDIR: try add(root, found)
        default:
            let file = withPath(path) { obscura_openat(AT_FDCWD, $0, O_RDONLY, 0) }
            guard file >= 0 else { throw Errno.last }
            defer { close(file) }
            var bytes = [UInt8](repeating: 0, count: 4096)
            let count = bytes.withUnsafeMutableBytes { read(file, $0.baseAddress, $0.count) }
            facts.append(Array(bytes.prefix(count)))
            facts += attributes(file)
        }
        entries[found] = facts
    }

    private func attributes(_ file: Int32) -> [[UInt8]] {
        var names = [CChar](repeating: 0, count: 65_536)
        let count = Int(obscura_list_attributes(file, &names, UInt(names.count)))
        let found = names.prefix(max(count, 0)).map { UInt8(bitPattern: $0) }.split(separator: 0)
        return found.map { Array($0) }.sorted { $0.lexicographicallyPrecedes($1) }.map { name in
            var value = [UInt8](repeating: 0, count: 65_536)
            let count = withPath(name) { obscura_get_attribute(file, $0, &value, 65_536) }
            return name + [UInt8(ascii: "=")] + value.prefix(max(Int(count), 0))
        }
    }
}

/// Names, targets and attributes that somebody chose to break something with.
@Suite("Permissions, times, names: names of hostile bytes", .serialized, .waiting) struct HostileNameTests {
    private static let names: [[UInt8]] =
        [
            "-rf", "--", "-o allow_other", "a\nb", "\n", "\r", "\t", " ", "  two  ", "\u{1B}]0;title\u{7}",
            "\u{1B}[31mred", "\u{8}\u{8}\u{8}", "a\\b", "\\012", "'", "\"", "$(touch evil)", "`id`", "*", "?",
            ";rm -rf ~", "%s%n", "...", "....", ". .", "CON", "nul.jpg", "\u{202E}gpj.exe", "e\u{301}",
            "\u{E9}", "\u{FEFF}", "\u{7F}", "~", ".hidden", "a~", "x.part", "@eaDir",
        ].map { Array($0.utf8) } + [
            [0xFF], [0xC0, 0xAF], [0xED, 0xA0, 0x80], [0x80, 0x0A, 0x1B], [0xF4, 0x90, 0x80, 0x80],
            [UInt8](repeating: 0x61, count: 255), [UInt8](repeating: 0xFF, count: 255),
            [UInt8](repeating: 0x0A, count: 255), Array(UInt8(1)...UInt8(46)),
            Array(UInt8(0x80)...UInt8(0xFE)),
        ]

    /// Puts a file, a directory with a file, and a link of each name into directories of their own.
    private func make(_ directory: String) throws {
        for kind in ["files", "directories", "links"] {
            try #require(mkdir("\(directory)/\(kind)", 0o755) == 0)
        }
        for (number, name) in Self.names.enumerated() {
            try makeFile(Array("\(directory)/files/".utf8) + name, number, name)
            let below = Array("\(directory)/directories/".utf8) + name
            try #require(withPath(below) { mkdir($0, 0o700) } == 0)
            try makeFile(below + Array("/".utf8) + name, number, name)
            let link = Array("\(directory)/links/".utf8) + name
            try #require(
                withPath(Array("../../../".utf8) + name) { to in withPath(link) { symlink(to, $0) } } == 0)
        }
    }

    private func makeFile(_ path: [UInt8], _ number: Int, _ name: [UInt8]) throws {
        let file = withPath(path) { obscura_openat(AT_FDCWD, $0, O_WRONLY | O_CREAT | O_EXCL, 0o640) }
        try #require(file >= 0, "\(number): \(Errno.last)")
        defer { close(file) }
        let text = Array("text \(number) of ".utf8) + name
        #expect(write(file, text, text.count) == text.count)
        // The kernel takes 255 bytes with the namespace, and no empty name behind that.
        let attribute = Array("user.".utf8) + name.prefix(200)
        #expect(
            withPath(attribute) { obscura_set_attribute(file, $0, name, UInt(name.count)) } == 0,
            "\(number): \(Errno.last)")
    }

    private func command(_ place: Place, _ words: String...) throws -> Ended {
        try place.run([obscura] + words + ["--password-stdin"], "one\n")
    }

    @Test func `names of any bytes go through mount, export and import`() throws {
        let place = try Place()
        try place.mount()
        try make(place.albums)
        let made = try Listing(place.albums)
        #expect(made.entries.count == 3 + 4 * Self.names.count)
        try place.unmount()
        try place.mount(options: "ro")
        #expect(try Listing(place.albums) == made)
        try place.unmount()

        let exported = try command(place, "export", place.vault, place.root + "/E")
        try #require(exported.status == 0, "\(exported.errors)")
        #expect(try Listing(place.root + "/E/albums") == made)

        let other = try Place()
        let imported = try command(other, "import", other.vault, place.root + "/E")
        try #require(imported.status == 0, "\(imported.errors)")
        try other.mount(options: "ro")
        #expect(try Listing(other.albums) == made)
        try other.unmount()
        for ended in [exported, imported] { #expect(!hasControls(ended.output + ended.errors)) }
    }

    private func hasControls(_ text: String) -> Bool {
        text.unicodeScalars.contains { $0.value < 0x20 && $0 != "\n" || (0x7F..<0xA0).contains($0.value) }
    }

    /// Text that a message quotes moves no cursor, sets no title and makes no second line.
    @Test func `messages show no escapes`() throws {
        let place = try Place()
        let vault = place.root + "/V\u{1B}]0;title\u{7}"
        let words = ["create", vault, "--spaces=1", "--kdf-memory=8M", "--kdf-passes=1", "--password-stdin"]
        for words in [
            words, ["check", vault, "--password-stdin"], ["info", vault], ["backup", vault, vault + "2"],
        ] {
            let ended = try place.run([obscura] + words, "one\n")
            #expect(
                ended.status == 0 && !hasControls(ended.output + ended.errors), "\(words): \(ended.output)")
        }
        let name = "no\u{1B}[2J\u{1B}]0;x\u{7}\nobscura: all is well\r\u{9B}31m"
        for words in [
            ["import", place.vault, name], ["export", place.vault, place.vault + "/" + name],
            ["check", name],
            ["mount", place.vault, name], ["info", name], ["unmount", name],
            ["backup", place.vault, "/dev/null/" + name],
            [name], ["mount", name, name, "-o", name], ["import", place.vault, "--\(name)"],
        ] {
            let ended = try place.run([obscura] + words, "one\n")
            #expect(ended.status != 0, "\(words)")
            #expect(!hasControls(ended.output + ended.errors), "\(words): \(ended.errors)")
            #expect(
                ended.errors.split(separator: "\n").allSatisfy { !$0.hasPrefix("obscura: all") }, "\(words)")
        }
    }

    /// A link in an exported tree is a link there, and one that lies in the way is not followed.
    @Test func `export writes nothing through links`() throws {
        let place = try Place()
        try place.shell("mkdir outside E; echo mine > outside/file; ln -s ../outside E/albums")
        try place.mount()
        try place.shell(
            """
            cd D/albums; mkdir A; ln -s ../../outside out; ln -s ../../outside/file file; ln -s /etc/passwd A/p
            echo theirs > A/file
            """)
        try place.unmount()
        #expect(try command(place, "export", place.vault, place.root + "/E").status != 0)
        #expect(try place.shell("ls outside; cat outside/file") == "file\nmine\n")
        #expect(try command(place, "export", place.vault, place.root + "/F").status == 0)
        #expect(try place.shell("ls outside; cat outside/file") == "file\nmine\n")
        #expect(
            try place.shell("readlink F/albums/out F/albums/file F/albums/A/p; cat F/albums/A/file")
                == "../../outside\n../../outside/file\n/etc/passwd\ntheirs\n")
    }
}
