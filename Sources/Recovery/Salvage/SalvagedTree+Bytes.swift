import FileRequests
import PhotoLibrary
import VaultCatalogue
import VaultFormat
import VaultStore

/// The rows of contents.
extension SalvagedTree {
    /// Writes the rows of a content. Lost bytes keep their former sectors, or get none: reading them is an error, and
    /// never returns zeros or later data.
    mutating func addRows(_ bytes: FoundBytes, of content: UInt64) throws(FileError) {
        for piece in bytes.pieces {
            if !piece.isLost {
                try addRow(piece.run, of: content)
                continue
            }
            for part in parts(of: piece.run) {
                if try takesPlace(part, of: content) {
                    try addRow(part, of: content)
                    continue
                }
                for run in ExtentRun.lost(part.offset..<part.end) {
                    try sql(tree.tables.insert(run, of: content))
                }
            }
        }
    }

    /// The parts of a run that lie in one segment each.
    private func parts(of run: ExtentRun) -> [ExtentRun] {
        guard run.sector < Geometry.lostSector else { return [run] }
        let perSegment = UInt64(salvage.space.sectors.perSegment)
        if run.sector / perSegment == (run.endSector - 1) / perSegment { return [run] }
        var parts: [ExtentRun] = []
        for chunk in 0..<run.chunkCount {
            let start = run.offset + UInt64(chunk) * Chunk.bytes
            let part = run.part(from: start, to: start + Chunk.bytes)
            if let last = parts.last, last.sector / perSegment == part.sector / perSegment,
                last.isContinued(by: part)
            {
                parts[parts.count - 1].length += part.length
            } else {
                parts.append(part)
            }
        }
        return parts
    }

    /// Allocates the sectors of a lost extent. False if it has none, or others use them. A content and its snapshots
    /// have the same.
    private mutating func takesPlace(_ run: ExtentRun, of content: UInt64) throws(FileError) -> Bool {
        guard run.sector < Geometry.lostSector else { return false }
        let source = SnapshotID.source(content)
        if let known = lostPlaces[run.sector] { return known.source == source && known.run == run }
        guard try stored(salvage.state.allocate(run)) else { return false }
        lostPlaces[run.sector] = (source, run)
        return true
    }

    private mutating func addRow(_ run: ExtentRun, of content: UInt64) throws(FileError) {
        try sql(tree.tables.insert(run, of: content))
        used.append(run.sector..<run.endSector)
    }
}
