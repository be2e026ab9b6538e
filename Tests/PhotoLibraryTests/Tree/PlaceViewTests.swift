import FileRequests
import Foundation
import LibraryFixtures
import LinuxIO
import TestSupport
import Testing
import VaultFormat

@testable import CatalogueRows
@testable import PhotoLibrary
@testable import PhotoRules
@testable import VaultCatalogue

/// Photos by place in `views/place`.
@Suite("The tree: photos by place in views") struct PlaceViewTests {
    private let fixture: Fixture
    private let directory: URL

    private static let list = """
        <gweather><region><country><_name>Germany</_name>
        <city><_name>Berlin</_name><coordinates>52.516667 13.4</coordinates></city>
        <city><_name>Potsdam</_name><coordinates>52.4 13.07</coordinates></city></country>
        <country><_name>Samoa</_name>
        <city><_name>Apia</_name><coordinates>-13.833333 -171.766667</coordinates></city>
        </country></region></gweather>
        """

    init() throws {
        directory = FileManager.default.temporaryDirectory.appendingPathComponent(
            "towns-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        try Self.list.write(
            to: directory.appendingPathComponent("list.xml"), atomically: false, encoding: .utf8)
        fixture = try Fixture(trashDays: 30)
        try reopen()
    }

    private func reopen(_ change: (inout LibraryOptions) -> Void = { _ in }) throws {
        try fixture.close()
        let file = directory.appendingPathComponent("list.xml").path
        try fixture.reopen {
            $0.views = true
            $0.trashDays = 30
            $0.townFiles = [file]
            $0.pictureMaker = StandInMaker()
            $0.settleMilliseconds = 0
            $0.workerCount = 1
            change(&$0)
        }
    }

    private func end() throws {
        try fixture.close()
        try FileManager.default.removeItem(at: directory)
    }

    /// All files below the view, by path.
    private func shown() throws -> [String] {
        try fixture.ls("views/place").flatMap { country in
            try fixture.ls("views/place/" + country).flatMap { town in
                try fixture.ls("views/place/\(country)/\(town)").map { "\(country)/\(town)/\($0)" }
            }
        }
    }

    @Test func `photos are near their towns, as the same files`() throws {
        #expect(try fixture.ls("views").contains("place"))
        #expect(try shown() == [])
        try fixture.put("albums/a.jpg", placedJPEG(52.52, 13.41, more: 1))
        try fixture.put("albums/b.jpg", placedJPEG(52.39, 13.0, more: 2))
        try fixture.put("albums/c.jpg", placedJPEG(-14, -172, more: 3))
        try fixture.put("albums/none.jpg", jpeg(more: 4))
        try fixture.put("albums/zero.jpg", placedJPEG(0, 0, more: 5))
        try fixture.put("albums/over.jpg", placedJPEG(99, 13, more: 6))
        #expect(try shown() == ["Germany/Berlin/a.jpg", "Germany/Potsdam/b.jpg", "Samoa/Apia/c.jpg"])
        let path = "views/place/Germany/Berlin/a.jpg"
        #expect(try fixture.stat(path) == fixture.stat("albums/a.jpg"))
        #expect(try fixture.stat("views/place").mode == 0o40700)
        for missing in ["Germany/Berlin/b.jpg", "Germany/Rom", "Rom", "Germany/Apia", "Germany/a.jpg"] {
            expectError(.noEntry) { _ = try fixture.stat("views/place/" + missing) }
        }
        #expect(try fixture.ls("views/place/Germany/Berlin/.thumbs") == ["a.jpg"])
        // A sidecar's place comes first, and goes with it; a photo that is written anew has its new one.
        try fixture.put("albums/a.jpg.xmp", placedXMP(-13.9, -171.7))
        try fixture.put("albums/b.jpg", placedJPEG(52.5, 13.4, more: 9))
        #expect(try shown() == ["Germany/Berlin/b.jpg", "Samoa/Apia/a.jpg", "Samoa/Apia/c.jpg"])
        try fixture.rm("albums/a.jpg.xmp")
        #expect(try shown() == ["Germany/Berlin/a.jpg", "Germany/Berlin/b.jpg", "Samoa/Apia/c.jpg"])
        try reopen()
        #expect(try shown() == ["Germany/Berlin/a.jpg", "Germany/Berlin/b.jpg", "Samoa/Apia/c.jpg"])
        try reopen { $0.readOnly = true }
        #expect(try shown().count == 3)
        expectError(.readOnly) { try fixture.rm(path) }
        try end()
    }

    /// Berlin and Potsdam are the only towns for 8,000 km around.
    @Test func `a photo that is far from all towns is elsewhere, and no less a photo`() throws {
        let degrees = InstalledTowns.kilometersMax / 6371 * 180 / .pi
        try fixture.put("albums/near.jpg", placedJPEG(52.516667 + degrees - 0.001, 13.4, more: 1))
        try fixture.put("albums/far.jpg", placedJPEG(52.516667 + degrees + 0.001, 13.4, more: 2))
        try fixture.put("albums/sea.jpg", placedJPEG(41, -28, more: 3))
        let shownThere = [
            "Elsewhere/40°N 30°W/sea.jpg", "Elsewhere/60°N 10°E/far.jpg", "Germany/Berlin/near.jpg",
        ]
        #expect(try shown() == shownThere)
        try reopen()
        #expect(try shown() == shownThere)
        expectError(.noEntry) { _ = try fixture.stat("views/place/Elsewhere/45°N 30°W") }
        try fixture.rm("views/place/Elsewhere/40°N 30°W/sea.jpg")
        #expect(try fixture.ls("albums") == ["far.jpg", "near.jpg"])
        try fixture.mv(".Trash-0/files/sea.jpg", "views/place/Elsewhere/40°N 30°W/sea.jpg")
        #expect(try shown() == shownThere && fixture.ls("albums").count == 3)
        // With the town that it is near, once a sidecar says where it was taken.
        try fixture.put("albums/sea.jpg.xmp", placedXMP(52.4, 13.07))
        #expect(try shown().last == "Germany/Potsdam/sea.jpg")
        try end()
    }

    @Test func `removing a photo there removes it as in moments, and nothing else`() throws {
        for number in 1...5 { try fixture.put("albums/a\(number).jpg", placedJPEG(52.5, 13.4, more: number)) }
        try fixture.put("albums/b.jpg", placedJPEG(-14, -172, more: 9))
        let town = "views/place/Germany/Berlin/"
        #expect(try fixture.ls(town).count == 5)
        try fixture.rm(town + "a1.jpg")
        #expect(try fixture.ls("albums") == ["a2.jpg", "a3.jpg", "a4.jpg", "a5.jpg", "b.jpg"])
        #expect(try fixture.ls(".Trash-0/files") == ["a1.jpg"])
        expectError(.noEntry) { _ = try fixture.stat(town + "a1.jpg") }
        // As file managers do, and back: it has its place at once.
        try fixture.mv(town + "a2.jpg", ".Trash-0/files/a2.jpg")
        #expect(try fixture.ls(town) == ["a3.jpg", "a4.jpg", "a5.jpg"])
        try fixture.mv(".Trash-0/files/a2.jpg", town + "a2.jpg")
        try fixture.mv(".Trash-0/files/a1.jpg", "moments/2024-05-01/a1.jpg")
        #expect(try fixture.ls(town).count == 5 && fixture.ls("albums").count == 6)
        expectError(.readOnly) { try fixture.mv("albums/b.jpg", town + "b.jpg") }
        expectError(.readOnly) { try fixture.mkdir("views/place/Germany/New") }
        expectError(.notEmpty) { try fixture.rmdir("views/place/Germany/Berlin") }
        try fixture.rmrf("views/place/Germany/Berlin")
        #expect(try shown() == ["Samoa/Apia/b.jpg"])
        #expect(try fixture.ls("albums") == ["b.jpg"])
        #expect(try fixture.ls(".Trash-0/files").count == 5)
        // A town without photos can be entered: what was trashed there is moved back to it.
        try fixture.mv(".Trash-0/files/a3.jpg", town + "a3.jpg")
        #expect(try fixture.ls(town) == ["a3.jpg"])
        try end()
    }

    @Test func `without a list of towns there is no view, and the status says why`() throws {
        try fixture.put("albums/a.jpg", placedJPEG(52.5, 13.4, more: 1))
        try reopen { $0.townFiles = ["/nonexistent/list.xml"] }
        #expect(try !fixture.ls("views").contains("place"))
        expectError(.noEntry) { _ = try fixture.stat("views/place") }
        func status() throws -> String {
            String(
                decoding: try fixture.library.getExtendedAttribute(
                    1, name: Array("user.obscura.status".utf8)),
                as: UTF8.self)
        }
        let text = try status()
        #expect(text.contains("no list of towns is installed"), "\(text)")
        try "<gweather/>".write(
            to: directory.appendingPathComponent("list.xml"), atomically: false, encoding: .utf8)
        try reopen()
        #expect(try status().contains("list.xml names no towns"))
        try reopen { $0.views = false }
        #expect(try !status().contains("no_places"))
        try end()
    }

    /// The photos of a vault that is older than positions, as those of which a session had no list: in the background.
    @Test func `positions that are not known are read in the background`() throws {
        for number in 1...3 { try fixture.put("albums/a\(number).jpg", placedJPEG(52.5, 13.4, more: number)) }
        try fixture.put("albums/none.jpg", jpeg(more: 4))
        try fixture.library.session.change { change throws(FileError) in
            try change.tree.tables.connection.execute("DELETE FROM position")
            change.tree.positions.noteAll()
        }
        #expect(try shown() == [])
        try reopen()
        let isDone = eventually { (try? self.shown().count) == 3 }
        #expect(isDone)
        let known = try fixture.library.session.locked { tree throws(FileError) in
            try tree.tables.positions.count()
        }
        #expect(known == 4)
        try end()
    }

    /// Each step against a statement of where everything is.
    @Test(arguments: 1...6 as ClosedRange<UInt64>) func `places follow random changes`(seed: UInt64) throws {
        var random = RandomSource(seed)
        let towns = [
            ("Germany/Berlin", 52.5, 13.4), ("Germany/Potsdam", 52.4, 13.07), ("Samoa/Apia", -13.8, -171.8),
        ]
        var model: [String: String] = [:]
        var trashed: [String: String] = [:]
        for step in 0..<60 {
            let name = "p\(Int.random(in: 0..<8, using: &random)).jpg"
            switch Int.random(in: 0..<5, using: &random) {
            case 0, 1:
                let town = towns.randomElement(using: &random)!
                let isNew = model[name] == nil
                if isNew, trashed[name] != nil { continue }
                try fixture.put("albums/" + name, placedJPEG(town.1, town.2, more: step))
                model[name] = town.0
            case 2:
                guard let town = model.removeValue(forKey: name) else { continue }
                try fixture.rm("views/place/\(town)/\(name)")
                trashed[name] = town
            case 3:
                guard let town = trashed.removeValue(forKey: name) else { continue }
                try fixture.mv(".Trash-0/files/" + name, "moments/2024-05-01/" + name)
                model[name] = town
            default: if step % 7 == 0 { try reopen() }
            }
            if step % 3 == 0 { #expect(try shown() == model.map { "\($1)/\($0)" }.sorted(), "step \(step)") }
        }
        try end()
    }

    /// `OBSCURA_PLACED_PHOTOS` names another size of the library, and prints times.
    @Test func `a large library is shown by place`() throws {
        let asked = ProcessInfo.processInfo.environment["OBSCURA_PLACED_PHOTOS"].flatMap { Int($0) }
        let count = asked ?? 20_000
        let large = try Fixture(bytes: 256 << 20)
        try large.close()
        let installed = InstalledTowns.files.filter { FileManager.default.fileExists(atPath: $0) }
        let file = directory.appendingPathComponent("list.xml").path
        try large.reopen {
            $0.views = true
            $0.townFiles = installed + [file]
        }
        var random = RandomSource(5)
        let first: UInt64 = 1 << 20
        for start in stride(from: 0, to: count, by: 8192) {
            try large.library.session.change { change throws(FileError) in
                for number in start..<min(start + 8192, count) {
                    let latitude = Int32.random(in: -900_000_000...900_000_000, using: &random)
                    let longitude = Int32.random(in: -1_800_000_000...1_800_000_000, using: &random)
                    let point = PhotoPosition.point(latitude: latitude, longitude: longitude)
                    try change.tree.tables.positions.store(StoredPosition(point), of: first + UInt64(number))
                }
                change.tree.views.noteChange()
            }
        }
        try large.library.flushAll()
        for attempt in ["first", "again", "one changed"] {
            if attempt == "one changed" {
                try large.library.session.change { change throws(FileError) in
                    let inode = try change.tree.inode(WellKnownInode.albums)
                    try change.tree.positions.store(.point(latitude: 1, longitude: 1), of: inode)
                }
            }
            let (start, spent) = (ContinuousClock().now, Double(clock()) / Double(CLOCKS_PER_SEC))
            let names = try large.list("views/place")
            let busy = Double(clock()) / Double(CLOCKS_PER_SEC) - spent
            if asked != nil {
                print("\(count) photos, \(attempt): \(ContinuousClock().now - start), \(busy) s busy")
            }
            #expect(!names.isEmpty)
        }
        // The tables name no such inodes: no check of them.
        large.closeAnyhow()
        try end()
    }
}
