import Testing

@testable import LinuxIO
@testable import obscura

/// The output of `obscura status` for a mount's answer.
@Suite("Commands: status") struct StatusTests {
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
                Versions        0
                Pending writes  none, everything is safe on disk
                """)
    }

    @Test func `a space that takes no more writes`() {
        var stopped = answer
        stopped["readonly"] = "yes"
        stopped["unwritten"] = "yes"
        stopped["unsaved"] = "3"
        stopped["reason"] = "segment 000000 is missing"
        stopped["advice"] =
            "unmount it, put it back from a backup if there is one, then run obscura check V --repair"
        let text = statusText("D", stopped)
        #expect(text.hasPrefix("Mounted at      D (read-only)\n"))
        #expect(
            text.hasSuffix(
                """
                Pending writes  some changes cannot be written: obscura unmount names them
                Read-only       segment 000000 is missing: unmount it, put it back from a backup if there is one, \
                then run obscura check V --repair
                """))
    }

    @Test func `a full space`() {
        var full = answer
        full["durable"] = "no"
        full["reason"] = "the space is full"
        full["advice"] = "remove something, or run obscura grow V SIZE"
        #expect(
            statusText("D", full).hasSuffix(
                """
                Pending writes  written, not yet synced to the disk
                Full            the space is full: remove something, or run obscura grow V SIZE
                """))
    }

    @Test func `as JSON`() {
        var stopped = answer
        stopped["reason"] = "a \"reason\"\\"
        let text = statusJSON("/p\nq\u{9B}é", stopped)
        #expect(
            text
                == #"{"mounted_at": "/p\u000aq\u009bé", "vault": null, "total": 1073741824, "free": 536870912, "#
                + #""available": 268435456, "photos": 12, "trashed": 0, "thumbnails": 7, "#
                + #""versions": 0, "version_bytes": 0, "unsaved": 0, "#
                + #""committed": false, "durable": true, "read_only": false, "unwritten": false, "#
                + #""reason": "a \"reason\"\\", "advice": null, "missing_helpers": []}"#)
    }

    @Test func `programs that are missing`() {
        var partial = answer
        // The second is of a later release.
        partial["missing"] = "obscura-worker obscura-later"
        #expect(
            statusText("D", partial).hasSuffix(
                "\nMissing         obscura-worker (no thumbnails), obscura-later: install Obscura again, "
                    + "then mount again"))
        #expect(
            statusJSON("D", partial).hasSuffix(#""missing_helpers": ["obscura-worker", "obscura-later"]}"#))
    }

    @Test func `files that a mount could not write`() {
        func answer(_ text: String) -> UnwrittenAnswer { UnwrittenAnswer(MountedSpace.parse(text)) }
        #expect(!answer("").isAny && !answer("written=yes\n").isAny)
        let some = answer("written=no\nfiles=3\nmore=no\nfull=no\nreason=it is\npath=a=b\npath=c\u{1B}\n")
        #expect(some.isAny && !some.isFull && some.reason == "it is")
        #expect(some.summary == "3 files are not written")
        #expect(some.lines == ["not written: a=b", "not written: c?", "and 1 more"])
        #expect(answer("written=no\nfiles=1\n").summary == "1 file is not written")
        #expect(answer("written=no\nfiles=9\nmore=yes\n").summary == "more than 9 files are not written")
        #expect(answer("written=no\nfiles=0\n").summary == "changes of names or albums are not written")
    }

    @Test func `every mount is asked once, and no other file system`() {
        let lines = [
            "1 2 0:5 / /d rw - ext4 /dev/sda rw", "1 2 0:6 / /a rw - fuse.obscura obscura rw",
            "1 2 0:7 / /b rw - fuse.pictures obscura rw", "1 2 0:6 / /a rw - fuse.obscura obscura rw",
            "1 2 0:8 / /c rw - fuse.sshfs host: rw", "1 2 0:10 / /e rw - fuse.obscura Obscura@/v rw",
            "1 2 0:6 / /bound rw - fuse.obscura obscura rw",
            "1 2 0:9 /albums /part rw - fuse.obscura obscura rw",
        ]
        #expect(spacesMounted(lines.compactMap { MountEntry(line: Substring($0)) }) == ["/a", "/b", "/e"])
    }

    @Test func `unsynced and special files are counted`() {
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
