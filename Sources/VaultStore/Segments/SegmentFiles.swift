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

/// Content of written sectors. It decides how soon they go to the disk, and whether they stay in the page cache.
enum WriteKind {
    /// The first chunks of a file. Its day and its thumbnail are read from them soon.
    case head
    /// Later chunks of a file.
    case body
    /// Pages of the catalogue, which the next commit may write again, and random bytes over destroyed photos.
    case other
}

/// The segments of one space, addressed by linear sector.
///
/// Files are identified by keys: the segment's number in a vault of one space, else 0, because there is one file.
///
/// Unchecked Sendable: everything mutable is guarded by `lock`, which is never held during I/O on a segment.
final class SegmentFiles: @unchecked Sendable {
    let layout: SegmentLayout
    let space: Int
    let sectorsPerSegment: Int
    let calls: any FileSystemCalls
    /// The directory of the files.
    let directory: Int32
    /// Closed by an error with which the host refuses all writing; set before the first write. Nil where nothing is
    /// written.
    var gate: WriteGate?
    /// The least size of each file, in bytes: in a vault of several spaces the size at opening or after `grow`, else 0.
    /// Set by the space.
    var leastBytes: UInt64 {
        get { least.load(ordering: .relaxed) }
        set { least.store(newValue, ordering: .relaxed) }
    }
    private let least = Atomic<UInt64>(0)
    /// By segment, the number in the name of its file, if that is another segment's; see `SegmentExchange`. Only for
    /// reading; set before any file is opened.
    var exchanged: [Int: Int] = [:]
    private let lock = Lock()
    private var open: [Int: OpenSegment] = [:]
    private var order: [Int] = []
    private var unsynced: Set<Int> = []
    private let syncs = Mutex(SyncPace())
    private let reads = Mutex(ReadStreams())
    /// Files of the running sync.
    private var syncing: Set<Int> = []
    /// Whether the next sync includes the directory. Initially true: the process that created the files may have been
    /// killed before its sync.
    private var hasNewFiles = true
    /// Checked before every write; set before the first one. Nil if no other mount can write.
    var claim: ClaimKeeper?
    /// Told of every write and every sync; set before the first one. Nil in a vault of one space.
    var cover: CoverTraffic?
    /// The failure of a sync before closing a file; the next `sync` throws it.
    private var failedSync: StoreError?

    private let openMax: Int

    /// Takes ownership of `directory`, a descriptor of the segments' directory.
    init(
        directory: Int32, layout: SegmentLayout, space: Int, calls: any FileSystemCalls,
        openMax: Int = Limits.production.openSegments
    ) {
        self.openMax = openMax
        self.directory = directory
        self.layout = layout
        self.space = space
        self.calls = calls
        sectorsPerSegment = Int(layout.segmentBytes) / Geometry.sectorBytes
    }

    var segmentBytes: UInt64 { layout.segmentBytes }

    /// The linear sectors of a segment.
    func sectors(of segment: Int) -> Range<UInt64> {
        let first = UInt64(segment) * UInt64(sectorsPerSegment)
        return first..<first + UInt64(sectorsPerSegment)
    }

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
        if error == .noEntry { return .segmentMissing(number) }
        if error.refusesWriting { gate?.close(for: .io(error)) }
        return StoreError(error)
    }

    /// Checks the claim.
    func willWrite() throws(StoreError) {
        do throws(StoreError) { try claim?.willWrite() } catch {
            if case .io(let number) = error, number.refusesWriting { gate?.close(for: .io(number)) }
            throw error
        }
    }

    private func key(_ number: Int) -> Int { layout.isShared ? 0 : number }

    func fileName(_ number: Int) -> String { layout.fileName(exchanged[number] ?? number) }

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

    /// Preallocates disk blocks for the first `bytes` of a segment, if the host can.
    func preallocate(_ number: Int, bytes: UInt64) throws(StoreError) {
        let segment = try segment(number, for: .writing)
        do throws(Errno) {
            try calls.allocate(segment.descriptor, offset: start(number), length: bytes)
        } catch  where error == .notSupported {
        } catch { throw StoreError(error) }
    }

    /// Sectors of a segment up to the end of its file: those beyond were never written. Throws `damaged` if the file or
    /// the segment is missing.
    func writtenSectors(_ number: Int) throws(StoreError) -> Int {
        let segment = try segment(number)
        let bytes = try self.bytes(number, segment)
        if layout.isShared && bytes == 0 { throw .damaged }
        return Int(bytes) / Geometry.sectorBytes
    }

    /// Bytes of a segment that its file has.
    func bytes(_ number: Int, _ segment: OpenSegment) throws(StoreError) -> UInt64 {
        do throws(Errno) {
            let size = try calls.status(segment.descriptor).size
            return layout.bytes(SegmentPlace(space: space, number: number), ofFile: size)
        } catch { throw StoreError(error) }
    }

    /// Disk blocks of a segment in a vault of one space, in bytes; 0 if unknown.
    func blockBytes(_ number: Int) -> UInt64 {
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

    /// Punches a hole for the host's whole pages within these sectors. Best effort.
    func punch(_ number: Int, sectors: Range<Int>) {
        let page = Geometry.sectorsPerPage
        let (first, end) = ((sectors.lowerBound + page - 1) / page * page, sectors.upperBound / page * page)
        guard first < end else { return }
        do throws(StoreError) {
            let segment = try segment(number)
            try claim?.willWrite()
            try? calls.punchHole(
                segment.descriptor, offset: UInt64(first * Geometry.sectorBytes),
                length: UInt64((end - first) * Geometry.sectorBytes))
        } catch {
            // The sectors keep their disk.
        }
    }

    /// Whether this mount still holds the claim, by reading it. For operations that would do the most harm otherwise.
    private func isStillOurs() -> Bool {
        do throws(StoreError) {
            try claim?.verify()
            return true
        } catch {
            return false
        }
    }

    /// Removes a segment's file; returns false if the host refuses or the claim is lost.
    func remove(_ number: Int) -> Bool {
        guard isStillOurs() else { return false }
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

    /// Truncates a segment's file; returns false if the host refuses or the claim is lost.
    func shorten(_ number: Int, to bytes: UInt64) -> Bool {
        guard let segment = try? segment(number), isStillOurs() else { return false }
        lock.withLock { _ = unsynced.insert(key(number)) }
        segment.willEnd(at: bytes)
        return (try? calls.truncate(segment.descriptor, to: bytes)) != nil
    }

    /// Reads consecutive sectors of one segment. Bytes past the end of the file are zeros, which cannot be
    /// authenticated.
    ///
    /// - Parameter end: the sector behind those that a program will read next if it reads on. Nil if no program reads.
    func read(_ sector: UInt64, into bytes: UnsafeMutableRawBufferPointer, readingOnTo end: UInt64? = nil)
        throws(StoreError)
    {
        let (number, offset) = try place(sector, bytes.count)
        let segment = try segment(number)
        if let end { readAhead(sector, bytes.count, upTo: end) }
        do throws(Errno) {
            let count = try calls.readFully(segment.descriptor, bytes, at: offset)
            if count < bytes.count { bytes.slice(count, bytes.count - count).zero() }
        } catch { throw StoreError(error) }
    }

    /// Asks the host for the sectors that a program will probably read next. Only advice: a missing segment is reported
    /// when it is read.
    private func readAhead(_ sector: UInt64, _ count: Int, upTo end: UInt64) {
        let sectorBytes = UInt64(Geometry.sectorBytes)
        let first = sector * sectorBytes
        // The row of a forged vault may tell of any end.
        let end = min(end, UInt64(Geometry.segmentsMax) * UInt64(sectorsPerSegment)) * sectorBytes
        let soon = reads.withLock { $0.toReadAhead(of: first..<first + UInt64(count), upTo: end) }
        guard let soon else { return }
        var position = soon.lowerBound
        while position < soon.upperBound {
            let (number, offset) = position.quotientAndRemainder(dividingBy: segmentBytes)
            guard number < UInt64(Geometry.segmentsMax), let segment = try? segment(Int(number)) else {
                return
            }
            let count = min(soon.upperBound - position, segmentBytes - offset)
            calls.readSoon(segment.descriptor, offset: start(Int(number)) + offset, length: count)
            position += count
        }
    }

    /// Writes consecutive sectors of one segment.
    func write(
        _ sector: UInt64, _ bytes: UnsafeRawBufferPointer, _ kind: WriteKind = .other
    ) throws(StoreError) {
        let (number, offset) = try place(sector, bytes.count)
        let (segment, key) = (try segment(number, for: .writing), key(number))
        lock.withLock { _ = unsynced.insert(key) }
        // Marked again after the write: a concurrent sync may have cleared the mark before the bytes arrived.
        defer { lock.withLock { _ = unsynced.insert(key) } }
        let range = offset..<offset + UInt64(bytes.count)
        if layout.isShared && range.upperBound > leastBytes { try checkEnd(range, number, segment) }
        segment.willWrite(range, end: start(number) + segmentBytes)
        try willWrite()
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
    func markUnsynced(_ sector: UInt64) {
        lock.withLock { _ = unsynced.insert(key(Int(sector / UInt64(sectorsPerSegment)))) }
    }

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

    /// Status of the host file system, with the bytes available to this user.
    func hostStatus() throws(StoreError) -> HostStatus {
        do throws(Errno) { return try calls.hostStatus(directory) } catch { throw StoreError(error) }
    }

    /// Offset of sectors in the file of their segment. Throws `damaged` if they cross the segment's end, which no
    /// extent does.
    func place(_ sector: UInt64, _ count: Int) throws(StoreError) -> (segment: Int, offset: UInt64) {
        let (number, index) = sector.quotientAndRemainder(dividingBy: UInt64(sectorsPerSegment))
        let offset = index * UInt64(Geometry.sectorBytes)
        guard number < UInt64(Geometry.segmentsMax), offset + UInt64(count) <= segmentBytes else {
            throw .damaged
        }
        return (Int(number), start(Int(number)) + offset)
    }
}
