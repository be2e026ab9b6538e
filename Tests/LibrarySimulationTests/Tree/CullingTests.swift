import FileRequests
import LibraryFixtures
import TestSupport
import Testing
import VaultFormat

/// Bursts, raw pairs and Live Photos with sidecars, removed and restored in random orders, against a small statement of
/// the contract: no more is removed than was named, and what went together comes back.
@Suite("Moments: random culling") struct CullingTests {
    private static let day = "moments/2024-05-01"
    private static let album = "albums/Shoot"
    private static let trash = ".Trash-0/files"

    /// The contract.
    private struct Model {
        /// Stills, by the video of their Live Photo.
        let stills: [String: [String]]
        /// Photos that a sidecar describes, by its path.
        let sidecars: [String: Set<String>]
        var present: Set<String>
        /// Videos that were there when a still was removed.
        private var left: [String: Set<String>] = [:]

        init(photos: Set<String>, stills: [String: [String]], sidecars: [String: Set<String>]) {
            (present, self.stills, self.sidecars) = (photos, stills, sidecars)
        }

        private func videos(of photo: String) -> [String] {
            stills.keys.filter { stills[$0]!.contains(photo) }
        }

        mutating func remove(_ photo: String) {
            left[photo] = Set(videos(of: photo)).intersection(present)
            present.remove(photo)
            for video in videos(of: photo) where present.isDisjoint(with: stills[video]!) {
                present.remove(video)
            }
        }

        mutating func restore(_ photo: String) {
            present.formUnion([photo] + (left.removeValue(forKey: photo) ?? []))
        }

        /// The paths of all files that are there.
        var paths: Set<String> {
            Set(present.flatMap { [CullingTests.day + "/" + $0, CullingTests.album + "/" + $0] })
                .union(sidecars.keys.filter { !sidecars[$0]!.isDisjoint(with: present) })
        }
    }

    private func shoot(_ fixture: Fixture) throws -> Model {
        var photos: [String: [UInt8]] = [:]
        var stills: [String: [String]] = [:]
        var sidecars: [String: Set<String>] = [:]
        for number in 0..<4 {
            photos["B\(number).jpg"] = appleJPEG("2024-05-01", tag: 11, "C0FFEE", more: number)
        }
        for number in 0..<3 {
            let (jpg, cr2) = ("P\(number).jpg", "P\(number).cr2")
            photos[jpg] = jpeg("2024-05-01", more: 20 + number)
            photos[cr2] = raw("2024-05-01", more: number)
            sidecars["\(Self.day)/P\(number).xmp"] = [jpg, cr2]
            sidecars["\(Self.day)/\(cr2).xmp"] = [cr2]
            sidecars["\(Self.album)/P\(number).xmp"] = [jpg, cr2]
        }
        for number in 0..<3 {
            let (jpg, mov) = ("L\(number).jpg", "L\(number).mov")
            photos[jpg] = appleJPEG("2024-05-01", tag: 17, "LIVE-\(number)", more: 30 + number)
            photos[mov] = movie("2024-05-01", "LIVE-\(number)", more: UInt8(number))
            stills[mov] = [jpg]
            sidecars["\(Self.day)/\(jpg).xmp"] = [jpg]
            sidecars["\(Self.day)/L\(number).xmp"] = [jpg, mov]
        }
        photos["twin.jpg"] = appleJPEG("2024-05-01", tag: 17, "LIVE-0", more: 40)
        stills["L0.mov"]?.append("twin.jpg")
        try fixture.mkdir(Self.album)
        for (name, bytes) in photos.sorted(by: { $0.key < $1.key }) {
            try fixture.put("\(Self.album)/\(name)", bytes)
        }
        for path in sidecars.keys.sorted() { try fixture.put(path, Array(path.utf8)) }
        return Model(photos: Set(photos.keys), stills: stills, sidecars: sidecars)
    }

    /// As file managers do, which remove the `.trashinfo` file, too.
    private func restore(_ photo: String, _ fixture: Fixture) throws {
        try fixture.mv("\(Self.trash)/\(photo)", "\(Self.day)/\(photo)")
        let info = ".Trash-0/info/\(photo).trashinfo"
        if fixture.exists(info) { try fixture.rm(info) }
    }

    private func paths(_ fixture: Fixture) throws -> Set<String> {
        var paths: Set<String> = []
        for directory in [Self.day, Self.album] where fixture.exists(directory) {
            for name in try fixture.ls(directory) where name != "notes.txt" {
                paths.insert("\(directory)/\(name)")
            }
        }
        return paths
    }

    @Test(arguments: 1...4) func `in any order, nothing goes that was not named, and all comes back`(
        seed: UInt64
    ) throws {
        let fixture = try Fixture(trashDays: 30, limits: seed % 2 == 0 ? .least : .production)
        var model = try shoot(fixture)
        let (photos, before) = (model.present.sorted(), model.paths)
        var contents: [String: [UInt8]] = [:]
        for path in before { contents[path] = try fixture.get(path) }
        #expect(try paths(fixture) == before)
        // So the day stays where no photo does.
        try fixture.put("\(Self.day)/notes.txt", [1])
        for path in [".Trash-0", Self.trash, ".Trash-0/info"] { try fixture.mkdir(path, mode: 0o700) }
        var random = RandomSource(seed)
        for step in 0..<120 {
            let photo = photos.randomElement(using: &random)!
            if model.present.contains(photo) {
                if UInt8.random(in: 0..<2, using: &random) == 0 {
                    try fixture.rm("\(Self.day)/\(photo)")
                } else {
                    try fixture.mv("\(Self.day)/\(photo)", "\(Self.trash)/\(photo)")
                }
                model.remove(photo)
            } else {
                try restore(photo, fixture)
                model.restore(photo)
            }
            // At times the next one follows at once.
            if UInt8.random(in: 0..<3, using: &random) == 0 {
                _ = try fixture.ls(Self.day)
                #expect(try paths(fixture) == model.paths, "step \(step), \(photo)")
            } else {
                _ = try fixture.ls(Self.trash)
            }
            if step % 40 == 39 { try fixture.remount() }
        }
        for photo in photos.shuffled(using: &random) where !model.present.contains(photo) {
            try restore(photo, fixture)
            model.restore(photo)
            _ = try fixture.ls(Self.trash)
        }
        #expect(try paths(fixture) == before)
        for (path, bytes) in contents { #expect(try fixture.get(path) == bytes, "\(path)") }
        #expect(try fixture.ls(Self.trash).isEmpty)
        try fixture.close()
        try fixture.reopen()
    }
}
