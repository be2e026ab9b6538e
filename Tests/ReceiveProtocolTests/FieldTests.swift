import Testing

@testable import ReceiveProtocol

/// Fields of HTTP that strangers send.
@Suite("Commands: receive, fields of HTTP") struct FieldTests {
    @Test func `a range is taken only as a client that sends a piece writes it`() {
        let range = ContentRange("bytes 5-9/20")
        #expect(range?.first == 5 && range?.last == 9 && range?.total == 20 && range?.length == 5)
        #expect(ContentRange("bytes 0-0/*")?.total == nil)
        for wrong in [
            "", "bytes", "bytes 5-4/20", "bytes 5-20/20", "bytes -5/20", "bytes 5-/20", "bytes */20",
            "bytes 0-9223372036854775807/9223372036854775808", "items 0-1/2", "bytes 0-1/2/3", "bytes  0-1/2",
            "bytes 0x1-2/9",
        ] { #expect(ContentRange(wrong) == nil, "\(wrong)") }
    }
}
