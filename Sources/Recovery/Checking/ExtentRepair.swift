import CatalogueRows
import FileRequests
import PhotoLibrary
import VaultCatalogue
import VaultFormat
import VaultStore

/// Mends overlapping and impossible extents, so that every sector has one owner again.
///
/// Of overlapping extents the one that authenticates keeps its place; if none does, the most recently written one,
/// though damaged. The bytes of the others there are recorded as lost: reading them is an error and never returns zeros
/// or the bytes that lie there now. Row values are untrusted, because anyone who knows the password can write them:
/// each is checked before use.
struct ExtentRepair {
    private let space: Space
    private let tables: Tables
    private let mender: CatalogueMender
    private var places = PlaceTable()

    package init(_ space: Space, _ tables: Tables, _ mender: CatalogueMender) {
        (self.space, self.tables, self.mender) = (space, tables, mender)
    }

    /// An extent that a content claims: found by its descriptor, or only listed by its row.
    private struct Claim {
        package var key: ContentKey
        package var run: ExtentRun
        package var isOpen: Bool

        /// Runs whose extents open come first, then the most recently written ones.
        static func isBefore(_ one: Claim, _ other: Claim) -> Bool {
            if one.isOpen != other.isOpen { return one.isOpen }
            if one.run.generation != other.run.generation {
                return one.run.generation > other.run.generation
            }
            return (one.key.content, one.run.offset) < (other.key.content, other.run.offset)
        }
    }

    /// The rows and extents of one content, or of one identity record.
    private struct Content {
        package var owners: [ContentOwner]
        /// The runs in the catalogue's rows.
        package var rows: [ExtentRun]
        /// The runs as they should be: those of an identity record that is as new as the rows, else `rows`.
        package var runs: [ExtentRun]
        /// Whether `runs` are those of an identity record.
        var isRecorded = false
        /// Extents that authenticate.
        var open: [ExtentRun] = []
        /// Extents that keep their place.
        package var kept: [ExtentRun] = []
        /// Whether one of the kept extents authenticates.
        package var isOpen = false

        package var isOfFile: Bool { owners.contains { !$0.isThumbnail } }
        var isOfThumbnail: Bool { owners.contains(where: \.isThumbnail) }
    }

    /// Mends the rows of these contents. `keys` must include every content that shares sectors with one of them.
    package mutating func mend(_ contested: Set<ContentKey>) throws(FileError) {
        // A content and its snapshots share sectors, as they may.
        var keys = contested
        let sources = Set(contested.filter { !$0.isRecord }.map { SnapshotID.source($0.content) })
        for source in sources {
            let snapshots = try tables.snapshots.numbers(of: source)
            if snapshots.isEmpty { continue }
            keys.formUnion(([source] + snapshots).map { ContentKey(content: $0) })
        }
        let owners = Dictionary(
            grouping: try tables.contents.owners(of: Set(keys.filter { !$0.isRecord }.map(\.content)))
        ) { $0.content }
        var contents: [ContentKey: Content] = [:]
        var claims: [Claim] = []
        for key in keys {
            let rows = try tables.runs.runs(of: key.content, isRecord: key.isRecord).map(\.run)
            var content = Content(
                owners: key.isRecord ? [] : owners[key.content] ?? [], rows: rows, runs: rows)
            if content.isOfFile, let recorded = try recordedRuns(of: key.content) {
                (content.runs, content.isRecorded) = (recorded, true)
            }
            claims += try self.claims(of: key, &content)
            contents[key] = content
        }
        for claim in claims.sorted(by: Claim.isBefore) where places.take(claim.run, of: claim.key) {
            contents[claim.key]?.kept.append(claim.run)
            if claim.isOpen { contents[claim.key]?.isOpen = true }
        }
        for (key, content) in contents.sorted(by: { $0.key.content < $1.key.content }) {
            if key.isRecord { try mendRecord(key.content, content) } else { try mend(key.content, content) }
        }
        for source in sources.sorted() { try tables.snapshots.align(of: source) }
    }

    /// Returns the runs of a file from its identity record; nil if no record is as new as the rows.
    private func recordedRuns(of content: UInt64) throws(FileError) -> [ExtentRun]? {
        for (found, revision) in try tables.contents.currentRecords(ofFilesWith: content) {
            guard let record = record(found), record.row.content == content, record.row.revision == revision,
                let runs = record.runs, runs.allSatisfy({ space.segments.isPossible($0) || $0.isLost })
            else { continue }
            return runs
        }
        return nil
    }

    private func record(_ found: CheckedRun) -> IdentityRecord? {
        guard space.segments.isPossible(found.run), found.run.length <= Chunk.bytes else { return nil }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Space.readBufferBytes, alignment: 16)
        defer { unsafe buffer.deallocate() }
        guard
            let plain = try? unsafe space.read(
                role: .identity, content: found.content, run: found.run, chunk: 0, into: buffer),
            case .inode(let record) = unsafe Recorded.decode(plain)?.content, record.row.ino == found.content
        else { return nil }
        return record
    }

    /// The extents of all runs of a content.
    private func claims(of key: ContentKey, _ content: inout Content) throws(FileError) -> [Claim] {
        if key.isRecord { return claims(of: key, &content, as: .identity) }
        let asFile = claims(of: key, &content, as: .content)
        if !content.isOfThumbnail || asFile.contains(where: \.isOpen) { return asFile }
        let asThumbnail = claims(of: key, &content, as: .thumbnail)
        if content.isOfFile, asThumbnail.contains(where: \.isOpen) {
            // The location of the file's bytes is unknown.
            try mender.separate(content: key.content)
            content.owners.removeAll { !$0.isThumbnail }
        }
        return content.isOfFile ? asFile : asThumbnail
    }

    /// Returns each extent as a run of its own: those that authenticate, and damaged ones that may still lie in their
    /// place.
    private func claims(of key: ContentKey, _ content: inout Content, as role: ExtentRole) -> [Claim] {
        let open = Set(content.rows + content.runs).filter { !$0.isLost }.flatMap {
            ExtentCheck(of: space).openingExtents(of: $0, role, content: key.content)
        }
        var claims = Set(open).map { Claim(key: key, run: $0, isOpen: true) }
        content.open = claims.map(\.run)
        let known = Set(open.map(\.sector))
        for run in content.runs where space.segments.isPossible(run) && run.offset < Geometry.fileBytesMax {
            for number in 0..<run.chunkCount where !known.contains(run.sector(ofChunk: number)) {
                let start = run.offset + UInt64(number) * Chunk.bytes
                let part = run.part(from: start, to: start + Chunk.bytes)
                if ExtentCheck(of: space).holdsAnother(part, role, content: key.content) { continue }
                claims.append(Claim(key: key, run: part, isOpen: false))
            }
        }
        return claims
    }

    // MARK: Rows

    /// Drops a damaged record and marks it, so that it is written again.
    private func mendRecord(_ id: UInt64, _ record: Content) throws(FileError) {
        if record.isOpen && record.kept == record.rows { return }
        try tables.identities.delete(id)
        try tables.identities.markUnrecorded(id)
    }

    private func mend(_ number: UInt64, _ content: Content) throws(FileError) {
        let size = try tables.contents.largestSize(ofFilesWith: number)
        let dense = try tables.contents.sizeWithoutHoles(ofFilesWith: number)
        var lost = lost(of: content, size: size, dense: dense)
        if content.isOfFile, !content.isRecorded,
            try tables.contents.storedBytes(ofFilesWith: number) > bytes(of: content.kept) + bytes(of: lost)
        {
            // More bytes are lost, at unknown offsets: any hole may be lost bytes.
            lost = self.lost(of: content, size: size, dense: min(size ?? 0, Self.lostBytesMax))
        } else if !content.isOfFile {
            // No file tells holes from lost bytes; `Salvage` decides likewise.
            let end = content.kept.map(\.end).max() ?? 0
            lost = self.lost(of: content, size: size, dense: min(end, Self.lostBytesMax))
        }
        if content.isOfThumbnail && !content.isOfFile {
            // A thumbnail with lost bytes is made again.
            if !content.isOpen || !lost.isEmpty { try tables.contents.dropThumbnail(content: number) }
            return
        }
        guard content.isOfFile || content.isOpen, number <= UInt64(Int64.max) else {
            return try tables.contents.replaceRuns(of: number, by: [])
        }
        try tables.contents.replaceRuns(of: number, by: joined(content.kept + lost))
        try tables.contents.markRecords(ofContent: number)
        if content.isOfFile {
            // With the count from before the loss the next repair would look for lost bytes again.
            try tables.contents.countStoredBytes(ofFilesWith: number)
            try tables.contents.dropThumbnailRows(content: number)
        } else {
            try mender.recover(content: number)
        }
    }

    /// Holes below this offset may be recorded as lost. Limited because each run of lost bytes takes a row.
    private static let lostBytesMax: UInt64 = 1 << 50

    private func bytes(of runs: [ExtentRun]) -> UInt64 {
        runs.reduce(0) { $0 + min($1.length, Geometry.lostBytesMax) }
    }

    /// Returns the byte ranges that the content's runs list and that no kept run covers.
    ///
    /// - Parameter dense: the file had no holes below this offset; nil if unknown.
    private func lost(of content: Content, size: UInt64?, dense: UInt64?) -> [ExtentRun] {
        let (runs, kept) = (content.runs, content.kept)
        // Ranges of rows with impossible lengths are clipped to the file.
        let known = kept.map(\.end).max() ?? 0
        let most = max(size ?? 0, min(known, Geometry.fileBytesMax)) + (size == nil ? Chunk.bytes : 0)
        // The offset of an authentic extent is in its descriptor, not in the row.
        let opened = Set(content.open.map(\.sector))
        let claimed = runs.flatMap { run -> [Range<UInt64>] in
            guard run.offset < most, run.length > 0 else { return [] }
            guard space.segments.isPossible(run) else { return [run.offset..<min(run.end, most)] }
            return (0..<run.chunkCount).compactMap { number in
                if opened.contains(run.sector(ofChunk: number)) { return nil }
                let start = run.offset + UInt64(number) * Chunk.bytes
                return start..<min(start + Chunk.bytes, run.end)
            }
        }
        let all = merged(claimed + content.open.map { $0.offset..<$0.end } + (dense.map { [0..<$0] } ?? []))
        return subtracting(kept.map { $0.offset..<$0.end }, from: all).flatMap { ExtentRun.lost($0) }
    }

    /// Merges ranges that overlap or touch.
    private func merged(_ ranges: [Range<UInt64>]) -> [Range<UInt64>] {
        var merged: [Range<UInt64>] = []
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let last = merged.last, range.lowerBound <= last.upperBound {
                merged[merged.count - 1] = last.lowerBound..<max(last.upperBound, range.upperBound)
            } else {
                merged.append(range)
            }
        }
        return merged
    }

    /// Joins adjacent extents into runs.
    private func joined(_ runs: [ExtentRun]) -> [ExtentRun] {
        var joined: [ExtentRun] = []
        for run in runs.sorted(by: { $0.offset < $1.offset }) {
            if var last = joined.last, last.isContinued(by: run) {
                last.length += run.length
                if space.segments.isPossible(last) || last.isLost {
                    joined[joined.count - 1] = last
                    continue
                }
            }
            joined.append(run)
        }
        return joined
    }
}

/// Sectors, and byte ranges of contents, that already have an owner.
private struct PlaceTable {
    /// By group of sectors: an extent reaches into at most two groups.
    private var sectors: [UInt64: [Place]] = [:]
    /// By content and chunk: an extent has bytes of at most two chunks.
    private var bytes: [ChunkKey: [Range<UInt64>]] = [:]

    private struct ChunkKey: Hashable {
        package var key: ContentKey
        package var chunk: UInt64
    }

    /// An extent that has an owner. A snapshot has extents of its source as they are.
    private struct Place: Hashable {
        package var run: ExtentRun
        package var source: ContentKey

        package var sectors: Range<UInt64> { run.sector..<run.endSector }
    }

    private static let sectorsPerGroup: UInt64 = 512

    /// Claims the sectors and bytes of one extent; false if some of them are already claimed, except for the same
    /// extent of another snapshot.
    package mutating func take(_ run: ExtentRun, of key: ContentKey) -> Bool {
        let sectorRange = run.sector..<run.endSector
        let byteRange = run.offset..<run.end
        let place = Place(
            run: run,
            source: key.isRecord ? key : ContentKey(content: SnapshotID.source(key.content)))
        let groups = Self.groups(sectorRange, by: Self.sectorsPerGroup)
        let chunks = Self.groups(byteRange, by: Chunk.bytes).map { ChunkKey(key: key, chunk: $0) }
        let isTaken =
            groups.contains {
                sectors[$0]?.contains { $0 != place && $0.sectors.overlaps(sectorRange) } ?? false
            }
            || chunks.contains { bytes[$0]?.contains { $0.overlaps(byteRange) } ?? false }
        if isTaken { return false }
        for group in groups where sectors[group]?.contains(place) != true {
            sectors[group, default: []].append(place)
        }
        for chunk in chunks { bytes[chunk, default: []].append(byteRange) }
        return true
    }

    private static func groups(_ range: Range<UInt64>, by size: UInt64) -> [UInt64] {
        range.isEmpty ? [] : Array(range.lowerBound / size...(range.upperBound - 1) / size)
    }
}
