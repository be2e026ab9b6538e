import FileRequests
import Foundation
import LibraryFixtures
import LinuxIO
import PhotoLibrary
import TestSupport
import Testing
import VaultFormat

/// Random operations on photos against a model of the rules.
@Suite("The tree: random operations with photos against a model") struct PhotoModelTests {
    final class Photo {
        var content: [UInt8]
        var day: String
        var isPinned = false
        var albums: Set<String>
        var isOfSession = true
        /// What it was before its first edit.
        var original: [UInt8]?
        init(_ content: [UInt8], _ day: String, _ albums: Set<String>) {
            self.content = content
            self.day = day
            self.albums = albums
        }
        func edit(_ bytes: [UInt8]) {
            original = original ?? content
            content = bytes
        }
        /// A file that a program just wrote to replace another.
        var isNew: Bool { isOfSession && albums.count == 1 && !isPinned }
    }

    struct World {
        let fixture: Fixture
        var random: RandomSource
        var photos: [Photo] = []
        var count = 0
        let days = ["2001-01-01", "2002-02-02", "2003-03-03"]

        /// Photos in the trash, by their names there.
        var trashed: [(name: String, photo: Photo)] = []

        init(_ seed: UInt64) throws {
            fixture = try Fixture(trashDays: 30, limits: seed % 3 == 0 ? .least : .production)
            random = RandomSource(seed)
            for album in ["A", "B", "A/C"] { try fixture.mkdir("albums/" + album) }
            for day in days { try fixture.mkdir("moments/" + day) }
        }

        mutating func picture() -> (bytes: [UInt8], day: String) {
            count += 1
            let day = days.randomElement(using: &random) ?? days[0]
            return (jpeg(day, more: count, size: 330 + count % 7), day)
        }

        mutating func path() -> String {
            let album = ["A", "B", "A/C"].randomElement(using: &random) ?? "A"
            return "albums/\(album)/p\(Int.random(in: 0..<6, using: &random)).jpg"
        }

        func holder(_ path: String) -> Photo? { photos.first { $0.albums.contains(path) } }

        func momentPath(_ photo: Photo) throws -> String {
            for name in try fixture.ls("moments/" + photo.day)
            where try fixture.get("moments/\(photo.day)/\(name)") == photo.content {
                return "moments/\(photo.day)/\(name)"
            }
            throw FileError.noEntry
        }

        mutating func step() throws {
            let target = path()
            let held = holder(target)
            let any = photos.randomElement(using: &random)
            switch Int.random(in: 0..<15, using: &random) {
            case 0, 1, 2: try write(target, held)
            case 3: try save(target, held)
            case 4, 5: try renameInAlbums(target, held)
            case 6:
                guard let any, held == nil else { break }
                try fixture.ln(try momentPath(any), target)
                any.albums.insert(target)
            case 7:
                guard let held else { break }
                try fixture.rm(target)
                held.albums.remove(target)
            case 8:
                guard let any, count % 3 == 0 else { break }
                try trash(any)
            case 9:
                guard let any else { break }
                let day = days.randomElement(using: &random) ?? days[0]
                guard day != any.day else { break }
                try fixture.mv(try momentPath(any), "moments/\(day)/moved\(count).jpg")
                count += 1
                any.day = day
                any.isPinned = true
            case 10: try restore(to: target, held)
            case 11:
                guard let any, any !== held else { break }
                try fixture.mv(try momentPath(any), target)
                held?.albums.remove(target)
                any.albums.insert(target)
            case 12: if let held { try replace(target, held) }
            case 13: if let any { try replace(try momentPath(any), any) }
            default:
                guard let held else { break }
                let day = days.randomElement(using: &random) ?? days[0]
                count += 1
                try fixture.mv(target, "moments/\(day)/put\(count).jpg")
                held.albums.remove(target)
                if day != held.day {
                    held.isPinned = true
                    held.day = day
                }
            }
        }

        /// As rm does, or a file manager.
        private mutating func trash(_ photo: Photo) throws {
            let path = try momentPath(photo)
            let before = Set(try files())
            if count % 2 == 0 || before.isEmpty {
                try fixture.rm(path)
            } else {
                try fixture.mv(path, ".Trash-0/files/m\(count).jpg")
            }
            count += 1
            photos.removeAll { $0 === photo }
            for name in Set(try files()).subtracting(before) { trashed.append((name, photo)) }
        }

        private func files() throws -> [String] {
            fixture.exists(".Trash-0") ? try fixture.ls(".Trash-0/files") : []
        }

        /// Into an album, or its day or another; or it is destroyed.
        private mutating func restore(to target: String, _ held: Photo?) throws {
            guard let (name, photo) = trashed.randomElement(using: &random) else { return }
            count += 1
            trashed.removeAll { $0.name == name }
            let path = ".Trash-0/files/" + name
            switch count % 4 {
            case 0:
                try fixture.rm(path)
                return
            case 1:
                // Files that took its names meanwhile keep them.
                guard held == nil else { fallthrough }
                try fixture.mv(path, target)
                photo.albums.insert(target)
            default:
                let day = days.randomElement(using: &random) ?? days[0]
                try fixture.mv(path, "moments/\(day)/back\(count).jpg")
                if day != photo.day { (photo.day, photo.isPinned) = (day, true) }
            }
            for album in photo.albums {
                if holder(album) == nil { continue }
                photo.albums.remove(album)
                photo.albums.insert(try newName(like: album))
            }
            photos.append(photo)
        }

        /// The numbered form of a name that no photo is known by.
        private func newName(like path: String) throws -> String {
            let album = folder(path)
            let known = Set(photos.flatMap(\.albums))
            let names = try fixture.ls(album).map { album + "/" + $0 }
            return try #require(names.first { !known.contains($0) && $0.hasPrefix(path.dropLast(4) + " (") })
        }

        private func folder(_ path: String) -> String {
            path.split(separator: "/").dropLast().joined(separator: "/")
        }

        private mutating func write(_ target: String, _ held: Photo?) throws {
            let (bytes, day) = picture()
            try fixture.put(target, bytes)
            if let held {
                held.edit(bytes)
                if !held.isPinned { held.day = day }
            } else {
                photos.append(Photo(bytes, day, [target]))
            }
        }

        private mutating func save(_ target: String, _ held: Photo?) throws {
            let (bytes, day) = picture()
            let temporary = folder(target) + "/" + (count % 2 == 0 ? ".save" : "save_tmp.jpg")
            try fixture.put(temporary, bytes)
            try fixture.mv(temporary, target)
            guard let held else {
                photos.append(Photo(bytes, day, [target]))
                return
            }
            held.edit(bytes)
            held.isOfSession = true
            if !held.isPinned { held.day = day }
        }

        /// As digiKam saves.
        private mutating func replace(_ target: String, _ held: Photo) throws {
            let (bytes, day) = picture()
            let temporary = folder(target) + "/" + (count % 2 == 0 ? ".save" : "save_tmp.jpg")
            try fixture.put(temporary, bytes)
            try fixture.replace(target, by: temporary)
            held.edit(bytes)
            held.isOfSession = true
            if !held.isPinned { held.day = day }
        }

        private mutating func renameInAlbums(_ target: String, _ held: Photo?) throws {
            let source = path()
            guard source != target, let moved = holder(source) else { return }
            let isNew = moved.isNew && folder(source) == folder(target)
            try fixture.mv(source, target)
            if held === moved { return }
            moved.albums.remove(source)
            moved.albums.insert(target)
            guard let held else { return }
            if isNew {
                moved.albums.formUnion(held.albums)
                moved.original = held.original ?? held.content
                moved.isPinned = held.isPinned
                if held.isPinned { moved.day = held.day }
                photos.removeAll { $0 === held }
            } else {
                held.albums.remove(target)
            }
        }

        func check(_ comment: Comment) throws {
            var expected: [String] = []
            for photo in photos { expected.append(photo.day + " " + String(photo.content.hashValue)) }
            var found: [String] = []
            for day in try fixture.ls("moments") {
                for name in try fixture.ls("moments/" + day) {
                    let bytes = try fixture.get("moments/\(day)/\(name)")
                    found.append(day + " " + String(bytes.hashValue))
                    #expect(try fixture.captured("moments/\(day)/\(name)").hasPrefix(day), comment)
                }
            }
            #expect(found.sorted() == expected.sorted(), comment)
            var names = 0
            for album in ["A", "B", "A/C"] {
                for name in try fixture.ls("albums/" + album) where name != "C" {
                    let path = "albums/\(album)/\(name)"
                    names += 1
                    guard let photo = holder(path) else {
                        Issue.record("\(comment): \(path) is of no photo")
                        continue
                    }
                    #expect(try fixture.get(path) == photo.content, comment)
                    let original = "albums/\(album)/.versions/\(name)/original"
                    let kept = fixture.exists(original) ? try fixture.get(original) : nil
                    #expect(kept == photo.original, comment)
                }
            }
            #expect(names == photos.reduce(0) { $0 + $1.albums.count }, comment)
            #expect(try fixture.stat("moments").nlink == UInt32(2 + fixture.ls("moments").count), comment)
        }
    }

    @Test(arguments: [21, 22, 23, 24, 25, 26] as [UInt64])
    func `photos against a model`(seed: UInt64) throws {
        var world = try World(seed)
        for step in 0..<300 {
            try world.step()
            if step % 10 == 9 { try world.check("seed \(seed), step \(step)") }
            if step % 70 == 69 {
                if step < 140 { try world.fixture.remount() } else { try world.fixture.kill() }
                for photo in world.photos { photo.isOfSession = false }
                try world.check("seed \(seed), step \(step), mounted again")
            }
        }
        try world.fixture.remount()
        let seen = try world.fixture.snapshot()
        try world.fixture.destroyCatalogue()
        _ = try world.fixture.salvage()
        try world.fixture.expectTree(seen, "seed \(seed), without its catalogue:")
        try world.check("seed \(seed), without its catalogue")
        for photo in world.photos { try world.fixture.rm(try world.momentPath(photo)) }
        if world.fixture.exists(".Trash-0") { try world.fixture.rmrf(".Trash-0") }
        try world.fixture.expectNothingLeft("seed \(seed)")
    }
}
