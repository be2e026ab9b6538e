import PhotoLibrary
import Testing

@testable import LinuxIO
@testable import PhotoRules
@testable import obscura

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
}
