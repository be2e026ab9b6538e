import Testing

@testable import ClusterIO

@Suite("Space: pages of a cluster that are read ahead") struct PageStreamsTests {
    private let window = PageStreams.windowBytes

    private func windows(_ numbers: ClosedRange<UInt64>) -> [Range<UInt64>] {
        numbers.map { $0 * window..<($0 + 1) * window }
    }

    @Test func `one page alone is not followed by others`() {
        var streams = PageStreams()
        #expect(streams.read("a", 0) == nil)
        #expect(streams.read("a", 10 * window) == nil)
        // Backwards, and of another object.
        #expect(streams.read("a", 9 * window) == nil)
        #expect(streams.read("b", 0) == nil)
    }

    @Test func `a second page of a window, or one of the next, is followed by others`() {
        var streams = PageStreams()
        _ = streams.read("a", 5 * window)
        _ = streams.read("b", 0)
        #expect(streams.read("a", 6 * window - 4096) == windows(5...7))
        #expect(streams.read("a", 6 * window) == windows(6...8))
    }

    @Test func `several tables are read in turn`() {
        var streams = PageStreams()
        for table in 0..<16 { #expect(streams.read("\(table)", 0) == nil) }
        for table in 0..<16 { #expect(streams.read("\(table)", 4096) == windows(0...2)) }
        // The oldest is forgotten.
        #expect(streams.read("one more", 0) == nil)
        #expect(streams.read("0", 8192) == nil)
    }

    @Test func `pages that are written are not read ahead`() {
        var streams = PageStreams()
        _ = streams.read("a", 0)
        streams.wrote("b", 0..<4096)
        streams.wrote("a", window..<window + 4096)
        #expect(streams.read("a", 4096) == windows(0...2))
        streams.wrote("a", 4096..<8192)
        #expect(streams.read("a", 8192) == nil)
    }
}
