import Foundation
import PhotoImaging
import Testing

/// The shared collection of real pictures, where it is present: `expected.tsv` says which day each belongs to.
@Suite("Days: the shared collection") struct CollectionTests {
    /// Rows whose manifest contradicts the contract, with the right days.
    static let corrected: [String: (day: String, reason: String)] = [
        "cameras/Piexif/01.jpg": ("mtime", "2099 is more than a day ahead of now: not plausible"),
        "edge/made/dto_2099.jpg": ("mtime", "2099 is more than a day ahead of now: not plausible"),
        "cameras/exif-samples/WWL_(Polaroid)_ION230.jpg": (
            "2008-07-31", "2026-11-24 lay three days ahead when the manifest was made; DateTime is next"
        ),
        "edge/made/dto_1980_default.jpg": ("mtime", "1980-01-01 00:00:00 is a camera's unset clock"),
    ]

    @Test(.enabled(if: Shared.photos != nil))
    func `every picture lands on its day`() {
        var failures: [String] = []
        for row in Shared.rows {
            let source = MemoryByteSource(row.bytes)
            let facts = readFacts(source)
            if identifyMedia(source) != facts?.type {
                failures.append("\(row.path): type and facts disagree")
            }
            let answer = facts.map { capture($0, name: row.name) }
            let day = answer.map { $0.source == .mtime ? "mtime" : $0.time.day.description } ?? "-"
            let expected = Self.corrected[row.path]?.day ?? row.day
            let isRight: Bool =
                switch row.rule {
                case "not a photo": facts == nil
                case "any": true
                case "±1 day": isNear(day, expected)
                default: day == expected
                }
            if !isRight {
                failures.append("\(row.path): \(day) (\(answer?.source.rawValue ?? "-")), not \(expected)")
            }
        }
        #expect(
            failures.isEmpty,
            "\(failures.count) of \(Shared.rows.count):\n\(failures.joined(separator: "\n"))")
        #expect(!Shared.rows.isEmpty)
    }

    /// Type, size and orientation as exiftool has them, of pictures that are not damaged.
    @Test(.enabled(if: Shared.photos != nil))
    func `facts agree with the manifest`() {
        var failures: [String] = []
        for row in Shared.rows where row.rule != "any" && row.rule != "not a photo" {
            guard !row.path.hasPrefix("bad-jpeg/"), Self.otherFacts[row.path] == nil else { continue }
            guard let facts = readFacts(MemoryByteSource(row.bytes)) else { continue }
            let mime = row.mime == "image/heif" ? "image/heic" : row.mime
            if facts.type.mimeType != mime { failures.append("\(row.path): \(facts.type), not \(mime)") }
            if let width = row.width, let height = row.height, facts.width != width || facts.height != height
            {
                failures.append("\(row.path): \(facts.width) × \(facts.height), not \(width) × \(height)")
            }
            if let orientation = row.orientation,
                facts.orientation != ((1...8).contains(orientation) ? orientation : 1)
            {
                failures.append("\(row.path): orientation \(facts.orientation), not \(orientation)")
            }
        }
        #expect(failures.isEmpty, "\(failures.joined(separator: "\n"))")
    }

    /// Rows whose type or size is another by design.
    static let otherFacts: [String: String] = [
        "cameras/exiv2/exiv2-bug855.jpg": "a JPEG with DNG's tags in its EXIF block",
        "video/exiv2/issue_2340_poc.mp4": "begins with QuickTime's preview atom",
        "raw/exiftool/CanonRaw.cr2": "the raw picture's size, not the preview's",
        "raw/exiftool/FujiFilm.raf": "the raw picture's size, not the preview's",
        "raw/exiftool/Panasonic.rw2": "the raw picture's size, not the preview's",
        "raw/exiftool/DNG.dng": "the raw picture's size, not the preview's",
        "raw/exiftool/Nikon.nef": "the raw picture's size, not the preview's",
        "raw/photoprism/canon_eos_6d.dng": "the raw picture's size, not the preview's",
        "tiff/Pillow/crash-2020-10-test.tif": "damaged: its entries stand there twice",
    ]

    private func isNear(_ day: String, _ expected: String) -> Bool {
        guard let day = CivilDay(parsing: day), let expected = CivilDay(parsing: expected) else {
            return false
        }
        return abs(day.daysSince1970 - expected.daysSince1970) <= 1
    }
}
