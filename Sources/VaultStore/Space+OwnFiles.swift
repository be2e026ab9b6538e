import LinuxIO
import VaultFormat

/// A vault of one space has a file for each segment. Before one is first changed it is compared with the catalogue: a
/// file that has another's name, and so another segment's bytes, must not be written over.
extension Space {
    /// The runs that are enough to recognise a segment: any of them may be damaged.
    private static let runsMax = 3

    /// Stops all writing and throws `readOnly` if the file of a segment with some of these sectors turns out to be
    /// another segment's. Each segment is compared once. No lock may be held.
    func requireOwnFiles(_ sector: UInt64, _ count: Int) throws(StoreError) {
        guard grows, count > 0 else { return }
        let perSegment = UInt64(files.sectorsPerSegment)
        for segment in sector / perSegment...(sector + UInt64(count) - 1) / perSegment {
            try requireOwnFile(Int(segment))
        }
    }

    private func requireOwnFile(_ segment: Int) throws(StoreError) {
        guard let firstRuns else { return }
        let (isCompared, others) = lock.withLock {
            (comparedSegments.contains(segment), 0..<sectors.segmentCount)
        }
        if isCompared { return }
        if try firstRuns(sectorRange(segment), Self.runsMax).isEmpty {
            // It may be the file of any other, unless there is nothing in it to lose. To compare a vault of a terabyte
            // takes 65,000 reads.
            if !files.isHole(segment) {
                for other in others where other != segment { try compare(other, firstRuns) }
            }
        } else {
            try compare(segment, firstRuns)
        }
        lock.withLock { _ = comparedSegments.insert(segment) }
    }

    private func compare(
        _ segment: Int, _ firstRuns: (Range<UInt64>, Int) throws(StoreError) -> [CheckedRun]
    ) throws(StoreError) {
        guard !lock.withLock({ comparedSegments.contains(segment) }) else { return }
        let runs = try firstRuns(sectorRange(segment), Self.runsMax).filter { isPossible($0.run) }
        let isOwn = runs.contains { begins($0, inFileOf: segment) }
        if !isOwn, !runs.isEmpty {
            let all = lock.withLock { 0..<sectors.segmentCount }
            // Where none has them, they are damaged.
            if let file = all.first(where: { file in runs.contains { begins($0, inFileOf: file) } }) {
                stopWriting(.segmentsExchanged([segment, file].sorted()))
                throw .readOnly
            }
        }
        // An empty one is compared when it is written to itself.
        if !runs.isEmpty { lock.withLock { _ = comparedSegments.insert(segment) } }
    }

    func sectorRange(_ segment: Int) -> Range<UInt64> {
        let first = UInt64(segment) * UInt64(files.sectorsPerSegment)
        return first..<first + UInt64(files.sectorsPerSegment)
    }

    /// Whether the first extent of a run is in a segment's file, at its offset in its own segment.
    private func begins(_ checked: CheckedRun, inFileOf segment: Int) -> Bool {
        let place = sectorRange(segment).lowerBound + checked.run.sector % UInt64(files.sectorsPerSegment)
        return withUnsafeTemporaryAllocation(byteCount: Geometry.extentHeaderBytes, alignment: 16) { head in
            guard (try? files.read(place, into: head)) != nil,
                let found = openDescriptor(UnsafeRawBufferPointer(head))
            else { return false }
            return checked.roles.contains(found.role)
                && found == descriptor(found.role, checked.content, checked.run, 0)
        }
    }
}
