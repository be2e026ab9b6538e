import LinuxIO
import Testing

@testable import obscura

@Suite("Commands: sizes and durations") struct QuantityWordTests {
    @Test(arguments: [
        ("1", 1), ("512", 512), ("1K", 1024), ("1k", 1024), ("3M", 3 << 20), ("20G", 20 << 30),
        ("16T", 16 << 40),
        ("4611686018427387904", 1 << 62), ("4194303T", 4_194_303 << 40), ("4194304T", 1 << 62),
    ])
    func `reads sizes`(text: String, bytes: UInt64) {
        #expect(parseSize(text) == bytes)
    }

    @Test(arguments: [
        "", "0", "0G", "K", "-1", "+1", " 1", "1 G", "1.5G", "1GB", "1Ki", "G1", "١", "4194305T", "12000000T",
        "16777216T", "4611686018427387905", "18446744073709551615", "18446744073709551616",
        "36893488147419103233K", "99999999999999999999999999",
    ])
    func `words that are no size are refused`(text: String) {
        #expect(parseSize(text) == nil)
    }

    @Test(arguments: [("90", 90), ("90s", 90), ("10m", 600), ("2h", 7200), ("1d", 86_400)])
    func `reads durations`(text: String, seconds: UInt64) {
        #expect(parseDuration(text) == seconds)
    }

    @Test func `words that are no duration are refused`() {
        for text in ["", "0", "m", "10M5", "1w", "-1s", "36501d", "106751991167300d", "9223372036854775807"] {
            #expect(parseDuration(text) == nil)
        }
        #expect(parseDuration("36500d") == 36_500 * 86_400)
    }

    @Test(arguments: [(6_700_000_000, "6389M"), (10 << 30, "10G"), ((11 << 30) - 1, "10G"), (1 << 20, "1M")])
    func `never proposes more than there is`(bytes: UInt64, text: String) throws {
        #expect(proposalText(bytes) == text)
        #expect(try #require(parseSize(text)) <= bytes)
    }

    @Test(arguments: [
        (0, "0 bytes"), (1023, "1023 bytes"), (1024, "1 KiB"), (1536, "1.5 KiB"), (16 << 20, "16 MiB"),
        (6_700_000_000, "6.2 GiB"), (UInt64.max, "15 EiB"),
    ])
    func `shows sizes to people`(bytes: UInt64, text: String) {
        #expect(sizeText(bytes) == text)
    }
}
