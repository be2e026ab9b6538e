import FileRequests
import LibraryFixtures
import LinuxIO
import PhotoImaging
import PhotoLibrary
import TestFixtures
import TestSupport
import Testing

/// Of equal files without a date the earliest dates the photo, in whichever order they come.
@Suite("Days: equal files in any order") struct CopyOrderTests {
    private enum Way: CaseIterable { case timed, renamed, movedBetweenAlbums }

    private func arrive(_ path: String, _ seconds: Int64, _ way: Way, _ fixture: Fixture) throws {
        let name = path.split(separator: "/").last.map(String.init) ?? path
        let album = String(path.dropLast(name.count + 1))
        let other = way == .movedBetweenAlbums ? "\(album)/sub/\(name)" : "\(album)/.\(name).a1B2"
        let written = way == .timed ? path : other
        try fixture.put(written, jpeg(nil))
        try fixture.utimes(written, modified: seconds)
        if written != path { try fixture.mv(written, path) }
    }

    /// Noon of the first of May of that year.
    private func may(_ year: Int64) -> Int64 {
        civil(Int(year), 5, 1, 12).secondsSince1970
    }

    @Test(arguments: 0..<40) func `equal files without a date`(seed: UInt64) throws {
        var random = RandomSource(seed)
        let fixture = try Fixture()
        var files = [
            ("albums/A/IMG.jpg", may(2016)), ("albums/A/IMG (1).jpg", may(2012)),
            ("albums/B/copy.jpg", may(2020)), ("albums/C/IMG.jpg", may(2012) + 1),
        ]
        // Of a clock that was never set, or of a file without any time.
        if seed % 2 == 0 { files.append(("albums/B/IMG.jpg", seed % 4 == 0 ? 0 : 315_576_000)) }
        for album in ["A", "B", "C"] {
            try fixture.mkdir("albums/" + album)
            try fixture.mkdir("albums/\(album)/sub")
        }
        let order = files.shuffled(using: &random)
        for (path, seconds) in order {
            try arrive(path, seconds, Way.allCases.randomElement(using: &random)!, fixture)
            switch Int.random(in: 0..<4, using: &random) {
            case 0: _ = try fixture.moments()
            case 1: try fixture.remount()
            default: break
            }
        }
        let comment = Comment(rawValue: "seed \(seed): \(order.map(\.0))")
        let days = try fixture.ls("moments")
        #expect(days == ["2012-05-01"], comment)
        #expect(try fixture.ls("moments/2012-05-01").count == 1, comment)
        for (path, seconds) in files {
            #expect(try fixture.stat(path).modified.seconds == seconds, comment)
            #expect(try fixture.captured(path).hasPrefix("2012-05-01"), comment)
            #expect(try fixture.source(path) == "mtime", comment)
        }
        try fixture.remount()
        #expect(try fixture.ls("moments") == ["2012-05-01"], comment)
        // All of them go with the photo.
        let name = try #require(try fixture.ls("moments/2012-05-01").first)
        try fixture.rm("moments/2012-05-01/" + name)
        for (path, _) in files { #expect(!fixture.exists(path), comment) }
        try fixture.expectNothingLeft()
    }

    @Test(arguments: 0..<40) func `equal files with a sidecar beside one of them`(seed: UInt64) throws {
        var random = RandomSource(seed)
        let fixture = try Fixture()
        for album in ["A", "B"] { try fixture.mkdir("albums/" + album) }
        let isFirst = Bool.random(using: &random)
        if isFirst { try fixture.put("albums/A/x.jpg.xmp", xmp("2010-10-10")) }
        let files = [("albums/A/x.jpg", may(2016)), ("albums/B/y.jpg", may(2012))].shuffled(using: &random)
        for (path, seconds) in files {
            try arrive(path, seconds, Bool.random(using: &random) ? .timed : .renamed, fixture)
            if Bool.random(using: &random) { try fixture.remount() }
        }
        if !isFirst { try fixture.put("albums/A/x.jpg.xmp", xmp("2010-10-10")) }
        let comment = Comment(rawValue: "seed \(seed): \(files.map(\.0)), the sidecar first: \(isFirst)")
        #expect(try fixture.ls("moments") == ["2010-10-10"], comment)
        for (path, _) in files { #expect(try fixture.captured(path).hasPrefix("2010-10-10"), comment) }
        try fixture.remount()
        #expect(try fixture.ls("moments") == ["2010-10-10"], comment)
    }

    /// A day, and a name, that the user has chosen hold.
    @Test func `an earlier copy does not take the photo from where the user put it`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg(nil))
        try fixture.utimes("albums/x.jpg", modified: may(2020))
        try fixture.mv("moments/2020-05-01/x.jpg", "moments/2020-05-01/Beach.jpg")
        try arrive("albums/y.jpg", may(2010), .renamed, fixture)
        #expect(try fixture.moments() == ["2010-05-01/Beach.jpg"])
        try fixture.mkdir("moments/2015-05-05")
        try fixture.mv("moments/2010-05-01/Beach.jpg", "moments/2015-05-05/Beach.jpg")
        try arrive("albums/z.jpg", may(2000), .timed, fixture)
        #expect(try fixture.moments() == ["2015-05-05/Beach.jpg"])
        // In its day alone.
        try fixture.rm("moments/2015-05-05/Beach.jpg")
        try fixture.mkdir("moments/2020-05-01")
        try arrive("moments/2020-05-01/x.jpg", may(2020), .renamed, fixture)
        try arrive("albums/z.jpg", may(2000), .renamed, fixture)
        #expect(try fixture.moments() == ["2020-05-01/x.jpg"])
    }

    /// A later copy changes nothing, as `cp` of a photo of the space makes it, nor does one with the date of its name.
    @Test func `a copy of the same day or of a later one`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/x.jpg", jpeg(nil))
        try fixture.utimes("albums/x.jpg", modified: may(2020))
        let photo = try fixture.ino("moments/2020-05-01/x.jpg")
        try fixture.put("albums/a.jpg", jpeg(nil))
        // Programs that keep seconds only.
        try fixture.utimes("albums/a.jpg", modified: may(2020) - 1)
        try fixture.put("albums/b.jpg", jpeg(nil))
        #expect(try fixture.moments() == ["2020-05-01/x.jpg"])
        #expect(try fixture.ino("moments/2020-05-01/x.jpg") == photo)
        try fixture.put("albums/2020-05-01 10_11_12.jpg", jpeg(nil))
        try fixture.utimes("albums/2020-05-01 10_11_12.jpg", modified: may(2010))
        #expect(try fixture.moments() == ["2020-05-01/x.jpg"])
    }
}
