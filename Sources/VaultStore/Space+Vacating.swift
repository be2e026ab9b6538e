import LinuxIO
public import VaultFormat

/// Emptying segments, so that the catalogue can have them: what they hold is sealed anew elsewhere.
///
/// The pages of a catalogue take whole segments. In a space of fixed size where content was removed here and there,
/// none is free, however much room there is.
extension Space {
    /// Whether a pair of segments more would give the catalogue slots.
    public var mayVacate: Bool {
        lock.withLock { !grows && mayGrowIntoPair }
    }

    /// Whether two segments are free, so that the catalogue can have them.
    public var hasVacantPair: Bool { lock.withLock { Array(unusedSegments.prefix(2)).count == 2 } }

    /// Chooses the segment that holds least, and keeps new content away from it until `endVacating`. Returns its
    /// sectors; nil if none is left whose content has room elsewhere.
    public func beginVacating() -> Range<UInt64>? {
        lock.withLock {
            let perSegment = UInt64(files.sectorsPerSegment)
            // Nothing is moved into one that is free.
            vacating.formUnion(unusedSegments)
            updateExcluded()
            let candidate = (0..<sectors.segmentCount)
                .filter {
                    !sectors.excluded.contains($0) && !unvacatable.contains($0) && sectors.isQuiet($0)
                        && sectors.usedCounts[$0] > 0
                }
                .min { sectors.usedCounts[$0] < sectors.usedCounts[$1] }
            guard let candidate else { return nil }
            let used = UInt64(sectors.usedCounts[candidate])
            let elsewhere = freeSectors - min(freeSectors, perSegment - used)
            // Pieces take some more.
            guard elsewhere >= used + used / 8 + systemReserveSectors else { return nil }
            vacating.insert(candidate)
            updateExcluded()
            return sectorRange(candidate)
        }
    }

    /// Sectors in use in a segment that is being emptied.
    public func usedSectors(in vacated: Range<UInt64>) -> Int {
        lock.withLock { Int(sectors.usedCounts[segment(of: vacated)]) }
    }

    /// Notes that something in a segment cannot be moved: it is not chosen again.
    public func noteUnvacatable(_ sectors: Range<UInt64>) {
        lock.withLock { _ = unvacatable.insert(segment(of: sectors)) }
    }

    /// Gives the catalogue two segments that are free; false if there are none.
    public func growIntoVacantPair() -> Bool {
        lock.withLock { mayGrowIntoPair && (try? addSlots()) != nil }
    }

    /// Allows content in all segments that are left.
    public func endVacating() {
        lock.withLock {
            vacating = []
            updateExcluded()
        }
    }

    private func segment(of sectors: Range<UInt64>) -> Int {
        Int(sectors.lowerBound / UInt64(files.sectorsPerSegment))
    }

    /// Seals the bytes of a run anew in other sectors. The runs are reserved, as by `write`; their rows take the place
    /// of the old one. If this throws, nothing stays reserved.
    public func sealElsewhere(_ run: ExtentRun, of content: UInt64) throws(StoreError) -> [ExtentRun] {
        try requireWritable()
        var runs: [ExtentRun] = []
        do throws(StoreError) {
            try chunkBuffers.withBuffer { (buffer) throws(StoreError) in
                for chunk in 0..<run.chunkCount {
                    let (role, bytes) = try readAnyRole(content, run, chunk, into: buffer)
                    let offset = run.offset + UInt64(chunk * Geometry.chunkBytes)
                    let near = runs.last?.endSector
                    runs += try writeOnce(role, content, offset, bytes, near, .user, .anywhere)
                }
            }
        } catch {
            abandon(runs)
            throw error
        }
        return ExtentRun.joined(runs)
    }

    /// Reads a chunk of a file or of a picture: a row does not tell of which.
    private func readAnyRole(
        _ content: UInt64, _ run: ExtentRun, _ chunk: Int, into buffer: UnsafeMutableRawBufferPointer
    ) throws(StoreError) -> (ExtentRole, UnsafeRawBufferPointer) {
        for role in CheckedRun(content: content, run: run).roles {
            do throws(StoreError) {
                return (role, try read(role: role, content: content, run: run, chunk: chunk, into: buffer))
            } catch {
                guard error == .damaged else { throw error }
            }
        }
        throw .damaged
    }
}
