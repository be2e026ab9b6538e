import PhotoImaging
import Testing

@testable import TakeoutRules

@Suite("Commands: import --takeout, JSON") struct TakeoutJSONTests {
    @Test(arguments: [
        ("null", JSONValue.null), (" [true, false] ", .list([.bool(true), .bool(false)])),
        ("-0.5e1", .number(-5)),
        ("{}", .object([:])), (#"{"a":1,"a":2}"#, .object(["a": .number(2)])), ("\u{FEFF}1", .number(1)),
        (#""\u00e9\ud83d\ude00\n\/""#, .text("é😀\n/")), (#""\ud83d""#, .text("\u{FFFD}")),
    ]) func `JSON has the value that it spells`(text: String, value: JSONValue) {
        #expect(JSONValue(Array(text.utf8)) == value)
    }

    @Test(arguments: [
        "", "01", "1.", ".5", "+1", "1e", "nul", "[1,]", "{\"a\":1,}", "{a:1}", "\"\t\"", "\"\\x\"",
        "\"\\u12\"", "\"a",
        "[", "1 2", "1e999", "'a'",
    ]) func `text that is not strictly JSON is refused`(text: String) {
        #expect(JSONValue(Array(text.utf8)) == nil)
    }

    @Test func `JSON that is too deep, too long, or not UTF-8 is refused`() {
        func nested(_ depth: Int) -> [UInt8] {
            Array((String(repeating: "[", count: depth) + String(repeating: "]", count: depth)).utf8)
        }
        #expect(JSONValue(nested(JSONValue.depthMax)) != nil)
        #expect(JSONValue(nested(JSONValue.depthMax + 1)) == nil)
        #expect(JSONValue([UInt8](repeating: 0x20, count: JSONValue.bytesMax) + [0x31]) == nil)
        #expect(JSONValue([0x22, 0xFF, 0x22]) == nil)
    }
}

@Suite("Commands: import --takeout, its files") struct TakeoutFileTests {
    /// As published by a user: gist jrstrunk/4fc7a6baf90f9a4b5e1d62b1d4fdc94a.
    private let photo = """
        {"title": "IMG_20200502_154958.jpg", "description": "", "imageViews": "33",
        "creationTime": {"timestamp": "1588549547", "formatted": "May 3, 2020, 11:45:47 PM UTC"},
        "photoTakenTime": {"timestamp": "1588448998", "formatted": "May 2, 2020, 7:49:58 PM UTC"},
        "geoData": {"latitude": 0.0, "longitude": 0.0, "altitude": 0.0, "latitudeSpan": 0.0, "longitudeSpan": 0.0},
        "geoDataExif": {"latitude": 48.5, "longitude": -2.25}, "url": "https://lh3.googleusercontent.com/k",
        "favorited": true}
        """

    @Test func `a photo's JSON gives date, place, title and favourite`() throws {
        var expected = PhotoMetadata()
        expected.title = "IMG_20200502_154958.jpg"
        expected.taken = 1_588_448_998
        expected.place = PhotoMetadata.Place(latitude: 48.5, longitude: -2.25)
        expected.isFavourite = true
        #expect(GoogleFile(Array(photo.utf8)) == .photo(expected))
    }

    @Test func `dates before 1970 and as numbers are read, others are unknown`() {
        func taken(_ text: String) -> Int64? {
            guard
                case .photo(let metadata) = GoogleFile(
                    Array("{\"photoTakenTime\":{\"timestamp\":\(text)}}".utf8))
            else { return 7 }
            return metadata.taken
        }
        #expect(taken("\"-86400\"") == -86_400)
        #expect(taken("1588448998") == 1_588_448_998, "ente#4956")
        for text in ["\"\"", "\"soon\"", "null", "1e300"] { #expect(taken(text) == nil) }
    }

    @Test func `an album's JSON gives its title, other JSON nothing`() {
        #expect(GoogleFile(Array(#"{"title":"Trip"}"#.utf8)) == .album(title: "Trip"))
        let old = #"{"albumData":{"title":"Trip","date":{"timestamp":"0"}}}"#
        #expect(GoogleFile(Array(old.utf8)) == .album(title: "Trip"), "immich-go, exports until 2019")
        #expect(GoogleFile(Array(#"{"sharedAlbumComments":[]}"#.utf8)) == .other)
        #expect(GoogleFile(Array("[]".utf8)) == nil)
    }

    @Test(
        arguments: [
            ("Photos from 2023", nil, FolderKind.year), ("Fotos von 2019", "Fotos von 2019", .year),
            ("Photos de 2020", nil, .year), ("Foto dal 2016", nil, .year), ("Zdjęcia z 2011", nil, .year),
            ("2016-07-03", "2016-07-03", .year), ("2016-07-03 #2", "", .year),
            ("Trip", "Trip to Rome", .album("Trip to Rome")), ("Trip(1)", "Trip", .album("Trip (1)")),
            ("2022 - Germany", "2022 - Germany", .album("2022 - Germany")),
            ("2016-07-03 Rome", "", .other),
            ("Summer 2019", "Summer 2019", .album("Summer 2019")), ("Untitled", "", .other),
            ("Archive", nil, .other), ("A_B", "A/B", .album("A_B")), ("x", "..", .album("．．")),
            ("x", ".git", .album("_git")), ("_", ".", .album("．")), ("_", "/", .album("／")),
            ("_", " ", .album("␣")), ("_", "  ", .album("␣␣")), ("_", "_", .album("_")),
            ("_(1)", "/", .album("／ (1)")), ("x", ". . .", .album("．␣．␣．")),
        ] as [(String, String?, FolderKind)]) func `a folder is a year, an album, or neither`(
            name: String, title: String?, kind: FolderKind
        )
    {
        #expect(FolderKind(name, title: title) == kind)
    }

    @Test func `names of albums have at most 255 bytes`() {
        let name = FolderKind.fileName(String(repeating: "é", count: 200))
        #expect(name.utf8.count == 254)
        let blanks = FolderKind.fileName(String(repeating: " ", count: 255))
        #expect(blanks == String(repeating: "␣", count: 85))
        guard case .album(let numbered) = FolderKind("x(12)", title: String(repeating: "a", count: 300))
        else {
            Issue.record("no album")
            return
        }
        #expect(numbered == String(repeating: "a", count: 250) + " (12)")
    }

    @Test(
        arguments: [
            ("Albums", AppleFolder.other), ("Photos", .other), ("Memories", .memories),
            ("Andenken", .memories),
            ("Souvenirs", .memories), ("Vzpomi\u{301}nky", .memories), ("メモリー", .memories),
            ("Hidden", .hidden),
            ("AUSGEBLENDET", .hidden), ("非表示", .hidden), ("Recently Deleted", .deleted),
            ("Souvenirs 2020", .other),
        ] as [(String, AppleFolder)])
    func `Apple's own folders are no albums`(name: String, kind: AppleFolder) {
        #expect(AppleFolder(name) == kind)
        #expect(kind.hasAlbums == (kind == .other || kind == .deleted))
    }

    @Test func `Apple's tables give dates, favourites, and albums`() throws {
        // As in immich-go's reader of iCloud's exports (#822), with a quoted name.
        let details = """
            imgName,fileChecksum,favorite,hidden,deleted,originalCreationDate,viewCount,importDate\r
            IMG_7938.HEIC,AfQj57ORF2JIumUCjO+PawZ9nqPg,no,no,no,"Saturday June 4,2022 12:11 PM GMT",10,"x"\r
            "a ""b"", c.JPG",A,yes,no,yes,"Tuesday October 1,2019 5:20 AM GMT",1,"x"
            """
        guard case .details(let rows) = AppleTable(Array(details.utf8)) else {
            Issue.record("no details")
            return
        }
        #expect(rows.map(\.name) == ["IMG_7938.HEIC", "a \"b\", c.JPG"])
        #expect(rows.map(\.metadata.taken) == [1_654_344_660, 1_569_907_200])
        #expect(
            rows.map(\.metadata.isFavourite) == [false, true]
                && rows.map(\.metadata.isTrashed) == [false, true])
        for header in ["imgName", "imageName", "Images"] {
            #expect(
                AppleTable(Array("\(header)\nIMG_1.JPG\nIMG_2.MOV\n".utf8))
                    == .album(["IMG_1.JPG", "IMG_2.MOV"]))
        }
        #expect(AppleTable(Array("a,b\n1,2\n".utf8)) == nil)
        expectFormsOfTables()
        #expect(AppleTable([]) == nil)
        #expect(appleSeconds("Saturday June 4,2022 12:05 AM GMT") == 1_654_301_100)
        #expect(appleSeconds("Saturday June 4,2022 17:05 PM GMT") == 1_654_362_300)
        #expect(appleSeconds("4 June 2022") == nil)
    }

    /// As programs for tables write them anew.
    private func expectFormsOfTables() {
        let date = "Saturday June 4,2022 12:11 PM GMT"
        let lines = [[" imgName ", "originalCreationDate"], ["Été;a.JPG", date]]
        func table(_ separator: String, _ end: String) -> String {
            lines.map { $0.map { "\"\($0)\"" }.joined(separator: separator) }.joined(separator: end) + end
        }
        func bytes(_ text: String, isBig: Bool) -> [UInt8] {
            ("\u{FEFF}" + text).utf16.flatMap { unit in
                isBig ? [UInt8(unit >> 8), UInt8(unit & 0xFF)] : [UInt8(unit & 0xFF), UInt8(unit >> 8)]
            }
        }
        for separator in [",", ";", "\t"] {
            for end in ["\n", "\r\n", "\r"] {
                let text = table(separator, end)
                let plain = Array(text.utf8)
                let marked = [0xEF, 0xBB, 0xBF] + plain
                for form in [plain, marked, bytes(text, isBig: false), bytes(text, isBig: true)] {
                    guard case .details(let rows) = AppleTable(form) else {
                        Issue.record("no details: \(text)")
                        continue
                    }
                    #expect(rows.map(\.name) == ["Été;a.JPG"] && rows[0].metadata.taken == 1_654_344_660)
                }
            }
        }
        #expect(AppleTable([0xFF, 0xFE]) == nil && AppleTable([0xFE, 0xFF, 0]) == nil)
    }
}

@Suite("Commands: import --takeout, dates") struct TakeoutDateTests {
    private let own = CivilTime(secondsSince1970: 1_588_448_998 + 7200)
    private let taken: Int64 = 1_588_448_998

    @Test func `dates that are the photo's own in some time zone say nothing new`() {
        for offset in [-12 * 3600, -5 * 3600, 0, 5 * 3600 + 45 * 60, 14 * 3600] as [Int64] {
            let own = CivilTime(secondsSince1970: taken + offset + 1)
            #expect(isSameMoment(own, .dateTimeOriginal, taken: taken, precision: 2))
        }
    }

    @Test func `dates that differ by anything else are corrections`() {
        for offset in [-13 * 3600, 7 * 60, 3600 + 30, 15 * 3600, 86_400, 400 * 86_400] as [Int64] {
            let own = CivilTime(secondsSince1970: taken + offset)
            #expect(!isSameMoment(own, .dateTimeOriginal, taken: taken, precision: 2))
        }
        #expect(!isSameMoment(own, .mtime, taken: taken, precision: 2))
        let midnight = CivilTime(secondsSince1970: taken / 86_400 * 86_400)
        #expect(!isSameMoment(midnight, .fileName, taken: taken / 86_400 * 86_400, precision: 2))
        #expect(isSameMoment(own, .dateTimeOriginal, taken: taken - 58, precision: 60))
    }

    @Test func `dates are written so that the sidecar's reader finds them again`() throws {
        let place = PhotoMetadata.Place(latitude: 48.857_5, longitude: -2.351_388)
        let text = try #require(
            sidecarText(
                date: own, offset: 7200, place: place, description: "<a> & exif:DateTimeOriginal=\"1999\""))
        let sidecar = try #require(readSidecar(MemoryByteSource(text)))
        #expect(sidecar.dates.map(\.time) == [own])
        #expect(sidecar.dates.map(\.offsetSeconds) == [7200])
        #expect(String(decoding: text, as: UTF8.self).contains("exif:GPSLatitude=\"48,51.450000N\""))
        #expect(String(decoding: text, as: UTF8.self).contains("exif:GPSLongitude=\"2,21.083280W\""))
        #expect(sidecarText(date: nil, offset: 0, place: nil, description: "") == nil)
        let described = try #require(
            sidecarText(
                date: nil, offset: 0, place: nil, description: " exif:DateTimeOriginal=\"1999-01-01\""))
        #expect(readSidecar(MemoryByteSource(described)) == nil)
    }
}

@Suite("Commands: import --takeout, entries of archives") struct ArchiveEntryTests {
    @Test func `entries are sent and received`() throws {
        let entry = ArchiveEntry(
            name: Array("a/é.jpg".utf8), byteCount: 1 << 40, modified: -5, status: .encrypted)
        let (head, nameBytes) = try #require(
            ArchiveEntry.head(Array(entry.bytes.prefix(ArchiveEntry.headBytes))))
        #expect(nameBytes == entry.name.count && head.byteCount == 1 << 40)
        #expect(head.modified == -5 && head.status == .encrypted)
        #expect(ArchiveEntry.head([]) == nil)
    }

    @Test(
        arguments: [
            ("a/b.jpg", ["a", "b.jpg"]), ("./a//b", ["a", "b"]), ("a/", ["a"]), ("/etc/x", nil),
            ("a/../b", nil), ("..", nil),
            ("", nil), ("a\0b", nil), ("...", ["..."]),
        ] as [(String, [String]?)]) func `entries have no path that leads out of the archive`(
            name: String, path: [String]?
        )
    {
        let entry = ArchiveEntry(name: Array(name.utf8), byteCount: 0, modified: 0, status: .ok)
        #expect(entry.path?.map { String(decoding: $0, as: UTF8.self) } == path)
    }

    @Test func `entries are bombs only if large and out of proportion`() {
        #expect(!ArchiveProtocol.isBomb(size: 64 << 20, compressed: 1))
        #expect(ArchiveProtocol.isBomb(size: 10 << 30, compressed: 10 << 20))
        #expect(!ArchiveProtocol.isBomb(size: 10 << 30, compressed: 9 << 30))
    }
}
