import Glibc
import Testing

@testable import obscura

@Suite struct MountTableTests {
    @Test func `reads a line`() throws {
        let line =
            "60 22 0:44 / /home/u/My\\040Photos\\134x rw,nosuid shared:5 master:2 - fuse.obscura obscura rw,user_id=0"
        let entry = try #require(MountEntry(line: line))
        #expect(entry.device == "0:44")
        #expect(entry.directory == "/home/u/My Photos\\x")
        #expect(entry.isObscura)
    }

    @Test(arguments: [
        ("fuse.obscura", "anything", true), ("fuse.gocryptfs", "obscura", true),
        ("fuse.sshfs", "host:", false),
        ("ext4", "obscura", false),
    ])
    func `knows its own`(type: String, source: String, isObscura: Bool) throws {
        let entry = try #require(MountEntry(line: "1 2 0:3 / /d rw - \(type) \(source) rw"))
        #expect(entry.isObscura == isObscura)
    }

    @Test func `survives lines of another form`() {
        for line in ["", "1 2 3", "1 2 0:3 / /d rw shared:1 ext4 x rw", "1 2 0:3 / /d rw - ext4"] {
            #expect(MountEntry(line: line) == nil)
        }
        #expect(mountEntry(at: "/proc")?.type == "proc")
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
