import Testing

@testable import LinuxIO
@testable import obscura

/// What `obscura status` says of a mount's answer.
@Suite struct StatusTests {
    private let answer = [
        "total": "1073741824", "free": "536870912", "available": "268435456", "photos": "12", "trashed": "0",
        "thumbnails": "7", "unsaved": "0", "durable": "yes", "readonly": "no",
    ]

    @Test func `a mount at rest`() {
        #expect(
            statusText("/home/u/Photos", answer)
                == """
                Mounted at      /home/u/Photos
                Size            1 GiB, 512 MiB used, 256 MiB available
                Photos          12
                Thumbnails      7
                Pending writes  none, everything is safe on disk
                """)
    }

    @Test func `every mount is asked once, and no other file system`() {
        let lines = [
            "1 2 0:5 / /d rw - ext4 /dev/sda rw", "1 2 0:6 / /a rw - fuse.obscura obscura rw",
            "1 2 0:7 / /b rw - fuse.pictures obscura rw", "1 2 0:6 / /a rw - fuse.obscura obscura rw",
            "1 2 0:8 / /c rw - fuse.sshfs host: rw",
        ]
        #expect(spacesMounted(lines.compactMap { MountEntry(line: Substring($0)) }) == ["/a", "/b"])
    }

    @Test func `what is not safe yet, and what is special`() {
        var busy = answer
        busy["durable"] = "no"
        #expect(statusText("D", busy).hasSuffix("Pending writes  written, not yet synced to the disk"))
        busy["unsaved"] = "2"
        busy["trashed"] = "3"
        busy["readonly"] = "yes"
        let text = statusText("D", busy)
        #expect(text.hasSuffix("Pending writes  2 files in memory"))
        #expect(text.contains("12, 3 more in the trash\n"))
        #expect(text.hasPrefix("Mounted at      D (read-only)\n"))
        #expect(!statusText("D", [:]).isEmpty)
    }
}
