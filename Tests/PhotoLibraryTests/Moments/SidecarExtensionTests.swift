import FileRequests
import LibraryFixtures
import PhotoLibrary
import TestSupport
import Testing

/// A sidecar that says of which extension its photo is goes with that photo only.
@Suite("Moments: sidecars that name their photo's extension") struct SidecarExtensionTests {
    private let day = "moments/2024-05-01/"
    private let trash = ".Trash-0/files"

    /// When a sidecar comes.
    private enum Arrival: CaseIterable { case before, after, fromWorkingFile, byAnotherName, emptiedBefore }

    /// A JPEG in an album and in its day, which has the sidecar.
    private func shoot(
        _ sidecar: String, _ contents: [UInt8], _ arrival: Arrival = .after, trashDays: Int = 30
    ) throws -> Fixture {
        let fixture = try Fixture(trashDays: trashDays)
        try fixture.mkdir("albums/A")
        if arrival == .before {
            try fixture.mkdir("moments/2024-05-01")
            try fixture.put(day + sidecar, contents)
        }
        try fixture.put("albums/A/DSC.JPG", jpeg("2024-05-01"))
        switch arrival {
        case .before: break
        case .after: try fixture.put(day + sidecar, contents)
        case .fromWorkingFile:
            try fixture.put(day + ".DSC.a1B2", contents)
            try fixture.mv(day + ".DSC.a1B2", day + sidecar)
        case .byAnotherName:
            try fixture.put(day + "notes.txt", contents)
            try fixture.mv(day + "notes.txt", day + sidecar)
        case .emptiedBefore:
            try fixture.put(day + sidecar, xmp("2024-05-01"))
            try fixture.put(day + sidecar, contents)
        }
        #expect(try fixture.ls("moments/2024-05-01") == ["DSC.JPG", sidecar])
        return fixture
    }

    /// Without a trash, too: there the raw file's edits would be lost.
    @Test(arguments: Arrival.allCases, [0, 30]) private func `one of a raw file that is elsewhere stays`(
        arrival: Arrival, trashDays: Int
    ) throws {
        for sidecar in ["DSC.xmp", "DSC.XMP"] {
            let contents = xmp("2024-05-01", of: "NEF")
            let fixture = try shoot(sidecar, contents, arrival, trashDays: trashDays)
            try fixture.rm(day + "DSC.JPG")
            #expect(try fixture.ls("moments/2024-05-01") == [sidecar])
            try fixture.remount()
            #expect(try fixture.get(day + sidecar) == contents)
            if trashDays > 0 {
                #expect(try fixture.ls(trash) == ["DSC.JPG"])
                try fixture.mv(trash + "/DSC.JPG", day + "DSC.JPG")
                #expect(try fixture.ls("moments/2024-05-01") == ["DSC.JPG", sidecar])
            }
        }
    }

    /// An extension in other letters, with a dot, or none; and a name that says which photo it is, whatever is in it.
    @Test(arguments: [
        ("DSC.xmp", "JPG"), ("DSC.xmp", "jpg"), ("DSC.XMP", "Jpg"), ("DSC.xmp", ".JPG"), ("DSC.xmp", nil),
        ("DSC.xmp", ""), ("DSC.JPG.xmp", "NEF"), ("DSC.JPG.XMP", nil),
    ]) func `one of the photo itself goes and comes back with it`(sidecar: String, ending: String?) throws {
        let fixture = try shoot(sidecar, xmp("2024-05-01", of: ending))
        try fixture.rm(day + "DSC.JPG")
        #expect(try fixture.ls(trash) == ["DSC.JPG", sidecar])
        #expect(!fixture.exists(day + sidecar))
        try fixture.mv(trash + "/DSC.JPG", day + "DSC.JPG")
        #expect(try fixture.ls("moments/2024-05-01") == ["DSC.JPG", sidecar])
    }

    /// Adobe's programs write develop settings alone, too.
    @Test func `one without a date stays`() throws {
        let contents = Array(
            "<rdf:Description photoshop:SidecarForExtension=\"NEF\" crs:Exposure=\"1\"/>".utf8)
        let fixture = try shoot("DSC.xmp", contents)
        try fixture.rm(day + "DSC.JPG")
        #expect(try fixture.ls("moments/2024-05-01") == ["DSC.xmp"] && fixture.ls(trash) == ["DSC.JPG"])
    }

    /// Of a pair, in both orders, at once and with a look between.
    @Test(arguments: ["DSC.cr2", "DSC.JPG"], [false, true])
    func `one of a pair goes with its own half`(first: String, isListed: Bool) throws {
        let fixture = try shoot("DSC.xmp", xmp("2024-05-01", of: "CR2"))
        try fixture.put("albums/A/DSC.cr2", raw("2024-05-01"))
        #expect(try fixture.ls("moments/2024-05-01") == ["DSC.JPG", "DSC.cr2", "DSC.xmp"])
        try fixture.rm(day + first)
        if isListed {
            let left = first == "DSC.cr2" ? ["DSC.JPG"] : ["DSC.cr2", "DSC.xmp"]
            #expect(try fixture.ls("moments/2024-05-01") == left)
        }
        try fixture.rm(day + (first == "DSC.cr2" ? "DSC.JPG" : "DSC.cr2"))
        #expect(try fixture.ls(trash) == ["DSC.JPG", "DSC.cr2", "DSC.xmp"])
        try fixture.remount()
        if !fixture.exists("moments/2024-05-01") { try fixture.mkdir("moments/2024-05-01") }
        try fixture.mv(trash + "/DSC.cr2", day + "DSC.cr2")
        #expect(try fixture.ls("moments/2024-05-01") == ["DSC.cr2", "DSC.xmp"])
        try fixture.mv(trash + "/DSC.JPG", day + "DSC.JPG")
        #expect(try fixture.ls("moments/2024-05-01") == ["DSC.JPG", "DSC.cr2", "DSC.xmp"])
    }

    /// In an album, beside the photo's name there.
    @Test func `one in an album stays, too`() throws {
        let fixture = try shoot("DSC.xmp", xmp("2024-05-01", of: "NEF"))
        try fixture.put("albums/A/DSC.xmp", xmp("2024-05-01", of: "ORF"))
        try fixture.rm(day + "DSC.JPG")
        #expect(try fixture.ls("albums/A") == ["DSC.xmp"] && fixture.ls(trash) == ["DSC.JPG"])
    }

    /// A raw file that is still to come finds its sidecar where it was.
    @Test func `one of a raw file does not follow a JPEG to another name or day`() throws {
        let fixture = try shoot("DSC.xmp", xmp("2024-05-01", of: "NEF"))
        try fixture.mv(day + "DSC.JPG", day + "Beach.JPG")
        #expect(try fixture.ls("moments/2024-05-01") == ["Beach.JPG", "DSC.xmp"])
        try fixture.mv(day + "Beach.JPG", day + "DSC.JPG")
        try fixture.mkdir("moments/2020-01-01")
        try fixture.mv(day + "DSC.JPG", "moments/2020-01-01/DSC.JPG")
        #expect(try fixture.ls("moments/2024-05-01") == ["DSC.xmp"])
        #expect(try fixture.ls("moments/2020-01-01") == ["DSC.JPG"])
    }

    @Test func `one of a raw file does not follow another raw file either`() throws {
        let fixture = try shoot("DSC.xmp", xmp("2024-05-01", of: "CR2"))
        try fixture.put("albums/A/Dune.JPG", jpeg("2024-05-01", more: 1))
        try fixture.put("albums/A/Dune.cr2", raw("2024-05-01"))
        try fixture.mkdir("moments/2020-01-01")
        for name in ["DSC.JPG", "Dune.JPG"] { try fixture.mv(day + name, "moments/2020-01-01/" + name) }
        #expect(try fixture.ls("moments/2020-01-01") == ["DSC.JPG", "Dune.JPG", "Dune.cr2"])
        #expect(try fixture.ls("moments/2024-05-01") == ["DSC.xmp"])
    }

    /// Whichever half of a pair is named, both and the sidecar move.
    @Test(arguments: ["DSC.cr2", "DSC.JPG"]) func `one of a pair follows it to another day`(moved: String)
        throws
    {
        let fixture = try shoot("DSC.xmp", xmp("2024-05-01", of: "CR2"))
        try fixture.put("albums/A/DSC.cr2", raw("2024-05-01"))
        try fixture.mkdir("moments/2020-01-01")
        try fixture.mv(day + moved, "moments/2020-01-01/" + moved)
        #expect(try fixture.ls("moments/2020-01-01") == ["DSC.JPG", "DSC.cr2", "DSC.xmp"])
        // Another name for the raw file is the sidecar's, too, although the JPEG keeps its own.
        try fixture.mv("moments/2020-01-01/DSC.cr2", "moments/2020-01-01/Dune.cr2")
        #expect(try fixture.ls("moments/2020-01-01") == ["DSC.JPG", "Dune.cr2", "Dune.xmp"])
    }

    /// A pair and its raw file's sidecar in the trash: the JPEG went first, which the sidecar outlived.
    private func trashPair(isListed: Bool, isRemounted: Bool) throws -> Fixture {
        let fixture = try shoot("DSC.xmp", xmp("2024-05-01", of: "CR2"))
        try fixture.put("albums/A/DSC.xmp", xmp("2024-05-01", of: "CR2"))
        try fixture.put("albums/A/DSC.cr2", raw("2024-05-01"))
        try fixture.rm(day + "DSC.JPG")
        if isListed { #expect(try fixture.ls("moments/2024-05-01") == ["DSC.cr2", "DSC.xmp"]) }
        if isRemounted { try fixture.remount() }
        try fixture.rm(day + "DSC.cr2")
        #expect(try fixture.ls(trash) == ["DSC (2).xmp", "DSC.JPG", "DSC.cr2", "DSC.xmp"])
        if isRemounted { try fixture.remount() }
        if !fixture.exists("moments/2024-05-01") { try fixture.mkdir("moments/2024-05-01") }
        return fixture
    }

    @Test(arguments: [false, true], [false, true])
    func `one that went with its raw file does not come back with the JPEG`(isListed: Bool, isRemounted: Bool)
        throws
    {
        let fixture = try trashPair(isListed: isListed, isRemounted: isRemounted)
        try fixture.mv(trash + "/DSC.JPG", day + "DSC.JPG")
        #expect(try fixture.ls("moments/2024-05-01") == ["DSC.JPG"])
        #expect(try fixture.ls("albums/A") == ["DSC.JPG"])
        #expect(try fixture.ls(trash) == ["DSC (2).xmp", "DSC.cr2", "DSC.xmp"])
        try fixture.mv(trash + "/DSC.cr2", day + "DSC.cr2")
        #expect(try fixture.ls("moments/2024-05-01") == ["DSC.JPG", "DSC.cr2", "DSC.xmp"])
        #expect(try fixture.ls("albums/A") == ["DSC.JPG", "DSC.cr2", "DSC.xmp"])
        #expect(try fixture.ls(trash).isEmpty)
    }

    /// Nobody looks in between, and neither order loses it.
    @Test(arguments: [["DSC.JPG", "DSC.cr2"], ["DSC.cr2", "DSC.JPG"]])
    func `one comes back where both are restored at once`(names: [String]) throws {
        let fixture = try trashPair(isListed: true, isRemounted: false)
        for name in names { try fixture.mv(trash + "/" + name, day + name) }
        #expect(try fixture.ls("moments/2024-05-01") == ["DSC.JPG", "DSC.cr2", "DSC.xmp"])
        #expect(try fixture.ls("albums/A") == ["DSC.JPG", "DSC.cr2", "DSC.xmp"])
        #expect(try fixture.ls(trash).isEmpty)
    }

    @Test func `one in a day that lies in the trash stays there without its raw file`() throws {
        let fixture = try shoot("DSC.xmp", xmp("2024-05-01", of: "CR2"))
        try fixture.put("albums/A/DSC.cr2", raw("2024-05-01"))
        for path in [".Trash-0", trash] { try fixture.mkdir(path, mode: 0o700) }
        try fixture.mv("moments/2024-05-01", trash + "/day")
        try fixture.mkdir("moments/2024-05-01")
        try fixture.mv(trash + "/day/DSC.JPG", day + "DSC.JPG")
        #expect(try fixture.ls("moments/2024-05-01") == ["DSC.JPG"])
        #expect(try fixture.ls(trash + "/day") == ["DSC.cr2", "DSC.xmp"])
        try fixture.mv(trash + "/day/DSC.cr2", day + "DSC.cr2")
        #expect(try fixture.ls("moments/2024-05-01") == ["DSC.JPG", "DSC.cr2", "DSC.xmp"])
    }
}
