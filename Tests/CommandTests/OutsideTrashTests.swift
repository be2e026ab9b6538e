import Foundation
import Glibc
import PhotoLibrary
import Testing

@testable import DesktopTraces
@testable import LinuxIO
@testable import PhotoRules

/// The original paths of files in a trash outside the vault.
@Suite("Secrets: trashes outside the vault, their files") struct OutsideTrashTests {
    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Test(arguments: [
        ("/d/albums/a.jpg", "albums/a.jpg"), ("/d", ""), ("/d/", ""), ("/d/./albums//a", "albums/a"),
        ("/x/../d/a", "a"), ("/dx/a", nil), ("/", nil), ("/d/../x", nil), ("/d/../d/a", "a"),
    ])
    func `the part of a path below the mount`(path: String, remainder: String?) {
        var below = PathsBelow("/d", near: "/nowhere", mounts: [])
        #expect(below.remainder(of: bytes(path)) == remainder.map(bytes))
        #expect(below.contains(bytes(path)) == (remainder != nil))
    }

    @Test func `keeps all but the path`() throws {
        let text = "[Trash Info]\nDeletionDate=2026-01-02T03:04:05\nPath=/d/%C3%A4%20%25.jpg\nOther=1\n"
        let info = try #require(TrashInfoText(bytes(text)))
        #expect(info.path == bytes("/d/ä %.jpg"))
        #expect(
            info.bytes(path: bytes("ä %.jpg"))
                == bytes("[Trash Info]\nDeletionDate=2026-01-02T03:04:05\nPath=%C3%A4%20%25.jpg\nOther=1\n"))
    }

    @Test(arguments: ["", "Path=/a", "[Trash Info]\n", "[Trash Info]\nPath=\n", "[Trash Info]\nPath=%00\n"])
    func `invalid entries of a trash`(text: String) { #expect(TrashInfoText(bytes(text)) == nil) }

    @Test(arguments: [
        ("8:1", "ext4", true), ("0:40", "btrfs", true), ("0:41", "tmpfs", true), ("0:42", "nfs4", false),
        ("0:43", "autofs", false), ("0:44", "fuse.obscura", false), ("8:2", "fuseblk", true),
        ("0:45", "proc", false),
    ])
    func `disks of this machine`(device: String, type: String, isLocal: Bool) throws {
        let entry = try #require(MountEntry(line: "1 0 \(device) / /d rw - \(type) x rw"))
        #expect(entry.isLocal == isLocal)
    }

    @Test func `of a copied directory what came or changed since stays`() throws {
        let path = "/tmp/obscura-copied-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        func make(_ name: String) throws {
            let file = URL(fileURLWithPath: path + "/" + name)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(name.utf8).write(to: file)
        }
        for name in ["T/a", "T/in/b", "T/in/c", "U/a"] { try make(name) }
        let top = try OwnedDirectory(bytes(path), of: geteuid())
        func copied(_ names: [[UInt8]], in directory: OwnedDirectory) throws -> [CopiedFile] {
            try names.map { name in
                let inner = try? directory.directory(name)
                return CopiedFile(
                    name: name, status: try directory.status(name),
                    inner: try inner.map { try copied($0.names(), in: $0) } ?? [])
            }
        }
        let all = try copied(top.names(), in: top)
        for name in ["T/new", "T/in/b", "T/in/longer"] { try make(name) }
        try Data("changed".utf8).write(to: URL(fileURLWithPath: path + "/T/in/c"))
        #expect(all.map { $0.remove(from: top) } == [false, true])
        let left = try FileManager.default.subpathsOfDirectory(atPath: path).sorted()
        #expect(left == ["T", "T/in", "T/in/b", "T/in/c", "T/in/longer", "T/new"])
    }

    @Test(arguments: ["..", ".", "", "a/b", "a\0b"]) func `no entry has a name that leads elsewhere`(
        name: String
    ) {
        #expect(!isPlainName(bytes(name)))
    }
}
