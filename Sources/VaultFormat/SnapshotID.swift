/// Content ids of *snapshots*: lists of runs that name extents of another content, the *source*, as it was once.
///
/// An extent is sealed for the id of its content. A snapshot's extents are those of its source, so its id tells the
/// source: 2^61 + source × 2^30 + a number of its own, which is taken from the numbers of contents, so never recurs.
public enum SnapshotID {
    private static let numberBits: UInt64 = 30
    /// The largest number of a source, and of a snapshot.
    public static let sourceMax: UInt64 = 1 << 31 - 1
    public static let numberMax: UInt64 = 1 << numberBits - 1
    /// The ids of all snapshots.
    public static let all: ClosedRange<UInt64> = 1 << 61...1 << 62 - 1

    /// Returns the id of a snapshot; nil if the numbers are too large: then the content is copied instead.
    public static func make(of source: UInt64, number: UInt64) -> UInt64? {
        guard 1...sourceMax ~= source, 1...numberMax ~= number else { return nil }
        return all.lowerBound + source << numberBits + number
    }

    public static func isSnapshot(_ content: UInt64) -> Bool { all.contains(content) }

    /// The content for which the extents of a content are sealed: a snapshot's source, otherwise the content itself.
    @inlinable
    public static func source(_ content: UInt64) -> UInt64 {
        if content < 1 << 61 || content >= 1 << 62 { return content }
        return (content - 1 << 61) >> 30
    }

    /// The number of a snapshot, taken from the numbers of contents.
    public static func number(_ content: UInt64) -> UInt64 { content & numberMax }

    /// The ids of all snapshots of a content; nil if it can have none.
    public static func ids(of source: UInt64) -> ClosedRange<UInt64>? {
        guard source <= sourceMax else { return nil }
        let first = all.lowerBound + source << numberBits
        return first...first + numberMax
    }
}
