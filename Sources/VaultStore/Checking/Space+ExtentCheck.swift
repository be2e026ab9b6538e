public import LinuxIO
import Synchronization
public import VaultFormat

/// A run of extents to check, with its content.
public struct CheckedRun: Sendable, Hashable {
    public var content: UInt64
    /// Whether it is an identity record: these have their own numbering.
    public var isRecord: Bool
    public var run: ExtentRun

    public init(content: UInt64, isRecord: Bool = false, run: ExtentRun) {
        self.content = content
        self.isRecord = isRecord
        self.run = run
    }

    /// The roles that its extents may have.
    var roles: [ExtentRole] { isRecord ? [.identity] : [.content, .thumbnail] }

    public var key: ContentKey { ContentKey(content: content, isRecord: isRecord) }

    /// Leaves out rows of extents that the row before is of too: snapshots have those of their source.
    ///
    /// - Parameter runs: by sector.
    public static func withoutSame(_ runs: [CheckedRun]) -> [CheckedRun] {
        var left: [CheckedRun] = []
        for run in runs where left.last.map({ !run.isSame(as: $0) }) ?? true { left.append(run) }
        return left
    }

    /// Whether both are the same extents, by rows of a content and its snapshot, or of two of its snapshots.
    func isSame(as other: CheckedRun) -> Bool {
        run == other.run && content != other.content && !isRecord && !other.isRecord
            && SnapshotID.source(content) == SnapshotID.source(other.content)
    }
}

/// The content of an extent. Identity records have their own numbering.
public struct ContentKey: Sendable, Hashable {
    public var content: UInt64
    public var isRecord: Bool

    public init(content: UInt64, isRecord: Bool = false) {
        self.content = content
        self.isRecord = isRecord
    }
}

/// The fault of an extent.
public enum ExtentFault: Sendable, Hashable {
    /// Its bytes cannot be authenticated.
    case unauthentic
    /// The descriptor there is another extent's.
    case another
    /// Its segment's file is missing or too short.
    case segment(SegmentFault)
    /// The disk cannot read its bytes.
    case unreadable(Errno)
    /// The payload is intact, but its descriptor is not: it is needed if the catalogue is lost.
    case descriptor(ExtentRole)
    /// The catalogue's row gives a place where no extent can lie.
    case impossible
    /// The catalogue's row stands for lost bytes.
    case lost
}

/// Consecutive chunks of a content with the same fault.
public struct ExtentDamage: Sendable, Hashable {
    public var content: UInt64
    /// See `CheckedRun.isRecord`.
    public var isRecord: Bool
    /// First plaintext byte in the content.
    public var offset: UInt64
    public var length: UInt64
    /// First sector of the first chunk.
    public var sector: UInt64
    public var fault: ExtentFault

    public var key: ContentKey { ContentKey(content: content, isRecord: isRecord) }

    /// The sectors of the chunks; nil if they have none, or may have none.
    public var sectors: Range<UInt64>? {
        switch fault {
        case .lost, .impossible, .segment: return nil
        case .unauthentic, .another, .unreadable, .descriptor:
            let run = ExtentRun(offset: offset, length: length, sector: sector, generation: 0, epoch: 0)
            return length > 0 ? sector..<run.endSector : nil
        }
    }
}

/// Reading and opening extents in sector order, on all cores.
extension Space {
    /// Opens every chunk of `runs`, and its descriptor.
    ///
    /// - Parameter proceed: called on the calling thread with the bytes read so far; returns false to end the check
    ///   early.
    public func checkExtents(
        _ runs: [CheckedRun], _ proceed: (_ bytes: UInt64) -> Bool = { _ in true }
    ) -> [ExtentDamage] {
        var (possible, others) = ([CheckedRun](), [ExtentDamage]())
        for checked in runs {
            if isPossible(checked.run) {
                possible.append(checked)
            } else {
                others.append(ExtentDamage(checked, checked.run.isLost ? .lost : .impossible))
            }
        }
        possible.sort { $0.run.sector < $1.run.sector }
        let tally = ExtentTally()
        let buffers = BufferPool(bufferBytes: Reading.bytesMax, keptMax: coreCount)
        var isWanted = true
        for batch in Self.batches(possible) where isWanted {
            let readings = Reading.plan(batch, sectorsPerSegment: files.sectorsPerSegment)
            onAllCores(readings.count) { [self] number in
                buffers.withBuffer { check(readings[number], batch, $0, tally) }
            } ownTurn: {
                isWanted = proceed(tally.bytes)
                return isWanted
            }
        }
        return Self.joined(tally.damage + others)
    }

    /// Parts of a list of runs with about `chunksMax` chunks each: overlapping rows may have far more chunks than a
    /// space holds.
    private static func batches(_ runs: [CheckedRun]) -> [ArraySlice<CheckedRun>] {
        var (first, chunks) = (0, 0)
        var batches: [ArraySlice<CheckedRun>] = []
        for (index, checked) in runs.enumerated() {
            chunks += checked.run.chunkCount
            if chunks >= chunksMax || index == runs.count - 1 {
                batches.append(runs[first...index])
                (first, chunks) = (index + 1, 0)
            }
        }
        return batches
    }

    /// 24 bytes of memory each.
    private static let chunksMax = 1 << 20

    /// Whether a run can lie at its place, so that its sectors can be counted and read. No run lies in segments of
    /// pages.
    public func isPossible(_ run: ExtentRun) -> Bool {
        let chunk = UInt64(Geometry.chunkBytes)
        let perSegment = UInt64(files.sectorsPerSegment)
        let sectorsMax = lock.withLock { UInt64(sectors.segmentCount) } * perSegment
        guard run.length > 0, run.length / chunk < sectorsMax, run.sector < sectorsMax,
            run.length <= chunk || run.offset % chunk == 0, run.offset < Geometry.numberMax,
            // Only one in 257 segment boundaries can be a chunk boundary, so a run spans at most two segments.
            UInt64(run.sectorCount) <= 2 * perSegment
        else { return false }
        let end = run.endSector
        let boundary = (run.sector / perSegment + 1) * perSegment
        if isOfPages(segment: run.sector / perSegment) { return false }
        if end <= boundary { return true }
        // Called whenever a file is opened, so it does not check every chunk. No chunk may cross the segments'
        // boundary.
        return end <= boundary + perSegment && boundary < sectorsMax
            && (boundary - run.sector) % UInt64(Geometry.sectorsPerChunk) == 0
            && !isOfPages(segment: boundary / perSegment)
    }

    private func isOfPages(segment: UInt64) -> Bool {
        lock.withLock {
            sectors.excluded.contains(Int(segment))
                && pairs.contains { UInt64($0.a) == segment || UInt64($0.b) == segment }
        }
    }

    /// Whether the first extent at a run's place has another descriptor, so that the run's cannot be there.
    public func holdsAnother(_ run: ExtentRun, _ role: ExtentRole, content: UInt64) -> Bool {
        chunkBuffers.withBuffer { buffer in
            let sector = buffer.slice(0, Geometry.sectorBytes)
            guard isPossible(run), (try? files.read(run.sector, into: sector)) != nil,
                let found = openDescriptor(UnsafeRawBufferPointer(sector))
            else { return false }
            return found != descriptor(role, content, run, 0)
        }
    }

    /// The extents at a run's sectors that open as extents of `content` and of the run's commit, each as its own run.
    /// Their offsets and lengths come from their descriptors, not from the run.
    public func openingExtents(of run: ExtentRun, _ role: ExtentRole, content: UInt64) -> [ExtentRun] {
        let perSegment = UInt64(files.sectorsPerSegment)
        let sectorsMax = lock.withLock { UInt64(sectors.segmentCount) } * perSegment
        guard run.length > 0, run.sector < sectorsMax else { return [] }
        var run = run
        run.offset = min(run.offset, Geometry.numberMax)
        // No run spans more than two segments.
        let room = min(sectorsMax - run.sector, 2 * perSegment) / UInt64(Geometry.sectorsPerChunk) + 1
        return (0..<min(run.chunkCount, Int(room))).compactMap { number in
            let sector = run.sector(ofChunk: number)
            guard sector < sectorsMax, !isOfPages(segment: sector / perSegment) else { return nil }
            return openingExtent(descriptor(role, content, run, number), at: sector)
        }
    }

    /// - Parameter meant: the extent's descriptor by the row; its real offset and length may differ.
    private func openingExtent(_ meant: Descriptor, at sector: UInt64) -> ExtentRun? {
        let perSegment = UInt64(files.sectorsPerSegment)
        let room = min(Int(perSegment - sector % perSegment), Geometry.sectorsPerChunk)
        return chunkBuffers.withBuffer { buffer in
            let stored = buffer.slice(0, room * Geometry.sectorBytes)
            guard (try? files.read(sector, into: stored)) != nil else { return nil }
            // If the descriptor opens, its offset and length are used.
            var wanted = meant
            if let found = openDescriptor(UnsafeRawBufferPointer(stored)) {
                (wanted.offset, wanted.length) = (found.offset, found.length)
                guard wanted == found else { return nil }
            }
            let length = Int(wanted.length) + Geometry.extentOverheadBytes
            guard length <= stored.count, openExtent(wanted, stored.slice(0, length)) else { return nil }
            return ExtentRun(
                offset: wanted.offset, length: UInt64(wanted.length), sector: sector,
                generation: wanted.generation, epoch: wanted.epoch)
        }
    }

    private func check(
        _ reading: Reading, _ runs: ArraySlice<CheckedRun>, _ buffer: UnsafeMutableRawBufferPointer,
        _ tally: ExtentTally
    ) {
        let bytes = buffer.slice(0, reading.sectors * Geometry.sectorBytes)
        let isRead = (try? files.read(reading.sector, into: bytes)) != nil
        for chunk in reading.chunks {
            let checked = runs[chunk.run]
            let place = checked.run.sector(ofChunk: chunk.number)
            let length = checked.run.plainBytes(ofChunk: chunk.number) + Geometry.extentOverheadBytes
            let extent = bytes.slice(Int(place - reading.sector) * Geometry.sectorBytes, length)
            let fault: ExtentFault?
            if isRead, isWhole(checked, chunk.number, extent) {
                fault = nil
            } else {
                fault = findFault(checked, chunk.number, at: place, extent)
            }
            guard let fault else { continue }
            tally.add(
                ExtentDamage(
                    content: checked.content, isRecord: checked.isRecord,
                    offset: checked.run.offset + UInt64(chunk.number * Geometry.chunkBytes),
                    length: UInt64(checked.run.plainBytes(ofChunk: chunk.number)), sector: place, fault: fault
                ))
        }
        tally.add(bytes: UInt64(bytes.count))
    }

    /// Whether descriptor and payload are the run's. Opens the extent in place.
    private func isWhole(_ checked: CheckedRun, _ number: Int, _ extent: UnsafeMutableRawBufferPointer)
        -> Bool
    {
        guard let found = openDescriptor(UnsafeRawBufferPointer(extent)),
            checked.roles.contains(found.role),
            found == descriptor(found.role, checked.content, checked.run, number)
        else { return false }
        return openExtent(found, extent)
    }

    /// The fault of an extent that did not open; nil if it opens now.
    private func findFault(
        _ checked: CheckedRun, _ number: Int, at place: UInt64, _ extent: UnsafeMutableRawBufferPointer
    ) -> ExtentFault? {
        let sectors = (extent.count + Geometry.sectorBytes - 1) / Geometry.sectorBytes
        var others = 0
        if let fault = segmentFault(place, sectors) { return .segment(fault) }
        for role in checked.roles {
            do throws(StoreError) { try files.read(place, into: extent) } catch {
                if case .io(let number) = error { return .unreadable(number) }
                return .unauthentic
            }
            let wanted = descriptor(role, checked.content, checked.run, number)
            let found = openDescriptor(UnsafeRawBufferPointer(extent))
            if openExtent(wanted, extent) { return found == wanted ? nil : .descriptor(role) }
            if let found, found != wanted { others += 1 }
        }
        return others == checked.roles.count ? .another : .unauthentic
    }

    /// Joins contiguous damage with the same fault.
    private static func joined(_ damage: [ExtentDamage]) -> [ExtentDamage] {
        let sorted = damage.sorted { ($0.content, $0.offset) < ($1.content, $1.offset) }
        var joined: [ExtentDamage] = []
        for next in sorted {
            if let last = joined.last, last.content == next.content, last.isRecord == next.isRecord,
                last.fault == next.fault,
                last.offset &+ last.length == next.offset, !last.fault.isOfOneExtent
            {
                joined[joined.count - 1].length &+= next.length
            } else {
                joined.append(next)
            }
        }
        return joined
    }
}

extension ExtentDamage {
    /// Damage of a whole run.
    fileprivate init(_ checked: CheckedRun, _ fault: ExtentFault) {
        self.init(
            content: checked.content, isRecord: checked.isRecord, offset: checked.run.offset,
            length: checked.run.length, sector: checked.run.sector, fault: fault)
    }
}

extension ExtentFault {
    /// Whether it is repaired extent by extent, so that it is not joined.
    public var isOfOneExtent: Bool {
        if case .descriptor = self { return true }
        return false
    }
}

/// Neighbouring extents, read by one call.
private struct Reading {
    /// First sector.
    var sector: UInt64
    var sectors: Int
    /// Chunks of runs, by the run's index in the list.
    var chunks: [(run: Int, number: Int)]

    static let bytesMax = 8 * Geometry.sectorsPerChunk * Geometry.sectorBytes
    /// The largest gap of unused sectors that is read along.
    private static let gapSectorsMax = 64

    /// - Parameter runs: sorted by sector.
    static func plan(_ runs: ArraySlice<CheckedRun>, sectorsPerSegment: Int) -> [Reading] {
        var readings: [Reading] = []
        for (index, checked) in zip(runs.indices, runs) {
            for number in 0..<checked.run.chunkCount {
                let sector = checked.run.sector(ofChunk: number)
                let count = Geometry.sectors(forPlaintext: checked.run.plainBytes(ofChunk: number))
                let isNext = readings.last?.takes(sector, count, sectorsPerSegment) ?? false
                if !isNext { readings.append(Reading(sector: sector, sectors: 0, chunks: [])) }
                readings[readings.count - 1].add(index, number, sector, count)
            }
        }
        return readings
    }

    /// With overlapping runs the next extent may begin before this one.
    private func takes(_ first: UInt64, _ count: Int, _ sectorsPerSegment: Int) -> Bool {
        first >= sector && first / UInt64(sectorsPerSegment) == sector / UInt64(sectorsPerSegment)
            && first <= sector + UInt64(sectors + Self.gapSectorsMax)
            && Int(first - sector) + count <= Self.bytesMax / Geometry.sectorBytes
    }

    private mutating func add(_ run: Int, _ number: Int, _ first: UInt64, _ count: Int) {
        chunks.append((run, number))
        // If two extents share sectors, the next may end before the last.
        sectors = max(sectors, Int(first - sector) + count)
    }
}

/// Collects the findings of a check's threads.
private final class ExtentTally: Sendable {
    private let found = Mutex<[ExtentDamage]>([])
    private let read = Atomic<UInt64>(0)

    var damage: [ExtentDamage] { found.withLock { $0 } }
    var bytes: UInt64 { read.load(ordering: .relaxed) }

    func add(_ damage: ExtentDamage) { found.withLock { $0.append(damage) } }
    func add(bytes: UInt64) { read.wrappingAdd(bytes, ordering: .relaxed) }
}
