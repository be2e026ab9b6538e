import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing
import VaultCrypto

@testable import VaultCatalogue
@testable import VaultStore

/// Vaults of every format version, made once and kept in Tests/Golden: each later program opens them all.
///
/// `scripts/golden` makes those of the version that the program writes; see `GoldenArchive` for how they are kept.
/// Their names begin with the version of their catalogue.
@Suite("Format: vaults of earlier versions", .serialized, .waiting) struct GoldenTests {
    private static let directory = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Golden").path
    private static let version = Schema.current.version

    /// The names of those that are kept, as `1-spaces-2`.
    static let kept: [String] = {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        return names.filter { $0.hasSuffix(".tar.gz") }.map { String($0.dropLast(7)) }.sorted()
    }()

    private static func name(spaces: Int) -> String { "\(version)-spaces-\(spaces)" }

    // MARK: Their contents

    /// Everything that a later version must find again: photos by day and album, a plain file, a sidecar, links,
    /// attributes, times, modes, a sparse file, a trashed photo, thumbnails and a photo with a place.
    private func fill(_ place: Place) throws {
        for index in 1...3 {
            let photo = Photo(taken: "2019:0\(index):04 05:06:07", seed: UInt8(index))
            try place.source("p\(index).jpg", photo.bytes)
        }
        try place.source("undated.jpg", Photo(taken: nil, seed: 9).bytes, modified: 1_000_000_000)
        try place.source("gone.jpg", Photo(seed: 10).bytes)
        try place.source("alike.jpg", Photo(taken: "2020:01:02 03:04:05", seed: 1).bytes)
        try place.source("placed.jpg", placedJPEG(52.5, 13.4, more: 8))
        try place.mount(options: "rw,views")
        try place.shell(
            """
            mkdir -p 'D/albums/Trip/Day ü'; cp -a source/* D/albums/Trip; cp -a source/p1.jpg D/albums/copy.jpg
            cd D; ln albums/Trip/p2.jpg 'albums/Trip/Day ü/again.jpg'; ln -s ../nowhere albums/link
            mkdir moments/2001-02-03; mv moments/2019-03-04/p3.jpg moments/2001-02-03
            echo notes > albums/notes.txt; printf '<x/>' > albums/Trip/p1.jpg.xmp
            truncate -s 300000 albums/sparse; printf end >> albums/sparse
            head -c 140000 /dev/zero | tr '\\0' x > albums/large; chmod 640 albums/large
            setfattr -n user.one -v two albums/Trip/p1.jpg; setfattr -n user.dir -v here albums/Trip
            cat moments/*/.thumbs/*.jpg albums/Trip/.thumbs/stack.jpg > ../thumbs; rm moments/*/gone.jpg
            find albums -exec touch -h -d '2010-11-12 13:14:15.161718192' {} +
            """)
        // Pictures are hashed while no requests come.
        try place.shell(
            """
            for step in $(seq 60); do sleep 1; set -- D/views/similar/*/*; [ ! -e "$1" ] || break; done
            [ -e "$1" ]
            """)
        try place.unmount()
    }

    /// The listing of a mount: types, modes, times, sizes, links, sums of bytes and attributes, by path.
    private func manifest(_ place: Place) throws -> String {
        try place.shell(
            """
            cd D; find moments albums -mindepth 1 \\( -type f -printf '%p|f|%m|%n|%s|%T@|' \
            -exec sha256sum {} \\; -o -type d -printf '%p|d|%m\\n' -o -printf '%p|%y|%l|%T@\\n' \\) |
            sed 's/  [^|]*$//' | LC_ALL=C sort
            find moments albums -print0 | LC_ALL=C sort -z | xargs -0 getfattr -h -d -e hex --
            find moments -name '*.jpg' -print0 | LC_ALL=C sort -z |
            xargs -0 getfattr -h -n user.obscura.captured -n user.obscura.captured.source --
            """)
    }

    // MARK: Making one

    /// Makes a vault and packs it, with its manifest, into `target`.
    private func make(spaces: Int, into target: String) throws {
        let place = try Place(spaces: spaces, size: "16M")
        try fill(place)
        try pack(place, Self.name(spaces: spaces), into: target)
    }

    private func pack(_ place: Place, _ name: String, into target: String) throws {
        try place.mount(options: "ro")
        let manifest = try manifest(place)
        try place.unmount()
        try GoldenArchive(place.vault).pack()
        let archive = "\(target)/\(name)"
        // None is ever replaced.
        try #require(!FileManager.default.fileExists(atPath: archive + ".tar.gz"))
        try place.shell("mkdir -p '\(target)'; tar -C V -cS . | gzip -9n > '\(archive).tar.gz'")
        try Data(manifest.utf8).write(to: URL(fileURLWithPath: archive + ".txt"))
    }

    /// The version of the catalogue of a vault that nobody has mounted.
    private func storedVersion(_ place: Place) throws -> Int {
        let password = Array("one".utf8).withUnsafeBytes { SecretBytes(copying: $0) }
        let space = try patiently { try Vault.unlock(place.vault, password: password, readOnly: true) }
            .openSpace(readOnly: true)
        return try Schema.version(
            of: Connection(path: PageVFS.register(space), vfs: PageVFS.name, readOnly: true))
    }

    /// Reads a vault by everything that writes nothing, and leaves it as it is.
    private func read(_ place: Place, _ expected: String) throws {
        let sums = "find V -type f -print0 | sort -z | xargs -0 cksum"
        let (before, version) = (try place.shell(sums), try storedVersion(place))
        try place.shell(
            """
            for words in 'export V X' 'backup V B' 'check B'
            do echo one | '\(obscura)' $words --password-stdin; done
            """)
        try place.mount(options: "ro")
        #expect(try manifest(place) == expected)
        try place.shell("diff -r --no-dereference D/albums X/albums; diff -r D/moments X/moments")
        try place.unmount()
        try place.shell("rm -rf X B")
        #expect(try place.shell(sums) == before)
        #expect(try storedVersion(place) == version)
    }

    /// Opens a packed vault and compares its listing; then it is written to and read again.
    private func open(_ name: String, in directory: String) throws {
        let place = try Place(spaces: 1)
        let expected = try String(contentsOfFile: "\(directory)/\(name).txt", encoding: .utf8)
        try place.shell("rm -rf V; mkdir V; tar -C V -xSzf '\(directory)/\(name).tar.gz'")
        try GoldenArchive(place.vault).unpack()
        // A program that another test starts may still have the lock of the unpacked vault.
        let isInUse = "the vault is in use"
        var checked = try place.run([obscura, "check", "V", "--password-stdin"], "one\n")
        try eventually {
            guard checked.errors.contains(isInUse) else { return true }
            checked = try place.run([obscura, "check", "V", "--password-stdin"], "one\n")
            return false
        }
        #expect(checked.status == 0, "\(checked.output)")
        #expect(try "\(storedVersion(place))" == name.prefix { $0 != "-" })
        try read(place, expected)
        try place.mount()
        #expect(try manifest(place) == expected)
        try place.source("new.jpg", Photo(seed: 99).bytes)
        try place.shell("cp source/new.jpg D/albums/new.jpg")
        try place.unmount()
        #expect(try storedVersion(place) == Self.version)
        let again = try place.run([obscura, "check", "V", "--password-stdin"], "one\n")
        #expect(again.status == 0, "\(again.output)")
        try place.mount(options: "ro")
        try place.shell(
            "cmp source/new.jpg D/albums/new.jpg; cmp source/new.jpg D/moments/2019-03-04/new.jpg")
        try place.unmount()
    }

    @Test(arguments: [1, 2]) func `a golden vault made now opens`(spaces: Int) throws {
        let target = "/tmp/obscura-golden-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: target) }
        try make(spaces: spaces, into: target)
        try open(Self.name(spaces: spaces), in: target)
        let archive = "\(target)/\(Self.name(spaces: spaces)).tar.gz"
        let size = try FileManager.default.attributesOfItem(atPath: archive)[.size] as? Int
        #expect(try #require(size) < 150_000)
    }

    @Test(arguments: kept) func `every golden vault opens`(name: String) throws {
        try open(name, in: Self.directory)
    }

    private static let isMaking = ProcessInfo.processInfo.environment["OBSCURA_GOLDEN"] == "make"

    @Test(.enabled(if: isMaking, "scripts/golden asks for it"), arguments: [1, 2])
    func `golden vaults are made where asked for`(spaces: Int) throws {
        try make(spaces: spaces, into: Self.directory)
    }

    /// The path of a vault that another program made, and the name of its archive.
    private static let packed = ProcessInfo.processInfo.environment["OBSCURA_GOLDEN_VAULT"]?.split(
        separator: "=")

    @Test(.enabled(if: packed != nil, "scripts/golden asks for it"))
    func `a vault of another program is packed where asked for`() throws {
        let packed = try #require(Self.packed)
        let place = try Place()
        try place.shell("rm -rf V; cp -a '\(packed[1])' V")
        try pack(place, String(packed[0]), into: Self.directory)
    }
}
