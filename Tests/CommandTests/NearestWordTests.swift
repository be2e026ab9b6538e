import Testing

@testable import obscura

@Suite("Commands: the nearest known word") struct NearestWordTests {
    @Test(arguments: [
        ("mont", "mount"), ("umount", "unmount"), ("unm", "unmount"), ("CREATE", "create"),
        ("crate", "create"),
        ("pasword", "passwd"), ("ifno", "info"), ("gorw", "grow"),
    ])
    func `the nearest word is named`(typed: String, meant: String) {
        let words = ["create", "mount", "unmount", "passwd", "space", "grow", "info"]
        #expect(nearestWord(to: typed, among: words) == meant)
    }

    @Test(arguments: [
        ("mont", "mount"), ("un", "unmount"), ("mounted", "mount"), ("nonsense", nil), ("gro", "grow"),
        ("g", nil),
        ("", nil), ("infos", "info"), ("fo", nil), ("UNMUONT", "unmount"), ("crates", "create"),
        ("crab", nil),
    ])
    func `only a word that is near is named`(typed: String, meant: String?) {
        #expect(wordNear(to: typed, among: ["create", "mount", "unmount", "grow", "info"]) == meant)
    }

    @Test(arguments: [
        ("", "", 0), ("a", "", 1), ("", "ab", 2), ("ab", "ba", 1), ("kitten", "sitting", 3), ("ca", "abc", 3),
    ])
    func `counts slips`(a: String, b: String, slips: Int) {
        #expect(editDistance(Array(a.utf8), Array(b.utf8)) == slips)
        #expect(editDistance(Array(b.utf8), Array(a.utf8)) == slips)
    }

    @Test func `has no answer without candidates`() {
        #expect(nearestWord(to: "x", among: []) == nil)
    }
}
