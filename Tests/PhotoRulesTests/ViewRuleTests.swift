import PhotoImaging
import Testing

@testable import PhotoRules

@Suite("The tree: rules of views") struct ViewRuleTests {
    private func kind(
        _ type: MediaType, _ name: String, width: Int = 4000, height: Int = 3000,
        _ change: (inout MediaFacts) -> Void = { _ in }
    ) -> PhotoKind? {
        var facts = MediaFacts(type: type)
        (facts.width, facts.height) = (width, height)
        change(&facts)
        return photoKind(facts, named: Array(name.utf8))
    }

    @Test func `a photo has at most one kind`() {
        #expect(kind(.jpeg, "IMG_1.jpg") == nil)
        #expect(kind(.mov, "Screenshot.mov") == .video)
        #expect(kind(.dng, "a.dng", width: 9000, height: 1000) == .raw)
        #expect(kind(.png, "a.png") { $0.isScreenshot = true } == .screenshot)
        #expect(kind(.jpeg, "a.jpg") { $0.isPanorama = true } == .panorama)
        #expect(kind(.png, "Screenshot wide.png", width: 7680, height: 1080) == .screenshot)
    }

    @Test func `a picture of a screen is known by its name`() {
        for name in [
            "Screenshot_20240501-123000.png", "Screenshot from 2024-05-01.png", "Screen Shot 2018.png",
            "Bildschirmfoto 2024-05-01 um 12.30.png", "Capture d’écran 2024.png", "SCREENSHOT (3).PNG",
        ] { #expect(kind(.png, name) == .screenshot, "\(name)") }
        #expect(kind(.png, "my screenshot.png") == nil)
    }

    @Test func `a picture much longer than a screen is a panorama`() {
        #expect(kind(.jpeg, "a.jpg", width: 7500, height: 3000) == .panorama)
        #expect(kind(.jpeg, "a.jpg", width: 3000, height: 7500) == .panorama)
        #expect(kind(.jpeg, "a.jpg", width: 7499, height: 3000) == nil)
        #expect(kind(.jpeg, "a.jpg", width: 2999, height: 100) == nil)
        #expect(kind(.jpeg, "a.jpg", width: 4000, height: 0) == nil)
    }

    private func directory(_ camera: String) -> String? {
        cameraDirectoryName(camera).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func `a camera's name is made that of a directory`() {
        #expect(directory("NIKON D70") == "NIKON D70")
        #expect(directory("A/B\0C\nD") == "A_B_C_D")
        #expect(directory("..") == nil)
        #expect(directory(".") == nil)
        #expect(directory("") == nil)
        #expect(directory(String(repeating: "ü", count: 200))?.utf8.count == 254)
    }

    @Test func `half stars are counted up`() {
        let halves = ["0": 0, "1": 1, "2": 1, "7": 4, "8": 4, "9": 5, "10": 5] as [String: Int64]
        for (value, expected) in halves { #expect(stars(ofHalves: Array(value.utf8)) == expected) }
        for value in ["", "11", "-1", "4.5", "many"] { #expect(stars(ofHalves: Array(value.utf8)) == nil) }
    }

    @Test func `a sidecar's rating comes before the photo's own, and a rejected photo has none`() {
        var facts = MediaFacts(type: .jpeg)
        #expect(stars(facts, nil) == 0)
        facts.rating = 4
        #expect(stars(facts, nil) == 4)
        #expect(stars(facts, Sidecar(dates: [])) == 4)
        #expect(stars(facts, Sidecar(dates: [], rating: 2)) == 2)
        #expect(stars(facts, Sidecar(dates: [], rating: -1)) == 0)
    }

    @Test func `years and months have names`() {
        #expect(daysOfYear(named: Array("2024".utf8)) == 20_240_000...20_241_231)
        for name in ["0000", "24", "20245", "2o24", "-024"] {
            #expect(daysOfYear(named: Array(name.utf8)) == nil)
        }
        #expect(daysOfMonth(named: Array("2024-05".utf8)) == 20_240_500...20_240_531)
        for name in ["2024-13", "2024-00", "2024-5", "2024/05", "0000-01"] {
            #expect(daysOfMonth(named: Array(name.utf8)) == nil)
        }
        #expect(yearName(ofDay: 9_990_501) == Array("0999".utf8))
        #expect(monthName(ofDay: 20_240_501) == Array("2024-05".utf8))
    }
}
