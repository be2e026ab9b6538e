import CatalogueRows
import LinuxIO
import PhotoImaging
import Testing

@testable import PhotoRules

/// *Photos and plain files* of the contract: the effect of a file's bytes, and the files that follow it.
@Suite("Photos and plain files: rules of classification") struct ClassificationRuleTests {
    private func filed(
        _ classification: Classification, photo: Bool = false, copy: Bool = false, named: Bool = true,
        photoName: Bool = true
    ) -> ClassificationEffect {
        classificationEffect(
            of: ClassificationFacts(isPhoto: photo, isCopy: copy, isNamed: named, hasPhotoName: photoName),
            as: classification)
    }

    private let media = Classification.media(MediaProbe(facts: MediaFacts(type: .jpeg), fingerprint: 1))

    @Test func `a picture is promoted, a photo with new bytes dated anew, a former one demoted`() {
        #expect(filed(media) == .promote && filed(media, photo: true) == .redate)
        #expect(filed(.plain, photo: true) == .demote && filed(.plain) == .nothing)
    }

    @Test func `a photo is dated by new bytes under any name, a file only by a photo's name`() {
        #expect(filed(media, photoName: false) == .nothing)
        #expect(filed(media, photo: true, photoName: false) == .redate)
    }

    @Test func `bytes that could not be read change nothing, nor do copies and files without a name`() {
        #expect(filed(.unknown) == .nothing && filed(.unknown, photo: true) == .nothing)
        #expect(filed(media, copy: true) == .nothing && filed(.plain, copy: true) == .nothing)
        #expect(
            filed(media, named: false) == .nothing && filed(.plain, photo: true, named: false) == .nothing)
    }

    @Test func `a file of the same bytes is a copy unless its own date names another day`() {
        func row(_ day: Int64, undated: Bool = false, pinned: Bool = false) -> PhotoRow {
            var row = PhotoRow(ino: 1, day: day)
            (row.isDatedByMtime, row.isPinned) = (undated, pinned)
            return row
        }
        #expect(mayBeCopy(row(20_240_501), of: row(20_240_501)))
        #expect(mayBeCopy(row(20_240_502, undated: true), of: row(20_240_501)))
        #expect(mayBeCopy(row(20_240_502), of: row(20_240_501, pinned: true)))
        #expect(!mayBeCopy(row(20_240_502), of: row(20_240_501)))
    }

    @Test func `a raw file's picture and a sidecar are companions`() {
        func row(_ media: Int64, _ captured: Int64) -> PhotoRow {
            var row = PhotoRow(ino: 1, day: 20_240_501)
            (row.media, row.captured) = (media, captured)
            return row
        }
        let still = row(2, 0)
        func follows(_ other: String, _ row: PhotoRow?) -> Bool {
            isCompanion(
                Array(other.utf8), row, of: Array("IMG_1.HEIC".utf8), still, captured: 1000)
        }
        #expect(follows("IMG_1.3FR", row(6, 1000)) && !follows("IMG_1.TIF", row(6, 1000)))
        #expect(follows("IMG_1.CR2", row(21, 1003)) && follows("IMG_1.dng", row(20, 997)))
        #expect(follows("IMG_1.xmp", nil) && follows("IMG_1.HEIC.xmp", nil))
        #expect(!follows("IMG_1.CR2", row(21, 1004)) && !follows("IMG_1.heic", row(2, 1000)))
        #expect(!follows("IMG_2.CR2", row(21, 1000)) && !follows("IMG_1.txt", nil))
        #expect(!follows("IMG_1.001.CR2", row(21, 1000)))
        // Other pictures, and videos that are not of a Live Photo, only happen to have the stem.
        #expect(!follows("IMG_1.jpg", row(1, 1000)) && !follows("IMG_1.MOV", row(51, 1000)))
    }

    @Test func `an edit is its original's companion, also of the same type`() {
        var row = PhotoRow(ino: 1, day: 20_240_501)
        (row.media, row.captured) = (1, 1000)
        func follows(_ other: String, _ name: String) -> Bool {
            isCompanion(Array(other.utf8), row, of: Array(name.utf8), row, captured: 1000)
        }
        #expect(follows("IMG_E0012.jpg", "IMG_0012.jpg") && follows("IMG_0012.jpg", "IMG_E0012.jpg"))
        #expect(!follows("IMG_0012.jpeg", "IMG_0012.jpg") && !follows("IMG_E0013.jpg", "IMG_0012.jpg"))
        #expect(!follows("IMG_E.jpg", "IMG_.jpg") && !follows("IMG_Eb1.jpg", "IMG_b1.jpg"))
        func stems(_ name: String) -> [String] {
            companionStems(Array(name.utf8)).map { String(decoding: $0, as: UTF8.self) }
        }
        #expect(stems("IMG_0012.jpg") == ["IMG_0012", "IMG_E0012"])
        #expect(stems("IMG_E0012.jpg") == ["IMG_E0012", "IMG_0012"])
        #expect(stems("IMG_a.jpg") == ["IMG_a"] && stems("DSC_1.jpg") == ["DSC_1"])
    }

    @Test func `identifiers come before stems and times`() {
        func row(_ media: Int64, _ captured: Int64, _ group: String?) -> PhotoRow {
            var row = PhotoRow(ino: 1, day: 20_240_501)
            (row.media, row.captured, row.group) = (media, captured, group.map { Array($0.utf8) })
            return row
        }
        let still = row(2, 1000, "live A")
        func follows(_ other: String, _ row: PhotoRow) -> Bool {
            isCompanion(Array(other.utf8), row, of: Array("IMG_0001.HEIC".utf8), still, captured: 1000)
        }
        #expect(follows("clip.MOV", row(51, 9999, "live A")) && follows("x.HEIC", row(2, 0, "live A")))
        #expect(!follows("IMG_0001.MOV", row(51, 1000, "live B")))
        #expect(follows("IMG_0001.MOV", row(51, 1000, nil)) && !follows("IMG_0001.MOV", row(51, 9999, nil)))
        #expect(!follows("clip.MOV", row(51, 1000, "live B")) && !follows("clip.MOV", row(51, 1000, nil)))
        // An edit that Apple exported may have another.
        #expect(follows("IMG_E0001.HEIC", row(2, 1000, "live B")))
    }

    @Test func `a Live Photo's identifier comes before a burst's`() {
        var facts = MediaFacts(type: .heic)
        #expect(groupIdentifier(facts) == nil)
        facts.burstIdentifier = "B"
        #expect(groupIdentifier(facts) == Array("burst B".utf8))
        facts.contentIdentifier = "L"
        #expect(groupIdentifier(facts) == Array("live L".utf8))
        facts.contentIdentifier = String(repeating: "x", count: 300)
        #expect(groupIdentifier(facts) == nil)
    }

    @Test func `only a picture is the still of a video`() {
        func row(_ media: Int64) -> PhotoRow {
            var row = PhotoRow(ino: 1, day: 20_240_501)
            row.media = media
            return row
        }
        #expect(isStill(row(2), of: row(51)) && isStill(row(21), of: row(50)))
        #expect(
            !isStill(row(51), of: row(50)) && !isStill(row(2), of: row(1)) && !isStill(row(0), of: row(51)))
    }

    @Test func `a photo moved to a day keeps its clock time and is pinned there`() {
        var row = PhotoRow(ino: 1, day: 20_240_501)
        row.captured = 19_844 * 86_400 + 3661
        row.pin(to: 20_240_229)
        #expect(row.captured == 19_782 * 86_400 + 3661 && row.day == 20_240_229 && row.isPinned)
        #expect(row.source == Array("moved".utf8))
    }
}
