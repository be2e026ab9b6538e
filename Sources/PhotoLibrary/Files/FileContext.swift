package import FileRequests
import Glibc
package import LinuxIO
import Synchronization
package import VaultFormat
package import VaultStore

/// State shared by all open files: the store, the buffer pools and the limits on unsealed bytes.
package final class FileContext: @unchecked Sendable {
    /// The kernel's largest request, in bytes.
    package static let requestBytesMax = 1 << 20

    package let space: Space
    package let chunks: BufferPool
    package let replies: BufferPool
    /// Neighbouring sealed chunks that one call reads.
    let extents: BufferPool
    /// The session that owns this, which is set by it at the start.
    package unowned var session: TreeSession!
    /// Retries before `.noRoom`. Each retry frees some room, which other threads may take first: a caller waits as long
    /// as room may come free, but not forever.
    private static let attemptsMax = 1000

    private let lock = Lock()
    // Under `lock`.
    private var unsaved: [FileState] = []
    private var dirtyCount = 0
    private var reservedBytes: UInt64 = 0
    private var cutShort: Set<UInt64> = []
    /// Rows that saving all files changes, with those that dirty chunks may need.
    private let promisedRows = Atomic<Int>(0)

    package init(_ space: Space) {
        self.space = space
        chunks = BufferPool(bufferBytes: Chunk.bufferBytes, keptMax: space.limits.keptChunks)
        extents = BufferPool(
            bufferBytes: space.limits.readChunks * Space.readBufferBytes, keptMax: space.limits.keptReplies)
        replies = BufferPool(bufferBytes: Self.requestBytesMax, keptMax: space.limits.keptReplies)
    }

    /// Catalogue pages that so many changed extent rows change at most: those of a file lie near each other in the
    /// table, and mostly in its index by sector.
    package static func pages(ofRows count: Int) -> Int { (count + 5) / 6 }

    /// Rows of a chunk in pieces, where room is neither short nor known to be scattered.
    private static let rowsPerDirtyChunk = 24

    /// Catalogue pages that saving all files takes at most.
    package var promisedPages: Int { Self.pages(ofRows: promisedRows.load(ordering: .relaxed)) }

    /// Counts extent rows that saving a file changes.
    func promise(rows count: Int) { promisedRows.wrappingAdd(count, ordering: .relaxed) }

    /// Whether room is so short or so scattered that bytes are sealed before write(2) is answered: then their pieces
    /// and rows are known.
    var isTight: Bool { space.sectors.isTight(reserved: reservedRoom) }

    /// Registers a file with unsaved changes.
    package func register(_ file: FileState) {
        lock.withLock { unsaved.append(file) }
        session.noteUnsaved()
    }

    package func unregister(_ file: FileState) {
        lock.withLock { unsaved.removeAll { $0 === file } }
    }

    /// Notes that a write to a file found no room.
    func noteCutShort(_ ino: UInt64) { lock.withLock { _ = cutShort.insert(ino) } }

    /// Notes that a file was destroyed.
    package func forgetCutShort(_ ino: UInt64) {
        lock.withLock { if !cutShort.isEmpty { cutShort.remove(ino) } }
    }

    /// Whether a write to a file found no room in this session: the file may lack bytes that only its versions have,
    /// whatever was written to it since.
    package func isCutShort(_ ino: UInt64) -> Bool { lock.withLock { cutShort.contains(ino) } }

    /// Files with unsaved changes, oldest first.
    package var unsavedFiles: [FileState] { lock.withLock { unsaved } }

    /// Counts one more dirty chunk. Above the limit, seals the dirty chunks of the file that has waited longest. The
    /// caller holds the writer's lock of `file`.
    func countDirty(for file: FileState) throws(FileError) {
        let (isFull, others) = lock.withLock {
            dirtyCount += 1
            promise(rows: Self.rowsPerDirtyChunk)
            return dirtyCount > space.limits.dirtyChunks ? (true, unsaved) : (false, [])
        }
        guard isFull else { return }
        for other in others {
            if other === file {
                do throws(FileError) { try file.sealDirty() } catch {
                    uncountDirty(reserved: 0)
                    throw error
                }
                return
            }
            // Only if it is free: the lock's holder may be waiting for `file`.
            guard other.writer.tryLock() else { continue }
            defer { other.writer.unlock() }
            if (try? other.sealDirty()) == true { return }
        }
    }

    func uncountDirty(reserved: UInt64) {
        lock.withLock {
            dirtyCount -= 1
            promise(rows: -Self.rowsPerDirtyChunk)
            reservedBytes -= reserved
        }
    }

    /// Reserves room for bytes that will be sealed later, so that write(2) itself reports a full space.
    ///
    /// - Parameter atOnce: whether they are sealed at once instead: their room is only to be there, beside what is
    ///   reserved.
    package func reserve(_ bytes: UInt64, atOnce: Bool = false) throws(FileError) {
        for _ in 0..<Self.attemptsMax {
            let freed = space.sectors.freedSectors
            if reserve(bytes, of: space.sectors.knownCapacity.available, atOnce) == 0 { return }
            let missing = reserve(bytes, of: space.sectors.capacity.available, atOnce)
            if missing == 0 { return }
            if space.isHostSilent { throw .damaged }
            guard isWorthAnother(since: freed, missing) else { break }
        }
        throw .noRoom
    }

    /// Dirty chunks of all files.
    package var dirtyChunks: Int { lock.withLock { dirtyCount } }

    /// Room that accepted bytes will take when they are sealed.
    package var reservedRoom: UInt64 { lock.withLock { reservedBytes } }

    /// Reserves `bytes` if they fit into `available`, else returns the shortfall in bytes.
    private func reserve(_ bytes: UInt64, of available: UInt64, _ atOnce: Bool) -> UInt64 {
        lock.withLock {
            let wanted = reservedBytes + bytes
            if wanted <= available && !atOnce { reservedBytes = wanted }
            return wanted - min(wanted, available)
        }
    }

    /// Whether a retry may find room, after an attempt that failed when `freed` sectors had come free.
    private func isWorthAnother(since freed: UInt64, _ bytes: UInt64) -> Bool {
        space.sectors.freedSectors != freed || session.committer.makeRoom(bytes: bytes)
            || space.sectors.freedSectors != freed
    }

    /// Seals and writes; retries while the space seems full.
    ///
    /// - Parameter isAccepted: whether write(2) took the bytes, so that they must find room: where small pieces of it
    ///   take more than was reserved, the system's reserve is used.
    package func seal(
        content: UInt64, offset: UInt64, _ bytes: UnsafeRawBufferPointer, near: UInt64?,
        purpose: WritePurpose, isAccepted: Bool = false
    ) throws(FileError) -> [ExtentRun] {
        if purpose == .user, space.isBacklogged { session.committer.waitForReusableSectors() }
        let purposes = isAccepted && purpose == .user ? [.user, .system] : [purpose]
        for _ in 0..<Self.attemptsMax {
            let freed = space.sectors.freedSectors
            for purpose in purposes {
                do throws(StoreError) {
                    return try unsafe space.write(
                        role: .content, content: content, offset: offset, bytes, near: near, purpose: purpose)
                } catch {
                    guard error == .noRoom, !space.isHostSilent else { throw space.failure(error) }
                }
            }
            guard isWorthAnother(since: freed, UInt64(bytes.count)) else { break }
        }
        throw .noRoom
    }
}
