import LinuxIO
import VaultCrypto
import VaultFormat

/// The cover writes of one session.
struct CoverWrites: Sendable {
    /// Bytes still to be written; nil until the session has written something itself.
    var left: UInt64?
    /// Where the last ones went.
    var place: UInt64?
}

/// A session that writes to a space among several adds a random number of bytes, so that the host's count of all bytes
/// written does not tell how much was written to a space: see `CoverAmount`.
///
/// Random bytes go to free sectors, which are reserved for each write as for content and then abandoned. So no root,
/// read or commit refers to them, and a kill at any moment leaves them free. They go to the same few sectors again and
/// again: what is left of old content in free room would otherwise tell somebody with this space's password how many
/// were overwritten. Nothing about them is stored, and content goes where it would have gone without them.
extension Space {
    /// Most bytes of one write.
    private static let coverWriteBytes = 256 << 10
    /// Free room for each byte of a write, behind the reserve: less is not touched.
    private static let coverRoomFactor: UInt64 = 16
    /// Bytes of room between new content and these sectors, at most a quarter of the room: content does not arrive
    /// there during one write. And not farther, because a mount that takes over keeps away from the places of content.
    private static let coverDistanceBytes: UInt64 = 8 << 20

    /// Writes some of the session's cover writes, about `bytes` at most. Does nothing until a commit was published.
    ///
    /// - Parameter isWriting: whether the session writes although it has no commit yet.
    /// - Returns: whether some are left that can be written now.
    @discardableResult
    public func writeCover(most bytes: UInt64, isWriting: Bool = false) -> Bool {
        guard !grows, !isReadOnly, writeStop == nil else { return false }
        let hasWritten = isWriting || lock.withLock { hasPublished }
        guard hasWritten else { return false }
        // One thread at a time: else two would write the same bytes.
        coverLock.lock()
        defer { coverLock.unlock() }
        var left = coverWrites.left ?? CoverAmount.ofSession()
        defer { coverWrites.left = left }
        guard left > 0 else { return false }
        let end = left - min(left, bytes)
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: Self.coverWriteBytes, alignment: Geometry.pageBytes)
        defer { buffer.deallocate() }
        let (disk, random) = (DirectFile(files), RandomStream())
        while left > end {
            let most = Int(min(left - end, UInt64(buffer.count)))
            guard let count = writeCover(buffer.slice(0, most), disk, random) else { return false }
            left -= UInt64(count)
        }
        return left > 0
    }

    /// Has this session write none.
    public func omitCoverWrites() { coverLock.withLock { coverWrites.left = 0 } }

    /// Writes what is left of the cover writes, for at most so many milliseconds.
    public func finishCover(milliseconds: Int64, isWriting: Bool) {
        let end = MonotonicClock.milliseconds + milliseconds
        while writeCover(most: UInt64(Self.coverWriteBytes * 8), isWriting: isWriting),
            MonotonicClock.milliseconds < end
        {}
    }

    /// Writes up to so many random bytes to free sectors. Returns how many, nil if none can be written.
    private func writeCover(
        _ buffer: UnsafeMutableRawBufferPointer, _ disk: DirectFile, _ random: RandomStream
    ) -> Int? {
        do throws(StoreError) {
            guard let (sector, count) = try reserveCover(most: buffer.count / Geometry.sectorBytes) else {
                return nil
            }
            coverWrites.place = sector
            try requireUnnamed(sector, count)
            defer { lock.withLock { try? sectors.abandon(sector, count) } }
            let bytes = buffer.slice(0, count * Geometry.sectorBytes)
            random.fill(bytes)
            try disk.write(sector, UnsafeRawBufferPointer(bytes))
            return bytes.count
        } catch {
            // The next step tries again, elsewhere.
            coverWrites.place = nil
            return nil
        }
    }

    private func reserveCover(most: Int) throws(StoreError) -> (sector: UInt64, count: Int)? {
        let place = coverWrites.place
        return try lock.withLock { () throws(StoreError) -> (sector: UInt64, count: Int)? in
            let free = freeSectors
            let room = free - min(free, systemReserveSectors)
            let most = Int(min(UInt64(most), room / Self.coverRoomFactor)) / Geometry.sectorsPerPage
            guard most > 0 else { return nil }
            let distance = min(Self.coverDistanceBytes / UInt64(Geometry.sectorBytes), room / 4)
            return try sectors.takeAside(pages: most, at: place, distance: distance)
        }
    }
}

/// The file of all spaces, for writes that reach the disk one by one, although they go to the same place: past the page
/// cache, where the host can.
private final class DirectFile {
    private let files: SegmentFiles
    private var descriptor: Int32?

    init(_ files: SegmentFiles) {
        self.files = files
        descriptor = files.openDirectly()
    }

    deinit { if let descriptor { files.calls.close(descriptor) } }

    func write(_ sector: UInt64, _ bytes: UnsafeRawBufferPointer) throws(StoreError) {
        if let direct = descriptor {
            if try files.write(sector, bytes, toDisk: direct) { return }
            // No O_DIRECT, or none for pages of this size.
            files.calls.close(direct)
            descriptor = nil
        }
        try files.write(sector, bytes)
    }
}
