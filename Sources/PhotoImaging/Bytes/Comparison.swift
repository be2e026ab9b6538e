import Glibc

/// Outcome of comparing the bytes of two sources.
public enum Comparison: Sendable {
    case equal
    case different
    /// One of them could not be read.
    case unreadable
    /// Cancelled before the outcome was known.
    case cancelled
}

/// Maximum bytes read from each source at a time.
private let pieceBytesMax = 1 << 20
/// Bytes of work that the smallest read counts as: an extent is read and decrypted whole.
private let pieceWorkMin: UInt64 = 16 << 10

/// Compares the bytes of two sources. A hole equals stored zeros; where both have holes nothing is read.
///
/// - Parameter isCancelled: called before each piece, with the work done so far, in bytes; true cancels.
public func compare(
    _ one: some ByteSource, _ other: some ByteSource, unless isCancelled: (_ work: UInt64) -> Bool
) -> Comparison {
    let end = one.byteCount
    guard other.byteCount == end else { return .different }
    let count = Int(min(end, UInt64(pieceBytesMax)))
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 2 * count, alignment: 16)
    defer { buffer.deallocate() }
    let (left, right) = (buffer.prefix(count), buffer.suffix(count))
    var (work, position) = (UInt64(0), UInt64(0))
    var (here, there) = (StoredRanges(), StoredRanges())
    while position < end {
        here.update(one, from: position)
        there.update(other, from: position)
        guard let start = [here.start, there.start].compactMap(\.self).min() else { return .equal }
        let stop = min(end, start + UInt64(count), max(here.end(at: start), there.end(at: start)))
        // A source that reports anything else breaks its contract.
        guard start >= position, stop > start else { return .unreadable }
        if isCancelled(work) { return .cancelled }
        let (a, b) = (left.prefix(Int(stop - start)), right.prefix(Int(stop - start)))
        guard one.read(at: start, into: UnsafeMutableRawBufferPointer(rebasing: a)) == a.count,
            other.read(at: start, into: UnsafeMutableRawBufferPointer(rebasing: b)) == b.count
        else { return .unreadable }
        guard areEqual(UnsafeRawBufferPointer(rebasing: a), UnsafeRawBufferPointer(rebasing: b)) else {
            return .different
        }
        work += max(stop - start, pieceWorkMin)
        position = stop
    }
    return .equal
}

private func areEqual(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
    guard let first = a.baseAddress, let second = b.baseAddress else { return true }
    return memcmp(first, second, a.count) == 0
}

/// The stored range of a source that was found last. The next one is requested only behind its end.
private struct StoredRanges {
    private var range: Range<UInt64>?
    private var hasMore = true
    private var position: UInt64 = 0

    mutating func update(_ source: some ByteSource, from position: UInt64) {
        self.position = position
        guard hasMore, range.map({ $0.upperBound <= position }) ?? true else { return }
        range = source.storedRange(from: position)
        hasMore = range != nil
    }

    /// The next stored byte; nil if there is none.
    var start: UInt64? { range.map { max($0.lowerBound, position) } }

    /// The end of the stored range that contains `offset`; 0 if it is in a hole.
    func end(at offset: UInt64) -> UInt64 {
        range.map { $0.contains(offset) ? $0.upperBound : 0 } ?? 0
    }
}
