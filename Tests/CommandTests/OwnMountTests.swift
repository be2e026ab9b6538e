import HostFiles
import Testing

@testable import LinuxIO
@testable import obscura

@Suite("Commands: mounts that are ours") struct OwnMountTests {
    @Test(arguments: [
        ("fuse.obscura", "anything", true), ("fuse.gocryptfs", "obscura", true),
        ("fuse.sshfs", "host:", false),
        ("ext4", "obscura", false),
    ])
    func `knows its own`(type: String, source: String, isObscura: Bool) throws {
        let entry = try #require(MountEntry(line: "1 2 0:3 / /d rw - \(type) \(source) rw"))
        #expect(entry.isObscura == isObscura)
    }

    @Test func `paths`() {
        #expect(absolutePath("/a/./b/") == "/a/./b/")
        #expect(absolutePath("./x").hasSuffix("/x") && !absolutePath("./x").contains("./"))
        #expect(realPath("/proc/self/../.") == "/proc")
        #expect(realPath("/nowhere/at/all") == "/nowhere/at/all")
        #expect(realPath("/") == "/")
        #expect(isInside("/v/a", "/v") && isInside("/v", "/v") && isInside("/v", "/"))
        #expect(!isInside("/va", "/v") && !isInside("/", "/v"))
        #expect(lastComponent("/usr/sbin/mount.obscura") == "mount.obscura" && lastComponent("/") == "")
    }
}
