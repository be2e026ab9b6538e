import ReceiveProtocol
import Testing

/// Fields of HTTP that strangers send.
@Suite("Commands: receive, fields of HTTP") struct FieldTests {
    @Test func `a range is taken only as a client that sends a piece writes it`() {
        let range = ContentRange("bytes 5-9/20")
        #expect(range?.first == 5 && range?.last == 9 && range?.total == 20 && range?.length == 5)
        for wrong in [
            "", "bytes", "bytes 5-4/20", "bytes 5-20/20", "bytes -5/20", "bytes 5-/20", "bytes */20",
            "bytes 0-9223372036854775807/9223372036854775808", "items 0-1/2", "bytes 0-1/2/3", "bytes  0-1/2",
            "bytes 0x1-2/9", "bytes 0-0/*",
        ] { #expect(ContentRange(wrong) == nil, "\(wrong)") }
    }

    @Test func `headers that contradict each other, or hide, are found`() {
        let host = (name: "Host", value: "a")
        for (headers, isGood) in [
            ([("Content-Length", "5"), ("content-length", "5")], true),
            ([("Content-Length", "5"), ("content-length", "6")], false),
            ([("Content-Range", "bytes 0-4/9"), ("Content-Range", "bytes 1-5/9")], false),
            ([("Transfer-Encoding", "chunked"), ("Transfer-Encoding", "gzip")], false),
            ([("Cookie", "a=b"), ("Cookie", "c=d")], true),
            ([("Transfer-Encoding ", "chunked")], false), ([("Transfer-Encoding\t", "chunked")], false),
            ([("", "x")], false), ([("é", "x")], false),
        ] as [([(name: String, value: String)], Bool)] {
            #expect(areUnambiguous([host] + headers) == isGood, "\(headers)")
        }
    }
}
