import Glibc
import LinuxIO
import Synchronization
import VaultFormat

/// An open segment file; closed with its last reference.
final class OpenSegment: Sendable {
    let descriptor: Int32
    /// False if the host allowed opening it only for reading.
    let isWritable: Bool
    private let calls: any FileSystemCalls
    private let stream = Mutex(WriteStream())
    private let written = Mutex<UInt64>(0)

    init(descriptor: Int32, isWritable: Bool = true, calls: any FileSystemCalls) {
        self.descriptor = descriptor
        self.isWritable = isWritable
        self.calls = calls
    }

    /// End of the last successful write, or of the file if it was truncated since.
    var writtenEnd: UInt64 { written.withLock { $0 } }

    /// Called after each write.
    func didWrite(_ range: Range<UInt64>) { written.withLock { $0 = range.upperBound } }

    /// Called before the file is truncated.
    func willEnd(at end: UInt64) { written.withLock { $0 = min($0, end) } }

    deinit { calls.close(descriptor) }

    /// Called before each write.
    ///
    /// - Parameter end: end of the segment, which read-ahead does not cross.
    func willWrite(_ range: Range<UInt64>, end: UInt64) {
        guard let soon = stream.withLock({ $0.pagesToRead(before: range) }), soon.lowerBound < end else {
            return
        }
        calls.readSoon(
            descriptor, offset: soon.lowerBound, length: min(soon.upperBound, end) - soon.lowerBound)
    }
}

/// Detects small sequential overwrites. Each ends within a page, which the kernel must read from the disk before it can
/// change a part of it: so the kernel is asked to read these pages ahead.
private struct WriteStream {
    /// End of the last write.
    private var end: UInt64 = 0
    /// Up to where the kernel was asked to read.
    private var asked: UInt64 = 0

    private static let pageBytes: UInt64 = 4096
    /// Larger writes have few partial pages for their size.
    private static let smallBytes = 64 << 10
    private static let windowBytes: UInt64 = 256 << 10

    /// Returns the range to read for the next writes; nil if the writes are not sequential or small, or the range was
    /// requested before.
    mutating func pagesToRead(before write: Range<UInt64>) -> Range<UInt64>? {
        let isNext = write.lowerBound <= end + Self.windowBytes && end <= write.upperBound + Self.windowBytes
        end = write.upperBound
        guard isNext else {
            asked = end
            return nil
        }
        guard write.count < Self.smallBytes, end % Self.pageBytes != 0, asked < end + Self.windowBytes / 2
        else { return nil }
        let start = max(asked, end) / Self.pageBytes * Self.pageBytes
        asked = start + Self.windowBytes
        return start..<asked
    }
}

/// The segments of one space as files of a directory.
///
/// Files are identified by keys: the segment's number in a vault of one space, else 0, because there is one file.
///
/// Unchecked Sendable: everything mutable is guarded by `lock`, which is never held during I/O on a segment.
final class SegmentFiles: SegmentHost, @unchecked Sendable {
    let layout: SegmentLayout
    let space: Int
    let calls: any FileSystemCalls
    /// The directory of the files.
    let directory: Int32
    /// The least size of the file of all spaces; see `limit`.
    var leastBytes: UInt64 { least.load(ordering: .relaxed) }
    private let least = Atomic<UInt64>(0)
    private let lock = Lock()
    private var open: [Int: OpenSegment] = [:]
    private var order: [Int] = []
    private var unsynced: Set<Int> = []
    private let syncs = Mutex(SyncPace())
    /// Files of the running sync.
    private var syncing: Set<Int> = []
    /// Whether the next sync includes the directory. Initially true: the process that created the files may have been
    /// killed before its sync.
    private var hasNewFiles = true
    /// Told of every write and every sync. Nil in a vault of one space.
    let cover: CoverTraffic?
    /// Whether the files lie on a local disk of this computer, where locks hold for all mounts. Other file systems, and
    /// FUSE over a local disk, may keep locks to themselves.
    let isOnLocalDisk: Bool
    /// The failure of a sync before closing a file; the next `sync` throws it.
    private var failedSync: StoreError?

    private let openMax: Int

    /// Takes ownership of `directory`, a descriptor of the segments' directory.
    init(
        directory: Int32, layout: SegmentLayout, space: Int, calls: any FileSystemCalls,
        cover: CoverTraffic? = nil, openMax: Int = Limits.production.openSegments
    ) {
        self.openMax = openMax
        self.directory = directory
        self.layout = layout
        self.space = space
        self.calls = calls
        self.cover = cover
        let magic = (try? calls.hostStatus(directory))?.typeMagic
        isOnLocalDisk = magic.map { Self.localMagics.contains($0) } ?? false
    }

    /// ext2 to ext4, XFS, Btrfs, F2FS, tmpfs, ZFS and bcachefs, statfs(2).
    private static let localMagics: Set<UInt64> = [
        0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x0102_1994, 0x2FC1_2FC1, 0xCA45_1A4E,
    ]

    var segmentBytes: UInt64 { layout.segmentBytes }

    deinit { calls.close(directory) }

    /// The access that a segment is opened for. All are opened for writing if the host allows it.
    enum Use {
        case reading, writing
        /// As `writing`; creates a missing file.
        case creating
    }

    /// Returns a segment's open file. If there is none, throws `segmentMissing` for writing, `damaged` for reading.
    func segment(_ number: Int, for use: Use = .reading) throws(StoreError) -> OpenSegment {
        let key = key(number)
        if let found = lock.withLock({ open[key] }), found.isWritable || use == .reading { return found }
        let descriptor: Int32
        do throws(Errno) {
            let flags = O_RDWR | (use == .creating ? O_CREAT : 0)
            descriptor = try calls.openRegular(directory, fileName(number), flags: flags, mode: 0o600)
        } catch {
            if use != .reading { throw refused(error, number) }
            if error.refusesWriting { return try readOnlySegment(number) }
            throw error == .noEntry ? .damaged : StoreError(error)
        }
        return remember(key, opened(descriptor, isWritable: true))
    }

    /// Turns the kernel's read-ahead off in the file of all spaces: it would cross into another space's segment, whose
    /// pages must not appear in the page cache.
    private func opened(_ descriptor: Int32, isWritable: Bool) -> OpenSegment {
        if layout.isShared { calls.readNothingAhead(descriptor) }
        return OpenSegment(descriptor: descriptor, isWritable: isWritable, calls: calls)
    }

    private func readOnlySegment(_ number: Int) throws(StoreError) -> OpenSegment {
        do throws(Errno) {
            let descriptor = try calls.openRegular(
                directory, fileName(number), flags: O_RDONLY, mode: 0)
            return remember(key(number), opened(descriptor, isWritable: false))
        } catch {
            throw error == .noEntry ? .damaged : StoreError(error)
        }
    }

    /// Maps a failed call for writing a segment to an error.
    func refused(_ error: Errno, _ number: Int) -> StoreError {
        error == .noEntry ? .segmentMissing(number) : StoreError(error)
    }

    private func key(_ number: Int) -> Int { layout.isShared ? 0 : number }

    func fileName(_ number: Int) -> String { layout.fileName(number) }

    /// Offset of a segment in its file, in bytes.
    func start(_ number: Int) -> UInt64 { layout.start(SegmentPlace(space: space, number: number)) }

    private func remember(_ key: Int, _ segment: OpenSegment) -> OpenSegment {
        let (kept, unsyncedOne) = lock.withLock { () -> (OpenSegment, (Int, OpenSegment)?) in
            if let found = open[key] {
                if found.isWritable || !segment.isWritable { return (found, nil) }
                open[key] = segment
                return (segment, nil)
            }
            open[key] = segment
            order.append(key)
            guard order.count > openMax else { return (segment, nil) }
            // A descriptor closed before its sync may never report a failed write, so unsynced ones are closed last.
            let closed = order.remove(at: order.firstIndex { $0 != key && !awaitsSync($0) } ?? 0)
            let isUnsynced = awaitsSync(closed)
            let closing = open.removeValue(forKey: closed)
            return (segment, isUnsynced ? closing.map { (closed, $0) } : nil)
        }
        if let (key, segment) = unsyncedOne { syncBeforeClosing(key, segment) }
        return kept
    }

    private func awaitsSync(_ key: Int) -> Bool { unsynced.contains(key) || syncing.contains(key) }

    private func syncBeforeClosing(_ key: Int, _ segment: OpenSegment) {
        do throws(StoreError) { try sync(key, segment) } catch {
            lock.withLock { failedSync = error }
        }
    }

    private func sync(_ key: Int, _ segment: OpenSegment) throws(StoreError) {
        cover?.willSync()
        do throws(Errno) { try calls.dataSync(segment.descriptor) } catch { throw StoreError(error) }
        if layout.isShared { calls.forget(segment.descriptor, offset: 0, length: 0) }
        try checkPresence(of: key, segment)
    }

    /// Closes all files. They are reopened by name on demand.
    func reopenAll() {
        lock.withLock {
            open = [:]
            order = []
            hasNewFiles = true
        }
    }

    /// Creates an empty segment, by which a vault of one space grows.
    func create(_ number: Int) throws(StoreError) {
        do throws(StoreError) { _ = try segment(number, for: .creating) } catch {
            // Something other than a regular file has the name; it is not removed.
            throw error == .io(.exists) ? .noRoom : error
        }
        lock.withLock { hasNewFiles = true }
    }

    /// Preallocates disk blocks for the first `bytes` of a segment. Returns false if the host cannot, as exFAT.
    @discardableResult
    func reserve(_ number: Int, bytes: UInt64) throws(StoreError) -> Bool {
        let segment = try segment(number, for: .writing)
        do throws(Errno) {
            try calls.allocate(segment.descriptor, offset: start(number), length: bytes)
            return true
        } catch {
            if error == .notSupported { return false }
            throw StoreError(error)
        }
    }

    /// Bytes of a segment up to the end of its file: those beyond were never written. Throws `damaged` if the file or
    /// the segment is missing.
    func writtenBytes(_ number: Int) throws(StoreError) -> UInt64 {
        let bytes = try self.bytes(number, segment(number))
        if layout.isShared && bytes == 0 { throw .damaged }
        return bytes
    }

    /// Bytes of a segment that its file has.
    func bytes(_ number: Int, _ segment: OpenSegment) throws(StoreError) -> UInt64 {
        do throws(Errno) {
            let size = try calls.status(segment.descriptor).size
            return layout.bytes(SegmentPlace(space: space, number: number), ofFile: size)
        } catch { throw StoreError(error) }
    }

    /// Disk blocks of a segment in a vault of one space, in bytes; 0 if unknown.
    func storedBytes(_ number: Int) -> UInt64 {
        guard let segment = try? segment(number), let status = try? calls.status(segment.descriptor) else {
            return 0
        }
        return min(status.blocks, segmentBytes / 512 + 8192) * 512
    }

    /// Whether the file of a segment in a vault of one space is known to have no data at all: it is empty or one hole.
    func isHole(_ number: Int) -> Bool {
        guard let segment = try? segment(number), let size = try? calls.status(segment.descriptor).size else {
            return false
        }
        return FileLayout(of: OpenFileHost(segment.descriptor, calls), size: size)?.stored.isEmpty ?? false
    }

    /// Punches a hole. Best effort.
    func giveBack(_ number: Int, _ range: Range<UInt64>) {
        guard let segment = try? segment(number) else { return }
        try? calls.punchHole(segment.descriptor, offset: range.lowerBound, length: UInt64(range.count))
    }

    /// Tries it beyond the end of the first segment, where there is nothing.
    var punchesHoles: Bool {
        guard !layout.isShared, let segment = try? segment(0, for: .writing) else { return true }
        do throws(Errno) {
            try calls.punchHole(
                segment.descriptor, offset: segmentBytes, length: UInt64(Geometry.pageBytes))
            return true
        } catch { return error != .notSupported }
    }

    /// Removes a segment's file; returns false if the host refuses.
    func remove(_ number: Int) -> Bool {
        do throws(Errno) { try calls.unlink(directory, fileName(number)) } catch {
            guard error == .noEntry else { return false }
        }
        lock.withLock {
            open[number] = nil
            order.removeAll { $0 == number }
            unsynced.remove(number)
            hasNewFiles = true
        }
        return true
    }

    /// Truncates a segment's file; returns false if the host refuses.
    func shorten(_ number: Int, to bytes: UInt64) -> Bool {
        guard let segment = try? segment(number) else { return false }
        lock.withLock { _ = unsynced.insert(key(number)) }
        segment.willEnd(at: bytes)
        return (try? calls.truncate(segment.descriptor, to: bytes)) != nil
    }

    func read(
        _ number: Int, at offset: UInt64, into bytes: UnsafeMutableRawBufferPointer
    ) throws(StoreError) {
        let segment = try segment(number)
        do throws(Errno) {
            let count = try calls.readFully(segment.descriptor, bytes, at: start(number) + offset)
            if count < bytes.count { bytes.slice(count, bytes.count - count).zero() }
        } catch { throw StoreError(error) }
    }

    func willRead(_ number: Int, _ range: Range<UInt64>) {
        guard let segment = try? segment(number) else { return }
        calls.readSoon(
            segment.descriptor, offset: start(number) + range.lowerBound, length: UInt64(range.count))
    }

    func write(
        _ number: Int, at place: UInt64, _ bytes: UnsafeRawBufferPointer, _ kind: WriteKind
    ) throws(StoreError) {
        let (segment, key, offset) = (try segment(number, for: .writing), key(number), start(number) + place)
        lock.withLock { _ = unsynced.insert(key) }
        // Marked again after the write: a concurrent sync may have cleared the mark before the bytes arrived.
        defer { lock.withLock { _ = unsynced.insert(key) } }
        let range = offset..<offset + UInt64(bytes.count)
        if layout.isShared && range.upperBound > leastBytes { try checkEnd(range, number, segment) }
        segment.willWrite(range, end: start(number) + segmentBytes)
        let sync = syncs.withLock { $0.willWrite(bytes.count, at: MonotonicClock.milliseconds) }
        do throws(Errno) {
            switch (sync, kind) {
            case (.expected, .body): try calls.writeBeforeSync(segment.descriptor, bytes, at: offset)
            case (.expected, _), (.long, .head), (.long, .body):
                try calls.writeFully(segment.descriptor, bytes, at: offset)
                calls.writeSoon(segment.descriptor, offset: offset, length: UInt64(bytes.count))
            case (.long, .other), (.none, _): try calls.writeFully(segment.descriptor, bytes, at: offset)
            }
        } catch { throw refused(error, number) }
        segment.didWrite(range)
        cover?.didWrite()
    }

    /// Only `grow` moves the end of the file of all spaces: a write beyond would leave a hole in other spaces.
    func limit(to segments: Int) { least.store(UInt64(segments) * layout.rowBytes, ordering: .relaxed) }

    /// Throws if a write would extend the file of all spaces. Only `grow` moves its end: a write beyond would leave a
    /// hole in other spaces.
    func checkEnd(
        _ range: Range<UInt64>, _ number: Int, _ segment: OpenSegment
    ) throws(StoreError) {
        let found = try bytes(number, segment)
        if found == 0 { throw .segmentMissing(number) }
        if range.upperBound > start(number) + found { throw .segmentShort(number) }
    }

    /// Marks a segment that an earlier mount wrote as part of the next sync.
    func markUnsynced(_ number: Int) { lock.withLock { _ = unsynced.insert(key(number)) } }

    /// Syncs (fdatasync) everything written since the last successful sync.
    func sync() throws(StoreError) {
        syncs.withLock { $0.noteSync(at: MonotonicClock.milliseconds) }
        let (keys, isDirectoryNew, failedBefore) = lock.withLock { () -> ([Int], Bool, StoreError?) in
            defer {
                (syncing, unsynced) = (unsynced, [])
                hasNewFiles = false
                failedSync = nil
            }
            return (unsynced.sorted(), hasNewFiles, failedSync)
        }
        var failure = failedBefore
        if keys.count > 1 {
            // The disk writes all of them while the first is waited for.
            for file in lock.withLock({ keys.compactMap { open[$0] } }) {
                calls.writeSoon(file.descriptor, offset: 0, length: 0)
            }
        }
        for key in keys {
            do throws(StoreError) {
                try sync(key, segment(key, for: .writing))
            } catch { failure = error }
        }
        if isDirectoryNew {
            do throws(Errno) { try calls.sync(directory) } catch { failure = StoreError(error) }
        }
        lock.withLock {
            syncing = []
            // A file may have been closed in between: after a failed sync a second one does not report the loss.
            failure = failure ?? failedSync
            failedSync = nil
        }
        guard let failure else { return }
        lock.withLock {
            unsynced.formUnion(keys)
            hasNewFiles = hasNewFiles || isDirectoryNew
        }
        throw failure
    }

    /// Bytes of the host's file system that are available to this user.
    func availableBytes() throws(StoreError) -> UInt64 {
        do throws(Errno) { return try calls.hostStatus(directory).availableBytes } catch {
            throw StoreError(error)
        }
    }
}
