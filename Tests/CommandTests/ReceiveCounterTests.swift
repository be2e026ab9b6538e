import FileRequests
import Testing

@testable import Receiving
@testable import obscura

/// What the terminal says of the files that `obscura receive` gets.
@Suite("Commands: receive, counts") struct ReceiveCounterTests {
    private var counter = ReceiveCounter(filesMax: 4)

    private func line(_ counts: ReceiveCounter.Counts, width: Int) -> String {
        receiveLine(counts, rate: 38 << 20, width: width)
    }

    @Test mutating func `a file that is announced and sent again counts once`() {
        for _ in 0..<2 {
            for name in ["a", "b"] as [Name] { counter.announce(name, size: 100, isKnown: false) }
            counter.announce("c", size: 100, isKnown: true)
        }
        #expect(counter.counts.filesExpected == 2 && counter.counts.known == 1)
        #expect(counter.counts.bytesLeft == 200)
        counter.begin("a", size: 100, offset: 0)
        counter.addBytes(60, to: "a", end: 60)
        // Interrupted: the piece comes again.
        counter.begin("a", size: 100, offset: 0)
        counter.addBytes(60, to: "a", end: 60)
        counter.addBytes(40, to: "a", end: 100)
        #expect(counter.counts.bytes == 100 && counter.counts.traffic == 160)
        #expect(counter.counts.bytesLeft == 100)
        counter.finish("a", isKnown: false)
        // The answer was lost.
        counter.announce("a", size: 100, isKnown: true)
        counter.begin("a", size: 100, offset: 0)
        counter.addBytes(100, to: "a", end: 100)
        counter.finish("a", isKnown: true)
        #expect(counter.counts.files == 1 && counter.counts.known == 1 && counter.counts.bytes == 100)
        #expect(counter.counts.filesDone == 1 && counter.counts.filesExpected == 2)
    }

    @Test mutating func `a file that nobody announced is expected when it begins`() {
        counter.begin("a", size: 10, offset: 0)
        #expect(counter.counts.filesExpected == 1 && counter.counts.bytesLeft == 10)
        counter.finish("a", isKnown: false)
        #expect(counter.counts.filesDone == 1 && counter.counts.bytesLeft == 0)
    }

    @Test mutating func `what another session received is not left to come, and did not come in this one`() {
        counter.begin("a", size: 100, offset: 70)
        #expect(counter.counts.bytesLeft == 30)
        counter.addBytes(30, to: "a", end: 100)
        #expect(counter.counts.bytes == 30 && counter.counts.bytesLeft == 0)
    }

    @Test mutating func `a file that fails again and again, and arrives, has not failed`() {
        for _ in 0..<3 { counter.fail("a", size: 10) }
        #expect(counter.counts.failures == 1 && counter.counts.filesExpected == 1)
        counter.finish("a", isKnown: false)
        #expect(counter.counts.failures == 0 && counter.counts.filesDone == 1)
    }

    @Test mutating func `a known file that is sent all the same is known once`() {
        counter.announce("a", size: 10, isKnown: true)
        counter.begin("a", size: 10, offset: 0)
        #expect(counter.counts.filesExpected == 1)
        counter.finish("a", isKnown: true)
        #expect(counter.counts.known == 1 && counter.counts.filesDone == 1)
    }

    @Test mutating func `files beyond the bound count when they are stored`() {
        let names = (0..<9).map { Name("\($0)") }
        for name in names { counter.announce(name, size: 1, isKnown: false) }
        #expect(counter.counts.filesExpected == 4)
        for name in names {
            counter.begin(name, size: 1, offset: 0)
            counter.addBytes(1, to: name, end: 1)
            counter.finish(name, isKnown: false)
        }
        #expect(counter.counts.files == 9 && counter.counts.bytes == 9)
        #expect(counter.counts.filesDone == counter.counts.filesExpected && counter.counts.bytesLeft == 0)
    }

    @Test func `a narrow terminal shows the numbers, and of the name what fits`() {
        var counts = ReceiveCounter.Counts()
        (counts.name, counts.nameBytes) = ("PXL_20240501_101010123.RAW-01.COVER.jpg", 3 << 20)
        (counts.filesDone, counts.filesExpected, counts.bytesLeft) = (12, 240, 900 << 20)
        let numbers = "12 of 240, 38 MiB/s, 24 s left"
        #expect(line(counts, width: 39) == "PXL_202… \(numbers)")
        #expect(line(counts, width: 31) == numbers)
        #expect(line(counts, width: 20) == numbers.prefix(20))
        let wide = line(counts, width: 99)
        #expect(wide.hasPrefix("\(counts.name)  3 MiB  ░") && wide.hasSuffix(" \(numbers)"), "\(wide)")
        for width in 0..<120 { #expect(line(counts, width: width).count <= width) }
    }
}
