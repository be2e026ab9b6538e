import Foundation
import Glibc
import Testing

@testable import LinuxIO

@Suite("System calls: the table of mounts") struct MountTableTests {
    @Test func `reads a line`() throws {
        let line =
            "60 22 0:44 / /home/u/My\\040Photos\\134x rw,nosuid shared:5 master:2 "
            + "- fuse.obscura my\\040vault rw,user_id=0"
        let entry = try #require(MountEntry(line: line[...]))
        #expect(entry.device == "0:44")
        #expect(entry.directory == "/home/u/My Photos\\x")
        #expect(entry.type == "fuse.obscura")
        #expect(entry.source == "my vault")
    }

    @Test func `a source may be empty`() throws {
        let entry = try #require(MountEntry(line: "1 2 0:3 / /d rw - tmpfs  rw,size=1k"))
        #expect(entry.type == "tmpfs" && entry.source.isEmpty)
    }

    @Test(
        arguments: [
            ("rw,user_id=1000,group_id=100", 1000, 100), ("rw,user_id=0,group_id=0,allow_other", nil, nil),
            ("rw", nil, nil),
            ("rw,user_id=1000,group_id=x", nil, nil),
        ] as [(String, UInt32?, UInt32?)])
    func `knows whom a FUSE mount admits`(options: String, user: UInt32?, group: UInt32?) throws {
        let entry = try #require(MountEntry(line: "1 2 0:3 / /d rw - fuse.obscura o \(options)"))
        #expect(entry.onlyUser?.user == user && entry.onlyUser?.group == group)
    }

    @Test(arguments: [
        ("\\134040", "\\040"), ("\\0", "\\0"), ("a\\011b\\012", "a\tb\n"), ("\\999", "\\999"),
        ("\\777", "\\777"),
        ("-", "-"), ("\\303\\244", "ä"),
    ])
    func `undoes escapes`(written: String, meant: String) throws {
        let line = "1 2 0:3 / \(written) rw - tmpfs t rw"
        #expect(try #require(MountEntry(line: line[...])).directory == meant)
    }

    @Test(arguments: [
        "", "-", "1 2 3", "1 2 3 4 5 6", "1 2 0:3 / /m rw -", "1 2 0:3 / /d rw shared:1 ext4 x rw",
        "1 2 0:3 / /d rw - ext4",
    ])
    func `passes over lines of another form`(line: String) { #expect(MountEntry(line: line[...]) == nil) }

    @Test func `mounts of this process are known`() {
        #expect(mountEntry(at: "/proc")?.type == "proc")
        #expect(mountEntry(at: "/proc/self") == nil)
    }

    @Test func `a mount that another covers is told`() throws {
        let lines = [
            "1 0 8:1 / / rw - ext4 a rw", "2 1 0:50 / /home/u/Photos rw - fuse.obscura x rw",
            "3 2 0:51 / /home/u/Photos/in rw - tmpfs x rw", "4 1 0:52 / /home/u rw - tmpfs x rw",
            "5 4 0:53 / /home/u/Photos rw - fuse.obscura x rw", "6 1 0:54 / /home/ux rw - tmpfs x rw",
            "7 7 0:55 / /home/loop rw - tmpfs x rw",
        ]
        let table = try lines.map { try #require(MountEntry(line: $0[...])) }
        #expect(table.map { isReached($0, in: table) } == [true, false, false, true, true, true, true])
    }

    /// A mount of this namespace at /home/u/P, on a file system mounted at /home, and mounts of it elsewhere.
    @Test(arguments: [
        // Copies of /home that receive from the same group, in other namespaces.
        ("11 10 8:2 / /home rw shared:7 - ext4 b rw", "12 11 0:50 / /home/u/P rw - fuse.obscura x rw", true),
        ("11 10 8:2 / /h rw master:7 - ext4 b rw", "12 11 0:50 / /h/u/P rw - fuse.obscura x rw", true),
        ("11 10 8:2 /u /h rw master:9 - ext4 b rw", "12 11 0:50 / /h/P rw - fuse.obscura x rw", true),
        ("11 10 8:2 / / rw shared:7 - ext4 b rw", "12 11 0:50 / /u/P rw - fuse.obscura x rw", true),
        // It receives nothing, or is at another place.
        ("11 10 8:2 / /home rw - ext4 b rw", "12 11 0:50 / /home/u/P rw - fuse.obscura x rw", false),
        ("11 10 8:2 / /home rw shared:8 - ext4 b rw", "12 11 0:50 / /home/u/P rw - fuse.obscura x rw", false),
        ("11 10 8:2 / /home rw shared:7 - ext4 b rw", "12 11 0:50 / /home/u/B rw - fuse.obscura x rw", false),
        ("11 10 8:3 / /home rw shared:7 - ext4 c rw", "12 11 0:50 / /home/u/P rw - fuse.obscura x rw", false),
        (
            "2 1 8:2 / /home rw shared:7 - ext4 b rw", "12 2 0:50 /albums /home/B rw - fuse.obscura x rw",
            false
        ),
    ])
    func `a mount that goes with another is told`(below: String, mount: String, follows: Bool) throws {
        func entry(_ line: String) throws -> MountEntry { try #require(MountEntry(line: line[...])) }
        let own = [
            try entry("1 0 8:1 / / rw shared:1 - ext4 a rw"),
            try entry("2 1 8:2 / /home rw shared:7 - ext4 b rw"),
            try entry("3 2 0:50 / /home/u/P rw shared:9 - fuse.obscura x rw"),
        ]
        let other = [try entry("10 0 8:1 / / rw - ext4 a rw"), try entry(below), try entry(mount)]
        #expect(other[2].mayFollow(own[2], in: other, own) == follows)
    }

    @Test func `processes of one mount namespace see the same mounts`() {
        #expect(firstMountID(of: getpid()) == mountTable().first?.id)
        #expect(firstMountID(of: -1) == nil)
        // The kernel cuts longer names of threads.
        #expect(connectionThreadName((1 << 20) - 1).utf8.count <= 15)
    }

    @Test func `reads all parts of a file`() throws {
        let path = "/tmp/obscura-parts-\(UUID().uuidString)"
        defer { unlink(path) }
        for count in [0, 1, 4095, 4096, 4097, 16_384, 100_001] {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 * 31 >> 3) }
            try Data(bytes).write(to: URL(fileURLWithPath: path))
            #expect(contents(ofFile: path) == bytes, "\(count)")
        }
    }

    @Test func `reads files whose size nobody tells, and none that is not there`() {
        #expect((contents(ofFile: "/proc/self/status")?.count ?? 0) > 100)
        #expect((contents(ofFile: "/proc/self/status", bytesWanted: 5) ?? []).starts(with: "Name:".utf8))
        #expect(contents(ofFile: "/proc/self/none") == nil)
        #expect(contents(ofFile: "/proc") == nil)
    }
}
