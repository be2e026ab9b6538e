import VaultFormat

/// Detects programs that read large parts of a space one after another, and predicts their next reads.
///
/// The kernel's own read-ahead begins anew with each file, so in a vault of one space with each segment, and is off in
/// the file of several spaces. Offsets are of the space: its segments, one after another.
struct ReadStreams: Sendable {
    /// Parts that are read one after another, roughly: several threads serve one program.
    private struct Stream {
        let start: UInt64
        /// End of the furthest read.
        var end: UInt64
        /// Bytes that were read.
        var bytes: UInt64
        var last: Range<UInt64>
        /// Up to where the kernel was asked to read.
        var asked: UInt64 = 0

        func isNear(_ read: Range<UInt64>) -> Bool {
            read.lowerBound <= end + ReadStreams.nearBytes && end <= read.upperBound + ReadStreams.nearBytes
        }
    }

    /// Programs that read at a time.
    static let streamsMax = 4
    /// Smaller reads are of programs that want little, or of pages.
    static let largeBytes = 64 << 10
    /// Bytes that a stream reads before anything is read ahead of it. File managers read the head of each photo, and
    /// the kernel a part beyond: for PCManFM and 5,000 photos 3.7 GiB came from the disk without it, 0.7 GiB with it.
    static let startBytes: UInt64 = 384 << 10
    /// Distance from the end of a stream within which a read belongs to it.
    static let nearBytes: UInt64 = 2 << 20
    /// Bytes behind a stream that are read ahead.
    static let windowBytes: UInt64 = 4 << 20
    /// A stream that is as long as several photos will read the next one too.
    static let longBytes: UInt64 = 8 << 20

    /// The one that was read last is the last.
    private var streams: [Stream] = []

    /// Called before each read. Returns the range to read ahead; nil if nothing is expected, or it was returned before.
    ///
    /// - Parameter end: end of the stored bytes of the same file that follow each other.
    mutating func toReadAhead(of read: Range<UInt64>, upTo end: UInt64) -> Range<UInt64>? {
        guard read.count >= Self.largeBytes else { return nil }
        var stream: Stream
        if let found = streams.lastIndex(where: { $0.isNear(read) }) {
            stream = streams.remove(at: found)
            stream.end = max(stream.end, read.upperBound)
            // Several requests of a program for parts of one chunk read all of it each time.
            let isAgain =
                stream.last.lowerBound <= read.lowerBound && read.upperBound <= stream.last.upperBound
            if !isAgain { stream.bytes += UInt64(read.count) }
            stream.last = read
            // Only the heads of files, for example.
            if stream.bytes < (stream.end - stream.start) / 2 { stream = Self.begin(read) }
        } else {
            if streams.count == Self.streamsMax { streams.removeFirst() }
            stream = Self.begin(read)
        }
        defer { streams.append(stream) }
        let start = max(Self.startBytes, UInt64(read.count) + 1)
        guard stream.bytes >= start, stream.asked < stream.end + Self.windowBytes / 2 else {
            return nil
        }
        let window = stream.end + Self.windowBytes
        let from = max(stream.asked, stream.end)
        let soon = stream.bytes < Self.longBytes ? min(window, end) : window
        guard from < soon else { return nil }
        stream.asked = soon
        return from..<soon
    }

    private static func begin(_ read: Range<UInt64>) -> Stream {
        Stream(start: read.lowerBound, end: read.upperBound, bytes: UInt64(read.count), last: read)
    }
}
