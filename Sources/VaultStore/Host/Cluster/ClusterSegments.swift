import ClusterIO
import Glibc
import LinuxIO
import Synchronization
import VaultFormat

/// The segments of a space of a vault on a cluster, striped over objects.
///
/// Writes return before they are answered, except that a root is begun only once all writes before it are durable: an
/// earlier mount has left none without. Small ones wait for others to the same object, until a root, a sync or a read.
///
/// In a vault of one space an object that does not exist, of a segment that does, is a hole. In one of several spaces
/// all objects are there from the beginning, and none is made, shortened or removed here.
final class ClusterSegments: SegmentHost, @unchecked Sendable {
    private let vault: VaultCluster
    private let space: Int
    private let layout: ClusterLayout
    private let recent: RecentBytes
    private let lock = Lock()
    /// Segments that are known to exist.
    private var known: Set<Int> = []
    /// Objects of a vault of several spaces that are known to exist.
    private var knownObjects: Set<String> = []
    /// Segments that every space has at least; see `limit`.
    private let least = Atomic<Int>(0)
    /// Where content was written last.
    private var written: (segment: Int, end: UInt64)?

    private static let objectBytes = ClusterAddress.objectBytes

    init(_ vault: VaultCluster, _ space: Int, _ layout: SegmentLayout) {
        (self.vault, self.space, self.layout) = (vault, space, vault.objects(layout))
        recent = RecentBytes(vault.pool)
    }

    private var pool: ClusterPool { vault.pool }

    private var isShared: Bool { layout.layout.isShared }
    private var segmentBytes: UInt64 { layout.layout.segmentBytes }

    private func object(_ segment: Int, _ index: Int = 0) -> String { layout.object(segment, index) }

    private func parts(_ range: Range<UInt64>) -> [(index: Int, range: Range<UInt64>)] {
        layout.parts(range, ofSpace: space)
    }

    private func reads(
        _ segment: Int, at offset: UInt64, _ bytes: UnsafeMutableRawBufferPointer
    ) -> [ClusterPool.Read] { layout.reads(bytes, SegmentPlace(space: space, number: segment), at: offset) }

    private func failed(_ error: Errno) -> StoreError {
        vault.lease.note(error)
        return error.rawValue == EBUSY ? .io(Errno(ESHUTDOWN)) : StoreError(error)
    }

    // MARK: Bytes

    func read(
        _ segment: Int, at offset: UInt64, into bytes: UnsafeMutableRawBufferPointer
    ) throws(StoreError) {
        let exist: Bool
        let around = bytes.count == Geometry.pageBytes ? surroundings(segment, offset) : nil
        do throws(Errno) { exist = try recent.read(reads(segment, at: offset, bytes), within: around) } catch
        {
            throw failed(error)
        }
        if !exist, try !isThere(segment) { throw .damaged }
    }

    func lend(
        _ segment: Int, at offset: UInt64, count: Int, to body: (UnsafeRawBufferPointer) -> Bool
    ) -> Bool? {
        let parts = parts(offset..<offset + UInt64(count))
        guard parts.count == 1, let part = parts.first else { return nil }
        return recent.lend(object(segment, part.index), part.range, to: body)
    }

    /// The range of a page's object that may be read with it: of this space, and without roots, which another mount may
    /// write.
    private func surroundings(_ segment: Int, _ offset: UInt64) -> Range<UInt64>? {
        let roots = segment < 2 ? UInt64(RootSnapshot.rootBytes) : 0
        guard offset >= roots else { return nil }
        let index = offset / layout.partBytes
        let start = layout.start(space)
        return start + (index == 0 ? roots : 0)..<start + layout.partBytes
    }

    var readsTakeRoundTrips: Bool { true }

    func willRead(_ segment: Int, _ range: Range<UInt64>) {
        if isBeingWritten(segment, range.lowerBound) { return }
        for part in parts(range) { recent.willRead(object(segment, part.index), part.range) }
    }

    /// Photos that come in are read in part, one after another: what follows is the place of the next one.
    private func isBeingWritten(_ segment: Int, _ offset: UInt64) -> Bool {
        guard let written = lock.withLock({ written }), written.segment == segment else { return false }
        return offset < written.end + Self.writtenBytes && written.end < offset + Self.writtenBytes
    }

    private static let writtenBytes: UInt64 = 16 << 20

    func write(
        _ segment: Int, at offset: UInt64, _ bytes: UnsafeRawBufferPointer, _ kind: WriteKind
    ) throws(StoreError) {
        if kind != .other { lock.withLock { written = (segment, offset + UInt64(bytes.count)) } }
        guard try isThere(segment) else { throw .segmentMissing(segment) }
        try requireObjects(segment, offset..<offset + UInt64(bytes.count))
        do throws(Errno) {
            try vault.lease.requireHeld()
            let isRoot = segment < 2 && offset < UInt64(RootSnapshot.rootBytes)
            if isRoot { try pool.settle() }
            var done = 0
            for part in parts(offset..<offset + UInt64(bytes.count)) {
                try write(bytes.slice(done, part.range.count), segment, part, kind, isRoot: isRoot)
                done += part.range.count
            }
        } catch { throw failed(error) }
    }

    private func write(
        _ bytes: UnsafeRawBufferPointer, _ segment: Int, _ part: (index: Int, range: Range<UInt64>),
        _ kind: WriteKind, isRoot: Bool
    ) throws(Errno) {
        let (object, offset) = (object(segment, part.index), part.range.lowerBound)
        var kept: [UInt8]?
        // Also of a write that failed.
        defer { recent.replace(object, part.range, by: kept) }
        switch kind {
        case .head, .body:
            // A photo's beginning and end are read soon, for its day and what belongs to it.
            let copy = Array(bytes)
            try start(.writeArray(copy, at: offset), segment, part.index, .refuse)
            kept = copy
        case .other where isRoot: try start(.write(bytes, at: offset), segment, part.index)
        case .other:
            try pool.gather(
                bytes, at: offset, on: object, lock: vault.lockNeeded(layout, segment, part.index))
        }
    }

    private func start(
        _ step: ClusterPool.Step, _ segment: Int, _ index: Int, _ whenFull: ClusterPool.WhenFull = .force
    ) throws(Errno) {
        try vault.lease.requireHeld()
        try pool.start(locked(step, segment, index), on: object(segment, index), whenFull)
    }

    private func locked(
        _ step: ClusterPool.Step, _ segment: Int, _ index: Int
    ) throws(Errno) -> [ClusterPool.Step] {
        try vault.lockNeeded(layout, segment, index).map { [.lock($0), step] } ?? [step]
    }

    /// Throws if a write would make or extend an object of several spaces, with zeros in the parts of others.
    private func requireObjects(_ segment: Int, _ range: Range<UInt64>) throws(StoreError) {
        guard isShared else { return }
        for part in parts(range) {
            let object = object(segment, part.index)
            if lock.withLock({ knownObjects.contains(object) }) { continue }
            let size: UInt64?
            do throws(Errno) { size = try pool.size(of: object) } catch { throw failed(error) }
            guard let size else { throw .segmentMissing(segment) }
            if size < layout.objectBytes { throw .segmentShort(segment) }
            lock.withLock { _ = knownObjects.insert(object) }
        }
    }

    func sync() throws(StoreError) {
        do throws(Errno) {
            try pool.settle()
            try vault.lease.requireHeld()
        } catch { throw failed(error) }
    }

    // MARK: Sizes

    func writtenBytes(_ segment: Int) throws(StoreError) -> UInt64 {
        if isShared {
            guard try isThere(segment) else { throw .damaged }
            return segmentBytes
        }
        do throws(Errno) {
            for index in (0..<layout.objectsPerSegment).reversed() {
                if let size = try pool.size(of: object(segment, index)) {
                    return UInt64(index) * Self.objectBytes + size
                }
            }
        } catch { throw failed(error) }
        throw .damaged
    }

    func storedBytes(_ segment: Int) -> UInt64 { (try? writtenBytes(segment)) ?? 0 }

    func storedRange(_ segment: Int, from offset: UInt64) throws(StoreError) -> Range<UInt64>? {
        let end = try writtenBytes(segment)
        return offset < end ? offset..<end : nil
    }

    func isHole(_ segment: Int) -> Bool { false }

    func exists(_ segment: Int) -> Bool { (try? isThere(segment)) ?? true }

    /// As `exists`. Throws if the cluster does not tell: then the segment is not missing.
    private func isThere(_ segment: Int) throws(StoreError) -> Bool {
        if lock.withLock({ known.contains(segment) }) { return true }
        do throws(Errno) {
            if isShared {
                let isKnown = segment < least.load(ordering: .relaxed)
                if !isKnown, try !vault.isWholeRow(segment, layout) { return false }
            } else {
                guard try pool.size(of: object(segment)) != nil else { return false }
            }
        } catch { throw failed(error) }
        lock.withLock { _ = known.insert(segment) }
        return true
    }

    func hasRoom(for segment: Int) -> Bool { exists(segment) }

    func requireWritable(_ segment: Int, bytes: UInt64) throws(StoreError) {
        guard try isThere(segment) else { throw .segmentMissing(segment) }
        if try writtenBytes(segment) < bytes { throw .segmentShort(segment) }
    }

    func requireWritable(_ segments: [(number: Int, bytes: UInt64)]) throws(StoreError) {
        var sizes: [(first: UInt64?, last: UInt64?)] = []
        let some = isShared ? [] : segments
        // Most have all objects: by the first and the last one of each, all are known in few round trips.
        for start in stride(from: 0, to: some.count, by: Self.segmentsAtOnce) {
            let numbers = some[start...].prefix(Self.segmentsAtOnce).map(\.number)
            let last = layout.objectsPerSegment - 1
            do throws(Errno) {
                let found = try pool.sizes(of: numbers.flatMap { [object($0), object($0, last)] })
                sizes += numbers.indices.map { (found[2 * $0], found[2 * $0 + 1]) }
            } catch { throw failed(error) }
        }
        for (index, segment) in segments.enumerated() {
            let (first, last) = index < sizes.count ? sizes[index] : (nil, nil)
            guard first != nil, let last else {
                try requireWritable(segment.number, bytes: segment.bytes)
                continue
            }
            lock.withLock { _ = known.insert(segment.number) }
            let written = UInt64(layout.objectsPerSegment - 1) * Self.objectBytes + last
            if written < segment.bytes { throw .segmentShort(segment.number) }
        }
    }

    private static let segmentsAtOnce = 32

    func limit(to segments: Int) { least.store(segments, ordering: .relaxed) }

    func requireMayCreate() throws(StoreError) {
        do throws(Errno) { try vault.lease.requireHeld() } catch { throw failed(error) }
    }

    /// A cluster without a manager does not tell; it says so when it is full.
    func availableBytes() throws(StoreError) -> UInt64 {
        do throws(Errno) { return try pool.room()?.available ?? 1 << 50 } catch { throw failed(error) }
    }

    // MARK: Room

    func create(_ segment: Int) throws(StoreError) {
        do throws(Errno) {
            try vault.lease.requireHeld()
            do throws(Errno) { try pool.apply([.creation], on: object(segment)) } catch {
                if error != .exists { throw error }
            }
        } catch { throw failed(error) }
        lock.withLock { _ = known.insert(segment) }
    }

    @discardableResult
    func reserve(_ segment: Int, bytes: UInt64) throws(StoreError) -> Bool { true }

    func giveBack(_ segment: Int, _ range: Range<UInt64>) {
        // Without it the bytes keep their room until they are written over.
        for part in parts(range) where !isShared {
            try? start(.zeros(part.range), segment, part.index)
            recent.replace(object(segment, part.index), part.range)
        }
    }

    func remove(_ segment: Int) -> Bool { cut(segment, to: 0) && remove(object(segment)) }

    func shorten(_ segment: Int, to bytes: UInt64) -> Bool { cut(segment, to: bytes) }

    /// Removes the objects beyond an end, the last first, and shortens the one with the end.
    private func cut(_ segment: Int, to end: UInt64) -> Bool {
        if isShared { return false }
        let last = Int(end / Self.objectBytes)
        for index in stride(from: layout.objectsPerSegment - 1, to: last, by: -1)
        where !remove(object(segment, index)) { return false }
        do throws(Errno) {
            let size = try pool.size(of: object(segment, last)) ?? 0
            let rest = end - UInt64(last) * Self.objectBytes
            if size > rest {
                try pool.apply(locked(.truncation(rest), segment, last), on: object(segment, last))
                recent.replace(object(segment, last), rest..<size)
            }
            return true
        } catch {
            vault.lease.note(error)
            return false
        }
    }

    private func remove(_ object: String) -> Bool {
        do throws(Errno) {
            try vault.lease.requireHeld()
            try pool.apply([.removal], on: object)
        } catch {
            if error != .noEntry { return false }
        }
        recent.replace(object, 0..<Self.objectBytes)
        if let segment = vault.address.place(of: object), segment.index == 0 {
            lock.withLock { _ = known.remove(segment.segment) }
        }
        return true
    }

    // MARK: For claims

    var isOnLocalDisk: Bool { false }

    func readAnew(
        _ segment: Int, at offset: UInt64, into bytes: UnsafeMutableRawBufferPointer
    ) throws(Errno) {
        let reads = reads(segment, at: offset, bytes)
        for (read, count) in zip(reads, try pool.read(reads)) { read.fillHole(after: count) }
    }

    func writeAnew(
        _ segment: Int, at offset: UInt64, _ bytes: UnsafeRawBufferPointer, isInTime: () -> Bool
    ) throws(StoreError) -> Bool {
        guard isInTime() else { return false }
        try write(segment, at: offset, bytes, .other)
        try sync()
        return true
    }
}
