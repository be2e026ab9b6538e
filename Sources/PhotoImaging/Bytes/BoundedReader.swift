/// Limits on the cost of one picture, with any claim of its bytes.
enum ReadLimits {
    /// The first read: holds the EXIF block, the embedded thumbnail and the frame header of most JPEGs.
    static let headBytes = 64 * 1024
    /// The first read when only the type is asked for.
    static let identifyBytes = 4096
    /// A later read that needs no more at once; consecutive reads grow from it.
    static let stepBytes = 4096
    /// The largest later read into a window.
    static let sideBytes = 64 * 1024
    /// Maximum size of a block that is viewed in one piece, such as an XMP packet.
    static let viewBytesMax = 256 * 1024
    /// Maximum bytes of all reads of one picture together.
    static let totalBytesMax = 1024 * 1024
    static let readsMax = 64
}

/// The byte order of a number.
enum ByteOrder {
    case little, big
}

/// Random access to a source through two windows: its beginning, which stays, and one that moves.
///
/// Every request is checked against the source's length and ``ReadLimits``; bytes that do not exist are nil. Not for
/// use by several threads at once.
final class BoundedReader {
    private let source: any ByteSource
    private let head: UnsafeMutableRawPointer
    private var headCount = 0
    private var side: UnsafeMutableRawPointer?
    private var sideStart: UInt64 = 0
    private var sideCount = 0
    private var stepBytes = ReadLimits.stepBytes
    private var readsLeft = ReadLimits.readsMax
    private var bytesLeft = ReadLimits.totalBytesMax

    /// The source's length in bytes, below 2^62 so that sums of two offsets cannot overflow.
    let byteCount: UInt64
    /// Whether offsets here are offsets in the photo itself, not in data unpacked from it.
    let isWholeFile: Bool

    init(_ source: any ByteSource, headBytes: Int = ReadLimits.headBytes, isWholeFile: Bool = true) {
        self.source = source
        self.isWholeFile = isWholeFile
        byteCount = min(source.byteCount, 1 << 62)
        let wanted = Int(min(UInt64(headBytes), byteCount))
        head = .allocate(byteCount: max(wanted, 1), alignment: 16)
        headCount = fill(head, from: 0, count: wanted)
    }

    deinit {
        head.deallocate()
        side?.deallocate()
    }

    /// Reads and counts it against the limits. Returns 0 if nothing could be read.
    private func fill(_ target: UnsafeMutableRawPointer, from offset: UInt64, count: Int) -> Int {
        guard count > 0, readsLeft > 0, bytesLeft >= count else { return 0 }
        readsLeft -= 1
        bytesLeft -= count
        let done = source.read(at: offset, into: UnsafeMutableRawBufferPointer(start: target, count: count))
        return min(max(done, 0), count)
    }

    /// The address of `count` bytes at `offset`, valid until the next call; nil if they are unavailable.
    @inline(__always)
    func locate(_ offset: UInt64, _ count: Int) -> UnsafeRawPointer? {
        if offset <= UInt64(headCount), count <= headCount - Int(offset) {
            return UnsafeRawPointer(head + Int(offset))
        }
        return locateAside(offset, count)
    }

    private func locateAside(_ offset: UInt64, _ count: Int) -> UnsafeRawPointer? {
        if let side, offset >= sideStart, offset - sideStart <= UInt64(sideCount),
            count <= sideCount - Int(offset - sideStart)
        {
            return UnsafeRawPointer(side + Int(offset - sideStart))
        }
        guard count <= ReadLimits.sideBytes, offset <= byteCount, UInt64(count) <= byteCount - offset else {
            return nil
        }
        let window = side ?? .allocate(byteCount: ReadLimits.sideBytes, alignment: 16)
        side = window
        let isNext = sideCount > 0 && offset >= sideStart && offset - sideStart <= UInt64(2 * sideCount)
        stepBytes = isNext ? min(stepBytes * 4, ReadLimits.sideBytes) : ReadLimits.stepBytes
        sideStart = offset
        let wanted = max(count, Int(min(UInt64(stepBytes), byteCount - offset)))
        sideCount = fill(window, from: offset, count: wanted)
        return sideCount >= count ? UnsafeRawPointer(window) : nil
    }

    /// Lends up to `count` bytes at `offset`, clipped to the source and to ``ReadLimits/viewBytesMax``.
    func withView<R>(_ offset: UInt64, _ count: UInt64, _ body: (ByteView) -> R?) -> R? {
        guard offset <= byteCount else { return nil }
        let length = Int(min(count, byteCount - offset, UInt64(ReadLimits.viewBytesMax)))
        if let start = locate(offset, length) {
            return body(ByteView(start, count: length))
        }
        guard length > ReadLimits.sideBytes else { return nil }
        let memory = UnsafeMutableRawPointer.allocate(byteCount: length, alignment: 16)
        defer { memory.deallocate() }
        let done = fill(memory, from: offset, count: length)
        return done > 0 ? body(ByteView(memory, count: done)) : nil
    }
}
