import Glibc
public import LinuxIO
import VaultFormat

/// Why a backup failed.
public enum BackupError: Error, Sendable, Equatable {
    /// The vault cannot be read.
    case source(VaultError)
    /// The copy cannot be written. It keeps its old state, or has none until the backup is run again.
    case destination(VaultError)
    /// The vault keeps changing while it is read, and no mount on this machine keeps the sectors that the backup needs.
    case changing
    /// Cancelled by `progress`.
    case interrupted
}

/// The result of a backup.
public struct BackupReport: Sendable, Equatable {
    /// Bytes of the vault, all of which were compared.
    public var bytes: UInt64 = 0
    /// Bytes that the copy did not have.
    public var bytesWritten: UInt64 = 0
    /// Segments missing in the vault. The copy keeps its own.
    public var missingSegments = 0
    /// Paths, from the vault's directory, of files among its segments that cannot be segments.
    public var strays: [String] = []
    /// Places that the vault's disk cannot read. The copy keeps its own bytes there.
    public var unreadable: [UnreadablePlace] = []
    /// Places that differ though they cannot, or hold what no vault has: one of the two is damaged. The copy keeps its
    /// own bytes there.
    public var contradicting: [UnreadablePlace] = []
    /// Places of damaged extents and pages, as a check of the vault found them, that were not copied over the copy's.
    public var refused: [UnreadablePlace] = []
}

/// Sectors of a space that a check found damaged.
public struct DamagedSectors: Sendable {
    let space: Int
    /// In order, and without overlaps.
    let ranges: [Range<UInt64>]
    private let sectorsPerSegment: UInt64
    /// The vault, with its lock held.
    let vault: any VaultHost

    init(_ vault: any VaultHost, space: Int, _ ranges: [Range<UInt64>], sectorsPerSegment: UInt64) {
        (self.vault, self.space) = (vault, space)
        self.ranges = RangeSet(ranges).ranges.map { $0 }
        self.sectorsPerSegment = sectorsPerSegment
    }

    /// The parts of a range of bytes of a segment that they overlap, as offsets in the range.
    func parts(of place: SegmentPlace, _ bytes: Range<UInt64>) -> [Range<Int>] {
        guard place.space == space else { return [] }
        let start = UInt64(place.number) * sectorsPerSegment * UInt64(Geometry.sectorBytes) + bytes.lowerBound
        let end = start + UInt64(bytes.count)
        let sector = UInt64(Geometry.sectorBytes)
        // The first that ends behind the beginning.
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].upperBound * sector > start { high = middle } else { low = middle + 1 }
        }
        return ranges[low...].prefix { $0.lowerBound * sector < end }.map { range in
            let part = (range.lowerBound * sector..<range.upperBound * sector).clamped(to: start..<end)
            return Int(part.lowerBound - start)..<Int(part.upperBound - start)
        }
    }
}

extension UnlockedSpace {
    /// The sectors that a check of the space found damaged, for a backup.
    public func damaged(_ ranges: [Range<UInt64>]) -> DamagedSectors {
        DamagedSectors(
            vault, space: index, ranges, sectorsPerSegment: segmentBytes / UInt64(Geometry.sectorBytes))
    }
}

extension Vault {
    /// Makes the vault at `destination` a copy of the newest durable state of the one at `path`, or of a newer state.
    /// Needs no password, and works on a mounted vault. Reads all of both, and writes the differences.
    ///
    /// If it is killed, the copy has its old state or its new one; without an old one, it is no vault until the backup
    /// is run again. Takes the copy's lock but not the vault's.
    /// - Parameters:
    ///   - damaged: sectors that a check found damaged: a copy that exists keeps its own bytes there.
    ///   - progress: called with the bytes compared and the total, every MiB. Its error ends the backup.
    public static func backup(
        _ path: String, to destination: String, damaged: DamagedSectors? = nil,
        calls: any FileSystemCalls = LinuxCalls.shared,
        progress: (_ done: UInt64, _ total: UInt64) throws(BackupError) -> Void
    ) throws(BackupError) -> BackupReport {
        let source = try onSource { () throws(VaultError) in
            try CopySource(path, held: damaged?.vault, calls: calls)
        }
        let target = try onDestination { () throws(VaultError) in
            try CopyTarget(destination, of: source.header, calls: calls)
        }
        // A backup reads all spaces, and may be the only command that ever did.
        defer {
            for vault in [source.vault, target.vault] {
                vault.dropPageCache(source.header.layout, ofKilled: false)
            }
        }
        let run = BackupRun(source, target, damaged)
        do throws(BackupError) {
            let report = try run.run(progress)
            target.vault.blurTraces(source.header.layout)
            return report
        } catch {
            // The log is not valid yet; if this fails, the next backup removes it.
            try? target.giveUp()
            throw error
        }
    }
}

func onSource<R>(_ body: () throws(VaultError) -> R) throws(BackupError) -> R {
    do throws(VaultError) { return try body() } catch { throw .source(error) }
}

func onDestination<R>(_ body: () throws(VaultError) -> R) throws(BackupError) -> R {
    do throws(VaultError) { return try body() } catch { throw .destination(error) }
}

/// One backup, pass by pass.
private final class BackupRun {
    private let source: CopySource
    private let target: CopyTarget
    private var layout: SegmentLayout { source.header.layout }
    private let block = UnsafeMutableRawBufferPointer.allocate(
        byteCount: CopyLog.dataBytesMax, alignment: Geometry.pageBytes)
    private let damaged: DamagedSectors?
    private var report = BackupReport()
    /// Spaces whose roots the copy has already, where nothing can have changed.
    private var unchangedSpaces: Set<Int> = []
    private var done: UInt64 = 0

    /// A failed pass costs reading the whole vault once more.
    private static let passesMax = 3

    init(_ source: CopySource, _ target: CopyTarget, _ damaged: DamagedSectors?) {
        self.source = source
        self.target = target
        // A first copy has nothing better.
        self.damaged = target.isWhole ? damaged : nil
    }

    deinit { block.deallocate() }

    func run(_ progress: (UInt64, UInt64) throws(BackupError) -> Void) throws(BackupError) -> BackupReport {
        for _ in 0..<Self.passesMax {
            let heads = try onSource { () throws(VaultError) in try source.begin() }
            try compareAll(heads, progress)
            guard try onSource({ () throws(VaultError) in try source.isUnchanged(since: heads) }) else {
                try onDestination { () throws(VaultError) in try target.beginAgain() }
                continue
            }
            try onDestination { () throws(VaultError) in try target.finish(heads) }
            report.bytesWritten = target.bytesWritten
            return report
        }
        throw .changing
    }

    /// Copies everything except the heads.
    private func compareAll(
        _ heads: RootSnapshot, _ progress: (UInt64, UInt64) throws(BackupError) -> Void
    ) throws(BackupError) {
        report.unreadable = heads.unreadablePlaces
        (report.contradicting, report.refused) = ([], [])
        // A mount may be writing what its next root will lead to.
        unchangedSpaces = source.isMounted ? [] : target.spaces(withRootsOf: heads)
        let found = try onSource { () throws(VaultError) in try source.segments() }
        report.missingSegments = found.missing
        report.strays = found.strays
        report.bytes = found.segments.reduce(UInt64(heads.header.count)) { $0 + $1.bytes }
        done = 0
        if !target.isWhole { try checkRoom(found.segments) }
        for (place, bytes) in found.segments { try compare(place, bytes, progress) }
    }

    /// Throws `noRoom` at once if a first backup cannot be finished.
    private func checkRoom(_ segments: [(place: SegmentPlace, bytes: UInt64)]) throws(BackupError) {
        let wanted = segments.reduce(0) { sum, segment in
            sum + segment.bytes - min(segment.bytes, target.bytes(of: segment.place))
        }
        try onDestination { () throws(VaultError) in
            if try target.hostAvailable() < wanted { throw .noRoom }
        }
    }

    private func compare(
        _ place: SegmentPlace, _ bytes: UInt64, _ progress: (UInt64, UInt64) throws(BackupError) -> Void
    ) throws(BackupError) {
        let segment = try onSource { () throws(VaultError) in try source.open(place) }
        let end = try onDestination { () throws(VaultError) in try target.begin(place) }
        var offset = min(place.rootBytes, bytes)
        done += offset
        while offset < bytes {
            try progress(done, report.bytes)
            let part = block.slice(0, Int(min(bytes - offset, UInt64(block.count))))
            let unreadable = try onSource { () throws(VaultError) in
                try read(segment, place, offset, into: part)
            }
            let refused = damaged?.parts(of: place, offset..<offset + UInt64(part.count)) ?? []
            report.refused += places(refused, place, offset)
            let kept = try onDestination { () throws(VaultError) in
                for range in unreadable + refused {
                    try target.keep(
                        offset + UInt64(range.lowerBound), part.slice(range.lowerBound, range.count))
                }
                return try target.update(
                    offset, UnsafeRawBufferPointer(part), end: end,
                    trust: SourceTrust(
                        differs: !unchangedSpaces.contains(place.space), hasZeros: !layout.isShared))
            }
            report.contradicting += places(kept, place, offset)
            offset += UInt64(part.count)
            done += UInt64(part.count)
        }
        try onDestination { () throws(VaultError) in try target.endSegment() }
        if layout.isShared {
            segment.forget(0..<bytes)
        }
    }

    private func places(_ ranges: [Range<Int>], _ place: SegmentPlace, _ offset: UInt64) -> [UnreadablePlace]
    {
        ranges.map { range in
            UnreadablePlace(
                path: source.vault.name(of: place, layout),
                offset: layout.start(place) + offset + UInt64(range.lowerBound),
                bytes: UInt64(range.count))
        }
    }

    /// Reads a part of a segment. Returns its unreadable ranges.
    private func read(
        _ segment: any PartBytes, _ place: SegmentPlace, _ offset: UInt64,
        into bytes: UnsafeMutableRawBufferPointer
    ) throws(VaultError) -> [Range<Int>] {
        let path = source.vault.name(of: place, layout)
        do throws(Errno) {
            let (count, unreadable) = try segment.readAround(bytes, at: offset)
            // A segment that became shorter ends the backup.
            guard count == bytes.count else { throw Errno.inputOutput }
            report.unreadable += places(unreadable, place, offset)
            return unreadable
        } catch { throw .system(error, "cannot read \(path)") }
    }
}
