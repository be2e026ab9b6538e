import LinuxIO
import Synchronization
import TestSupport
import Testing
import VaultFormat

@testable import VaultStore

private let mebibyte: UInt64 = 1 << 20

@Suite("Space: read-ahead") struct ReadStreamsTests {
    /// Reads a range in parts of 256 KiB. Returns what is read ahead.
    private func read(
        _ range: Range<UInt64>, upTo end: UInt64, _ streams: inout ReadStreams
    ) -> [Range<UInt64>] {
        stride(from: range.lowerBound, to: range.upperBound, by: 256 << 10).compactMap {
            streams.toReadAhead(of: $0..<$0 + 256 << 10, upTo: end)
        }
    }

    @Test func `of a file no more is read ahead than it has`() {
        var streams = ReadStreams()
        #expect(streams.toReadAhead(of: 0..<mebibyte / 4, upTo: 3 * mebibyte) == nil, "it may want no more")
        let second = mebibyte / 4..<mebibyte / 2
        #expect(streams.toReadAhead(of: second, upTo: 3 * mebibyte) == mebibyte / 2..<3 * mebibyte)
        #expect(read(mebibyte / 2..<3 * mebibyte, upTo: 3 * mebibyte, &streams) == [])
    }

    @Test func `the next file is read ahead after several ones`() {
        var streams = ReadStreams()
        var ahead: [Range<UInt64>] = []
        for file in 0..<UInt64(8) {
            let start = file * 3 * mebibyte
            ahead += read(start..<start + 3 * mebibyte, upTo: start + 3 * mebibyte, &streams)
        }
        for (last, next) in zip(ahead, ahead.dropFirst()) {
            #expect(last.upperBound <= next.lowerBound, "\(last) and \(next)")
        }
        let beyond = ahead.last?.upperBound ?? 0
        #expect(beyond > 25 * mebibyte && beyond <= 28 * mebibyte, "\(ahead)")
    }

    @Test func `a large file is read ahead for a window`() {
        var streams = ReadStreams()
        let ahead = read(0..<mebibyte, upTo: 1 << 30, &streams)
        #expect(ahead == [mebibyte / 2..<mebibyte / 2 + ReadStreams.windowBytes])
        #expect(read(mebibyte..<8 * mebibyte, upTo: 1 << 30, &streams).count <= 5)
    }

    @Test func `nothing is read ahead of heads, of small reads, backwards and at random`() {
        var streams = ReadStreams()
        for file in 0..<UInt64(100) {
            let start = file * mebibyte
            #expect(streams.toReadAhead(of: start..<start + 256 << 10, upTo: start + mebibyte) == nil)
        }
        for place in 0..<UInt64(100) {
            #expect(streams.toReadAhead(of: place << 15..<(place + 1) << 15, upTo: 1 << 30) == nil)
        }
        streams = ReadStreams()
        for place in (0..<UInt64(100)).reversed() {
            let start = place * 4 * mebibyte
            #expect(streams.toReadAhead(of: start..<start + mebibyte, upTo: 1 << 40) == nil)
        }
        var random = SeededGenerator(7)
        for _ in 0..<100 {
            let start = UInt64.random(in: 0..<1 << 20, using: &random) << 24
            #expect(streams.toReadAhead(of: start..<start + mebibyte, upTo: 1 << 60) == nil)
        }
    }

    /// As a file manager that reads 64 KiB of each photo for its EXIF picture: each request reads a chunk of 128 KiB.
    @Test func `nothing is read ahead of heads that are read in parts`() {
        var streams = ReadStreams()
        for file in 0..<UInt64(100) {
            let (start, chunk) = (file * mebibyte, UInt64(128 << 10))
            for part in [start..<start + chunk, start..<start + chunk, start + chunk..<start + 2 * chunk] {
                #expect(streams.toReadAhead(of: part, upTo: start + mebibyte) == nil)
            }
        }
    }

    @Test func `four programs are told apart, and the one that has paused longest is forgotten`() {
        var streams = ReadStreams()
        func step(_ program: UInt64, _ number: UInt64) -> Range<UInt64>? {
            let start = program << 30 + number * mebibyte
            return streams.toReadAhead(of: start..<start + mebibyte, upTo: 1 << 40)
        }
        let most = UInt64(ReadStreams.streamsMax)
        for program in 0..<most { #expect(step(program, 0) == nil) }
        for program in 0..<most { #expect(step(program, 1) != nil) }
        for program in 0...most { #expect(step(program, 20) == nil) }
        #expect(step(0, 21) == nil, "forgotten for the newest")
        #expect(step(most, 21) != nil)
    }

    @Test(arguments: [1, 2]) func `the next segment is read ahead`(
        _ spaces: Int
    ) throws {
        let directory = TemporaryDirectory()
        let path = try makeVault(directory, spaces: spaces, bytes: spaces > 1 ? 96 << 20 : nil)
        let content: [ExtentRun]
        do {
            let space = try openSpace(path)
            content = try space.writeAll(1, bytes(60 << 20, seed: 1))
            space.adopt(content)
            try space.commit(durable: true)
        }
        let calls = ReadCalls()
        let space = try openSpace(path, readOnly: true, calls: calls)
        calls.forgetAll()
        #expect(try space.readAll(1, content) == bytes(60 << 20, seed: 1))
        let first = calls.firstReads(perBytes: space.parts.disk.layout.segmentBytes)
        #expect(first.count >= 4, "\(first)")
        #expect(first.dropFirst().allSatisfy { $0 == .ahead }, "\(first)")
    }
}

/// Notes for each part of the files that are read how it was read first.
private final class ReadCalls: ForwardingCalls {
    enum Kind { case ahead, now }
    private struct Place: Hashable {
        let inode: UInt64
        let part: UInt64
    }
    private let reads = Mutex<[(inode: UInt64, offset: UInt64, kind: Kind)]>([])

    func forgetAll() { reads.withLock { $0 = [] } }

    func readSoon(_ descriptor: Int32, offset: UInt64, length: UInt64) { note(descriptor, offset, .ahead) }

    func pread(_ descriptor: Int32, _ bytes: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(Errno)
        -> Int
    {
        if bytes.count > Geometry.pageBytes { note(descriptor, offset, .now) }
        return try real.pread(descriptor, bytes, at: offset)
    }

    private func note(_ descriptor: Int32, _ offset: UInt64, _ kind: Kind) {
        guard let inode = try? real.status(descriptor).inode else { return }
        reads.withLock { $0.append((inode, offset, kind)) }
    }

    /// In the order of the first reads.
    func firstReads(perBytes count: UInt64) -> [Kind] {
        var seen: Set<Place> = []
        return reads.withLock { $0 }.filter {
            seen.insert(Place(inode: $0.inode, part: $0.offset / count)).inserted
        }
        .map(\.kind)
    }
}
