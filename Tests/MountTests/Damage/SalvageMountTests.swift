import Foundation
import LinuxIO
import PhotoLibrary
import Recovery
import TestSupport
import TestThreads
import Testing
import VaultCrypto
import VaultStore

/// A vault whose catalogue was destroyed, rebuilt and mounted again.
@Suite("Damage: a lost catalogue, through a mount", .serialized, .waiting) struct SalvageMountTests {
    /// - Parameter isDeleted: the files of the catalogue are gone; else their contents.
    @Test(arguments: [(1, false), (1, true), (2, false)])
    func `all photos, albums and plain files come back after the catalogue is gone`(
        spaces: Int, isDeleted: Bool
    ) throws {
        let place = try Place(spaces: spaces, size: "64M")
        for index in 0..<25 {
            let photo = Photo(width: 300, height: 200, seed: UInt8(index)).bytes
            try place.source("d\(index % 3)/p\(index).jpg", photo, modified: 1_700_000_000 + index * 40_000)
        }
        try place.source("d0/notes.txt", Array("notes".utf8))
        try place.source("d1/p1.jpg.xmp", Array("<x/>".utf8))
        try place.mount()
        try place.shell("rsync -a source/ D/albums/; ln -s d0/notes.txt D/albums/link")
        let day = try #require(try place.shown().first?.split(separator: "/").first)
        try place.shell("mkdir D/moments/2020-01-01; mv D/moments/\(day)/* D/moments/2020-01-01/")
        try place.shell("mv D/albums/d2 D/albums/'d2 renamed'; rm D/albums/d0/p0.jpg D/albums/d0/p3.jpg")
        try place.shell("touch -d '2001-02-03 04:05:06.123456789' D/albums/d1")
        try place.shell("cp -a D/. before; \(listing) > listed-before")
        try place.unmount()

        if isDeleted {
            try place.shell("rm V/segments/00000[01].seg")
        } else {
            for space in 0..<spaces {
                for number in 0..<2 {
                    let file = try SegmentFile(place.vault, space: space, number)
                    let count = try file.read().count
                    let random = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/dev/urandom"))
                    try file.write(random.read(upToCount: count) ?? Data())
                }
            }
        }
        #expect(
            try place.run([obscura, "mount", place.vault, place.mountPoint, "--password-stdin"], "one\n")
                .status != 0)
        let summary = try rebuild(place)
        #expect(summary.hasPrefix("25 photos in "), "\(summary)")
        // A program that another thread starts has the lock of this process until it is executed.
        let header = open(place.vault + "/obscura.vault", O_RDONLY | O_CLOEXEC)
        #expect(eventually { flock(header, LOCK_EX | LOCK_NB) == 0 })
        flock(header, LOCK_UN)
        close(header)
        try place.mount()
        try place.shell(
            "diff -r --no-dereference before D; \(listing) > listed-after; diff listed-before listed-after")
        // And goes on as before.
        try place.shell("rsync -ai source/d1 D/albums/ | tee again; cp source/d0/p0.jpg D/albums/new.jpg")
        try place.unmount()
        try place.mount()
        try place.shell("cmp source/d0/p0.jpg D/albums/new.jpg")
        try place.unmount()
    }

    /// The originals share chunks with the edited photos. Of some photos and originals nothing tells but their chunks
    /// while records are away. The photos end with a whole one, so that the first repair must take more for lost.
    ///
    /// - Parameter syncs: how often all is made durable while a photo is copied and edited, by photo: without a sync
    ///   an original and its edited photo come in one commit, unless that takes very long; with one they have
    ///   different ones. In the last the segment that is away has all that tells of the newest photos, and of none of
    ///   the others the bytes are lost.
    @Test(arguments: ["", "1 2 3 4 5 6 7 8", "1 4 8", "6"])
    func `photos and their originals come back with a segment that they lie in`(syncs: String) throws {
        let place = try Place(spaces: 1)
        try place.source("a.jpg", largeJPEG("2024-05-01", more: 1, size: 700_000))
        try place.mount()
        try place.shell(
            """
            mkdir D/albums/A
            for n in 1 2 3 4 5 6 7 8; do
                cp source/a.jpg D/albums/A/$n.jpg
                case " \(syncs) " in *" $n "*) sync D ;; esac
                head -c $((28 * 131072 - 700000)) /dev/urandom >> D/albums/A/$n.jpg
            done
            sync D; cp -a D/albums/A before; cmp D/albums/A/.versions/1.jpg/original source/a.jpg
            """)
        try place.unmount()
        let repair = [obscura, "check", "V", "--repair", "--password-stdin"]
        try place.shell("rm V/segments/00000[01].seg; mv V/segments/000003.seg away")
        let lost = try place.run(repair, "one\n")
        #expect(lost.status == 6, "\(lost.output)")
        // As a user who looks what is left: a mount writes.
        try place.mount()
        try place.unmount()
        try place.shell("mv away V/segments/000003.seg")
        let found = try place.run(repair, "one\n")
        #expect(found.status == 0, "\(found.output)")
        try place.mount()
        try place.shell(
            """
            diff -r before D/albums/A
            for n in 1 2 3 4 5 6 7 8; do cmp D/albums/A/.versions/$n.jpg/original source/a.jpg; done
            """)
        try place.unmount()
    }

    /// Inode, mode, link count, size and mtime of everything but the directories that every space has.
    private let listing = "(cd D; find . -mindepth 2 -printf '%P %i %m %n %s %T@\\n' | sort)"

    /// A function of its own: its result keeps the vault locked.
    private func rebuild(_ place: Place) throws -> String {
        let password = Array("one".utf8).withUnsafeBytes { SecretBytes(copying: $0) }
        let unlocked = try Vault.unlock(
            place.vault, password: password, readOnly: false, calls: LinuxCalls.shared)
        let options = LibraryOptions(owner: (getuid(), getgid()), mountedByRoot: getuid() == 0)
        let salvage = try Salvage.survey(unlocked, options: options) { _, _ in }
        try salvage.rebuild()
        return salvage.report.summary
    }
}
