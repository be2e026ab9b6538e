import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// Files that Dolphin's Delete puts in clear into the desktop's trash are in the vault's trash after the unmount.
///
/// The files are those that Dolphin 22.12.3 (KIO 5.103) was seen to leave.
@Suite("Secrets: trashes outside the vault", .serialized, .waiting) struct DesktopTrashTests {
    private let place: Place
    private var trash: String { place.root + "/.local/share/Trash" }
    private static let album = "albums/T"

    init() throws { place = try Place() }

    private func mount(options: String = "rw") throws { try place.mount(options: options) }

    /// Deletes as KIO does: the trashinfo, then a copy, then the original.
    private func delete(_ path: String, to directory: String? = nil) throws {
        try place.shell(
            """
            T='\(directory ?? trash)'; N=$(basename '\(path)'); mkdir -p $T/files $T/info
            printf '[Trash Info]\\nPath=%s\\nDeletionDate=2026-01-02T03:04:05\\n' "$PWD/D/\(path)" >$T/info/$N.trashinfo
            cp -a 'D/\(path)' $T/files; rm -r 'D/\(path)'
            [ ! -d $T/files/$N ] || printf '12 1795422295451 %s\\n' $N >>$T/directorysizes
            """)
    }

    /// A photo, a text, a directory with both; and something else in the trash.
    private func fill() throws {
        try place.source("a.jpg", Photo().bytes)
        try place.source("b.jpg", Photo(seed: 2).bytes)
        try place.shell(
            """
            mkdir -p D/albums/T/Dir/sub; cp source/a.jpg D/albums/T; echo note >D/albums/T/note.txt
            cp source/b.jpg D/albums/T/Dir/sub; setfattr -n user.colour -v red D/albums/T/Dir/sub
            ln -s b.jpg D/albums/T/Dir/sub/link; touch -d 2001-02-03 D/albums/T/Dir/sub D/albums/T/note.txt
            mkdir -p '\(trash)'/files '\(trash)'/info; echo other >'\(trash)'/files/other
            printf '[Trash Info]\\nPath=%s\\nDeletionDate=2026-01-02T03:04:05\\n' "$PWD/E/other" \\
                >'\(trash)'/info/other.trashinfo
            printf '5 6 other\\n' >'\(trash)'/directorysizes
            """)
        for name in ["a.jpg", "note.txt", "Dir"] { try delete("\(Self.album)/\(name)") }
    }

    private static let other = ["directorysizes", "files/other", "info/other.trashinfo"]

    /// All is in the vault's trash, and comes back from it.
    private func expectReturned() throws {
        #expect(try place.files(trash) == Self.other)
        #expect(try place.shell("cat '\(trash)/directorysizes'") == "5 6 other\n")
        try place.mount()
        let own = ".Trash-\(geteuid())"
        #expect(
            try place.shell("cd D/\(own); ls; find files | LC_ALL=C sort; cat info/Dir.trashinfo")
                == """
                files
                info
                files
                files/Dir
                files/Dir/sub
                files/Dir/sub/b.jpg
                files/Dir/sub/link
                files/a.jpg
                files/note.txt
                [Trash Info]
                Path=albums/T/Dir
                DeletionDate=2026-01-02T03:04:05

                """)
        try place.shell(
            """
            cd D/\(own)/files; test $(stat -c %Y Dir/sub) = $(date -d 2001-02-03 +%s)
            test $(stat -c %Y note.txt) = $(date -d 2001-02-03 +%s)
            test $(getfattr --only-values -n user.colour Dir/sub) = red
            for i in *; do mv -nT $i ../../$(sed -n s/^Path=//p ../info/$i.trashinfo); rm ../info/$i.trashinfo; done
            """)
        let standing = [
            "albums/T/Dir/sub/b.jpg", "albums/T/a.jpg", "albums/T/note.txt", "moments/2019-03-04/a.jpg",
            "moments/2019-03-04/b.jpg",
        ]
        #expect(try place.files(place.mountPoint) == standing)
        #expect(try place.bytes(place.albums + "/T/a.jpg") == Photo().bytes)
        try place.unmount()
    }

    @Test(arguments: [
        "'\(obscura)' unmount D", "patiently fusermount3 -u D",
        "kill -TERM $(pgrep -f -- \"--daemon .*$PWD/D$\")",
        "idle",
    ])
    func `after any end of the mount, deleted photos are in the vault`(end: String) throws {
        try mount(options: end == "idle" ? "idle=10s" : "rw")
        try fill()
        if end != "idle" { try place.shell(end) }
        #expect(eventually { place.daemon == nil })
        try expectReturned()
    }

    @Test func `after a crash the next mount takes in the photos of this space`() throws {
        try mount()
        try fill()
        try place.source("c.jpg", Photo(seed: 3).bytes)
        // Of another vault, or from a time when the mount point was an ordinary directory.
        try place.shell(
            """
            sync D; cp source/c.jpg '\(trash)'/files/c.jpg
            printf '[Trash Info]\\nPath=%s\\nDeletionDate=2026-01-02T03:04:05\\n' "$PWD/D/albums/X/c.jpg" \\
                >'\(trash)'/info/c.jpg.trashinfo
            """)
        kill(try #require(place.daemon), SIGKILL)
        #expect(eventually { place.daemon == nil })
        #expect(exists(trash + "/files/a.jpg"))
        // The next mount tells older files by their change time, in whole seconds, with one to spare.
        let now = time(nil)
        #expect(eventually { time(nil) > now + 2 })
        try place.mount()
        #expect(eventually { !exists(trash + "/info/note.txt.trashinfo") })
        let ended = try place.run([obscura, "unmount", "D"])
        #expect(
            ended.status == 0 && ended.errors.contains("1 deleted file is unencrypted"),
            "\(ended.errors)")
        try place.shell("rm '\(trash)'/files/c.jpg '\(trash)'/info/c.jpg.trashinfo")
        try expectReturned()
    }

    @Test func `a photo that was deleted in moments is in the vault's trash once`() throws {
        try mount()
        try place.source("a.jpg", Photo().bytes)
        try place.shell("cp source/a.jpg D/albums")
        try delete("moments/2019-03-04/a.jpg")
        try place.unmount()
        #expect(try place.files(trash) == [])
        try place.mount()
        let own = ".Trash-\(geteuid())"
        #expect(try place.files(place.mountPoint) == ["\(own)/files/a.jpg", "\(own)/info/a.jpg.trashinfo"])
        try place.unmount()
    }

    @Test func `files that a full vault does not take stay outside, and are told`() throws {
        let place = try Place(spaces: 2, size: "24M")
        try place.mount()
        let trash = place.root + "/.local/share/Trash"
        try place.shell(
            """
            mkdir -p D/albums/T '\(trash)'/files '\(trash)'/info; head -c 12M /dev/urandom >D/albums/T/full
            head -c 20M /dev/urandom >'\(trash)'/files/large; echo small >'\(trash)'/files/small
            for i in large small; do
                printf '[Trash Info]\\nPath=%s\\nDeletionDate=2026-01-02T03:04:05\\n' "$PWD/D/albums/T/$i" \\
                    >'\(trash)'/info/$i.trashinfo
            done
            sha256sum '\(trash)'/files/large >sum
            """)
        let ended = try place.run([obscura, "unmount", "D"])
        #expect(
            ended.status == 0 && ended.errors.contains("1 deleted file is unencrypted"),
            "\(ended.errors)")
        #expect(try place.files(trash) == ["files/large", "info/large.trashinfo"])
        try place.shell("sha256sum -c sum")
        try place.mount()
        let own = ".Trash-\(geteuid())"
        #expect(
            try place.files(place.mountPoint)
                == ["\(own)/files/small", "\(own)/info/small.trashinfo", "albums/T/full"])
        #expect(try place.run([obscura, "unmount", "D"]).status == 0)
    }

    @Test(arguments: ["sweep=off", "ro"])
    func `left alone where nothing is to be swept or written`(options: String) throws {
        try mount()
        try fill()
        try place.shell("mv '\(trash)' kept")
        try place.unmount()
        try mount(options: options)
        try place.shell("mv kept '\(trash)'")
        let before = try place.files(trash)
        let ended = try place.run([obscura, "unmount", "D"])
        #expect(ended.status == 0 && ended.errors.isEmpty == (options == "sweep=off"), "\(ended.errors)")
        #expect(try place.files(trash) == before)
    }

    @Test func `the trashes at the top of the vault's disk too, and those of no other`() throws {
        guard geteuid() == 0 else { return }
        try place.source("a.jpg", Photo().bytes)
        try place.shell(
            """
            mkdir disk stick; unshare -m --propagation slave /bin/bash -e <<'END'
            mount -t tmpfs disk disk; mkdir -m 1777 disk/.Trash; cp -a V disk/V
            mount -t tmpfs stick stick; mkdir -m 1777 stick/.Trash
            printf 'one\\n' | '\(obscura)' mount disk/V D --password-stdin
            for T in disk/.Trash-0 disk/.Trash/0 stick/.Trash-0 stick/.Trash/0; do
                mkdir -p $T/files $T/info; cp source/a.jpg $T/files/a.jpg
                case $T in *-0) N=one ;; *) N=two ;; esac
                printf '[Trash Info]\\nPath=%s\\nDeletionDate=2026-01-02T03:04:05\\n' "$PWD/D/albums/$N/a.jpg" \\
                    >$T/info/a.jpg.trashinfo
            done
            '\(obscura)' unmount D
            find disk/.Trash* stick -type f | LC_ALL=C sort >left; cp -a disk/V/. V
            END
            """)
        #expect(
            try place.shell("cat left").split(separator: "\n") == [
                "stick/.Trash-0/files/a.jpg", "stick/.Trash-0/info/a.jpg.trashinfo",
                "stick/.Trash/0/files/a.jpg", "stick/.Trash/0/info/a.jpg.trashinfo",
            ])
        try place.mount()
        #expect(try place.files(place.mountPoint + "/.Trash-0/files") == ["a (2).jpg", "a.jpg"])
        try place.unmount()
    }
}
