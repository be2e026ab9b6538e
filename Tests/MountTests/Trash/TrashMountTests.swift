import Foundation
import Glibc
import TestThreads
import Testing

/// *Trash* of the contract, by file managers and rm.
@Suite("Trash: rm and file managers, through a mount", .serialized, .waiting) struct TrashMountTests {
    private let place: Place
    private static let standing = ["albums/T/a.jpg", "albums/U/b.jpg", "moments/2019-03-04/a.jpg"]

    /// Mounted, with one photo in two albums.
    init() throws {
        place = try Place()
        try place.mount()
        try place.source("a.jpg", Photo().bytes)
        try place.shell(
            """
            mkdir D/albums/T D/albums/U
            cp source/a.jpg D/albums/T
            mv D/moments/2019-03-04/a.jpg D/albums/U/b.jpg
            """)
    }

    private func everything() throws -> [String] { try place.files(place.mountPoint) }

    /// Trashes a file as GLib and Thunar do: the trashinfo, then a rename.
    private func trash(_ path: String) throws {
        let name = path.split(separator: "/").last.map(String.init) ?? ""
        try place.shell(
            """
            cd D; T=.Trash-$(id -u); mkdir -p -m 700 $T/files $T/info
            printf '[Trash Info]\\nPath=\(path)\\nDeletionDate=2026-01-01T00:00:00\\n' >$T/info/\(name).trashinfo
            mv -nT \(path) $T/files/\(name)
            """)
    }

    /// Restores it by its trashinfo, as they do.
    private func restore(_ name: String) throws {
        try place.shell(
            """
            cd D; T=.Trash-$(id -u); P=$(sed -n s/^Path=//p $T/info/\(name).trashinfo)
            mkdir -p "${P%/*}"; mv -nT $T/files/\(name) "$P"; rm $T/info/\(name).trashinfo
            """)
    }

    @Test(arguments: ["moments/2019-03-04/a.jpg", "moments/2019-03-04", "albums/T", "albums/T/a.jpg"])
    func `trashed and restored, everything is as it was`(path: String) throws {
        let name = path.split(separator: "/").last.map(String.init) ?? ""
        for isMountedAnew in [false, true] {
            try trash(path)
            #expect(!exists(place.mountPoint + "/" + path))
            #expect(try place.shown().isEmpty == path.hasPrefix("moments"))
            #expect(exists(place.albums + "/U/b.jpg") == path.hasPrefix("albums"))
            if isMountedAnew {
                try place.unmount()
                try place.mount()
            }
            try restore(name)
            #expect(try everything() == Self.standing)
            #expect(try status(place.albums + "/U/b.jpg").st_nlink == 3)
            #expect(try place.bytes(place.albums + "/U/b.jpg") == Photo().bytes)
        }
    }

    @Test func `rm in moments can be undone`() throws {
        try place.shell("rm D/moments/2019-03-04/a.jpg")
        #expect(try everything() == [".Trash-0/files/a.jpg", ".Trash-0/info/a.jpg.trashinfo"])
        #expect(try status(place.mountPoint + "/.Trash-0/files/a.jpg").st_nlink == 1)
        try restore("a.jpg")
        #expect(try everything() == Self.standing)
    }

    @Test func `emptying destroys nothing that stands in moments`() throws {
        try trash("albums/T")
        try place.shell("rm -r D/.Trash-0/files/T D/.Trash-0/info/T.trashinfo")
        #expect(try everything() == ["albums/U/b.jpg", "moments/2019-03-04/a.jpg"])
        try trash("moments/2019-03-04/a.jpg")
        try place.shell("rm -r D/.Trash-0/*")
        #expect(try everything().isEmpty)
    }

    @Test func `a name that was taken away is free at once`() throws {
        try place.shell(
            """
            exec 3<D/albums/U/b.jpg; rm D/moments/2019-03-04/a.jpg
            echo text >D/albums/U/b.jpg; test "$(cat D/albums/U/b.jpg)" = text
            """)
        #expect(try place.bytes(place.mountPoint + "/.Trash-0/files/a.jpg") == Photo().bytes)
    }

    @Test func `with trash=0 it is gone at once`() throws {
        try place.unmount()
        try place.mount(options: "trash=0")
        try place.shell("rm D/moments/2019-03-04/a.jpg")
        #expect(try everything().isEmpty)
        #expect(try place.files(place.mountPoint + "/.Trash-0").isEmpty)
    }
}
