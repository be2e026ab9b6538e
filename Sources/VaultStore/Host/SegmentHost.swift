import LinuxIO
import VaultFormat

/// Content of written bytes. It decides how soon they go to the disk, and whether they stay in the page cache.
enum WriteKind {
    /// The first chunks of a file. Its day and its thumbnail are read from them soon.
    case head
    /// Later chunks of a file.
    case body
    /// Pages of the catalogue, which the next commit may write again, and random bytes over destroyed photos.
    case other
}

/// The segments of one space, as a host keeps them.
///
/// A segment has a number and at most `SegmentLayout.segmentBytes` bytes, which are read and written in place. Calls
/// come from several threads at once, and each may take some milliseconds. **Order**: what `sync` promises covers every
/// write that had returned before it was called; without a sync, writes may become durable in any order, whole sectors
/// of 512 bytes or not at all.
///
/// Errors: `damaged` where a segment that is read is missing; `segmentMissing` and `segmentShort` where one that is
/// written is; `noRoom`; `io` with ESHUTDOWN once another computer has the vault, which is final; every other error of
/// the host as `io`.
protocol SegmentHost: AnyObject, Sendable {
    // MARK: Bytes

    /// Reads bytes of a segment. Those beyond its end are zeros, which cannot be authenticated.
    func read(
        _ segment: Int, at offset: UInt64, into bytes: UnsafeMutableRawBufferPointer
    ) throws(StoreError)

    /// Lends bytes of a segment to `body`, and returns its result. Nil if they are not in memory, or not in one piece:
    /// then `read` reads them.
    func lend(
        _ segment: Int, at offset: UInt64, count: Int, to body: (UnsafeRawBufferPointer) -> Bool
    ) -> Bool?

    /// Advises that a program will probably read these bytes next.
    func willRead(_ segment: Int, _ range: Range<UInt64>)

    /// Whether each read waits for an answer from elsewhere, so that several should be on their way.
    var readsTakeRoundTrips: Bool { get }

    func write(
        _ segment: Int, at offset: UInt64, _ bytes: UnsafeRawBufferPointer, _ kind: WriteKind
    ) throws(StoreError)

    /// A way to write whole pages that no cache holds back; nil if there is none.
    func openDirectly() -> (any DirectSegments)?

    /// Makes everything durable that was written since the last call that succeeded. After an error some of it may be
    /// lost, although it is still read.
    func sync() throws(StoreError)

    /// Counts a segment that an earlier mount wrote as written.
    func markUnsynced(_ segment: Int)

    // MARK: Sizes

    /// Bytes of a segment up to the last that was written. Throws `damaged` if it is missing.
    func writtenBytes(_ segment: Int) throws(StoreError) -> UInt64

    /// Bytes that a segment takes on the disk; 0 if unknown.
    func storedBytes(_ segment: Int) -> UInt64

    /// The next bytes of a segment, at or behind an offset, that have a place on the disk; nil if there are none. On a
    /// host that does not tell, these are all up to its end.
    func storedRange(_ segment: Int, from offset: UInt64) throws(StoreError) -> Range<UInt64>?

    /// Whether a segment is known to have no data at all.
    func isHole(_ segment: Int) -> Bool

    /// Whether a segment is there; true if the host does not tell.
    func exists(_ segment: Int) -> Bool

    /// Whether a segment is there to be written.
    func hasRoom(for segment: Int) -> Bool

    /// Checks that a segment can be written and has at least so many bytes. Throws `segmentMissing`, `segmentShort`, or
    /// the host's error.
    func requireWritable(_ segment: Int, bytes: UInt64) throws(StoreError)

    /// As `requireWritable` of several segments, each with its least bytes, in this order.
    func requireWritable(_ segments: [(number: Int, bytes: UInt64)]) throws(StoreError)

    /// Checks that segments can be created.
    func requireMayCreate() throws(StoreError)

    /// Bytes that the host has left for this user.
    func availableBytes() throws(StoreError) -> UInt64

    // MARK: Room

    /// Creates an empty segment, by which a vault of one space grows.
    func create(_ segment: Int) throws(StoreError)

    /// Reserves room for the first bytes of a segment. Returns false if the host reserves nothing; see
    /// `HostRoom.promise`.
    @discardableResult
    func reserve(_ segment: Int, bytes: UInt64) throws(StoreError) -> Bool

    /// Gives the room of whole pages back to the host. Best effort.
    func giveBack(_ segment: Int, _ range: Range<UInt64>)

    /// Whether the room of parts of a segment can be given back; true if the host does not tell.
    var punchesHoles: Bool { get }

    /// Removes a segment; returns false if the host refuses.
    func remove(_ segment: Int) -> Bool

    /// Cuts a segment; returns false if the host refuses.
    func shorten(_ segment: Int, to bytes: UInt64) -> Bool

    /// Tells how many segments every space has: nothing is written beyond them. Only in a vault of several spaces.
    func limit(to segments: Int)

    /// Opens all segments anew, after an error that may have passed.
    func reopenAll()

    // MARK: For claims: past all caches of this computer

    /// Whether only this computer can write to the segments, so that its caches are never outdated.
    var isOnLocalDisk: Bool { get }

    /// Reads bytes as they are on the disk or server now; those beyond the end stay as they are.
    func readAnew(
        _ segment: Int, at offset: UInt64, into bytes: UnsafeMutableRawBufferPointer
    ) throws(Errno)

    /// Writes and syncs bytes, if `isInTime` returns true right before. Returns false if it does not.
    func writeAnew(
        _ segment: Int, at offset: UInt64, _ bytes: UnsafeRawBufferPointer, isInTime: () -> Bool
    ) throws(StoreError) -> Bool
}

/// Of a host without files that grow, are opened or are cached.
extension SegmentHost {
    func willRead(_ segment: Int, _ range: Range<UInt64>) {}
    var readsTakeRoundTrips: Bool { false }
    func lend(
        _ segment: Int, at offset: UInt64, count: Int, to body: (UnsafeRawBufferPointer) -> Bool
    ) -> Bool? { nil }
    func openDirectly() -> (any DirectSegments)? { nil }
    var punchesHoles: Bool { true }
    func markUnsynced(_ segment: Int) {}
    func limit(to segments: Int) {}
    func reopenAll() {}

    func requireWritable(_ segments: [(number: Int, bytes: UInt64)]) throws(StoreError) {
        for segment in segments { try requireWritable(segment.number, bytes: segment.bytes) }
    }
}

/// Writes to segments that no cache holds back.
protocol DirectSegments: AnyObject {
    /// Writes whole pages. Returns false if the host refuses such a write.
    func write(
        _ segment: Int, at offset: UInt64, _ bytes: UnsafeRawBufferPointer
    ) throws(StoreError) -> Bool
}
