import Glibc
import LinuxIO
import VaultFormat
import VaultStore

/// What all open files share: the store, the buffers, and the bounds on bytes that are not sealed yet.
final class FileContext: @unchecked Sendable {
    /// The largest request of the kernel.
    static let requestBytesMax = 1 << 20

    let space: Space
    let chunks: BufferPool
    let replies: BufferPool
    /// Asks for commits that make freed sectors usable, or for the trash to be emptied of so many bytes; true if
    /// another try is worth it. Set once, at the start.
    var makeRoom: @Sendable (UInt64) -> Bool = { _ in false }
    /// Waits until less of what was given back is not usable yet; see `Space.isBacklogged`. Set once, at the start.
    var awaitReuse: @Sendable () -> Void = {}
    /// How often room is asked for before there is none. Each time gives some, which others may take first: a program
    /// waits as long as there is something to wait for, but not for ever.
    private static let attemptsMax = 1000
    /// A new content for a file whose present one others have too; nil where they are gone. Set once, at the start.
    var contentOfItsOwn: @Sendable (FileState) throws(FileError) -> UInt64? = { _ in nil }
    /// Wakes the committer, which is to save this file within a second. Set once, at the start.
    var noteUnsaved: @Sendable () -> Void = {}

    private let lock = Lock()
    // Under `lock`.
    private var unsaved: [FileState] = []
    private var dirtyCount = 0
    private var claimedBytes: UInt64 = 0

    init(_ space: Space) {
        self.space = space
        chunks = BufferPool(bufferBytes: Chunk.bufferBytes, keptMax: space.limits.keptChunks)
        replies = BufferPool(bufferBytes: Self.requestBytesMax, keptMax: space.limits.keptReplies)
    }

    /// Registers a file that has something to save.
    func register(_ file: FileState) {
        lock.withLock { unsaved.append(file) }
        noteUnsaved()
    }

    func unregister(_ file: FileState) {
        lock.withLock { unsaved.removeAll { $0 === file } }
    }

    /// The files that have something to save, oldest first.
    var unsavedFiles: [FileState] { lock.withLock { unsaved } }

    /// Counts one more dirty chunk; where there are too many, seals those of the file that waits longest. The
    /// caller holds the writer's lock of `file`.
    func countDirty(for file: FileState) throws(FileError) {
        let (isFull, others) = lock.withLock {
            dirtyCount += 1
            return dirtyCount > space.limits.dirtyChunks ? (true, unsaved) : (false, [])
        }
        guard isFull else { return }
        for other in others {
            if other === file {
                try file.sealDirty()
                return
            }
            // Only if it is free: its holder may be waiting for this very file.
            guard other.writer.tryLock() else { continue }
            defer { other.writer.unlock() }
            if (try? other.sealDirty()) == true { return }
        }
    }

    func uncountDirty(claim: UInt64) {
        lock.withLock {
            dirtyCount -= 1
            claimedBytes -= claim
        }
    }

    /// Sets room aside for bytes that will be sealed later, so that a full space is told at write(2).
    func claim(_ bytes: UInt64) throws(FileError) {
        for _ in 0..<Self.attemptsMax {
            let freed = space.freedSectors
            if claim(bytes, of: space.knownCapacity.available) == 0 { return }
            let missing = claim(bytes, of: space.capacity.available)
            if missing == 0 { return }
            guard isWorthAnother(since: freed, missing) else { break }
        }
        throw .noRoom
    }

    /// Sets room aside where there is enough; else returns by how many bytes it falls short.
    private func claim(_ bytes: UInt64, of available: UInt64) -> UInt64 {
        lock.withLock {
            let wanted = claimedBytes + bytes
            if wanted <= available { claimedBytes = wanted }
            return wanted - min(wanted, available)
        }
    }

    /// Whether a try that found no room when `freed` sectors had come free may find some now.
    private func isWorthAnother(since freed: UInt64, _ bytes: UInt64) -> Bool {
        space.freedSectors != freed || makeRoom(bytes) || space.freedSectors != freed
    }

    /// Seals and writes, trying again where the space seems full.
    func seal(
        content: UInt64, offset: UInt64, _ bytes: UnsafeRawBufferPointer, near: UInt64?, purpose: WritePurpose
    ) throws(FileError) -> [ExtentRun] {
        if purpose == .user, space.isBacklogged { awaitReuse() }
        for _ in 0..<Self.attemptsMax {
            let freed = space.freedSectors
            do throws(StoreError) {
                return try space.write(
                    role: .content, content: content, offset: offset, bytes, near: near, purpose: purpose)
            } catch {
                guard error == .noRoom, isWorthAnother(since: freed, UInt64(bytes.count)) else {
                    throw FileError(error)
                }
            }
        }
        throw .noRoom
    }
}
