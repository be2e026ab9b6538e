import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// What file managers trash in `views/similar`, and restore: to the place that they noted, or to the view.
@Suite("Trash: out of a view and back", .serialized, .waiting) struct ViewTrashTests {
    private let place: Place
    private let group = "views/similar/0001 a1.jpg"
    private let whole: [String]

    init() throws {
        place = try Place(spaces: 1)
        try place.mount(options: "rw,views")
        for number in 1...3 {
            try place.source("a\(number).jpg", Photo(taken: "2019:03:0\(number) 05:06:07", seed: 1).bytes)
        }
        try place.shell("mkdir D/albums/T; cp source/a?.jpg D/albums/T")
        try place.shell(
            """
            for step in $(seq 60); do sleep 1; set -- D/views/similar/*/*; [ $# -ne 3 ] || break; done
            [ $# -eq 3 ]
            """)
        whole = try place.files(place.mountPoint).filter { !$0.hasPrefix("views") }
        #expect(whole.count == 6)
    }

    /// Everything but the views.
    private var files: [String] {
        get throws { try place.files(place.mountPoint).filter { !$0.hasPrefix("views") } }
    }

    private func expectWhole() throws {
        #expect(try files == whole)
        try place.shell("cmp source/a2.jpg D/moments/2019-03-02/a2.jpg; cmp source/a2.jpg D/albums/T/a2.jpg")
    }

    @Test(arguments: [false, true]) func `gio restores to the photo's own day`(isRemounted: Bool) throws {
        try place.shell("gio trash 'D/\(group)/a2.jpg'")
        #expect(try files.count == 6)
        #expect(
            try place.shell("cat D/.Trash-0/info/a2.jpg.trashinfo").contains(
                "Path=moments/2019-03-02/a2.jpg\n"))
        if isRemounted {
            try place.unmount()
            try place.mount(options: "rw")
        }
        try place.gio("gio trash --restore \"$(trashed a2.jpg)\"")
        try expectWhole()
        try place.unmount()
    }

    /// A program that renames first, or whose file of information names the view, restores into the view.
    @Test func `a rename back into a group, also one that is made anew, restores to the photo's own day`()
        throws
    {
        try place.shell(
            "mv 'D/\(group)/a2.jpg' D/.Trash-0/files/x.jpg; mv D/.Trash-0/files/x.jpg 'D/\(group)/a2.jpg'")
        try expectWhole()
        try place.shell(
            """
            mv 'D/\(group)/a2.jpg' D/.Trash-0/files/a2.jpg
            printf '[Trash Info]\\nPath=views/similar/0001%%20a1.jpg/a2.jpg\\nDeletionDate=2026-01-01T00:00:00\\n' \
                >D/.Trash-0/info/a2.jpg.trashinfo
            """)
        try place.unmount()
        try place.mount(options: "rw,views")
        // The group is found anew, or made by the file manager if the two that are left are in another.
        try place.gio("gio trash --restore \"$(trashed a2.jpg)\"")
        try expectWhole()
        try place.shell(
            """
            mv D/moments/2019-03-02/a2.jpg D/.Trash-0/files/
            mkdir 'D/views/similar/0007 none.jpg'
            mv D/.Trash-0/files/a2.jpg 'D/views/similar/0007 none.jpg/b.jpg'
            rmdir 'D/views/similar/0007 none.jpg'
            """)
        try expectWhole()
    }

    /// Only photos of the trash come back so; nothing is lost by what is refused.
    @Test func `nothing else can be moved into a view`() throws {
        let group = place.mountPoint + "/" + group
        try place.shell("echo text >D/albums/T/note.txt; mv D/albums/T/note.txt D/.Trash-0/files/")
        for from in ["/.Trash-0/files/note.txt", "/albums/T/a1.jpg", "/moments/2019-03-01/a1.jpg"] {
            #expect(rename(place.mountPoint + from, group + "/n") == -1 && errno == EROFS)
        }
        try place.shell("rm D/moments/2019-03-02/a2.jpg")
        let trashed = place.mountPoint + "/.Trash-0/files/a2.jpg"
        #expect(rename(trashed, place.mountPoint + "/views/recent/a2.jpg") == -1 && errno == EROFS)
        #expect(rename(trashed, place.mountPoint + "/views/a2.jpg") == -1 && errno == EROFS)
        try place.shell("cmp source/a2.jpg D/.Trash-0/files/a2.jpg; cat D/.Trash-0/files/note.txt")
        #expect(mkdir(place.mountPoint + "/views/similar/anything", 0o700) == -1 && errno == EROFS)
        try place.shell("mv D/.Trash-0/files/a2.jpg 'D/\(self.group)/a2.jpg'; rm D/.Trash-0/files/note.txt")
        try place.shell("rm D/.Trash-0/info/a2.jpg.trashinfo")
        try expectWhole()
    }
}
