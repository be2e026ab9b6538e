import VaultCatalogue
import VaultFormat
import VaultStore

/// Gives every sector one owner again, and contents runs that lie where they can.
///
/// Of extents that lie over each other the one that opens keeps its place; where none does, the one that was written
/// last, though it be damaged. What another held there is lost, and says so: reading it is an error, never zeros, and
/// never what lies there. Rows say nothing here that is not looked at: they may be anybody's who knows the password.
struct ExtentRepair {
    private let space: Space
    private let tables: Tables
    private let mender: CatalogueMender
    private var places = PlaceTable()

    init(_ space: Space, _ tables: Tables, _ mender: CatalogueMender) {
        (self.space, self.tables, self.mender) = (space, tables, mender)
    }

    /// An extent of one of the contents, or what its row takes for one.
    private struct Claim {
        var key: ContentKey
        var run: ExtentRun
        var isOpen: Bool

        /// Runs whose extents open come first, then the most recently written ones.
        static func isBefore(_ one: Claim, _ other: Claim) -> Bool {
            if one.isOpen != other.isOpen { return one.isOpen }
            if one.run.generation != other.run.generation {
                return one.run.generation > other.run.generation
            }
            return (one.key.content, one.run.offset) < (other.key.content, other.run.offset)
        }
    }

    /// The findings about one content, or one identity record.
    private struct Content {
        var owners: [ContentOwner]
        /// As rows have them.
        var rows: [ExtentRun]
        /// As they should be: by an identity record that is as new as the rows, else by these.
        var runs: [ExtentRun]
        /// Whether `runs` are those of an identity record.
        var isRecorded = false
        /// Extents that open.
        var open: [ExtentRun] = []
        /// Extents that keep their place.
        var kept: [ExtentRun] = []
        /// Whether one of them opens.
        var isOpen = false

        var isOfFile: Bool { owners.contains { !$0.isThumbnail } }
        var isOfThumbnail: Bool { owners.contains(where: \.isThumbnail) }
    }

    /// Mends rows of these contents. Whatever has the same sectors as one of them is among them.
    mutating func mend(_ keys: Set<ContentKey>) throws(CatalogueError) {
        let owners = Dictionary(
            grouping: try tables.owners(of: Set(keys.filter { !$0.isRecord }.map(\.content)))
        ) { $0.content }
        var contents: [ContentKey: Content] = [:]
        var claims: [Claim] = []
        for key in keys {
            let rows = try tables.runs(of: key.content, isRecord: key.isRecord).map(\.run)
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
    }

    /// Where a file's bytes lie by its identity record; nil where there is none that is as new as the rows.
    private func recordedRuns(of content: UInt64) throws(CatalogueError) -> [ExtentRun]? {
        for (found, version) in try tables.currentRecords(ofFilesWith: content) {
            guard let record = record(found), record.row.content == content, record.row.version == version,
                let runs = record.runs, runs.allSatisfy({ space.isPossible($0) || $0.isLost })
            else { continue }
            return runs
        }
        return nil
    }

    private func record(_ found: CheckedRun) -> IdentityRecord? {
        guard space.isPossible(found.run), found.run.length <= Chunk.bytes else { return nil }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Space.readBufferBytes, alignment: 16)
        defer { buffer.deallocate() }
        guard
            let plain = try? space.read(
                role: .identity, content: found.content, run: found.run, chunk: 0, into: buffer),
            case .inode(let record) = Recorded.decode(plain)?.content, record.row.ino == found.content
        else { return nil }
        return record
    }

    /// The extents of all runs of a content.
    private func claims(of key: ContentKey, _ content: inout Content) throws(CatalogueError) -> [Claim] {
        if key.isRecord { return claims(of: key, &content, as: .identity) }
        let asFile = claims(of: key, &content, as: .content)
        if !content.isOfThumbnail || asFile.contains(where: \.isOpen) { return asFile }
        let asThumbnail = claims(of: key, &content, as: .thumbnail)
        if content.isOfFile, asThumbnail.contains(where: \.isOpen) {
            // Where the bytes of the file are nobody knows.
            try mender.separate(content: key.content)
            content.owners.removeAll { !$0.isThumbnail }
        }
        return content.isOfFile ? asFile : asThumbnail
    }

    /// Extents, each as a run of its own: those that open, and those that do not and can lie where they ought to.
    private func claims(of key: ContentKey, _ content: inout Content, as role: ExtentRole) -> [Claim] {
        let open = Set(content.rows + content.runs).filter { !$0.isLost }.flatMap {
            space.openingExtents(of: $0, role, content: key.content)
        }
        var claims = Set(open).map { Claim(key: key, run: $0, isOpen: true) }
        content.open = claims.map(\.run)
        let known = Set(open.map(\.sector))
        for run in content.runs where space.isPossible(run) && run.offset < Geometry.fileBytesMax {
            for number in 0..<run.chunkCount where !known.contains(run.sector(ofChunk: number)) {
                let start = run.offset + UInt64(number) * Chunk.bytes
                let part = run.part(from: start, to: start + Chunk.bytes)
                if space.holdsAnother(part, role, content: key.content) { continue }
                claims.append(Claim(key: key, run: part, isOpen: false))
            }
        }
        return claims
    }

    // MARK: Rows

    /// A record that does not open is written anew.
    private func mendRecord(_ id: UInt64, _ record: Content) throws(CatalogueError) {
        if record.isOpen && record.kept == record.rows { return }
        try tables.deleteIdentity(id)
        try tables.markUnrecorded(id)
    }

    private func mend(_ number: UInt64, _ content: Content) throws(CatalogueError) {
        let size = try tables.largestSize(ofFilesWith: number)
        let dense = try tables.sizeWithoutHoles(ofFilesWith: number)
        var lost = lost(of: content, size: size, dense: dense)
        if content.isOfFile, !content.isRecorded,
            try tables.storedBytes(ofFilesWith: number) > bytes(of: content.kept) + bytes(of: lost)
        {
            // Some more is lost, nobody knows where: any hole may be one.
            lost = self.lost(of: content, size: size, dense: min(size ?? 0, Self.lostBytesMax))
        }
        if content.isOfThumbnail && !content.isOfFile {
            // One of which something is lost is made anew.
            if !content.isOpen || !lost.isEmpty { try tables.dropThumbnail(content: number) }
            return
        }
        guard content.isOfFile || content.isOpen, number <= UInt64(Int64.max) else {
            return try tables.replaceRuns(of: number, by: [])
        }
        try tables.replaceRuns(of: number, by: joined(content.kept + lost))
        try tables.markRecords(ofContent: number)
        if content.isOfFile {
            // The count from before the loss would let the next repair look for lost bytes again.
            try tables.countStoredBytes(ofFilesWith: number)
            try tables.dropThumbnailRows(content: number)
        } else {
            try mender.recover(content: number)
        }
    }

    /// Holes that may be lost bytes are taken for lost up to here: each run of lost bytes is a row.
    private static let lostBytesMax: UInt64 = 1 << 50

    private func bytes(of runs: [ExtentRun]) -> UInt64 {
        runs.reduce(0) { $0 + min($1.length, Geometry.lostBytesMax) }
    }

    /// Ranges of bytes that the catalogue's runs list and that no kept run has.
    ///
    /// - Parameter dense: up to where there was no hole; nil where nobody knows.
    private func lost(of content: Content, size: UInt64?, dense: UInt64?) -> [ExtentRun] {
        let (runs, kept) = (content.runs, content.kept)
        // What rows say of impossible lengths goes no farther than the file.
        let known = kept.map(\.end).max() ?? 0
        let most = max(size ?? 0, min(known, Geometry.fileBytesMax)) + (size == nil ? Chunk.bytes : 0)
        // An extent that opens has its offset in its descriptor, whatever the row says.
        let opened = Set(content.open.map(\.sector))
        let claimed = runs.flatMap { run -> [Range<UInt64>] in
            guard run.offset < most, run.length > 0 else { return [] }
            guard space.isPossible(run) else { return [run.offset..<min(run.end, most)] }
            return (0..<run.chunkCount).compactMap { number in
                if opened.contains(run.sector(ofChunk: number)) { return nil }
                let start = run.offset + UInt64(number) * Chunk.bytes
                return start..<min(start + Chunk.bytes, run.end)
            }
        }
        let all = merged(claimed + content.open.map { $0.offset..<$0.end } + (dense.map { [0..<$0] } ?? []))
        return subtracting(kept.map { $0.offset..<$0.end }, from: all).flatMap { ExtentRun.lost($0) }
    }

    /// Ranges without what they have in common.
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

    /// Puts extents that follow each other into one run.
    private func joined(_ runs: [ExtentRun]) -> [ExtentRun] {
        var joined: [ExtentRun] = []
        for run in runs.sorted(by: { $0.offset < $1.offset }) {
            if var last = joined.last, last.isContinued(by: run) {
                last.length += run.length
                if space.isPossible(last) || last.isLost {
                    joined[joined.count - 1] = last
                    continue
                }
            }
            joined.append(run)
        }
        return joined
    }
}

/// Which sectors are taken, and which bytes of which content.
private struct PlaceTable {
    /// By groups of sectors: no extent reaches into more than two.
    private var sectors: [UInt64: [Range<UInt64>]] = [:]
    /// By content and chunk: no extent has bytes of more than two.
    private var bytes: [ChunkKey: [Range<UInt64>]] = [:]

    private struct ChunkKey: Hashable {
        var key: ContentKey
        var chunk: UInt64
    }

    private static let sectorsPerGroup: UInt64 = 512

    /// Takes the place of one extent; false where somebody has some of it.
    mutating func take(_ run: ExtentRun, of key: ContentKey) -> Bool {
        let sectorRange = run.sector..<run.sector + UInt64(run.sectorCount)
        let byteRange = run.offset..<run.end
        let groups = Self.groups(sectorRange, by: Self.sectorsPerGroup)
        let chunks = Self.groups(byteRange, by: Chunk.bytes).map { ChunkKey(key: key, chunk: $0) }
        let isTaken =
            groups.contains { sectors[$0]?.contains { $0.overlaps(sectorRange) } ?? false }
            || chunks.contains { bytes[$0]?.contains { $0.overlaps(byteRange) } ?? false }
        if isTaken { return false }
        for group in groups { sectors[group, default: []].append(sectorRange) }
        for chunk in chunks { bytes[chunk, default: []].append(byteRange) }
        return true
    }

    private static func groups(_ range: Range<UInt64>, by size: UInt64) -> [UInt64] {
        range.isEmpty ? [] : Array(range.lowerBound / size...(range.upperBound - 1) / size)
    }
}
