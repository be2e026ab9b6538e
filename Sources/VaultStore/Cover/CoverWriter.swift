import LinuxIO
import VaultCrypto
import VaultFormat

/// Writes the cover writes of one session: random bytes, so that the host's count of all bytes written does not tell
/// how much was written to a space among several. See `CoverAmount`.
///
/// They go to free sectors, which are reserved for each write as for content and then abandoned. So no root, read or
/// commit refers to them, and a kill at any moment leaves them free. They go to the same few sectors again and again:
/// what is left of old content in free room would otherwise tell somebody with this space's password how many were
/// overwritten. Nothing about them is stored, and content goes where it would have gone without them.
///
/// Unchecked Sendable: `running` guards everything mutable. It is held while they are written, and taken before the
/// space's lock.
public final class CoverWriter: @unchecked Sendable {
    private let lock: Lock
    private let disk: SpaceDisk
    private let gate: WriteGate
    private let sectors: SectorRoom
    private let references: ReferenceGuard
    private let commits: CommitWriter
    private let grows: Bool
    private let running = Lock()
    /// Bytes still to be written; nil until the session has written something itself.
    private var left: UInt64?
    /// Where the last ones went.
    private var place: UInt64?

    /// Most bytes of one write.
    private static let bytesPerWrite = 256 << 10
    /// Free room for each byte of a write, behind the reserve: less is not touched.
    private static let roomFactor: UInt64 = 16
    /// Bytes of room between new content and these sectors, at most a quarter of the room: content does not arrive
    /// there during one write. And not farther, because a mount that takes over keeps away from the places of content.
    private static let distanceBytes: UInt64 = 8 << 20

    init(_ parts: SpaceParts, _ references: ReferenceGuard, _ commits: CommitWriter, grows: Bool) {
        (lock, disk, gate, sectors) = (parts.lock, parts.disk, parts.gate, parts.sectors)
        (self.references, self.commits, self.grows) = (references, commits, grows)
    }

    /// Writes some of the session's cover writes, about `bytes` at most. Does nothing until a commit was published.
    ///
    /// - Parameter isWriting: whether the session writes although it has no commit yet.
    /// - Returns: whether some are left that can be written now.
    @discardableResult
    public func write(most bytes: UInt64, isWriting: Bool = false) -> Bool {
        guard !grows, !gate.isReadOnly, gate.stopped == nil else { return false }
        guard isWriting || commits.hasWritten else { return false }
        // One thread at a time: else two would write the same bytes.
        running.lock()
        defer { running.unlock() }
        var left = self.left ?? CoverAmount.ofSession()
        defer { self.left = left }
        guard left > 0 else { return false }
        let end = left - min(left, bytes)
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: Self.bytesPerWrite, alignment: Geometry.pageBytes)
        defer { buffer.deallocate() }
        let (direct, random) = (DirectDisk(disk), RandomStream())
        while left > end {
            let most = Int(min(left - end, UInt64(buffer.count)))
            guard let count = write(buffer.slice(0, most), direct, random) else { return false }
            left -= UInt64(count)
        }
        return left > 0
    }

    /// Has this session write none.
    public func omit() { running.withLock { left = 0 } }

    /// Writes what is left of the cover writes, for at most so many milliseconds.
    public func finish(milliseconds: Int64, isWriting: Bool) {
        let end = MonotonicClock.milliseconds + milliseconds
        while write(most: UInt64(Self.bytesPerWrite * 8), isWriting: isWriting),
            MonotonicClock.milliseconds < end
        {}
    }

    /// Writes up to so many random bytes to free sectors. Returns how many, nil if none can be written.
    private func write(
        _ buffer: UnsafeMutableRawBufferPointer, _ direct: DirectDisk, _ random: RandomStream
    ) -> Int? {
        do throws(StoreError) {
            let reserved = try lock.withLock { () throws(StoreError) in
                try sectors.reserveAside(
                    most: buffer.count / Geometry.sectorBytes, factor: Self.roomFactor, at: place,
                    distanceMax: Self.distanceBytes / UInt64(Geometry.sectorBytes))
            }
            guard let (sector, count) = reserved else { return nil }
            place = sector
            try references.requireUnnamed(sector, count)
            defer { lock.withLock { sectors.abandon(sector, count) } }
            let bytes = buffer.slice(0, count * Geometry.sectorBytes)
            random.fill(bytes)
            try direct.write(sector, UnsafeRawBufferPointer(bytes))
            return bytes.count
        } catch {
            // The next step tries again, elsewhere.
            place = nil
            return nil
        }
    }

    #if DEBUG
        /// For tests that need a certain amount.
        var bytesLeft: UInt64? {
            get { running.withLock { left } }
            set { running.withLock { left = newValue } }
        }
    #endif
}

/// Writes that reach the disk one by one, although they go to the same place: past all caches, where the host can.
private final class DirectDisk {
    private let disk: SpaceDisk
    private var direct: (any DirectSegments)?

    init(_ disk: SpaceDisk) {
        self.disk = disk
        direct = disk.host.openDirectly()
    }

    func write(_ sector: UInt64, _ bytes: UnsafeRawBufferPointer) throws(StoreError) {
        if let found = direct {
            if try disk.write(sector, bytes, by: found) { return }
            // None for pages of this size.
            direct = nil
        }
        try disk.write(sector, bytes)
    }
}
