import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// A folder or archive of an export.
private struct Export {
    static let top = "Takeout/Google Photos/"
    /// 19:49:58 UTC.
    static let taken = 1_588_448_998
    var files: [(name: String, bytes: [UInt8])] = []

    mutating func photo(_ path: String, _ bytes: [UInt8]) { files.append((Self.top + path, bytes)) }

    mutating func json(_ path: String, title: String, taken: Int = taken, more: String = "") {
        let text =
            #"{"title":"\#(title)","photoTakenTime":{"timestamp":"\#(taken)"}\#(more),"url":"https://x"}"#
        files.append((Self.top + path, Array(text.utf8)))
    }

    mutating func album(_ folder: String, title: String, file: String = "metadata.json") {
        files.append((Self.top + folder + "/" + file, Array(#"{"title":"\#(title)"}"#.utf8)))
    }

    var zip: [UInt8] {
        var builder = ZipBuilder()
        for file in files { builder.add(file.name, file.bytes) }
        return builder.bytes
    }

    func write(_ place: Place) throws { for file in files { try place.source(file.name, file.bytes) } }

    /// A year and an album of it, with all that an export can say.
    static func whole() -> Export {
        var export = Export()
        let about =
            #","description":"At: <home>","geoData":{"latitude":48.5,"longitude":-2.25},"favorited":true"#
        export.photo("Photos from 2020/a.jpg", Photo(taken: nil, seed: 2).bytes)
        export.json("Photos from 2020/a.jpg.supplemental-metadata.json", title: "a.jpg", more: about)
        // The camera's clock was two hours ahead of UTC: the same moment.
        export.photo("Photos from 2020/b.jpg", Photo(taken: "2020:05:02 21:49:58", seed: 3).bytes)
        export.json("Photos from 2020/b.jpg.json", title: "b.jpg")
        export.photo("Photos from 2020/b-bearbeitet.jpg", Photo(taken: "2020:05:02 21:49:58", seed: 4).bytes)
        // The camera's clock was years behind, and the user corrected the date.
        export.photo("Photos from 2020/c.jpg", Photo(taken: "2011:01:01 00:10:00", seed: 5).bytes)
        export.json("Photos from 2020/c.jpg.json", title: "c.jpg")
        export.album("Trip", title: "Trip to Rome", file: "Metadaten.json")
        export.photo("Trip/a.jpg", Photo(taken: nil, seed: 2).bytes)
        // Named in the album, but exported with its year only.
        export.json("Trip/c.jpg.json", title: "c.jpg")
        return export
    }

    static let shown = [
        "2020-05-02/a.jpg", "2020-05-02/a.jpg.xmp", "2020-05-02/b.jpg", "2020-05-02/c.jpg",
        "2020-05-02/c.jpg.xmp",
    ]
}

@Suite("Commands: import --takeout", .serialized, .waiting) struct TakeoutTests {
    private func expectWhole(_ place: Place) throws {
        try place.mount()
        #expect(try place.shown() == Export.shown)
        #expect(
            try place.files(place.albums) == ["Favourites/a.jpg", "Trip to Rome/a.jpg", "Trip to Rome/c.jpg"])
        let day = place.moments + "/2020-05-02/"
        #expect(try status(day + "a.jpg").st_ino == status(place.albums + "/Favourites/a.jpg").st_ino)
        let shown = try place.shell(
            """
            cd '\(day)'; getfattr --only-values -n user.xdg.comment a.jpg; echo
            for name in a b c; do
                getfattr --only-values -n user.obscura.captured.source $name.jpg; echo
                getfattr --only-values -n user.obscura.captured $name.jpg; echo
            done
            """)
        #expect(
            shown == """
                At: <home>
                sidecar
                2020-05-02 19:49:58
                DateTimeOriginal
                2020-05-02 21:49:58
                sidecar
                2020-05-02 19:49:58

                """)
        #expect(String(decoding: try place.bytes(day + "a.jpg.xmp"), as: UTF8.self).contains("48,30.000000N"))
        #expect(try place.bytes(day + "b.jpg") == Photo(taken: "2020:05:02 21:49:58", seed: 4).bytes)
        let original = try place.bytes(day + ".versions/b.jpg/original")
        #expect(original == Photo(taken: "2020:05:02 21:49:58", seed: 3).bytes)
        try place.unmount()
    }

    @Test func `an export as a folder becomes days, albums and favourites, once`() throws {
        let place = try Place()
        try Export.whole().write(place)
        let first = try place.command("import", "V", "source/Takeout", "--takeout", "--json")
        #expect(first.status == 0, "\(first.errors)")
        let json = try jsonObject(first.output)
        #expect(json["photos"] as? Int == 3 && json["duplicates"] as? Int == 1)
        #expect(json["album_memberships"] as? Int == 3 && json["favourites"] as? Int == 1)
        #expect(json["albums"] as? [String] == ["Favourites", "Trip to Rome"])
        #expect(json["sidecars_written"] as? Int == 2 && (json["edited"] as? [String])?.count == 1)
        #expect(
            (json["unmatched"] as? [Any])?.isEmpty == true && (json["unreadable"] as? [Any])?.isEmpty == true)
        try expectWhole(place)
        let again = try jsonObject(place.command("import", "V", "source", "--takeout", "--json").output)
        #expect(again["photos"] as? Int == 0 && again["duplicates"] as? Int == 5)
        #expect(again["album_memberships"] as? Int == 0 && again["sidecars_written"] as? Int == 0)
        try expectWhole(place)
    }

    @Test func `what was edited since is imported no second time`() throws {
        let place = try Place()
        try Export.whole().write(place)
        func add() throws -> [String: Any] {
            try jsonObject(place.command("import", "V", "source", "--takeout", "--json").output)
        }
        _ = try add()
        try place.mount()
        // As programs do, they leave the dates that there are.
        let edits = [
            Photo(taken: "2020:05:02 10:00:00", seed: 92), Photo(taken: "2020:05:02 21:49:58", seed: 94),
            Photo(taken: "2011:01:01 00:10:00", seed: 95),
        ].map(\.bytes)
        for (name, bytes) in zip(["a", "b", "c"], edits) {
            try Data(bytes).write(to: URL(fileURLWithPath: place.moments + "/2020-05-02/\(name).jpg"))
        }
        try place.unmount()
        let again = try add()
        #expect(again["photos"] as? Int == 0 && again["duplicates"] as? Int == 5)
        #expect(again["album_memberships"] as? Int == 0 && (again["edited"] as? [Any])?.isEmpty == true)
        // Neither without the option: but a source is not removed for the sake of a version.
        let plain = try jsonObject(
            place.command("import", "V", "source/Takeout", "--move", "--json").output)
        #expect(plain["photos"] as? Int == 0)
        let kept = try place.files(place.root + "/source").filter { $0.hasSuffix(".jpg") }
        #expect(kept.count == 5)
        try place.mount()
        #expect(try place.shown() == Export.shown)
        for (name, bytes) in zip(["a", "b", "c"], edits) {
            #expect(try place.bytes(place.moments + "/2020-05-02/\(name).jpg") == bytes)
        }
        try place.unmount()
    }

    @Test func `what was redated, renamed or removed since is not added again`() throws {
        let place = try Place()
        try Export.whole().write(place)
        func add(_ more: String...) throws -> [String: Any] {
            try jsonObject(
                place.run(
                    [obscura, "import", "V", "source", "--takeout", "--json", "--password-stdin"] + more,
                    "one\n"
                )
                .output)
        }
        _ = try add()
        try place.mount()
        // As exiftool does, with the same pixels.
        let redated = Photo(taken: "2021:06:07 08:09:10", seed: 4).bytes
        try Data(redated).write(to: URL(fileURLWithPath: place.moments + "/2020-05-02/b.jpg"))
        try place.shell("cd D/moments/2020-05-02; mv a.jpg Beach.jpg; rm c.jpg")
        let shown = ["2020-05-02/Beach.jpg", "2020-05-02/Beach.jpg.xmp", "2021-06-07/b.jpg"]
        #expect(try place.shown() == shown)
        try place.unmount()
        for more in ["--dry-run", "--quiet"] {
            let again = try add(more)
            #expect(again["photos"] as? Int == 0 && again["duplicates"] as? Int == 4)
            #expect(again["album_memberships"] as? Int == 0 && again["sidecars_written"] as? Int == 0)
            let left = try #require(again["in_trash"] as? [String])
            #expect(left.count == 1 && left[0].hasSuffix("Photos from 2020/c.jpg"))
        }
        let told = try place.command("import", "V", "source", "--takeout")
        #expect(told.output.contains("1 photo left out: in the trash of the space"), "\(told.output)")
        try place.mount()
        #expect(try place.shown() == shown)
        #expect(try place.files(place.albums) == ["Favourites/a.jpg", "Trip to Rome/a.jpg"])
        // An edited photo, and its original with it.
        try place.shell("rm D/moments/2021-06-07/b.jpg")
        try place.unmount()
        let last = try add()
        #expect(last["photos"] as? Int == 0 && (last["in_trash"] as? [String])?.count == 3)
    }

    @Test func `a photo whose name is a number is no original of others`() throws {
        let place = try Place()
        var export = Export()
        for (name, seed) in [("0.jpg", 2), ("1.jpg", 3), ("2.jpg", 4), ("b.jpg", 5)] {
            export.photo("Photos from 2020/" + name, Photo(taken: nil, seed: UInt8(seed)).bytes)
            export.json("Photos from 2020/\(name).json", title: name)
        }
        export.photo("Photos from 2020/3.jpg", Photo(taken: nil, seed: 6).bytes)
        export.photo("Photos from 2020/b-edited.jpg", Photo(taken: nil, seed: 7).bytes)
        try export.write(place)
        #expect(try place.command("import", "V", "source", "--takeout").status == 0)
        try place.mount()
        #expect(try place.bytes(place.moments + "/2020-05-02/b.jpg") == Photo(taken: nil, seed: 7).bytes)
        let three = try #require(try place.shown().first { $0.hasSuffix("/3.jpg") })
        #expect(try place.bytes(place.moments + "/" + three) == Photo(taken: nil, seed: 6).bytes)
        try place.unmount()
    }

    @Test func `a sidecar is called after a photo whose name was cut`() throws {
        let place = try Place()
        var export = Export()
        let stem = "Screenshot_of_a_really_long_name_for_a_picture_"
        export.photo("Photos from 2020/\(stem).jpg", Photo(taken: nil, seed: 2).bytes)
        export.json("Photos from 2020/\(stem.dropLast()).json", title: stem + "2020.jpg")
        try export.write(place)
        for photos in [1, 0] {
            let json = try jsonObject(place.command("import", "V", "source", "--takeout", "--json").output)
            #expect(json["photos"] as? Int == photos && json["sidecars_written"] as? Int == photos)
        }
        try place.mount()
        let names = ["2020-05-02/\(stem)2020.jpg", "2020-05-02/\(stem)2020.jpg.xmp"]
        #expect(try place.shown() == names)
        // It dates the photo when that is saved, too.
        let path = place.moments + "/" + names[0]
        try Data(Photo(taken: "2011:01:01 00:10:00", seed: 3).bytes).write(to: URL(fileURLWithPath: path))
        #expect(try place.shown() == names)
        try place.unmount()
    }

    /// The bytes that another photo was written over are no earlier bytes of that one.
    @Test func `a photo that another was written over is imported again`() throws {
        let place = try Place()
        let one = try place.source("1/I.JPG", Photo(taken: "2020:01:01 10:00:00", seed: 2).bytes)
        let two = try place.source("2/I.JPG", Photo(taken: "2020:02:01 10:00:00", seed: 3).bytes)
        try place.mount()
        try place.shell("mkdir D/albums/A; cp '\(one)' D/albums/A/; cp '\(two)' D/albums/A/")
        #expect(try place.shown() == ["2020-02-01/I.JPG"])
        try place.unmount()
        let json = try jsonObject(place.command("import", "V", "source", "--json").output)
        #expect(json["photos"] as? Int == 1 && json["duplicates"] as? Int == 1)
        try place.mount()
        #expect(try place.shown() == ["2020-01-01/I.JPG", "2020-02-01/I.JPG"])
        try place.unmount()
    }

    @Test(arguments: [true, false]) func `a hidden folder is left out, and named`(isZip: Bool) throws {
        let place = try Place()
        var export = Export()
        export.photo("Photos from 2020/a.jpg", Photo(seed: 2).bytes)
        export.json("Photos from 2020/a.jpg.json", title: "a.jpg")
        export.photo(".Trip/b.jpg", Photo(seed: 3).bytes)
        export.photo(".Trip/c.jpg", Photo(seed: 4).bytes)
        if isZip { try place.source("takeout.zip", export.zip) } else { try export.write(place) }
        let json = try jsonObject(place.command("import", "V", "source", "--takeout", "--json").output)
        let unmatched = try #require(json["unmatched"] as? [[String: String]])
        #expect(json["photos"] as? Int == 1 && unmatched.count == 1)
        #expect(unmatched.first?["path"]?.hasSuffix("Google Photos/.Trip") == true)
    }

    @Test func `an edited photo of another format gives its photo that extension`() throws {
        let place = try Place()
        var export = Export()
        export.photo("Photos from 2020/d.png", Photo(taken: "2020:05:02 21:49:58", seed: 6).bytes)
        export.photo("Photos from 2020/d-edited.jpg", Photo(taken: nil, seed: 7).bytes)
        export.json("Photos from 2020/d.png.json", title: "d.png", more: #","description":"sea""#)
        export.album("Trip", title: "Trip")
        export.photo("Trip/d.png", Photo(taken: "2020:05:02 21:49:58", seed: 6).bytes)
        try export.write(place)
        let ended = try place.command("import", "V", "source", "--takeout")
        #expect(ended.status == 0, "\(ended.errors)\(ended.output)")
        try place.mount()
        #expect(try place.shown() == ["2020-05-02/d.jpg", "2020-05-02/d.jpg.xmp"])
        #expect(try place.files(place.albums) == ["Trip/d.jpg"])
        #expect(try place.bytes(place.albums + "/Trip/d.jpg") == Photo(taken: nil, seed: 7).bytes)
        try place.unmount()
        #expect(try place.command("check", "V").status == 0)
    }

    @Test func `its parts as zip files give the same, together or one after the other`() throws {
        let export = Export.whole()
        for isTogether in [true, false] {
            let place = try Place(isLeast: true)
            var (one, two) = (Export(), Export())
            for (index, file) in export.files.enumerated() {
                if index % 2 == 0 { one.files.append(file) } else { two.files.append(file) }
            }
            try place.source("takeout-1.zip", one.zip)
            try place.source("takeout-2.zip", two.zip)
            if !isTogether {
                let ended = try place.command("import", "V", "source/takeout-1.zip", "--takeout")
                #expect(ended.status == 0 && ended.output.contains("could not be matched:"), "\(ended)")
            }
            let ended = try place.command("import", "V", "source", "--takeout", "--dry-run", "--json")
            #expect(ended.status == 0, "\(ended.errors)")
            let planned = try jsonObject(ended.output)
            let done = try jsonObject(place.command("import", "V", "source", "--takeout", "--json").output)
            if isTogether {
                for member in ["photos", "duplicates", "album_memberships", "favourites", "sidecars_written"]
                {
                    #expect(planned[member] as? Int == done[member] as? Int, "\(member)")
                }
                try expectWhole(place)
            } else {
                try place.mount()
                #expect(try place.shown().filter { $0.hasSuffix(".jpg") }.count == 3)
                #expect(try place.files(place.albums).count == 3)
                try place.unmount()
            }
        }
    }

    /// The second was left out, without a word: it has the name and the size of the first.
    @Test(arguments: [["source/0.zip", "source/1.zip"], ["source/0", "source/1"], ["source"]])
    func `photos of one name in two exports are two photos, each with its own date`(paths: [String]) throws {
        let areZips = paths[0].hasSuffix(".zip")
        let place = try Place()
        var pictures: [[UInt8]] = []
        for (number, taken) in [Export.taken, Export.taken - 366 * 86_400].enumerated() {
            var export = Export()
            var picture = Photo(taken: nil, seed: UInt8(number + 2)).bytes
            picture += [UInt8](repeating: 0, count: 2000 - picture.count)
            pictures.append(picture)
            export.photo("Photos from 2020/IMG_1.jpg", picture)
            export.json("Photos from 2020/IMG_1.jpg.json", title: "IMG_1.jpg", taken: taken)
            if areZips {
                try place.source("\(number).zip", export.zip)
            } else {
                for file in export.files { try place.source("\(number)/" + file.name, file.bytes) }
            }
        }
        for words in [["2 photos added"], ["2 duplicates skipped"]] {
            let ended = try place.run(
                [obscura, "import", "V"] + paths + ["--takeout", "--password-stdin"], "one\n")
            #expect(ended.status == 0)
            for word in words { #expect(ended.output.contains(word), "\(ended.output)") }
            #expect(!ended.output.contains("says nothing"), "\(ended.output)")
        }
        try place.mount()
        #expect(try place.bytes(place.moments + "/2020-05-02/IMG_1.jpg") == pictures[0])
        #expect(try place.bytes(place.moments + "/2019-05-02/IMG_1.jpg") == pictures[1])
    }

    @Test func `an archive that is unsafe or damaged costs a clear line each, and no other photo`() throws {
        let place = try Place()
        var zip = ZipBuilder()
        let folder = Export.top + "Photos from 2019/"
        zip.add(folder + "good.jpg", Photo(seed: 1).bytes)
        zip.add(folder + "zip64.jpg", Photo(seed: 2).bytes, .zip64)
        zip.add(folder + "../../../../up.jpg", Photo(seed: 3).bytes)
        zip.add("/absolute.jpg", Photo(seed: 4).bytes)
        zip.add(folder + "secret.jpg", Photo(seed: 5).bytes, .encrypted)
        zip.add(folder + "damaged.jpg", Photo(seed: 6).bytes, .checksum)
        zip.add(folder + "bomb.jpg", Photo(seed: 7).bytes, .bomb)
        zip.add(folder + "strange.jpg", Photo(seed: 8).bytes, .method)
        zip.add(folder + "broken.jpg.json", Array("{".utf8))
        let twice = Photo(seed: 9).bytes
        zip.add(folder + "twice.jpg", twice)
        zip.add(folder + "again.jpg", twice, .overlapping)
        try place.source("a.zip", zip.bytes)
        try place.source("cut.zip", Array(zip.bytes.dropLast(200)))
        try place.source("empty.zip", [])
        try place.source("b.tgz", [0x1F, 0x8B])
        let ended = try place.command("import", "V", "source", "--takeout")
        #expect(ended.status == 1)
        let reasons = [
            "up.jpg: its name leads out of the archive", "absolute.jpg: its name leads out of the archive",
            "secret.jpg: encrypted", "damaged.jpg: damaged in the archive",
            "bomb.jpg: it would become more than",
            "strange.jpg: compressed in an unknown way", "twice.jpg: it shares bytes with another file",
            "again.jpg: it shares bytes with another file", "broken.jpg.json: not JSON",
            "cut.zip: not a zip file",
            "empty.zip: not a zip file", "b.tgz: a compressed tar archive",
        ]
        for reason in reasons { #expect(ended.errors.contains(reason), "\(reason)") }
        #expect(
            ended.errors.split(separator: "\n").filter { $0.hasPrefix("obscura: ") }.count == reasons.count
                + 1)
        try place.mount()
        #expect(try place.shown() == ["2019-03-04/good.jpg", "2019-03-04/zip64.jpg"])
        try place.unmount()
        #expect(try place.command("check", "V").status == 0)
    }

    @Test func `an iPhone's files and iCloud's tables become albums, favourites and dates`() throws {
        let place = try Place()
        let part = "iCloud Photos Part 1 of 2/"
        let details = """
            imgName,fileChecksum,favorite,hidden,deleted,originalCreationDate,viewCount,importDate
            IMG_0001.JPG,x,yes,no,no,"Saturday May 2,2020 7:49 PM GMT",1,"x"
            IMG_0003.JPG,x,no,no,yes,"Saturday May 2,2020 7:49 PM GMT",1,"x"
            IMG_0009.JPG,x,no,no,no,"Saturday May 2,2020 7:49 PM GMT",1,"x"
            IMG_0006.JPG,x,yes,no,no,"Monday March 4,2019 11:30 AM GMT",1,"x"
            """
        try place.source(part + "Photos/Photo Details.csv", Array(details.utf8))
        try place.source(part + "Photos/IMG_0001.JPG", Photo(taken: nil, seed: 1).bytes)
        try place.source(part + "Photos/IMG_0001.AAE", Array("<plist/>".utf8))
        try place.source(part + "Photos/IMG_E0001.JPG", Photo(taken: "2020:05:02 12:00:00", seed: 2).bytes)
        try place.source(part + "Photos/IMG_0003.JPG", Photo(seed: 3).bytes)
        // Edited without a date of its own: it is of its original's day.
        try place.source(part + "Photos/IMG_0006.JPG", Photo(seed: 6).bytes)
        try place.source(part + "Photos/IMG_E0006.JPG", Photo(taken: nil, seed: 7).bytes)
        try place.source("iCloud Photos Part 2 of 2/Photos/IMG_0004.JPG", Photo(seed: 4).bytes)
        try place.source("iCloud Photos Part 2 of 2/Recently Deleted/IMG_0005.JPG", Photo(seed: 5).bytes)
        try place.source(
            part + "Albums/Trip.csv", Array("imgName\nIMG_0001.JPG\nIMG_0004.JPG\nIMG_9.JPG\n".utf8))
        try place.source(part + "Memories/Summer.csv", Array("imageName\nIMG_0001.JPG\n".utf8))
        let ended = try place.command("import", "V", "source", "--takeout", "--json")
        #expect(ended.status == 0, "\(ended.errors)")
        let json = try jsonObject(ended.output)
        #expect(json["photos"] as? Int == 3 && json["favourites"] as? Int == 2)
        #expect((json["trashed"] as? [String])?.count == 2 && (json["edited"] as? [String])?.count == 2)
        let reasons = try #require(json["unmatched"] as? [[String: String]]).compactMap { $0["reason"] }
        #expect(reasons.contains("IMG_9.JPG is not here"))
        #expect(reasons.contains { $0.hasPrefix("its photo is not here") })
        try place.mount()
        #expect(
            try place.shown() == [
                "2019-03-04/IMG_0004.JPG", "2019-03-04/IMG_0006.JPG", "2019-03-04/IMG_0006.JPG.xmp",
                "2020-05-02/IMG_0001.AAE", "2020-05-02/IMG_0001.JPG", "2020-05-02/IMG_0001.JPG.xmp",
            ])
        #expect(
            try place.files(place.albums) == [
                "Favourites/IMG_0001.JPG", "Favourites/IMG_0006.JPG", "Trip/IMG_0001.JPG",
                "Trip/IMG_0004.JPG",
            ])
        try place.unmount()
    }

    /// Apple's lists in the user's language, and two tables that do not agree.
    @Test func `iCloud's own lists are no albums, and a date that two tables dispute does not count`() throws
    {
        let place = try Place()
        let part = "iCloud Photos Part 1 of 1/"
        func table(_ date: String) -> [UInt8] {
            let header =
                "imgName,fileChecksum,favorite,hidden,deleted,originalCreationDate,viewCount,importDate"
            return Array("\(header)\nIMG_1.JPG,x,no,no,no,\"\(date)\",1,\"x\"\n".utf8)
        }
        try place.source(part + "Photos/IMG_1.JPG", Photo(taken: "2011:02:03 04:05:06", seed: 1).bytes)
        try place.source(part + "Photos/Photo Details.csv", table("Saturday May 2,2020 7:49 PM GMT"))
        try place.source(part + "Photos/Photo Details-1.csv", table("Monday March 4,2019 11:30 AM GMT"))
        for folder in ["Andenken", "Souvenirs", "Hidden", "Ausgeblendet"] {
            try place.source(part + "\(folder)/\(folder) 2020.csv", Array("imageName\nIMG_1.JPG\n".utf8))
        }
        let ended = try place.command("import", "V", "source", "--takeout", "--json")
        #expect(ended.status == 0, "\(ended.errors)")
        let json = try jsonObject(ended.output)
        let notes = try #require(json["unmatched"] as? [[String: String]])
        #expect(notes.count == 1)
        #expect(
            notes.first?["reason"]
                == "IMG_1.JPG has several dates, of which none counts: 2019-03-04 11:30:00, 2020-05-02 19:49:00"
        )
        try place.mount()
        #expect(try place.shown() == ["2011-02-03/IMG_1.JPG"])
        #expect(try place.files(place.albums).isEmpty)
    }

    @Test func `an album's JSON that is empty, broken or without a title costs a line at most`() throws {
        let place = try Place()
        var export = Export()
        for (number, json) in ["", "{", "{}", #"{"title":""}"#].enumerated() {
            export.photo("Folder \(number)/\(number).jpg", Photo(seed: UInt8(number + 1)).bytes)
            export.files.append((Export.top + "Folder \(number)/metadata.json", Array(json.utf8)))
        }
        for (number, title) in [".", "/", " "].enumerated() {
            export.photo("_(\(number))/\(number).jpg", Photo(seed: UInt8(number + 1)).bytes)
            export.album("_(\(number))", title: title)
        }
        try export.write(place)
        let ended = try place.command("import", "V", "source", "--takeout", "--json")
        #expect(ended.status == 0, "\(ended.errors)")
        let json = try jsonObject(ended.output)
        #expect((json["unreadable"] as? [Any])?.isEmpty == true)
        let reasons = try #require(json["unmatched"] as? [[String: String]]).compactMap { $0["reason"] }
        #expect(
            reasons.filter { $0.hasSuffix("and about no photo here") }.sorted()
                == ["empty, and about no photo here", "not JSON, and about no photo here"])
        try place.mount()
        #expect(try place.files(place.albums) == ["␣ (2)/2.jpg", "． (0)/0.jpg", "／ (1)/1.jpg"])
        // With the JSON of a photo its date is lost: that is a failure.
        try place.unmount()
        try place.source(Export.top + "Folder 0/0.jpg.json", [])
        let again = try place.command("import", "V", "source", "--takeout")
        #expect(again.status == 1 && again.errors.contains("0.jpg.json"), "\(again.errors)")
    }

    @Test func `a file with the name of an album, and options that make no sense, are said`() throws {
        let place = try Place()
        try Export.whole().write(place)
        try place.mount()
        try place.shell("echo x > D/albums/'Trip to Rome'")
        try place.unmount()
        let ended = try place.command("import", "V", "source", "--takeout")
        #expect(
            ended.status == 0
                && ended.output.contains("albums/Trip to Rome: a file has the name of this album"))
        for words in [["--move"], ["--album=x"]] {
            let ended = try place.run([obscura, "import", "V", "source", "--takeout"] + words)
            #expect(ended.status == 2 && ended.errors.contains("not with --takeout"), "\(ended.errors)")
        }
    }
}
