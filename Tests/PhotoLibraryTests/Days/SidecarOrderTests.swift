import LibraryFixtures
import LinuxIO
import PhotoLibrary
import TestSupport
import Testing

@testable import FileRequests
@testable import VaultCatalogue

/// In whichever order photos, their copies and sidecars arrive and go, the days are the same.
@Suite("Days: sidecars in any order") struct SidecarOrderTests {
    /// How a file arrives.
    private enum Way: CaseIterable { case written, renamed, fromWorkingDirectory, moved, linked }

    private func arrive(_ path: String, _ bytes: [UInt8], _ way: Way, _ fixture: Fixture) throws {
        let name = path.split(separator: "/").last.map(String.init) ?? path
        let album = String(path.dropLast(name.count + 1))
        switch way {
        case .written: try fixture.put(path, bytes)
        case .renamed:
            try fixture.put("\(album)/.\(name).a1B2", bytes)
            try fixture.mv("\(album)/.\(name).a1B2", path)
        case .fromWorkingDirectory:
            if !fixture.exists(album + "/.new") { try fixture.mkdir(album + "/.new") }
            try fixture.put("\(album)/.new/\(name)", bytes)
            try fixture.mv("\(album)/.new/\(name)", path)
        case .moved:
            try fixture.put("\(album)/sub/\(name)", bytes)
            try fixture.mv("\(album)/sub/\(name)", path)
        case .linked:
            guard name.hasSuffix("xmp") else { return try arrive(path, bytes, .written, fixture) }
            try fixture.put("\(album)/sub/\(name).txt", bytes)
            try fixture.ln("\(album)/sub/\(name).txt", path)
        }
    }

    /// The same photo in three albums, with a sidecar beside one or two of its copies, and another photo of that name.
    @Test(arguments: 0..<60) func `a photo's day does not depend on when its copies and sidecars came`(
        seed: UInt64
    ) throws {
        var random = RandomSource(seed)
        let fixture = try Fixture()
        let own: String? = seed % 3 == 0 ? nil : "2024-05-01"
        var files: [(String, [UInt8])] = [
            ("albums/A/x.jpg", jpeg(own)), ("albums/B/x.jpg", jpeg(own)),
            ("albums/B/x.jpg.xmp", xmp("2010-10-10")), ("albums/C/x.jpg", jpeg(own)),
            ("albums/D/x.jpg", jpeg("2023-03-03", more: 1)),
        ]
        if seed % 2 == 0 { files.append(("albums/C/x.xmp", xmp("2011-11-11"))) }
        if seed % 5 == 0 { files.append(("albums/A/x.xmp", xmp("2012-12-12", of: "nef"))) }
        for album in ["A", "B", "C", "D"].shuffled(using: &random) {
            try fixture.mkdir("albums/" + album)
            try fixture.mkdir("albums/\(album)/sub")
        }
        let order = files.shuffled(using: &random)
        for (path, bytes) in order {
            try arrive(path, bytes, Way.allCases.randomElement(using: &random)!, fixture)
            switch Int.random(in: 0..<4, using: &random) {
            case 0: _ = try fixture.moments()
            case 1: try fixture.remount()
            default: break
            }
        }
        let comment = Comment(rawValue: "\(order.map(\.0))")
        #expect(try fixture.moments() == ["2010-10-10/x.jpg", "2023-03-03/x.jpg"], comment)
        #expect(try fixture.source("albums/A/x.jpg") == "sidecar", comment)
        // Without the first, the second counts, and then the photo's own date.
        try fixture.rm("albums/B/x.jpg.xmp")
        if seed % 2 == 0 {
            #expect(try fixture.moments() == ["2011-11-11/x.jpg", "2023-03-03/x.jpg"], comment)
            try fixture.mv("albums/C/x.xmp", "albums/C/elsewhere.xmp")
        }
        if let own {
            #expect(try fixture.moments() == ["2023-03-03/x.jpg", own + "/x.jpg"], comment)
        } else {
            #expect(try fixture.source("albums/B/x.jpg") == "mtime", comment)
        }
    }

    @Test(arguments: [false, true]) func `a sidecar describes that of two copies which is edited`(
        isPhotoEdited: Bool
    ) throws {
        let fixture = try Fixture()
        for album in ["A", "B"] { try fixture.mkdir("albums/" + album) }
        try fixture.put("albums/A/x.jpg", jpeg("2024-05-01"))
        try fixture.put("albums/B/x.jpg", jpeg("2024-05-01"))
        try fixture.put("albums/B/x.jpg.xmp", xmp("2010-10-10"))
        #expect(try fixture.moments() == ["2010-10-10/x.jpg"])
        let path = isPhotoEdited ? "albums/A/x.jpg" : "albums/B/x.jpg"
        try fixture.put(path, jpeg("2024-05-01", more: 1))
        // Numbered, because both were of one day for a moment.
        #expect(try fixture.moments() == ["2010-10-10/x (2).jpg", "2024-05-01/x.jpg"])
        #expect(try fixture.source("albums/A/x.jpg") == "DateTimeOriginal")
        #expect(try fixture.source("albums/B/x.jpg") == "sidecar")
    }

    /// With an album goes what it had; the photo keeps its day, as it does if its own album goes.
    @Test(arguments: [["x.jpg.xmp", "x.jpg"], ["x.jpg", "x.jpg.xmp"]])
    func `a photo keeps its day when a copy's album is removed, in any order`(order: [String]) throws {
        let fixture = try Fixture()
        for album in ["A", "B"] { try fixture.mkdir("albums/" + album) }
        try fixture.put("albums/A/x.jpg", jpeg("2024-05-01"))
        for name in order.reversed() {
            try fixture.put("albums/B/" + name, name == "x.jpg" ? jpeg("2024-05-01") : xmp("2010-10-10"))
        }
        #expect(try fixture.moments() == ["2010-10-10/x.jpg"])
        for name in order { try fixture.rm("albums/B/" + name) }
        #expect(try fixture.moments() == ["2010-10-10/x.jpg"])
    }

    // MARK: A sidecar of a day, trashed alone

    private func restore(_ name: String, to day: String, _ fixture: Fixture) throws {
        if !fixture.exists("moments/" + day) { try fixture.mkdir("moments/" + day) }
        try fixture.mv(".Trash-0/files/" + name, "moments/\(day)/\(name)")
    }

    private func shoot(_ photos: [(String, [UInt8])], _ sidecar: String) throws -> Fixture {
        let fixture = try Fixture(trashDays: 30)
        for path in [".Trash-0", ".Trash-0/files", ".Trash-0/info"] where !fixture.exists(path) {
            try fixture.mkdir(path, mode: 0o700)
        }
        for (name, bytes) in photos { try fixture.put("albums/" + name, bytes) }
        // It follows its photo at once.
        _ = try? fixture.put("moments/2024-05-01/" + sidecar, xmp("2010-10-10"))
        return fixture
    }

    @Test(arguments: ["x.jpg.xmp", "x.xmp"], [false, true])
    func `a sidecar that comes back finds its photo, which went home meanwhile`(
        name: String, byRename: Bool
    ) throws {
        for isRemounted in [false, true] {
            let fixture = try shoot([("x.jpg", jpeg("2024-05-01"))], name)
            let whole = ["2010-10-10/x.jpg", "2010-10-10/" + name].sorted()
            #expect(try fixture.moments() == whole)
            if byRename {
                try fixture.mv("moments/2010-10-10/" + name, ".Trash-0/files/" + name)
            } else {
                try fixture.rm("moments/2010-10-10/" + name)
            }
            #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
            if isRemounted { try fixture.remount() }
            try restore(name, to: "2010-10-10", fixture)
            #expect(try fixture.moments() == whole)
            #expect(try fixture.source("albums/x.jpg") == "sidecar")
            try fixture.remount()
            #expect(try fixture.moments() == whole)
        }
    }

    /// Another photo of the name on that day, or a day that the user has chosen meanwhile, is respected.
    @Test func `a sidecar that comes back follows its photo to where the user put it`() throws {
        let fixture = try shoot([("x.jpg", jpeg("2024-05-01"))], "x.jpg.xmp")
        _ = try fixture.moments()
        try fixture.rm("moments/2010-10-10/x.jpg.xmp")
        _ = try fixture.moments()
        try fixture.mkdir("moments/2015-05-05")
        try fixture.mv("moments/2024-05-01/x.jpg", "moments/2015-05-05/y.jpg")
        try restore("x.jpg.xmp", to: "2010-10-10", fixture)
        #expect(try fixture.moments() == ["2015-05-05/y.jpg", "2015-05-05/y.jpg.xmp"])
        #expect(try fixture.get("moments/2015-05-05/y.jpg.xmp") == xmp("2010-10-10"))
    }

    @Test func `a sidecar that comes back dates both photos of its stem`() throws {
        let fixture = try shoot(
            [("DSC.jpg", jpeg("2024-05-01")), ("DSC.cr2", raw("2024-05-01"))], "DSC.xmp")
        let whole = ["DSC.cr2", "DSC.jpg", "DSC.xmp"].map { "2010-10-10/" + $0 }
        #expect(try fixture.moments() == whole)
        try fixture.rm("moments/2010-10-10/DSC.xmp")
        #expect(try fixture.moments() == ["2024-05-01/DSC.cr2", "2024-05-01/DSC.jpg"])
        try fixture.mkdir("moments/2010-10-10")
        try fixture.mv(".Trash-0/files/DSC.xmp", "moments/2010-10-10/DSC.xmp")
        #expect(try fixture.moments() == whole)
    }

    /// As a file manager restores them, or `mv`: the sidecar before its photo.
    @Test(arguments: ["x.jpg.xmp", "x.xmp"]) func `a sidecar that comes back first is found by its photo`(
        name: String
    ) throws {
        let fixture = try shoot([("x.jpg", jpeg("2024-05-01"))], name)
        let whole = ["2010-10-10/x.jpg", "2010-10-10/" + name].sorted()
        #expect(try fixture.moments() == whole)
        try fixture.rm("moments/2010-10-10/" + name)
        #expect(try fixture.moments() == ["2024-05-01/x.jpg"])
        try fixture.rm("moments/2024-05-01/x.jpg")
        try restore(name, to: "2010-10-10", fixture)
        #expect(try fixture.moments() == ["2010-10-10/" + name])
        try restore("x.jpg", to: "2024-05-01", fixture)
        #expect(try fixture.moments() == whole)
        #expect(try fixture.source("albums/x.jpg") == "sidecar")
    }

    // MARK: A sidecar that an early release has trashed, without a record of its photos

    /// Leaves the catalogue as such a release would have.
    private func forgetDescribed(_ fixture: Fixture) throws {
        try fixture.library.session.change { change throws(FileError) in
            try change.tree.tables.connection.execute("UPDATE trash SET name=x'' WHERE id<>0")
        }
    }

    @Test(arguments: ["x.jpg.xmp", "x.xmp"]) func `one of an early release finds the photo of its name`(
        name: String
    ) throws {
        let fixture = try shoot(
            [("x.jpg", jpeg("2024-05-01")), ("xy.jpg", jpeg("2024-05-01", more: 1))], name)
        let other = "2024-05-01/xy.jpg"
        let whole = (["2010-10-10/x.jpg", "2010-10-10/" + name].sorted()) + [other]
        #expect(try fixture.moments() == whole)
        try fixture.rm("moments/2010-10-10/" + name)
        #expect(try fixture.moments() == ["2024-05-01/x.jpg", other])
        try forgetDescribed(fixture)
        try fixture.remount()
        try restore(name, to: "2010-10-10", fixture)
        #expect(try fixture.moments() == whole)
        #expect(try fixture.source("albums/x.jpg") == "sidecar")
        try fixture.remount()
        #expect(try fixture.moments() == whole)
    }

    /// A sidecar must never date a photo that merely has the name.
    @Test(arguments: ["two days", "later", "another sidecar", "with its photo", "of this release"])
    func `one of an early release stays alone where its photo is not certain`(doubt: String) throws {
        let fixture = try shoot([("x.jpg", jpeg("2024-05-01"))], "x.jpg.xmp")
        _ = try fixture.moments()
        if doubt == "with its photo" || doubt == "of this release" {
            try fixture.mkdir("albums/B")
            try fixture.put("albums/B/x.jpg", jpeg("2021-01-01", more: 1))
            try fixture.rm("moments/2010-10-10/x.jpg")
            #expect(eventually { (try? fixture.moments())?.contains("2010-10-10/x.jpg.xmp") == false })
        } else {
            try fixture.rm("moments/2010-10-10/x.jpg.xmp")
        }
        var left = try fixture.moments()
        switch doubt {
        case "two days":
            try fixture.mkdir("albums/B")
            try fixture.put("albums/B/x.jpg", jpeg("2021-01-01", more: 1))
            // As if it had been there before.
            try fixture.library.session.change { change throws(FileError) in
                try change.tree.tables.connection.execute("UPDATE photo SET arrived=1")
            }
        case "later":
            try fixture.rm("moments/2024-05-01/x.jpg")
            try fixture.put("albums/x.jpg", jpeg("2021-01-01", more: 1))
        case "another sidecar": try fixture.put("albums/x.jpg.xmp", xmp("2015-05-05"))
        default: break
        }
        left = try fixture.moments()
        if doubt != "of this release" { try forgetDescribed(fixture) }
        try fixture.remount()
        try restore("x.jpg.xmp", to: "2010-10-10", fixture)
        #expect(try fixture.moments() == (left + ["2010-10-10/x.jpg.xmp"]).sorted(), "\(doubt)")
    }
}
