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
            for row in try settled(piece.run, of: content) {
                if !row.isLost {
                    try addRow(row.run, of: content)
                    continue
                }
                for run in ExtentRun.lost(row.run.offset..<row.run.end) {
                    try tree.tables.extents.insert(run, of: content)
                }
            }
        }
    }

    /// The pieces of a lost run: chunks that keep their sectors, and chunks without any. Each chunk for itself, because
    /// a snapshot has some chunks of its source.
    private mutating func settled(
        _ run: ExtentRun, of content: UInt64
    ) throws(FileError) -> [ContentPiece] {
        guard run.sector < Geometry.lostSector else { return [ContentPiece(run: run, isLost: true)] }
        var rows = FoundBytes(size: 0)
        for number in 0..<run.chunkCount {
            let start = run.offset + UInt64(number) * Chunk.bytes
            let chunk = run.part(from: start, to: start + Chunk.bytes)
            rows.append(ContentPiece(run: chunk, isLost: try !takesPlace(chunk, of: content)))
        }
        return rows.pieces
    }

    /// Allocates the sectors of a lost chunk. False if others use them. A content and its snapshots have the same.
    private mutating func takesPlace(_ chunk: ExtentRun, of content: UInt64) throws(FileError) -> Bool {
        let source = SnapshotID.source(content)
        if let known = lostPlaces[chunk.sector] { return known.source == source && known.run == chunk }
        guard try stored(salvage.state.allocate(chunk)) else { return false }
        lostPlaces[chunk.sector] = (source, chunk)
        return true
    }

    private mutating func addRow(_ run: ExtentRun, of content: UInt64) throws(FileError) {
        try tree.tables.extents.insert(run, of: content)
        used.append(run.sector..<run.endSector)
    }
}
