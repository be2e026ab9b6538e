public import LinuxIO
import Synchronization
public import VaultFormat

/// A run of extents that is to be checked, and whose content it is.
public struct CheckedRun: Sendable, Hashable {
    public var content: UInt64
    /// Whether it is an identity record: these have numbers of their own.
    public var isRecord: Bool
    public var run: ExtentRun

    public init(content: UInt64, isRecord: Bool = false, run: ExtentRun) {
        self.content = content
        self.isRecord = isRecord
        self.run = run
    }

    /// What its extents can be.
    var roles: [ExtentRole] { isRecord ? [.identity] : [.content, .thumbnail] }
}

/// What is wrong with an extent.
public enum ExtentFault: Sendable, Hashable {
    /// Its bytes are not what was sealed.
    case unauthentic
    /// Its segment's file is missing, or ends before it.
    case segment(SegmentFault)
    /// The disk does not give its bytes.
    case unreadable(Errno)
    /// The bytes are whole, but the descriptor in front of them is not: it is needed where the catalogue is lost.
    case descriptor(ExtentRole)
    /// The catalogue says that it lies where nothing can.
    case impossible
}

/// Some chunks of a content, one behind the other, with the same fault.
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
}

/// Reading and opening extents in the order in which they lie, on all cores.
extension Space {
    /// Opens every chunk of `runs`, and its descriptor.
    ///
    /// - Parameter proceed: told on the calling thread how many bytes were read so far; where it answers no, it ends
    ///   early.
    public func checkExtents(
        _ runs: [CheckedRun], _ proceed: (_ bytes: UInt64) -> Bool = { _ in true }
    ) -> [ExtentDamage] {
        var (possible, impossible) = ([CheckedRun](), [ExtentDamage]())
        for checked in runs {
            if isPossible(checked.run) {
                possible.append(checked)
            } else {
                impossible.append(.impossible(checked))
            }
        }
        possible.sort { $0.run.sector < $1.run.sector }
        let readings = Reading.plan(possible, sectorsPerSegment: files.sectorsPerSegment)
        let tally = ExtentTally()
        let runList = possible
        let buffers = BufferPool(bufferBytes: Reading.bytesMax, keptMax: coreCount)
        onAllCores(readings.count) { [self] number in
            buffers.withBuffer { check(readings[number], runList, $0, tally) }
        } ownTurn: {
            proceed(tally.bytes)
        }
        return Self.joined(tally.damage + impossible)
    }

    /// Whether a run can lie where it says, so that its sectors can be counted and read.
    public func isPossible(_ run: ExtentRun) -> Bool {
        let chunk = UInt64(Geometry.chunkBytes)
        let perSegment = UInt64(files.sectorsPerSegment)
        let sectorsMax = lock.withLock { UInt64(sectors.segmentCount) } * perSegment
        guard run.length > 0, run.length / chunk < sectorsMax, run.sector < sectorsMax,
            run.length <= chunk || run.offset % chunk == 0, run.offset < Geometry.numberMax,
            // Only one chunk in 257 ends where a segment may end: a run reaches into two at most.
            UInt64(run.sectorCount) <= 2 * perSegment
        else { return false }
        let end = run.sector + UInt64(run.sectorCount)
        let boundary = (run.sector / perSegment + 1) * perSegment
        if end <= boundary { return true }
        // Asked whenever a file is opened: so not of every chunk. None lies in two segments.
        return end <= boundary + perSegment && boundary < sectorsMax
            && (boundary - run.sector) % UInt64(Geometry.sectorsPerChunk) == 0
    }

    private func check(
        _ reading: Reading, _ runs: [CheckedRun], _ buffer: UnsafeMutableRawBufferPointer,
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

    /// Whether descriptor and payload are those of the run. The extent is opened in place.
    private func isWhole(_ checked: CheckedRun, _ number: Int, _ extent: UnsafeMutableRawBufferPointer)
        -> Bool
    {
        guard let found = openDescriptor(UnsafeRawBufferPointer(extent)),
            checked.roles.contains(found.role),
            found == descriptor(found.role, checked.content, checked.run, number)
        else { return false }
        return openExtent(found, extent)
    }

    /// What is wrong with an extent that is not whole; nil where it is after all.
    private func findFault(
        _ checked: CheckedRun, _ number: Int, at place: UInt64, _ extent: UnsafeMutableRawBufferPointer
    ) -> ExtentFault? {
        let sectors = (extent.count + Geometry.sectorBytes - 1) / Geometry.sectorBytes
        if let fault = segmentFault(place, sectors) { return .segment(fault) }
        for role in checked.roles {
            do throws(StoreError) { try files.read(place, into: extent) } catch {
                if case .io(let number) = error { return .unreadable(number) }
                return .unauthentic
            }
            let wanted = descriptor(role, checked.content, checked.run, number)
            let isNamed = openDescriptor(UnsafeRawBufferPointer(extent)) == wanted
            if openExtent(wanted, extent) { return isNamed ? nil : .descriptor(role) }
        }
        return .unauthentic
    }

    /// Puts damage of one kind that lies together into one.
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
    fileprivate static func impossible(_ checked: CheckedRun) -> ExtentDamage {
        ExtentDamage(
            content: checked.content, isRecord: checked.isRecord, offset: checked.run.offset,
            length: checked.run.length,
            sector: checked.run.sector, fault: .impossible)
    }
}

extension ExtentFault {
    /// Whether it is mended extent by extent.
    fileprivate var isOfOneExtent: Bool {
        if case .descriptor = self { return true }
        return false
    }
}

/// Neighbouring extents that are read by one call.
private struct Reading {
    /// First sector.
    var sector: UInt64
    var sectors: Int
    /// Chunks of runs, by the run's place in the list.
    var chunks: [(run: Int, number: Int)]

    static let bytesMax = 8 * Geometry.sectorsPerChunk * Geometry.sectorBytes
    /// Unused sectors that are read along rather than left out.
    private static let gapSectorsMax = 64

    /// - Parameter runs: by sector.
    static func plan(_ runs: [CheckedRun], sectorsPerSegment: Int) -> [Reading] {
        var readings: [Reading] = []
        for (index, checked) in runs.enumerated() {
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

    private func takes(_ first: UInt64, _ count: Int, _ sectorsPerSegment: Int) -> Bool {
        first / UInt64(sectorsPerSegment) == sector / UInt64(sectorsPerSegment)
            && first <= sector + UInt64(sectors + Self.gapSectorsMax)
            && Int(first - sector) + count <= Self.bytesMax / Geometry.sectorBytes
    }

    private mutating func add(_ run: Int, _ number: Int, _ first: UInt64, _ count: Int) {
        chunks.append((run, number))
        // Where two extents share sectors, the next may end before the last.
        sectors = max(sectors, Int(first - sector) + count)
    }
}

/// Where the threads of a check bring what they find.
private final class ExtentTally: Sendable {
    private let found = Mutex<[ExtentDamage]>([])
    private let read = Atomic<UInt64>(0)

    var damage: [ExtentDamage] { found.withLock { $0 } }
    var bytes: UInt64 { read.load(ordering: .relaxed) }

    func add(_ damage: ExtentDamage) { found.withLock { $0.append(damage) } }
    func add(bytes: UInt64) { read.wrappingAdd(bytes, ordering: .relaxed) }
}
