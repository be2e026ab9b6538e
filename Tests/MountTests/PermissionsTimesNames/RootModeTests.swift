import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// The root of a mount and its first directories, for other users and for programs that ask where they may write.
@Suite("Permissions, times, names: the root", .serialized, .waiting) struct RootModeTests {
    private static let (owner, stranger) = (54_321, 54_322)

    private func run(_ place: Place, as user: Int, _ line: String) throws -> Ended {
        let words = ["setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups", "/bin/bash", "-ec"]
        return try place.run(words + [line])
    }

    private func mode(_ path: String) throws -> String { String(try status(path).st_mode & 0o7777, radix: 8) }

    @Test func `nothing is offered at the root, and the trash is there`() throws {
        let place = try Place()
        try place.mount(options: "views")
        #expect(try mode(place.mountPoint) == "555")
        #expect(try mode(place.moments) == "700")
        #expect(try mode(place.albums) == "755")
        #expect(try mode(place.mountPoint + "/views") == "500")
        let trash = place.mountPoint + "/.Trash-\(geteuid())"
        for path in [trash, trash + "/files", trash + "/info"] { #expect(try mode(path) == "700") }
        #expect(rmdir(trash + "/files") == 0 && rmdir(trash + "/info") == 0)
        #expect(rmdir(trash) == -1 && exists(trash))
        // Programs that copy a tree set modes and times of its top too.
        try place.shell("chmod 777 D; touch -d 2020-01-01 D")
        #expect(try mode(place.mountPoint) == "555")
        try place.shell("chmod 750 D/moments")
        try place.unmount()
        try place.mount(options: "ro")
        #expect(try mode(place.mountPoint) == "555")
        #expect(try mode(place.moments) == "750")
        try place.unmount()
    }

    @Test func `with allow_other moments show strangers nothing that albums do not`() throws {
        guard geteuid() == 0 else { return }
        let place = try Place()
        try place.source("a.jpg", Photo().bytes)
        try place.mount(options: "allow_other,uid=\(Self.owner),gid=\(Self.owner)")
        try place.shell("chmod 755 .; mkdir -m 700 D/albums/T; install -m 644 source/a.jpg D/albums/T")
        for line in ["cat D/moments/2019-03-04/a.jpg", "ls D/moments", "cat D/albums/T/a.jpg"] {
            #expect(try run(place, as: Self.stranger, line).status != 0, "\(line)")
        }
        #expect(try run(place, as: Self.owner, "cat D/moments/2019-03-04/a.jpg D/albums/T/a.jpg").status == 0)
        // The trash is that of the user for whom root mounts; the file manager asks this way.
        let trash = "test -O D/.Trash-\(Self.owner) -a -w D/.Trash-\(Self.owner) -a ! -w D"
        #expect(try run(place, as: Self.owner, trash).status == 0)
        #expect(!exists(place.mountPoint + "/.Trash-0"))
        #expect(try run(place, as: Self.owner, "rmdir D/.Trash-*/* D/.Trash-*").status != 0)
        try place.unmount()
    }

    /// syncfs(2) never reaches the process.
    @Test func `fsync of the root settles files that are still being written`() throws {
        let place = try Place()
        try place.mount()
        try place.shell("exec 3>D/albums/open; echo text >&3; sync D; kill -9 \(place.daemon ?? 0)")
        try place.shell("umount -l D || fusermount3 -uz D")
        try place.mount()
        #expect(try place.shell("cat D/albums/open") == "text\n")
        try place.unmount()
    }
}
