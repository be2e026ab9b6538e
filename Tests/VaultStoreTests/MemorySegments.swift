import LinuxIO
import TestSupport

@testable import VaultFormat
@testable import VaultStore

/// The segments of a space in memory, without files: what was synced, and what was written since.
final class MemorySegments: SegmentHost, @unchecked Sendable {
    /// A host that fails: nil in a call lets it pass.
    typealias Failure = @Sendable (_ call: String) -> StoreError?

    private let lock = Lock()
    private let layout: SegmentLayout
    // Under `lock`.
    private var durable: [Int: [UInt8]] = [:]
    private var written: [Int: [UInt8]] = [:]
    /// Sectors written since the last sync.
    private var unsynced: Set<SectorPlace> = []
    private var failure: Failure?
    private(set) var calls = 0

    private struct SectorPlace: Hashable, Comparable {
        var segment: Int
        var sector: Int

        static func < (one: SectorPlace, other: SectorPlace) -> Bool {
            (one.segment, one.sector) < (other.segment, other.sector)
        }
    }

    init(_ layout: SegmentLayout) { self.layout = layout }

    /// Lets later calls that change something fail.
    func fail(_ failure: Failure?) { lock.withLock { self.failure = failure } }

    /// The host after a power cut: of the sectors written since the last sync some are there.
    func cut(using random: inout SeededGenerator) -> MemorySegments {
        let after = MemorySegments(layout)
        lock.withLock {
            after.durable = durable
            for place in unsynced.sorted() where random.next() % 2 == 0 {
                guard let bytes = written[place.segment] else { continue }
                let range = place.sector * 512..<min((place.sector + 1) * 512, bytes.count)
                var old = after.durable[place.segment] ?? []
                if old.count < range.upperBound {
                    old += [UInt8](repeating: 0, count: range.upperBound - old.count)
                }
                old.replaceSubrange(range, with: bytes[range])
                after.durable[place.segment] = old
            }
            after.written = after.durable
        }
        return after
    }

    private func changing<R>(_ call: String, _ body: () throws(StoreError) -> R) throws(StoreError) -> R {
        try lock.withLock { () throws(StoreError) in
            calls += 1
            if let error = failure?(call) { throw error }
            return try body()
        }
    }

    // MARK: Bytes

    func read(
        _ segment: Int, at offset: UInt64, into bytes: UnsafeMutableRawBufferPointer
    ) throws(StoreError) {
        let found = lock.withLock { written[segment] }
        guard let found else { throw .damaged }
        bytes.zero()
        let first = min(Int(offset), found.count)
        bytes.copyBytes(from: found[first..<min(first + bytes.count, found.count)])
    }

    func write(
        _ segment: Int, at offset: UInt64, _ bytes: UnsafeRawBufferPointer, _ kind: WriteKind
    ) throws(StoreError) {
        try changing("write") { () throws(StoreError) in
            guard var found = written[segment] else { throw .segmentMissing(segment) }
            let end = Int(offset) + bytes.count
            if found.count < end { found += [UInt8](repeating: 0, count: end - found.count) }
            found.replaceSubrange(Int(offset)..<end, with: bytes)
            written[segment] = found
            for sector in Int(offset) / 512...(end - 1) / 512 {
                unsynced.insert(SectorPlace(segment: segment, sector: sector))
            }
        }
    }

    func sync() throws(StoreError) {
        try changing("sync") { () throws(StoreError) in
            durable = written
            unsynced = []
        }
    }

    // MARK: What there is

    func writtenBytes(_ segment: Int) throws(StoreError) -> UInt64 {
        let found = lock.withLock { written[segment]?.count }
        guard let found else { throw .damaged }
        return UInt64(found)
    }

    func storedBytes(_ segment: Int) -> UInt64 { (try? writtenBytes(segment)) ?? 0 }

    func storedRange(_ segment: Int, from offset: UInt64) throws(StoreError) -> Range<UInt64>? {
        let end = try writtenBytes(segment)
        return offset < end ? offset..<end : nil
    }

    func isHole(_ segment: Int) -> Bool { storedBytes(segment) == 0 && exists(segment) }
    func exists(_ segment: Int) -> Bool { lock.withLock { written[segment] != nil } }
    func hasRoom(for segment: Int) -> Bool { exists(segment) }

    func requireWritable(_ segment: Int, bytes: UInt64) throws(StoreError) {
        if !exists(segment) { throw .segmentMissing(segment) }
        if storedBytes(segment) < bytes { throw .segmentShort(segment) }
    }

    func requireMayCreate() throws(StoreError) {}
    func availableBytes() throws(StoreError) -> UInt64 { 1 << 40 }

    // MARK: Room

    func create(_ segment: Int) throws(StoreError) {
        try changing("create") { () throws(StoreError) in
            if written[segment] == nil { written[segment] = [] }
        }
    }

    @discardableResult
    func reserve(_ segment: Int, bytes: UInt64) throws(StoreError) -> Bool {
        try changing("reserve") { () throws(StoreError) in
            guard let found = written[segment] else { throw .segmentMissing(segment) }
            let more = max(0, Int(bytes) - found.count)
            written[segment] = found + [UInt8](repeating: 0, count: more)
        }
        return true
    }

    func giveBack(_ segment: Int, _ range: Range<UInt64>) {
        lock.withLock {
            guard var found = written[segment] else { return }
            let range = Int(range.lowerBound)..<min(Int(range.upperBound), found.count)
            if range.isEmpty { return }
            found.replaceSubrange(range, with: [UInt8](repeating: 0, count: range.count))
            written[segment] = found
        }
    }

    func remove(_ segment: Int) -> Bool {
        lock.withLock { written[segment] = nil }
        return true
    }

    func shorten(_ segment: Int, to bytes: UInt64) -> Bool {
        lock.withLock { written[segment] = written[segment].map { Array($0.prefix(Int(bytes))) } }
        return true
    }

    // MARK: For claims

    var isOnLocalDisk: Bool { true }

    func readAnew(
        _ segment: Int, at offset: UInt64, into bytes: UnsafeMutableRawBufferPointer
    ) throws(Errno) {
        if (try? read(segment, at: offset, into: bytes)) == nil { throw .noEntry }
    }

    func writeAnew(
        _ segment: Int, at offset: UInt64, _ bytes: UnsafeRawBufferPointer, isInTime: () -> Bool
    ) throws(StoreError) -> Bool {
        guard isInTime() else { return false }
        try write(segment, at: offset, bytes, .other)
        try sync()
        return true
    }

    /// The number of segments from 0 on without a gap.
    var count: Int {
        lock.withLock { (0...written.count).first { written[$0] == nil } ?? 0 }
    }
}
