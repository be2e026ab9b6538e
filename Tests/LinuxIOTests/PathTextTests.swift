import LinuxIO
import Testing

/// Paths of any bytes, as texts.
@Suite("System calls: paths that are not UTF-8") struct PathTextTests {
    @Test(
        arguments: [
            "", "plain", "ä/😀", "a\u{FFFD}b", "\u{10FE80}\u{10FEFF}", "\u{10FE7F}\u{10FF00}",
        ].map { Array($0.utf8) } + [
            [0x6B, 0xE9, 0x2E], [0xFF], [0x80, 0xC3], [0xF4, 0x8F, 0xBA], [0xED, 0xA0, 0x80],
        ])
    func `every path comes back as it was`(path: [UInt8]) {
        #expect(pathBytes(pathText(path)) == path)
        pathText(path).withPath { text in #expect(pathText(text) == pathText(path)) }
    }

    @Test func `UTF-8 is its own text, and others differ`() {
        #expect(pathText(Array("ä\u{FFFD}".utf8)) == "ä\u{FFFD}")
        let names: [[UInt8]] = [[0xE9], [0xFF], Array("\u{FFFD}".utf8), Array("\u{10FEE9}".utf8)]
        #expect(Set(names.map { pathText($0) }).count == names.count)
    }

    @Test func `any bytes at all`() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<5000 {
            let path = (0..<Int.random(in: 0...8, using: &random)).map { _ in
                [UInt8.random(in: 1...255, using: &random), 0xF4, 0x8F, 0xBA, 0xBB, 0x80].randomElement()!
            }
            #expect(pathBytes(pathText(path)) == path)
        }
    }
}
