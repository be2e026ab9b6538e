import Foundation
import LinuxIO
import PhotoImaging
import TestSupport
import Testing

@testable import PhotoLibrary

/// Where thumbnails are found, and what is listed.
@Suite struct ThumbnailPathTests {
    @Test func sizesAreReachableByTheirNames() throws {
        let (rig, maker) = try Rig.withStandIn()
        try rig.put("albums/a.jpg", jpeg())
        for (name, size) in [
            ("512", PictureSize(fitting: 512)), ("16", PictureSize(fitting: 16)),
            ("4096", PictureSize(fitting: 4096)),
            ("1024x768", PictureSize(width: 1024, height: 768, isFilled: false)),
            ("64x48-fill", PictureSize(width: 64, height: 48, isFilled: true)),
        ] {
            let path = "albums/.thumbs/\(name)/a.jpg"
            let shown = try rig.stat(path)
            #expect(maker.orders.last?.size == size)
            #expect(shown.size == UInt64(try rig.get(path).count))
            #expect(try rig.stat("albums/.thumbs/\(name)").mode == 0o40555)
            #expect(try rig.ls("albums/.thumbs/\(name)") == ["a.jpg"])
        }
        let standard = try rig.get("albums/.thumbs/a.jpg")
        #expect(try rig.get("albums/.thumbs/256/a.jpg") == standard)
        #expect(try rig.get("albums/.thumbs/256x256/a.jpg") == standard)
    }

    @Test func oddNamesMeanNothing() throws {
        let (rig, _) = try Rig.withStandIn()
        try rig.put("albums/a.jpg", jpeg())
        for name in [
            "15", "4097", "0512", "+512", "512-fill", "512x", "x512", "1024x768x1", "1024X768", "64x48-Fill",
            "64x48-",
            "99999999999999999999", "fast2", "512.jpg", "10", "moments",
        ] {
            #expect(!rig.exists("albums/.thumbs/\(name)/a.jpg"), "\(name)")
        }
        #expect(!rig.exists("albums/.thumbs/512/512/a.jpg"))
        #expect(!rig.exists("albums/.thumbs/512/fast"))
        #expect(!rig.exists("albums/.thumbs/512/stack.jpg"))
        #expect(!rig.exists("albums/.thumbs/512/b.jpg"))
        expectError(.notDirectory) { _ = try rig.stat("albums/.thumbs/a.jpg/b") }
    }

    @Test func theRootMirrorsTheTree() throws {
        let (rig, _) = try Rig.withStandIn()
        try rig.mkdir("albums/Trip")
        try rig.mkdir("albums/Trip/512")
        try rig.mkdir("albums/none")
        try rig.put("albums/Trip/a.jpg", jpeg())
        try rig.put("albums/Trip/512/b.jpg", jpeg(more: 1))
        let inode = try rig.ino("albums/Trip/.thumbs/a.jpg")
        #expect(try rig.ino(".thumbs/albums/Trip/a.jpg") == inode)
        #expect(try rig.ino(".thumbs/moments/2024-05-01/a.jpg") == inode)
        #expect(try rig.get(".thumbs/128/albums/Trip/a.jpg") == rig.get("albums/Trip/.thumbs/128/a.jpg"))
        #expect(try rig.get(".thumbs/albums/Trip/128/a.jpg") == rig.get("albums/Trip/.thumbs/128/a.jpg"))
        // A directory of the tree comes before a size.
        #expect(try rig.ls(".thumbs/albums/Trip/512") == ["b.jpg", "fast"])
        #expect(try rig.ls(".thumbs") == ["albums", "moments"])
        #expect(try rig.ls(".thumbs/moments") == ["2024-05-01"])
        #expect(try rig.ls(".thumbs/albums") == ["Trip", "none"])
        #expect(try rig.ls(".thumbs/albums/none").isEmpty)
        #expect(try rig.ls(".thumbs/albums/Trip") == ["512", "a.jpg", "fast"])
        #expect(try rig.ls("albums/Trip/.thumbs") == ["a.jpg", "fast"])
        #expect(!rig.exists("albums/.thumbs"))
        #expect(!rig.exists("moments/.thumbs"))
        #expect(!rig.exists(".thumbs/stack.jpg"))
    }

    @Test func aListingIsWholeInPagesOfAnySize() throws {
        let (rig, _) = try Rig.withStandIn()
        var names: [String] = ["fast"]
        for number in 0..<20 {
            try rig.put("albums/\(number).jpg", jpeg(more: number))
            try rig.mkdir("albums/d\(number)")
            names += ["\(number).jpg", "d\(number)"]
        }
        for page in [1, 2, 7, 100] {
            let listed = try rig.list(".thumbs/albums", page: page).map(\.name.description)
            #expect(listed.sorted() == names.sorted(), "\(page)")
        }
    }

    @Test func copiesAndNamesWithoutExtension() throws {
        let (rig, _) = try Rig.withStandIn()
        try rig.put("albums/a", jpeg())
        try rig.put("albums/b.jpg", jpeg())
        #expect(try rig.moments() == ["2024-05-01/a"])
        #expect(try rig.get("albums/.thumbs/b.jpg") == rig.get("albums/.thumbs/a.jpg"))
        #expect(try rig.ls("albums/.thumbs") == ["a.jpg", "b.jpg", "fast"])
        // The photo's own name comes before the one made up.
        try rig.put("albums/a.jpg", jpeg(more: 3))
        #expect(try rig.ls("albums/.thumbs") == ["a.jpg", "b.jpg", "fast"])
        #expect(try rig.get("albums/.thumbs/b.jpg") != rig.get("albums/.thumbs/a.jpg"))
    }

    @Test func countedInodesLastUntilTheyAreForgottenAndNumbersDoNotRecur() throws {
        let (rig, _) = try Rig.withStandIn()
        try rig.put("albums/a.jpg", jpeg())
        let nodes = try #require(rig.library.thumbnails).nodes
        let folder = try rig.ino("albums/.thumbs/512")
        let picture = try rig.ino("albums/.thumbs/512/a.jpg")
        #expect(try rig.ino("albums/.thumbs/512/a.jpg") == picture)
        #expect(nodes.knownCount == 2)
        #expect(try rig.library.attributes(picture).0.ino == picture)
        rig.library.forget(picture)
        #expect(try rig.library.attributes(picture).0.ino == picture, "looked up twice")
        rig.library.forget(picture)
        expectError(.stale) { _ = try rig.library.attributes(picture) }
        rig.library.forget(folder, count: 9)
        #expect(nodes.knownCount == 0)
        #expect(try rig.ino("albums/.thumbs/512") > folder)
        rig.library.forget(try rig.ino("albums/.thumbs/a.jpg"))
        #expect(rig.exists("albums/.thumbs/a.jpg"))
    }

    @Test func nothingCanBeMadeBelow() throws {
        let (rig, _) = try Rig.withStandIn()
        try rig.put("albums/a.jpg", jpeg())
        for path in [".thumbs", ".thumbs/albums", "albums/.thumbs/512", "albums/.sh_thumbnails/normal"] {
            expectError(.readOnly) { try rig.mkdir(path + "/new") }
            expectError(.readOnly) { try rig.put(path + "/new.jpg", jpeg()) }
            expectError(.readOnly) { try rig.mv("albums/a.jpg", path + "/a.jpg") }
            expectError(.isDirectory) { _ = try rig.open(path, O_RDONLY) }
        }
    }

    @Test func fastIsTheEmbeddedPreviewElseTheStandardOne() throws {
        let (rig, maker) = try Rig.withStandIn()
        let preview = jpeg(nil, more: 9)
        try rig.put("albums/a.jpg", jpegEmbedding(preview, orientation: 1))
        try rig.put("albums/turned.jpg", jpegEmbedding(preview, orientation: 6))
        try rig.put("albums/b.jpg", jpeg(more: 2))
        #expect(try rig.stat("albums/.thumbs/fast/a.jpg").size == UInt64(preview.count))
        #expect(try rig.get("albums/.thumbs/fast/a.jpg") == preview)
        let turned = try rig.get("albums/.thumbs/fast/turned.jpg")
        #expect(readFacts(MemoryByteSource(turned))?.orientation == 6)
        #expect(turned.suffix(preview.count - 2) == preview.dropFirst(2))
        #expect(maker.orders.isEmpty)
        #expect(try rig.get("albums/.thumbs/fast/b.jpg") == rig.get("albums/.thumbs/b.jpg"))
        #expect(try rig.ls("albums/.thumbs/fast") == ["a.jpg", "b.jpg", "turned.jpg"])
    }

    @Test func listedShowsThemInTheirDirectories() throws {
        let (rig, _) = try Rig.withStandIn { $0.thumbnails = .listed }
        try rig.mkdir("albums/none")
        try rig.put("albums/a.jpg", jpeg())
        #expect(try rig.ls("albums") == [".thumbs", "a.jpg", "none"])
        #expect(
            try rig.list("albums", page: 1).map(\.name.description).sorted() == [".thumbs", "a.jpg", "none"])
        #expect(try rig.ls("albums/none").isEmpty)
        #expect(try rig.ls("moments/2024-05-01") == [".thumbs", "a.jpg"])
        #expect(try rig.ls("moments") == ["2024-05-01"])
        #expect(try rig.ls("") == [".thumbs", "albums", "moments"])
        let entry = try #require(try rig.list("albums").first { $0.name == ".thumbs" })
        #expect(try rig.ino("albums/.thumbs") == entry.ino)
        #expect(entry.entry?.attributes.ino == entry.ino)
        // Where there is a real one, it alone.
        try rig.mkdir("albums/.thumbs2")
        try rig.mv("albums/.thumbs2", "albums/none/.thumbs")
        try rig.put("albums/none/b.jpg", jpeg(more: 1))
        #expect(try rig.ls("albums/none") == [".thumbs", "b.jpg"])
    }
}
