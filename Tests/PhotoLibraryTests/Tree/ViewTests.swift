import FileRequests
import Foundation
import LibraryFixtures
import LinuxIO
import PhotoImaging
import PhotoLibrary
import PhotoRules
import TestSupport
import Testing
import VaultCatalogue
import VaultFormat

/// Views: virtual directories in which photos are grouped.
@Suite("The tree: views") struct ViewTests {
    private let fixture: Fixture

    init() throws { fixture = try Self.fixture() }

    private static func fixture(trashDays: Int = 30, limits: Limits = .production) throws -> Fixture {
        let fixture = try Fixture(trashDays: trashDays, limits: limits)
        try fixture.close()
        try fixture.reopen { $0.views = true }
        return fixture
    }

    private func reopen() throws {
        try fixture.close()
        try fixture.reopen { $0.views = true }
    }

    /// A photo that was taken on a day by a camera, with a rating.
    private func photo(_ day: String, camera: String? = nil, stars: Int? = nil, more: Int) -> [UInt8] {
        var packet =
            "<x:xmpmeta xmlns:x='adobe:ns:meta/'><rdf:Description exif:DateTimeOriginal='\(day)T12:30:00'"
        if let camera { packet += " tiff:Model='\(camera)'" }
        if let stars { packet += " xmp:Rating='\(stars)'" }
        let body = Array("http://ns.adobe.com/xap/1.0/\0\(packet)/></x:xmpmeta>".utf8)
        let segment = [0xFF, 0xE1, UInt8((body.count + 2) >> 8), UInt8((body.count + 2) & 255)] + body
        var bytes = jpeg(nil, more: more)
        bytes.insert(contentsOf: segment, at: 2)
        return bytes
    }

    private func rate(_ path: String, _ value: String?) throws {
        let name = Array("user.baloo.rating".utf8)
        let ino = try fixture.ino(path)
        if let value {
            try fixture.library.setExtendedAttribute(ino, name: name, value: Array(value.utf8), policy: .any)
        } else {
            try fixture.library.removeExtendedAttribute(ino, name: name)
        }
    }

    // MARK: What is where

    @Test func `the root has views only where they are asked for`() throws {
        #expect(try fixture.ls("") == ["albums", "moments", "views"])
        #expect(try fixture.stat("").nlink == 5)
        #expect(
            try fixture.ls("views") == ["camera", "month", "rating", "recent", "similar", "type", "year"])
        try fixture.remount()
        #expect(try fixture.ls("") == ["albums", "moments"])
        #expect(!fixture.exists("views"))
        #expect(try fixture.stat("").nlink == 4)
        expectError(.notPermitted) { try fixture.mkdir("views") }
    }

    @Test func `a photo is in every view that it belongs to, as the same file`() throws {
        try fixture.put("albums/a.jpg", photo("2024-05-01", camera: "Phone 7", stars: 4, more: 1))
        try fixture.put("albums/Screenshot_1.png", jpeg("2023-02-03", more: 2))
        try fixture.put("albums/r.dng", raw("2024-12-31", more: 3))
        let ino = try fixture.ino("moments/2024-05-01/a.jpg")
        for view in ["camera/Phone 7", "month/2024-05", "rating/4", "recent", "year/2024"] {
            let entries = try fixture.list("views/" + view)
            #expect(entries.first { $0.name == "a.jpg" }?.ino == ino, "\(view)")
            #expect(try fixture.stat("views/\(view)/a.jpg") == fixture.stat("moments/2024-05-01/a.jpg"))
        }
        #expect(try fixture.get("views/year/2024/a.jpg") == fixture.get("albums/a.jpg"))
        #expect(try fixture.ls("views/camera") == ["Phone 7"])
        #expect(try fixture.ls("views/year") == ["2023", "2024"])
        #expect(try fixture.ls("views/month") == ["2023-02", "2024-05", "2024-12"])
        #expect(try fixture.ls("views/type") == ["panorama", "raw", "screenshot", "video"])
        #expect(try fixture.ls("views/rating") == ["1", "2", "3", "4", "5"])
        #expect(try fixture.ls("views/type/screenshot") == ["Screenshot_1.png"])
        #expect(try fixture.ls("views/type/video").isEmpty)
        for path in [
            "year/2022", "month/2024-06", "camera/Phone 8", "type/film", "rating/0", "rating/6",
            "rating/3/a.jpg",
            "year/2023/a.jpg", "type/raw/a.jpg", "recent/b.jpg", "x",
        ] { expectError(.noEntry) { _ = try fixture.stat("views/" + path) } }
        for path in ["", "year", "year/2024", "recent", "type/video"] {
            let shown = try fixture.stat("views/" + path)
            #expect(shown.mode == 0o040500 && shown.nlink == 1, "\(path)")
        }
    }

    @Test func `the directories of photos in views have thumbnails`() throws {
        let (fixture, maker) = try Fixture.withStandIn { $0.views = true }
        try fixture.put("albums/a.jpg", photo("2024-05-01", camera: "C", stars: 5, more: 1))
        try fixture.put("albums/b.jpg", photo("2023-02-03", more: 2))
        try fixture.put("albums/Screenshot_1.png", jpeg("2023-02-03", more: 3))
        let picture = try fixture.get("moments/2024-05-01/.thumbs/a.jpg")
        for view in ["recent", "year/2024", "month/2024-05", "camera/C", "rating/5"] {
            let shown = try fixture.stat("views/\(view)/.thumbs")
            #expect(shown.mode == 0o40500, "\(view)")
            #expect(try fixture.get("views/\(view)/.thumbs/a.jpg") == picture)
            #expect(
                try fixture.stat("views/\(view)/.thumbs/a.jpg")
                    == fixture.stat("moments/2024-05-01/.thumbs/a.jpg"))
            let listed = try fixture.ls("views/\(view)/.thumbs")
            #expect(listed.contains("a.jpg") && listed.contains("b.jpg") == (view == "recent"), "\(listed)")
            #expect(try fixture.ls("views/\(view)/.thumbs/512") == listed)
            #expect(fixture.exists("views/\(view)/.thumbs/b.jpg") == (view == "recent"))
            // They are listed in no view.
            #expect(!(try fixture.ls("views/" + view).contains(".thumbs")))
        }
        #expect(try fixture.ls("views/recent/.thumbs") == ["Screenshot_1.png.jpg", "a.jpg", "b.jpg"])
        _ = try fixture.get("views/type/screenshot/.thumbs/64x64-fill/Screenshot_1.png.jpg")
        #expect(maker.orders.last?.size == PictureSize(width: 64, height: 64, isFilled: true))
        // Where there are no photos there are no thumbnails, and none have piles.
        for path in [
            ".thumbs", "year/.thumbs", "type/video/.thumbs", "rating/1/.thumbs", "recent/.thumbs/stack.jpg",
            "recent/.sh_thumbnails", "recent/.thumbs/512/64", "recent/.thumbs/albums",
        ] { expectError(.noEntry) { _ = try fixture.stat("views/" + path) } }
        expectError(.readOnly) { try fixture.put("views/recent/.thumbs/c.jpg", [1]) }
        // A photo that leaves the view leaves its thumbnails.
        try fixture.rm("moments/2024-05-01/a.jpg")
        #expect(!fixture.exists("views/year/2024/.thumbs") && !fixture.exists("views/recent/.thumbs/a.jpg"))
    }

    @Test func `photos arrive in recent at the top, and keep their place when they are edited`() throws {
        for number in 1...4 {
            try fixture.put("albums/\(number).jpg", jpeg("2024-05-0\(number)", more: number))
        }
        let recent = { try self.fixture.list("views/recent").map(\.name.description) }
        #expect(try recent() == ["4.jpg", "3.jpg", "2.jpg", "1.jpg"])
        // Saved in place, by renaming, and another day.
        try fixture.put("albums/1.jpg", jpeg("2024-05-01", more: 11))
        try fixture.put("albums/.t", jpeg("2024-06-02", more: 12))
        try fixture.mv("albums/.t", "albums/2.jpg")
        try fixture.mkdir("moments/2020-01-01")
        try fixture.mv("moments/2024-05-03/3.jpg", "moments/2020-01-01/3.jpg")
        #expect(try recent() == ["4.jpg", "3.jpg", "2.jpg", "1.jpg"])
        try reopen()
        #expect(try recent() == ["4.jpg", "3.jpg", "2.jpg", "1.jpg"])
        #expect(try fixture.ls("views/month") == ["2020-01", "2024-05", "2024-06"])
    }

    // MARK: Names

    @Test func `equal names are numbered, and stay when others go`() throws {
        for number in 1...3 {
            try fixture.mkdir("albums/\(number)")
            try fixture.put("albums/\(number)/IMG_1.jpg", jpeg("2024-05-0\(number)", more: number))
        }
        #expect(try fixture.ls("views/year/2024") == ["IMG_1 (2).jpg", "IMG_1 (3).jpg", "IMG_1.jpg"])
        let second = try fixture.get("albums/2/IMG_1.jpg")
        #expect(try fixture.get("views/month/2024-05/IMG_1 (2).jpg") == second)
        try fixture.rm("moments/2024-05-01/IMG_1.jpg")
        #expect(try fixture.ls("views/year/2024") == ["IMG_1 (2).jpg", "IMG_1 (3).jpg"])
        _ = try fixture.library.setAttributes(
            try fixture.ino("albums/2/IMG_1.jpg"), AttributeChanges(mode: 0o600), fixture.caller)
        try reopen()
        #expect(try fixture.get("views/recent/IMG_1 (2).jpg") == second)
        // A name that is another's number elsewhere.
        try fixture.put("albums/1/IMG_1 (2).jpg", jpeg("2024-05-09", more: 9))
        #expect(
            try fixture.ls("views/year/2024") == ["IMG_1 (2) (2).jpg", "IMG_1 (2).jpg", "IMG_1 (3).jpg"])
        // Another name in moments is another name here.
        try fixture.mv("moments/2024-05-02/IMG_1.jpg", "moments/2024-05-02/Beach.jpg")
        #expect(try fixture.get("views/recent/Beach.jpg") == second)
        #expect(!fixture.exists("views/recent/IMG_1 (2).jpg"))
    }

    /// Numbers are searched in one query where few are taken, else one by one: both find the same.
    @Test(
        arguments: [Limits.production, .least],
        ["IMG_1.jpg", "a(b).x(y", String(repeating: "é", count: 125) + ".jpg"])
    func `many photos have one name`(limits: Limits, name: String) throws {
        let fixture = try Self.fixture(limits: limits)
        func put(_ number: Int) throws {
            let day = String(format: "2024-%02d-%02d", 1 + number / 28, 1 + number % 28)
            try fixture.mkdir("albums/\(number)")
            try fixture.put("albums/\(number)/\(name)", jpeg(day, more: number))
        }
        for number in 1...40 { try put(number) }
        let bytes = Array(name.utf8)
        let names = [name] + (2...40).map { String(decoding: numberedName(bytes, $0), as: UTF8.self) }
        #expect(try fixture.ls("views/year/2024") == names.sorted())
        // A number that is free again is given again.
        try fixture.rm("moments/2024-01-08/\(name)")
        #expect(try fixture.ls("views/year/2024") == names.filter { $0 != names[6] }.sorted())
        try put(41)
        #expect(try fixture.ls("views/year/2024") == names.sorted())
        try fixture.close()
    }

    @Test func `photos in the trash are in no view, and come back`() throws {
        try fixture.put("albums/a.jpg", photo("2024-05-01", camera: "C", stars: 5, more: 1))
        try fixture.put("albums/b.jpg", jpeg("2024-05-02", more: 2))
        try fixture.rm("moments/2024-05-01/a.jpg")
        #expect(try fixture.ls("views/recent") == ["b.jpg"])
        #expect(try fixture.ls("views/camera").isEmpty)
        #expect(try fixture.ls("views/rating/5").isEmpty)
        try reopen()
        #expect(try fixture.ls("views/year/2024") == ["b.jpg"])
        try fixture.mv(".Trash-0/files/a.jpg", "albums/back.jpg")
        #expect(try fixture.ls("views/camera/C") == ["a.jpg"])
        #expect(try fixture.list("views/recent").map(\.name.description) == ["b.jpg", "a.jpg"])
    }

    @Test func `versions and copies are in no view`() throws {
        try fixture.put("albums/a.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/copy.jpg", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/a.jpg", jpeg("2024-05-01", more: 2))
        #expect(fixture.exists("albums/.versions/a.jpg/original"))
        // The copy is a photo of its own since the other was edited.
        #expect(try fixture.ls("views/recent") == ["a.jpg", "copy.jpg"])
        try fixture.put("albums/again.jpg", jpeg("2024-05-01", more: 2))
        #expect(try fixture.ls("views/recent") == ["a.jpg", "copy.jpg"])
    }

    // MARK: Ratings

    @Test func `a rating comes from the attribute, else the sidecar, else the photo`() throws {
        try fixture.put("albums/a.jpg", photo("2024-05-01", stars: 2, more: 1))
        let rated = { try (1...5).filter { try self.fixture.ls("views/rating/\($0)") == ["a.jpg"] } }
        #expect(try rated() == [2])
        try fixture.put("albums/a.jpg.xmp", Array("<x xmp:Rating='3' />".utf8))
        #expect(try rated() == [3])
        try rate("albums/a.jpg", "9")
        #expect(try rated() == [5])
        try rate("views/recent/a.jpg", "0")
        #expect(try rated() == [])
        try rate("albums/a.jpg", "1")
        try reopen()
        #expect(try rated() == [1])
        // Dated anew, it keeps the attribute.
        try fixture.put("albums/a.jpg.xmp", Array("<x xmp:Rating='3' xmp:CreateDate='2020-01-02' />".utf8))
        #expect(try fixture.ls("views/year/2020") == ["a.jpg"])
        #expect(try rated() == [1])
        try rate("albums/a.jpg", nil)
        #expect(try rated() == [3])
        try rate("albums/a.jpg", "no rating")
        #expect(try rated() == [3])
        try fixture.rm("albums/a.jpg.xmp")
        try fixture.put("albums/a.jpg", photo("2024-05-01", stars: 4, more: 2))
        #expect(try rated() == [4])
    }

    // MARK: Changes

    @Test func `nothing can be changed in a view, but its photos can`() throws {
        try fixture.put("albums/a.jpg", jpeg("2024-05-01", more: 1))
        for path in ["views/new", "views/year/2025", "views/recent/new"] {
            expectError(.readOnly) { try fixture.mkdir(path) }
            expectError(.readOnly) { try fixture.put(path, []) }
        }
        expectError(.readOnly) { try fixture.rm("views/recent/a.jpg") }
        expectError(.readOnly) { try fixture.rmdir("views/recent") }
        expectError(.readOnly) { try fixture.mv("views/recent/a.jpg", "albums/b.jpg") }
        expectError(.readOnly) { try fixture.mv("albums/a.jpg", "views/recent/a.jpg") }
        expectError(.notPermitted) { try fixture.ln("albums/a.jpg", "views/recent/b.jpg") }
        let directory = try fixture.ino("views/recent")
        expectError(.readOnly) {
            _ = try fixture.library.setAttributes(directory, AttributeChanges(mode: 0o777), fixture.caller)
        }
        expectError(.readOnly) {
            try fixture.library.setExtendedAttribute(
                directory, name: Array("user.x".utf8), value: [1], policy: .any)
        }
        expectError(.isDirectory) {
            _ = try fixture.library.open(directory, flags: O_RDONLY, fixture.caller)
        }
        // In place, through a view.
        try fixture.put("views/recent/a.jpg", jpeg("2024-05-01", more: 2))
        #expect(try fixture.get("albums/a.jpg") == jpeg("2024-05-01", more: 2))
        // A link is a membership, as from the photo's day.
        try fixture.mkdir("albums/T")
        try fixture.ln("views/year/2024/a.jpg", "albums/T/a.jpg")
        try fixture.rm("moments/2024-05-01/a.jpg")
        #expect(try fixture.ls("albums/T").isEmpty)
    }

    @Test func `the kernel is told to drop names in views of a photo that goes`() throws {
        let number = ViewNode.recent.number
        for path in ["a.jpg", "b.jpg"] {
            try fixture.put("albums/" + path, jpeg("2024-05-01", more: path.hashValue))
        }
        _ = try fixture.stat("views/recent/a.jpg")
        _ = try fixture.stat("views/recent/b.jpg")
        try fixture.rm("moments/2024-05-01/a.jpg")
        #expect(fixture.observer.entries.contains { $0.0 == number && $0.1 == "a.jpg" })
        #expect(!fixture.observer.entries.contains { $0.1 == "b.jpg" })
        // Another file takes its place.
        try fixture.put("albums/.t", jpeg("2024-05-01", more: 7))
        try fixture.mv("albums/.t", "albums/b.jpg")
        #expect(fixture.observer.entries.contains { $0.0 == number && $0.1 == "b.jpg" })
    }

    @Test func `a listing ends though photos come meanwhile`() throws {
        for number in 0..<20 { try fixture.put("albums/\(number).jpg", jpeg("2024-05-01", more: number)) }
        for view in ["views/year/2024", "views/recent"] {
            let handle = try fixture.library.openDirectory(try fixture.ino(view))
            var (cookie, names, more) = (UInt64(0), [String](), 100)
            while names.count < 200 {
                var last: UInt64?
                try fixture.library.readDirectory(handle, after: cookie, plus: false) { entry in
                    guard last == nil else { return false }
                    names.append(entry.name.description)
                    last = entry.cookie
                    return true
                }
                guard let last else { break }
                cookie = last
                more += 1
                try fixture.put(
                    "albums/\(view.count)-\(more).jpg", jpeg("2024-05-02", more: more + view.count))
            }
            #expect(names.count < 60 && Set(names).count == names.count)
            #expect(names.contains("7.jpg"))
        }
    }

    @Test func `views are shown read-only too, and change nothing`() throws {
        try fixture.put("albums/a.jpg", jpeg("2024-05-01", more: 1))
        try fixture.close()
        try fixture.reopen { ($0.views, $0.readOnly) = (true, true) }
        #expect(try fixture.ls("views/recent") == ["a.jpg"])
        #expect(try fixture.get("views/month/2024-05/a.jpg") == jpeg("2024-05-01", more: 1))
    }

    @Test func `a rebuilt catalogue has the views of the lost one`() throws {
        for number in 1...3 {
            try fixture.mkdir("albums/\(number)")
            try fixture.put(
                "albums/\(number)/x.jpg",
                photo("2024-05-0\(number)", camera: "C\(number)", stars: number, more: number))
        }
        try fixture.rm("moments/2024-05-03/x.jpg")
        try fixture.library.makeDurable()
        try fixture.destroyCatalogue()
        _ = try fixture.rebuild()
        try fixture.reopen { $0.views = true }
        #expect(try fixture.ls("views/year/2024") == ["x (2).jpg", "x.jpg"])
        #expect(try fixture.ls("views/camera") == ["C1", "C2"])
        #expect(try fixture.ls("views/rating/2").count == 1)
        #expect(try fixture.list("views/recent").count == 2)
    }

    // MARK: Random

    /// Every photo of moments is in the views of its day, once, under a form of its name that stays as long as that
    /// does; nothing else is there.
    private func compare(_ fixture: Fixture, _ known: inout [UInt64: (moment: String, name: String)]) throws {
        var expected: [String: [UInt64: String]] = [:]
        for path in try fixture.moments() {
            let parts = path.split(separator: "/").map(String.init)
            let ino = try fixture.ino("moments/" + path)
            let name = Name(parts[1]).bytes
            guard (try? fixture.own("captured", "moments/" + path)) != nil else { continue }
            expected["year/" + parts[0].prefix(4), default: [:]][ino] = parts[1]
            expected["month/" + parts[0].prefix(7), default: [:]][ino] = parts[1]
            expected["recent", default: [:]][ino] = parts[1]
            let found = try fixture.list("views/recent").first { $0.ino == ino }?.name
            let shown = try #require(found, "\(path) is not in views")
            #expect(isNumberedForm(shown.bytes, of: name), "\(shown) for \(path)")
            if let before = known[ino], before.moment == path { #expect(before.name == shown.description) }
            known[ino] = (path, shown.description)
        }
        for group in ["year", "month"] {
            let listed = try fixture.ls("views/" + group).map { "\(group)/\($0)" }
            #expect(Set(listed) == Set(expected.keys.filter { $0.hasPrefix(group) }))
        }
        for (view, photos) in expected {
            let entries = try fixture.list("views/" + view)
            #expect(Set(entries.map(\.ino)) == Set(photos.keys), "\(view)")
            #expect(entries.count == photos.count && Set(entries.map(\.name)).count == photos.count)
            for entry in entries {
                #expect(try fixture.ino("views/\(view)/\(entry.name)") == entry.ino)
            }
        }
    }

    @Test(arguments: [1, 2, 3] as [UInt64]) func `views follow random changes of photos`(seed: UInt64) throws
    {
        var random = RandomSource(seed)
        let fixture = try Self.fixture(limits: seed == 3 ? .least : .production)
        var known: [UInt64: (moment: String, name: String)] = [:]
        let days = ["2001-01-01", "2001-02-02", "2003-03-03"]
        for album in ["A", "B"] { try fixture.mkdir("albums/" + album) }
        for day in days { try fixture.mkdir("moments/" + day) }
        var names = ["x.jpg", "y.jpg", "x (2).jpg"]
        for step in 0..<60 {
            let album = "albums/" + (Bool.random(using: &random) ? "A" : "B")
            let name = names.randomElement(using: &random) ?? "x.jpg"
            let day = days.randomElement(using: &random) ?? days[0]
            let any = try fixture.moments().randomElement(using: &random)
            // What is impossible is left out.
            switch Int.random(in: 0..<9, using: &random) {
            case 0, 1, 2: _ = try? fixture.put("\(album)/\(name)", jpeg(day, more: step))
            case 3:
                try fixture.put("\(album)/.t", jpeg(day, more: step))
                try? fixture.mv("\(album)/.t", "\(album)/\(name)")
            case 4: if let any { try? fixture.mv("moments/" + any, "moments/\(day)/\(name)") }
            case 5: if let any { try? fixture.rm("moments/" + any) }
            case 6:
                let trashed = ((try? fixture.ls(".Trash-0/files")) ?? []).randomElement(using: &random)
                if let trashed { try? fixture.mv(".Trash-0/files/" + trashed, "\(album)/r\(step).jpg") }
            case 7: if let any { try? fixture.ln("moments/" + any, "\(album)/l\(step).jpg") }
            default:
                names.append("n\(step).jpg")
                try? fixture.mv("\(album)/\(name)", "\(album)/n\(step).jpg")
            }
            if step % 5 == 4 { try compare(fixture, &known) }
        }
        try fixture.close()
        try fixture.reopen { $0.views = true }
        try compare(fixture, &known)
        try fixture.close()
    }
}
