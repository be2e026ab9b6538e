import CatalogueRows
import PhotoLibrary
import VaultCatalogue
package import VaultFormat

/// A part of a content: authentic or lost.
package struct ContentPiece {
    package var run: ExtentRun
    package var isLost = false
}

/// The bytes of a file, as far as they can be recovered.
package struct FoundBytes {
    /// By offset.
    package var pieces: [ContentPiece] = []
    package var size: UInt64
    /// Whether the file's record names other bytes, which are lost. No record proves that these belong together.
    package var isGuess = false

    package var allocated: UInt64 { pieces.reduce(0) { $0 + $1.run.length } }
    package var lostBytes: UInt64 { pieces.reduce(0) { $0 + ($1.isLost ? $1.run.length : 0) } }
    /// Whether bytes were stored, and all of them are lost.
    package var isGone: Bool { !pieces.isEmpty && lostBytes == allocated }
    /// The runs that authenticate.
    package var stored: [ExtentRun] { pieces.filter { !$0.isLost }.map(\.run) }

    /// Makes lost bytes not come back where they were.
    package mutating func forgetPlaces() {
        for index in pieces.indices where pieces[index].isLost { pieces[index].run.sector = .max }
    }

    /// Adds a chunk or a part of one, to the last run if it continues that.
    package mutating func append(_ piece: ContentPiece) {
        if let last = pieces.last, last.isLost == piece.isLost, last.run.isContinued(by: piece.run) {
            pieces[pieces.count - 1].run.length += piece.run.length
        } else {
            pieces.append(piece)
        }
    }
}

/// The extents that were found, by sector and by content.
package struct FoundContents {
    /// By sector.
    private let runs: [FoundRun]
    /// Indexes of `runs`, by content, then offset.
    private let order: [Int32]
    private let damagedEnds: [UInt64: UInt64]
    /// The most bytes that a record's runs may have.
    private let storedBytesMax: UInt64
    /// The rest of a longer gap is a hole. Limited because each run of lost bytes takes a row.
    private static let lostBytesMax: UInt64 = 1 << 50

    package init(_ runs: [FoundRun], damagedEnds: [UInt64: UInt64], storedBytesMax: UInt64) {
        self.runs = runs
        self.damagedEnds = damagedEnds
        self.storedBytesMax = storedBytesMax
        order = runs.indices.map(Int32.init).sorted {
            let (first, second) = (runs[Int($0)], runs[Int($1)])
            return (first.content, first.run.offset) < (second.content, second.run.offset)
        }
    }

    /// The numbers of all contents, ascending.
    package var numbers: [UInt64] {
        var numbers: [UInt64] = []
        for index in order {
            let content = runs[Int(index)].content
            if numbers.last != content { numbers.append(content) }
        }
        return numbers
    }

    /// Returns the bytes of a record as of its generation; or, if some of these are lost, the bytes that were written
    /// since, if they have no gap and are not fewer.
    package func bytes(of recoveredInode: Salvage.RecoveredInode) -> FoundBytes {
        let (record, generation) = (recoveredInode.record, recoveredInode.generation)
        let row = record.row
        if row.flags.contains(.foundWithoutRecord) {
            // More of it than before may be there again; its size was a guess.
            if SnapshotID.isSnapshot(row.content) { return bytes(ofState: record) }
            let newest = newestBytes(of: row.content)
            return newest.size >= row.size ? newest : newestBytes(of: row.content, size: row.size)
        }
        if row.allocated == 0, record.runs?.isEmpty ?? true { return FoundBytes(size: row.size) }
        if let listed = record.runs, areValid(listed) {
            let told = bytes(row.content, listed, size: row.size)
            // The newest bytes of a snapshot's source are others.
            if told.lostBytes == 0 || SnapshotID.isSnapshot(row.content) { return told }
            // A missing end is a gap too: a shorter file would hide the loss.
            var newest = newestBytes(of: row.content, size: told.size)
            newest.isGuess = true
            // Never older bytes in place of the lost ones.
            let isNewer = newest.pieces.allSatisfy { piece in
                piece.run.generation >= generation
                    || listed.contains {
                        $0.generation == piece.run.generation && $0.epoch == piece.run.epoch
                    }
            }
            return newest.pieces.isEmpty || newest.lostBytes > 0 || !isNewer ? told : newest
        }
        if SnapshotID.isSnapshot(row.content) {
            var lost = FoundBytes(size: 0)
            addLost(upTo: row.size, &lost)
            return lost
        }
        // More runs than fit into a record: gaps between them are holes if no bytes are missing.
        var newest = newestBytes(of: row.content, size: row.size)
        if newest.allocated - newest.lostBytes == row.allocated { newest.pieces.removeAll(where: \.isLost) }
        return newest
    }

    /// Returns the bytes of a state of a content that an earlier repair made: more of it may be there again.
    private func bytes(ofState record: IdentityRecord) -> FoundBytes {
        let listed = (record.runs ?? []).filter { !$0.isLost && $0.isPlausible }
        let sectors = RangeSet(sectorsOf: listed)
        let extents = distinctExtents(of: SnapshotID.source(record.row.content), preferring: sectors)
        let commit = listed.map(\.generation).max() ?? 0
        // A chunk that is not full was the last one: what lies behind it is of other states.
        let size = record.row.size
        let isEnded = listed.last?.end == size && size % UInt64(Geometry.chunkBytes) != 0
        let parts = isEnded ? extents.filter { $0.offset < size } : extents
        let newest = newestBytes(of: parts, asOf: commit)
        return newest.size >= size ? newest : newestBytes(of: parts, size: size, asOf: commit)
    }

    /// Whether the runs are in order and fit into the space. Rows are untrusted: anyone who knows the password can
    /// write them.
    private func areValid(_ listed: [ExtentRun]) -> Bool {
        var stored: UInt64 = 0
        for run in listed {
            guard run.isPlausible else { return false }
            if !run.isLost { stored += run.length }
            guard stored <= storedBytesMax else { return false }
        }
        return zip(listed, listed.dropFirst()).allSatisfy { $0.end <= $1.offset }
    }

    private func bytes(_ content: UInt64, _ listed: [ExtentRun], size: UInt64) -> FoundBytes {
        var pieces: [ContentPiece] = []
        for run in listed {
            if run.isLost {
                pieces.append(ContentPiece(run: run, isLost: true))
                continue
            }
            for chunk in 0..<run.chunkCount {
                let part = Self.extent(chunk, of: run)
                let found = self.found(part, of: content)
                pieces.append(ContentPiece(run: found ?? part, isLost: found == nil))
            }
        }
        // Extents may have other offsets in the file than those listed.
        pieces.sort { $0.run.offset < $1.run.offset }
        var found = FoundBytes(size: size)
        for piece in pieces where piece.run.offset >= found.pieces.last?.run.end ?? 0 { found.append(piece) }
        found.size = max(size, found.pieces.last?.run.end ?? 0)
        return found
    }

    private static func extent(_ number: Int, of run: ExtentRun) -> ExtentRun {
        ExtentRun(
            offset: run.offset + UInt64(number * Geometry.chunkBytes),
            length: UInt64(run.plainBytes(ofChunk: number)), sector: run.sector(ofChunk: number),
            generation: run.generation, epoch: run.epoch)
    }

    /// Returns the extent of that content and commit which lies at the sector of a listed one, as its descriptor has
    /// it; nil if there is none.
    private func found(_ extent: ExtentRun, of content: UInt64) -> ExtentRun? {
        var (low, high) = (0, runs.count)
        while low < high {
            let middle = (low + high) / 2
            if runs[middle].run.sector > extent.sector { high = middle } else { low = middle + 1 }
        }
        guard low > 0 else { return nil }
        let found = runs[low - 1]
        guard found.content == SnapshotID.source(content), found.run.generation == extent.generation,
            found.run.epoch == extent.epoch
        else { return nil }
        let (chunk, rest) = (extent.sector - found.run.sector).quotientAndRemainder(
            dividingBy: UInt64(Geometry.sectorsPerChunk))
        guard rest == 0, chunk < UInt64(found.run.chunkCount) else { return nil }
        return Self.extent(Int(chunk), of: found.run)
    }

    /// Returns the newest extents of each chunk of a content. Gaps between them, and the rest up to `size`, are lost.
    /// Without `size`, the content ends with its last extent, authentic or damaged; if more bytes may have followed
    /// that one, a lost byte does, so that the file cannot be taken for a whole one.
    package func newestBytes(of content: UInt64, size: UInt64? = nil) -> FoundBytes {
        newestBytes(of: extents(of: content), damagedEnd: damagedEnds[content] ?? 0, size: size, asOf: .max)
    }

    /// Returns the newest of the extents of a content up to a commit; see above.
    func newestBytes(
        of extents: [ExtentRun], damagedEnd: UInt64 = 0, size: UInt64? = nil, asOf commit: UInt64
    ) -> FoundBytes {
        var found = FoundBytes(size: 0)
        var last: ExtentRun?
        var isSplit = false
        for chunk in Self.newestChunks(of: extents.filter { $0.generation <= commit }) {
            if chunk.count > 1 || chunk.contains(where: { $0.offset % UInt64(Geometry.chunkBytes) != 0 }) {
                isSplit = true
            }
            for extent in chunk where extent.offset >= found.size {
                addLost(upTo: extent.offset, &found)
                found.append(ContentPiece(run: extent))
                found.size = extent.offset + extent.length
                last = extent
            }
        }
        addLost(upTo: size ?? Self.endOfUnnamed(last, damagedEnd, isSplit: isSplit), &found)
        return found
    }

    /// The end of a content whose size nobody tells, at least: one byte more than was found of it if the last extent
    /// may have had a successor.
    private static func endOfUnnamed(_ last: ExtentRun?, _ damaged: UInt64, isSplit: Bool) -> UInt64 {
        let found = last?.end ?? 0
        let isFull = max(found, damaged) % UInt64(Geometry.chunkBytes) == 0
        // A piece of a chunk fills its sectors; so does one small file in 512, so chunks must be in pieces elsewhere.
        let isPiece =
            isSplit && found >= damaged
            && last.map {
                (Int($0.length) + Geometry.extentOverheadBytes).isMultiple(of: Geometry.sectorBytes)
            } ?? false
        return max(found, damaged) + (isFull || isPiece ? 1 : 0)
    }

    private func addLost(upTo end: UInt64, _ found: inout FoundBytes) {
        let chunk = UInt64(Geometry.chunkBytes)
        let lostEnd = min(end, found.size + Self.lostBytesMax)
        while found.size < lostEnd {
            // The rest of a chunk, then whole chunks.
            let isWhole = found.size % chunk == 0
            let length = (isWhole ? lostEnd : min(lostEnd, (found.size / chunk + 1) * chunk)) - found.size
            // No sector yet: it gets one when its row is written.
            let run = ExtentRun(offset: found.size, length: length, sector: .max, generation: 0, epoch: 0)
            found.pieces.append(ContentPiece(run: run, isLost: true))
            found.size += length
        }
        found.size = max(found.size, end)
    }

    /// The extents of a content, by offset.
    func extents(of content: UInt64) -> [ExtentRun] {
        indexes(of: content).flatMap { index in
            let run = runs[Int(index)].run
            return (0..<run.chunkCount).map { Self.extent($0, of: run) }
        }
    }

    /// The extents of a content, by offset. A commit may have written a chunk twice before it was published: of two
    /// such extents one in `sectors` excludes the other.
    private func distinctExtents(of content: UInt64, preferring sectors: RangeSet<UInt64>) -> [ExtentRun] {
        struct Place: Hashable { var offset, generation, epoch: UInt64 }
        func place(_ extent: ExtentRun) -> Place {
            Place(offset: extent.offset, generation: extent.generation, epoch: extent.epoch)
        }
        let all = extents(of: content)
        let preferred = Set(all.filter { sectors.contains($0.sector) }.map(place))
        return all.filter { sectors.contains($0.sector) || !preferred.contains(place($0)) }
    }

    /// Extents of a content by chunk, those of the newest commit that wrote the chunk. Of several that begin at one
    /// offset the longest is the first: a commit may have written a chunk again when a file grew.
    private static func newestChunks(of extents: [ExtentRun]) -> [[ExtentRun]] {
        var chunks: [UInt64: [ExtentRun]] = [:]
        for extent in extents {
            let chunk = extent.offset / UInt64(Geometry.chunkBytes)
            guard let known = chunks[chunk]?.first,
                known.epoch != extent.epoch
                    || known.generation != extent.generation
            else {
                chunks[chunk, default: []].append(extent)
                continue
            }
            if extent.generation > known.generation { chunks[chunk] = [extent] }
        }
        return chunks.sorted { $0.key < $1.key }.map {
            $0.value.sorted { ($0.offset, $1.length) < ($1.offset, $0.length) }
        }
    }

    private func indexes(of content: UInt64) -> ArraySlice<Int32> {
        func first(_ number: UInt64) -> Int {
            var (low, high) = (0, order.count)
            while low < high {
                let middle = (low + high) / 2
                if runs[Int(order[middle])].content >= number { high = middle } else { low = middle + 1 }
            }
            return low
        }
        return order[first(content)..<first(content + 1)]
    }
}
