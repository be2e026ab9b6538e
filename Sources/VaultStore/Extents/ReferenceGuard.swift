import LinuxIO
import VaultFormat

/// The rows of the catalogue above a space, by which sectors are recognised before they are written.
public protocol ExtentRows: AnyObject, Sendable {
    /// Returns whether the catalogue refers to sectors of a range, so that nothing may be written there.
    func isReferenced(_ sectors: Range<UInt64>) throws(StoreError) -> Bool
    /// Returns the first runs, at most so many, that the catalogue has in a range of sectors.
    func firstRuns(in sectors: Range<UInt64>, limit: Int) throws(StoreError) -> [CheckedRun]
}

/// Keeps writes away from photos: from sectors that the catalogue refers to although their bits are clear, and in a
/// vault of one space, which has a file for each segment, from a file that has another's name, and so another segment's
/// bytes. No lock may be held.
final class ReferenceGuard: @unchecked Sendable {
    private let lock: Lock
    private let disk: SpaceDisk
    private let gate: WriteGate
    private let segments: SegmentRoles
    private let sectors: SectorRoom
    private let next: NextCommit
    private let extents: ExtentCodec
    private let grows: Bool
    /// Segments whose files are known to be their own. Under the space's lock.
    private var compared: Set<Int> = []
    /// Nil in a space without a catalogue. Set before the first write.
    weak var rows: (any ExtentRows)?

    /// The runs that are enough to recognise a segment: any of them may be damaged.
    private static let runsMax = 3

    init(
        _ disk: SpaceDisk, _ gate: WriteGate, _ segments: SegmentRoles, _ sectors: SectorRoom,
        _ next: NextCommit, _ extents: ExtentCodec, grows: Bool, lock: Lock
    ) {
        (self.disk, self.gate, self.segments, self.sectors) = (disk, gate, segments, sectors)
        (self.next, self.extents, self.grows, self.lock) = (next, extents, grows, lock)
    }

    /// Throws `damaged` if the catalogue refers to any of these just reserved sectors: then they are marked as in use,
    /// and the write fails instead of overwriting a photo. If this throws, nothing stays reserved.
    func requireUnnamed(_ sector: UInt64, _ count: Int) throws(StoreError) {
        guard let rows else { return }
        do throws(StoreError) {
            try requireOwnFiles(sector, count)
            guard try rows.isReferenced(sector..<sector + UInt64(count)) else { return }
        } catch {
            lock.withLock { sectors.abandon(sector, count) }
            throw error
        }
        lock.withLock {
            sectors.adopt(sector, count)
            next.noteChange()
        }
        throw .damaged
    }

    /// Stops all writing and throws `readOnly` if the file of a segment with some of these sectors turns out to be
    /// another segment's. Each segment is compared once.
    func requireOwnFiles(_ sector: UInt64, _ count: Int) throws(StoreError) {
        guard grows, count > 0 else { return }
        let perSegment = UInt64(disk.sectorsPerSegment)
        for segment in sector / perSegment...(sector + UInt64(count) - 1) / perSegment {
            try requireOwnFile(Int(segment))
        }
    }

    private func requireOwnFile(_ segment: Int) throws(StoreError) {
        guard let rows, !isCompared(segment), !segments.isCreated(segment) else { return }
        let others = 0..<segments.count
        if try rows.firstRuns(in: disk.sectors(of: segment), limit: Self.runsMax).isEmpty {
            // It may be the file of any other, unless there is nothing in it to lose. To compare a vault of a terabyte
            // takes 65,000 reads.
            if !disk.isHole(segment) {
                for other in others where other != segment { try compare(other, rows) }
            }
        } else {
            try compare(segment, rows)
        }
        lock.withLock { _ = compared.insert(segment) }
    }

    private func isCompared(_ segment: Int) -> Bool { lock.withLock { compared.contains(segment) } }

    private func compare(_ segment: Int, _ rows: any ExtentRows) throws(StoreError) {
        if isCompared(segment) { return }
        let runs = try rows.firstRuns(in: disk.sectors(of: segment), limit: Self.runsMax)
            .filter { segments.isPossible($0.run) }
        let isOwn = runs.contains { begins($0, inFileOf: segment) }
        if !isOwn, !runs.isEmpty {
            // Where none has them, they are damaged.
            let file = (0..<segments.count).first { file in
                runs.contains { begins($0, inFileOf: file) }
            }
            if let file {
                gate.close(for: .segmentsExchanged([segment, file].sorted()))
                throw .readOnly
            }
        }
        // An empty one is compared when it is written to itself.
        if !runs.isEmpty { lock.withLock { _ = compared.insert(segment) } }
    }

    /// Whether the first extent of a run is in a segment's file, at its offset in its own segment.
    private func begins(_ checked: CheckedRun, inFileOf segment: Int) -> Bool {
        let place =
            disk.sectors(of: segment).lowerBound + checked.run.sector % UInt64(disk.sectorsPerSegment)
        return withUnsafeTemporaryAllocation(byteCount: Geometry.extentHeaderBytes, alignment: 16) { head in
            guard (try? disk.read(place, into: head)) != nil,
                let found = extents.openDescriptor(UnsafeRawBufferPointer(head))
            else { return false }
            return checked.roles.contains(found.role)
                && found == Descriptor(found.role, checked.content, checked.run, 0)
        }
    }
}
