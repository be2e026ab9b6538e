import LinuxIO
import Synchronization
public import VaultFormat

/// Reads and opens extents in sector order, on all cores, and mends descriptors.
public struct ExtentCheck: Sendable {
    private let disk: SpaceDisk
    private let codec: ExtentCodec
    private let segments: SegmentRoles
    private let buffers: BufferPool
    private let isReadOnly: Bool

    public init(of space: Space) {
        (disk, codec, segments) = (space.parts.disk, space.parts.extentCodec, space.segments)
        (buffers, isReadOnly) = (space.parts.buffers, space.isReadOnly)
    }

    /// Opens every chunk of `runs`, and its descriptor.
    ///
    /// - Parameter proceed: called on the calling thread with the bytes read so far; returns false to end the check
    ///   early.
    public func check(
        _ runs: [CheckedRun], _ proceed: (_ bytes: UInt64) -> Bool = { _ in true }
    ) -> [ExtentDamage] {
        var (possible, others) = ([CheckedRun](), [ExtentDamage]())
        for checked in runs {
            if segments.isPossible(checked.run) {
                possible.append(checked)
            } else {
                others.append(ExtentDamage(checked, checked.run.isLost ? .lost : .impossible))
            }
        }
        possible.sort { $0.run.sector < $1.run.sector }
        let tally = ExtentTally()
        let readings = BufferPool(bufferBytes: Reading.bytesMax, keptMax: coreCount)
        var isWanted = true
        for batch in Self.batches(possible) where isWanted {
            let plan = Reading.plan(batch, sectorsPerSegment: disk.sectorsPerSegment)
            onAllCores(plan.count) { [self] number in
                readings.withBuffer { check(plan[number], batch, $0, tally) }
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

    /// Whether the first extent at a run's place has another descriptor, so that the run's cannot be there.
    public func holdsAnother(_ run: ExtentRun, _ role: ExtentRole, content: UInt64) -> Bool {
        buffers.withBuffer { buffer in
            let sector = buffer.slice(0, Geometry.sectorBytes)
            guard segments.isPossible(run), (try? disk.read(run.sector, into: sector)) != nil,
                let found = codec.openDescriptor(UnsafeRawBufferPointer(sector))
            else { return false }
            return found != Descriptor(role, content, run, 0)
        }
    }

    /// The extents at a run's sectors that open as extents of `content` and of the run's commit, each as its own run.
    /// Their offsets and lengths come from their descriptors, not from the run.
    public func openingExtents(of run: ExtentRun, _ role: ExtentRole, content: UInt64) -> [ExtentRun] {
        let perSegment = UInt64(disk.sectorsPerSegment)
        let sectorsMax = segments.sectorCount
        guard run.length > 0, run.sector < sectorsMax else { return [] }
        var run = run
        run.offset = min(run.offset, Geometry.numberMax)
        // No run spans more than two segments.
        let room = min(sectorsMax - run.sector, 2 * perSegment) / UInt64(Geometry.sectorsPerChunk) + 1
        return (0..<min(run.chunkCount, Int(room))).compactMap { number in
            let sector = run.sector(ofChunk: number)
            guard sector < sectorsMax, !segments.holdsPages(atSector: sector) else { return nil }
            return openingExtent(Descriptor(role, content, run, number), at: sector)
        }
    }

    /// - Parameter meant: the extent's descriptor by the row; its real offset and length may differ.
    private func openingExtent(_ meant: Descriptor, at sector: UInt64) -> ExtentRun? {
        let perSegment = UInt64(disk.sectorsPerSegment)
        let room = min(Int(perSegment - sector % perSegment), Geometry.sectorsPerChunk)
        return buffers.withBuffer { buffer in
            let stored = buffer.slice(0, room * Geometry.sectorBytes)
            guard (try? disk.read(sector, into: stored)) != nil else { return nil }
            // If the descriptor opens, its offset and length are used.
            var wanted = meant
            if let found = codec.openDescriptor(UnsafeRawBufferPointer(stored)) {
                (wanted.offset, wanted.length) = (found.offset, found.length)
                guard wanted == found else { return nil }
            }
            let length = Int(wanted.length) + Geometry.extentOverheadBytes
            guard length <= stored.count, codec.open(wanted, stored.slice(0, length)) else { return nil }
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
        let isRead = (try? disk.read(reading.sector, into: bytes)) != nil
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
        guard let found = codec.openDescriptor(UnsafeRawBufferPointer(extent)),
            checked.roles.contains(found.role),
            found == Descriptor(found.role, checked.content, checked.run, number)
        else { return false }
        return codec.open(found, extent)
    }

    /// The fault of an extent that did not open; nil if it opens now.
    private func findFault(
        _ checked: CheckedRun, _ number: Int, at place: UInt64, _ extent: UnsafeMutableRawBufferPointer
    ) -> ExtentFault? {
        let sectors = (extent.count + Geometry.sectorBytes - 1) / Geometry.sectorBytes
        var others = 0
        if let fault = disk.fault(at: place, sectors) { return .segment(fault) }
        for role in checked.roles {
            do throws(StoreError) { try disk.read(place, into: extent) } catch {
                if case .io(let number) = error { return .unreadable(number) }
                return .unauthentic
            }
            let wanted = Descriptor(role, checked.content, checked.run, number)
            let found = codec.openDescriptor(UnsafeRawBufferPointer(extent))
            if codec.open(wanted, extent) { return found == wanted ? nil : .descriptor(role) }
            if let found, found != wanted { others += 1 }
        }
        return others == checked.roles.count ? .another : .unauthentic
    }

    /// Rewrites the damaged descriptor of an extent whose payload opens, with the bytes that were sealed there. Returns
    /// false if that is impossible.
    ///
    /// The extent is read once, and the descriptor is sealed under the very nonce that opened the payload: storage that
    /// returns other bytes on a second read cannot choose the nonce.
    public func mendDescriptor(of checked: CheckedRun, at sector: UInt64, role: ExtentRole) -> Bool {
        guard !isReadOnly, segments.isPossible(checked.run),
            let number = (0..<checked.run.chunkCount).first(where: {
                checked.run.sector(ofChunk: $0) == sector
            })
        else { return false }
        let descriptor = Descriptor(role, checked.content, checked.run, number)
        let length = Int(descriptor.length) + Geometry.extentOverheadBytes
        return buffers.withBuffer { buffer in
            let extent = buffer.slice(0, length)
            do throws(StoreError) {
                try disk.read(sector, into: extent)
                // Opened in place: nonce and descriptor stay as they were read.
                guard codec.open(descriptor, extent) else { return false }
                let head = extent.slice(0, Geometry.extentHeaderBytes)
                // The same key, nonce and plaintext give the same bytes again.
                codec.sealDescriptor(descriptor, into: head)
                try disk.write(sector, UnsafeRawBufferPointer(head))
                try disk.read(sector, into: extent)
                return codec.openDescriptor(UnsafeRawBufferPointer(extent)) == descriptor
                    && codec.open(descriptor, extent)
            } catch {
                return false
            }
        }
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
