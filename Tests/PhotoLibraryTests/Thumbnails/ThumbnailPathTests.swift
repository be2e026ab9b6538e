import Foundation
import LibraryFixtures
import LinuxIO
import PhotoImaging
import TestSupport
import Testing

@testable import FileRequests
@testable import PhotoLibrary

/// The names of thumbnails, and listings of them.
@Suite("Thumbnails: names and listings") struct ThumbnailPathTests {
    @Test func `sizes are reachable by their names`() throws {
        let (fixture, maker) = try Fixture.withStandIn()
        try fixture.put("albums/a.jpg", jpeg())
        for (name, size) in [
            ("512", PictureSize(fitting: 512)), ("16", PictureSize(fitting: 16)),
            ("4096", PictureSize(fitting: 4096)),
            ("1024x768", PictureSize(width: 1024, height: 768, isFilled: false)),
            ("64x48-fill", PictureSize(width: 64, height: 48, isFilled: true)),
        ] {
            let path = "albums/.thumbs/\(name)/a.jpg"
            let shown = try fixture.stat(path)
            #expect(maker.orders.last?.size == size)
            #expect(shown.size == UInt64(try fixture.get(path).count))
            #expect(try fixture.stat("albums/.thumbs/\(name)").mode == 0o40555)
            #expect(try fixture.ls("albums/.thumbs/\(name)") == ["a.jpg"])
        }
        let standard = try fixture.get("albums/.thumbs/a.jpg")
        #expect(try fixture.get("albums/.thumbs/256/a.jpg") == standard)
        #expect(try fixture.get("albums/.thumbs/256x256/a.jpg") == standard)
    }

    @Test func `a copy's thumbnail has that copy's mtime`() throws {
        let (fixture, _) = try Fixture.withStandIn()
        try fixture.put("albums/a.jpg", jpeg())
        try fixture.put("albums/copy.jpg", jpeg())
        try fixture.utimes("albums/a.jpg", modified: 1_500_000_000)
        try fixture.setModified("albums/copy.jpg", Timestamp(seconds: 1_400_000_000, nanoseconds: 999))
        for size in ["", "512/"] {
            let (first, copy) = ("albums/.thumbs/\(size)a.jpg", "albums/.thumbs/\(size)copy.jpg")
            #expect(try fixture.get(first) == fixture.get(copy))
            #expect(try fixture.stat(first).modified == Timestamp(seconds: 1_500_000_000))
            #expect(try fixture.stat(copy).modified == Timestamp(seconds: 1_400_000_000))
        }
    }

    @Test func `a Live Photo's video has the picture of its still, though no program decodes it`() throws {
        let (fixture, _) = try Fixture.withStandIn()
        let (still, video) = ("IMG_20240501_123000.jpg", "IMG_20240501_123000.mp4")
        try fixture.put("albums/" + still, appleJPEG("2024-05-01", tag: 17, "AAAA-1", more: 1))
        let bytes = [0, 0, 0, 16] + Array("ftypisom".utf8) + [0, 0, 0, 0] + Array("video".utf8)
        try fixture.put("albums/" + video, bytes + [1])
        try fixture.put("albums/IMG_20240501_124500.mp4", bytes + [2])
        for directory in ["albums", "moments/2024-05-01"] {
            let picture = try fixture.get("\(directory)/.thumbs/\(still)")
            #expect(try fixture.get("\(directory)/.thumbs/\(video).jpg") == picture)
            #expect(try fixture.get("\(directory)/.thumbs/512/\(video).jpg") != picture)
            #expect(try fixture.ls("\(directory)/.thumbs") == [still, video + ".jpg", "fast"])
        }
        // The video's picture must not show the still to users who may not read that.
        _ = try fixture.library.setAttributes(
            try fixture.ino("albums/" + still), AttributeChanges(mode: 0o600), fixture.caller)
        #expect(!fixture.exists("albums/.thumbs/\(video).jpg"))
        _ = try fixture.library.setAttributes(
            try fixture.ino("albums/" + still), AttributeChanges(mode: 0o644), fixture.caller)
        #expect(fixture.exists("albums/.thumbs/\(video).jpg"))
        try fixture.mv("moments/2024-05-01/" + still, "moments/2024-05-01/other.jpg")
        #expect(!fixture.exists("albums/.thumbs/\(video).jpg"))
    }

    @Test func `odd names are not found`() throws {
        let (fixture, _) = try Fixture.withStandIn()
        try fixture.put("albums/a.jpg", jpeg())
        for name in [
            "15", "4097", "0512", "+512", "512-fill", "512x", "x512", "1024x768x1", "1024X768", "64x48-Fill",
            "64x48-",
            "99999999999999999999", "fast2", "512.jpg", "10", "moments",
        ] {
            #expect(!fixture.exists("albums/.thumbs/\(name)/a.jpg"), "\(name)")
        }
        #expect(!fixture.exists("albums/.thumbs/512/512/a.jpg"))
        #expect(!fixture.exists("albums/.thumbs/512/fast"))
        #expect(!fixture.exists("albums/.thumbs/512/stack.jpg"))
        #expect(!fixture.exists("albums/.thumbs/512/b.jpg"))
        expectError(.notDirectory) { _ = try fixture.stat("albums/.thumbs/a.jpg/b") }
    }

    @Test func `the root mirrors the tree`() throws {
        let (fixture, _) = try Fixture.withStandIn()
        try fixture.mkdir("albums/Trip")
        try fixture.mkdir("albums/Trip/512")
        try fixture.mkdir("albums/none")
        try fixture.put("albums/Trip/a.jpg", jpeg())
        try fixture.put("albums/Trip/512/b.jpg", jpeg(more: 1))
        let inode = try fixture.ino("albums/Trip/.thumbs/a.jpg")
        #expect(try fixture.ino(".thumbs/albums/Trip/a.jpg") == inode)
        #expect(try fixture.ino(".thumbs/moments/2024-05-01/a.jpg") == inode)
        #expect(
            try fixture.get(".thumbs/128/albums/Trip/a.jpg") == fixture.get("albums/Trip/.thumbs/128/a.jpg"))
        #expect(
            try fixture.get(".thumbs/albums/Trip/128/a.jpg") == fixture.get("albums/Trip/.thumbs/128/a.jpg"))
        // A directory of the tree comes before a size.
        #expect(try fixture.ls(".thumbs/albums/Trip/512") == ["b.jpg", "fast"])
        #expect(try fixture.ls(".thumbs") == ["albums", "moments"])
        #expect(try fixture.ls(".thumbs/moments") == ["2024-05-01"])
        #expect(try fixture.ls(".thumbs/albums") == ["Trip", "none"])
        #expect(try fixture.ls(".thumbs/albums/none").isEmpty)
        #expect(try fixture.ls(".thumbs/albums/Trip") == ["512", "a.jpg", "fast"])
        #expect(try fixture.ls("albums/Trip/.thumbs") == ["a.jpg", "fast"])
        #expect(!fixture.exists("albums/.thumbs"))
        #expect(!fixture.exists("moments/.thumbs"))
        #expect(!fixture.exists(".thumbs/stack.jpg"))
    }

    @Test func `a listing is whole in pages of any size`() throws {
        let (fixture, _) = try Fixture.withStandIn()
        var names: [String] = ["fast"]
        for number in 0..<20 {
            try fixture.put("albums/\(number).jpg", jpeg(more: number))
            try fixture.mkdir("albums/d\(number)")
            names += ["\(number).jpg", "d\(number)"]
        }
        for page in [1, 2, 7, 100] {
            let listed = try fixture.list(".thumbs/albums", page: page).map(\.name.description)
            #expect(listed.sorted() == names.sorted(), "\(page)")
        }
    }

    @Test func `copies and names without extension have thumbnails`() throws {
        let (fixture, _) = try Fixture.withStandIn()
        try fixture.put("albums/a", jpeg())
        try fixture.put("albums/b.jpg", jpeg())
        #expect(try fixture.moments() == ["2024-05-01/a"])
        #expect(try fixture.get("albums/.thumbs/b.jpg") == fixture.get("albums/.thumbs/a.jpg"))
        #expect(try fixture.ls("albums/.thumbs") == ["a.jpg", "b.jpg", "fast"])
        // The photo's own name comes before the one made up.
        try fixture.put("albums/a.jpg", jpeg(more: 3))
        #expect(try fixture.ls("albums/.thumbs") == ["a.jpg", "b.jpg", "fast"])
        #expect(try fixture.get("albums/.thumbs/b.jpg") != fixture.get("albums/.thumbs/a.jpg"))
    }

    @Test func `counted inodes last until they are forgotten, and numbers do not recur`() throws {
        let (fixture, _) = try Fixture.withStandIn()
        try fixture.put("albums/a.jpg", jpeg())
        let nodes = try #require(fixture.library.virtual).service.nodes
        let folder = try fixture.ino("albums/.thumbs/512")
        let picture = try fixture.ino("albums/.thumbs/512/a.jpg")
        #expect(try fixture.ino("albums/.thumbs/512/a.jpg") == picture)
        #expect(nodes.knownCount == 2)
        #expect(try fixture.library.attributes(picture).0.ino == picture)
        fixture.library.forget(picture)
        #expect(try fixture.library.attributes(picture).0.ino == picture, "looked up twice")
        fixture.library.forget(picture)
        expectError(.stale) { _ = try fixture.library.attributes(picture) }
        fixture.library.forget(folder, count: 9)
        #expect(nodes.knownCount == 0)
        #expect(try fixture.ino("albums/.thumbs/512") > folder)
        fixture.library.forget(try fixture.ino("albums/.thumbs/a.jpg"))
        #expect(fixture.exists("albums/.thumbs/a.jpg"))
    }

    @Test func `nothing can be made below`() throws {
        let (fixture, _) = try Fixture.withStandIn()
        try fixture.put("albums/a.jpg", jpeg())
        for path in [".thumbs", ".thumbs/albums", "albums/.thumbs/512", "albums/.sh_thumbnails/normal"] {
            expectError(.readOnly) { try fixture.mkdir(path + "/new") }
            expectError(.readOnly) { try fixture.put(path + "/new.jpg", jpeg()) }
            expectError(.readOnly) { try fixture.mv("albums/a.jpg", path + "/a.jpg") }
            expectError(.isDirectory) { _ = try fixture.open(path, O_RDONLY) }
        }
    }

    @Test func `fast is the embedded preview, else the standard one`() throws {
        let (fixture, maker) = try Fixture.withStandIn()
        let preview = jpeg(nil, more: 9)
        try fixture.put("albums/a.jpg", jpegEmbedding(preview, orientation: 1))
        try fixture.put("albums/turned.jpg", jpegEmbedding(preview, orientation: 6))
        try fixture.put("albums/b.jpg", jpeg(more: 2))
        #expect(try fixture.stat("albums/.thumbs/fast/a.jpg").size == UInt64(preview.count))
        #expect(try fixture.get("albums/.thumbs/fast/a.jpg") == preview)
        let turned = try fixture.get("albums/.thumbs/fast/turned.jpg")
        #expect(readFacts(MemoryByteSource(turned))?.orientation == 6)
        #expect(turned.suffix(preview.count - 2) == preview.dropFirst(2))
        #expect(maker.orders.isEmpty)
        #expect(try fixture.get("albums/.thumbs/fast/b.jpg") == fixture.get("albums/.thumbs/b.jpg"))
        #expect(try fixture.ls("albums/.thumbs/fast") == ["a.jpg", "b.jpg", "turned.jpg"])
    }

    @Test func `thumbs=listed shows them in their directories`() throws {
        let (fixture, _) = try Fixture.withStandIn { $0.thumbnails = .listed }
        try fixture.mkdir("albums/none")
        try fixture.put("albums/a.jpg", jpeg())
        #expect(try fixture.ls("albums") == [".thumbs", "a.jpg", "none"])
        #expect(
            try fixture.list("albums", page: 1).map(\.name.description).sorted() == [
                ".thumbs", "a.jpg", "none",
            ])
        #expect(try fixture.ls("albums/none").isEmpty)
        #expect(try fixture.ls("moments/2024-05-01") == [".thumbs", "a.jpg"])
        #expect(try fixture.ls("moments") == ["2024-05-01"])
        #expect(try fixture.ls("") == [".thumbs", "albums", "moments"])
        let entry = try #require(try fixture.list("albums").first { $0.name == ".thumbs" })
        #expect(try fixture.ino("albums/.thumbs") == entry.ino)
        #expect(entry.entry?.attributes.ino == entry.ino)
        // Where there is a real one, it alone.
        try fixture.mkdir("albums/.thumbs2")
        try fixture.mv("albums/.thumbs2", "albums/none/.thumbs")
        try fixture.put("albums/none/b.jpg", jpeg(more: 1))
        #expect(try fixture.ls("albums/none") == [".thumbs", "b.jpg"])
    }
}
