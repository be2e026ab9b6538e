import Testing

@testable import obscura

@Suite struct QuantityTests {
    @Test(arguments: [
        ("1", 1), ("512", 512), ("1K", 1024), ("1k", 1024), ("3M", 3 << 20), ("20G", 20 << 30),
        ("16T", 16 << 40),
        ("18446744073709551615", UInt64.max), ("16777215T", 16_777_215 << 40),
    ])
    func `reads sizes`(text: String, bytes: UInt64) {
        #expect(parseSize(text) == bytes)
    }

    @Test(arguments: [
        "", "0", "0G", "K", "-1", "+1", " 1", "1 G", "1.5G", "1GB", "1Ki", "G1", "١", "16777216T",
        "18446744073709551616",
    ])
    func `refuses what is no size`(text: String) {
        #expect(parseSize(text) == nil)
    }

    @Test(arguments: [("90", 90), ("90s", 90), ("10m", 600), ("2h", 7200), ("1d", 86_400)])
    func `reads durations`(text: String, seconds: UInt64) {
        #expect(parseDuration(text) == seconds)
    }

    @Test func `refuses what is no duration`() {
        for text in ["", "0", "m", "10M5", "1w", "-1s"] { #expect(parseDuration(text) == nil) }
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
