import LinuxIO
import PhotoImaging
import VaultCatalogue
import VaultFormat
public import VaultStore

/// What was found in a space without its catalogue.
public struct SalvageReport: Sendable, Equatable {
    public var photos = 0
    /// Days that they lie under.
    public var days = 0
    /// Photos some of whose bytes are lost.
    public var damagedPhotos = 0
    /// Photos in the trash; `photos` does not count them.
    public var trashedPhotos = 0
    /// Copies of photos in albums, sidecars, and all else that is no photo.
    public var otherFiles = 0
    public var damagedFiles = 0
    /// Without those that lie in others.
    public var albums = 0
    /// Pictures and videos whose names and days are not known.
    public var nameless = 0
    /// Photos and files of which names, but no bytes are left.
    public var lost = 0
    /// Pages of the old catalogue, where something of it can be read, and how many of these cannot.
    public var cataloguePages = 0
    public var lostPages = 0

    /// "412 photos in 31 days, 3 of them damaged; 2 without a name"
    public var summary: String {
        func count(_ number: Int, _ one: String, _ many: String) -> String {
            "\(number) \(number == 1 ? one : many)"
        }
        var text =
            count(photos, "photo", "photos") + " in " + count(days, "day", "days")
            + (damagedPhotos > 0 ? ", \(damagedPhotos) of them damaged" : "")
        if trashedPhotos > 0 { text += "; \(trashedPhotos) in the trash" }
        if albums > 0 { text += "; " + count(albums, "album", "albums") }
        if otherFiles > 0 {
            text += "; " + count(otherFiles, "other file", "other files")
            if damagedFiles > 0 { text += ", \(damagedFiles) of them damaged" }
        }
        if nameless > 0 { text += "; \(nameless) without a name" }
        if lost > 0 { text += "; \(lost) lost but for the name" }
        if cataloguePages > 0 {
            text += "; the old catalogue is used"
            if lostPages > 0 { text += ", except \(lostPages) of its \(cataloguePages) pages" }
        }
        return text
    }
}

/// Rebuilds a space whose catalogue cannot be read whole, from what can be read of it, of extents and of identity
/// records.
///
/// `survey` reads everything and changes nothing. `rebuild` writes a new catalogue beside the old one; the old state
/// counts until the new one is whole and on the disk.
public final class Salvage {
    fileprivate static let buffers = BufferPool(bufferBytes: Space.readBufferBytes, keptMax: 2)

    let unlocked: UnlockedSpace
    let space: Space
    let options: LibraryOptions
    let scan: ScanResult
    let contents: FoundContents
    /// What is left of the old catalogue.
    let former: FormerTree?
    private(set) var selector: RecordSelector
    public private(set) var report = SalvageReport()
    /// Contents of pictures and videos that no record names.
    private(set) var nameless: [(content: UInt64, type: MediaType)] = []

    /// Reads all of a space. `progress` is told of segments.
    public static func survey(
        _ unlocked: UnlockedSpace, options: LibraryOptions,
        progress: (_ done: Int, _ total: Int) throws(VaultError) -> Void
    ) throws(VaultError) -> Salvage {
        let space = try unlocked.openBlankSpace()
        let salvage = Salvage(unlocked, space, options, try ScanResult.scan(space, progress: progress))
        salvage.plan()
        return salvage
    }

    private init(_ unlocked: UnlockedSpace, _ space: Space, _ options: LibraryOptions, _ scan: ScanResult) {
        (self.unlocked, self.space, self.options, self.scan) = (unlocked, space, options, scan)
        contents = FoundContents(
            scan.contents, damagedEnds: scan.damagedEnds,
            lostBytesMax: UInt64(space.segmentCount * space.sectorsPerSegment * Geometry.sectorBytes))
        selector = RecordSelector(scan.records)
        former = FormerTree(space.formerPages)
        (report.cataloguePages, report.lostPages) = (former?.pageCount ?? 0, former?.lostPages ?? 0)
    }

    /// An inode that belongs into the new state.
    struct RecoveredInode {
        var record: IdentityRecord
        /// See `FoundContents.bytes(of:)`.
        var generation: UInt64
        /// The same bytes' runs by the identity record, where `record` has those of rows.
        var recorded: [ExtentRun]?
        /// The newest record of its number, if there is one.
        var found: FoundRecord?
    }

    /// Visits all that users have made and that is not known to be gone, in the order of their numbers.
    func forEachInode(_ visit: (RecoveredInode) throws(FileError) -> Void) throws(FileError) {
        var numbers = Set(selector.records.keys.filter { $0 < RetiredIDs.records })
        if let former { numbers.formUnion(try former.numbers()) }
        for ino in numbers.sorted() where ino >= WellKnownInode.firstOfUsers && ino <= Geometry.idMax {
            if let recoveredInode = recoveredInode(ino) { try visit(recoveredInode) }
        }
    }

    /// What is known of an inode; nil where that is nothing, or that it is gone.
    func recoveredInode(_ ino: UInt64) -> RecoveredInode? {
        var told: (record: IdentityRecord, found: FoundRecord)?
        if let found = selector.records[ino], !selector.isDead(inode: ino),
            case .inode(let record) = read(found), record.row.ino == ino
        {
            told = (record, found)
        }
        switch former?.known(ino, told: told) ?? .nothing {
        case .gone: return nil
        case .record(let record, let generation, let recorded):
            return RecoveredInode(
                record: record, generation: generation, recorded: recorded, found: told?.found)
        case .nothing:
            return told.map {
                RecoveredInode(record: $0.record, generation: $0.found.run.generation, found: $0.found)
            }
        }
    }

    /// Reads a record again; nil where it can no longer be.
    func read(_ found: FoundRecord) -> Recorded? {
        let buffer = Self.buffers.take()
        defer { Self.buffers.give(buffer) }
        guard
            let plain = try? space.read(
                role: .identity, content: found.id, run: found.run, chunk: 0, into: buffer)
        else { return nil }
        return Recorded.decode(plain)?.content
    }

    // MARK: What is there

    private func plan() {
        for found in selector.records.values where found.id >= RetiredIDs.records {
            if case .dead(let block, let bits) = read(found), found.id == RetiredIDs.records + block {
                selector.note(dead: bits, of: block, by: found)
            }
        }
        for (block, bits) in former?.deadBlocks() ?? [] { selector.note(dead: bits, of: block) }
        var days: Set<Int64> = []
        var claimed: Set<UInt64> = []
        // Nothing that this visits is written, so nothing can fail.
        try? forEachInode { recoveredInode in
            let record = recoveredInode.record
            guard record.row.mode & fileTypeMask == regularType else {
                if record.names.first?.parent == WellKnownInode.albums,
                    record.row.mode & fileTypeMask == directoryType
                {
                    report.albums += 1
                }
                return
            }
            let bytes = contents.bytes(of: recoveredInode)
            if !bytes.pieces.isEmpty, !bytes.isGone { claimed.insert(record.row.content) }
            count(record, bytes, &days)
        }
        report.days = days.count
        findNameless(besides: claimed)
    }

    private func count(_ record: IdentityRecord, _ bytes: FoundBytes, _ days: inout Set<Int64>) {
        let isDamaged = bytes.lostBytes > 0
        if bytes.isGone {
            report.lost += 1
        } else if record.trashed != nil {
            report.trashedPhotos += 1
        } else if let photo = record.photo {
            report.photos += 1
            report.damagedPhotos += isDamaged ? 1 : 0
            days.insert(photo.day)
        } else {
            report.otherFiles += 1
            report.damagedFiles += isDamaged ? 1 : 0
        }
    }

    /// What no record names, and no block of dead numbers knows to be an older version of something, is kept if it is a
    /// picture or a video. Nothing is, where all files are known.
    private func findNameless(besides claimed: Set<UInt64>) {
        if former?.knowsAllFiles == true { return }
        for content in contents.numbers where !claimed.contains(content) && !selector.isDead(content: content)
        {
            let bytes = contents.newestBytes(of: content)
            guard bytes.pieces.first?.isLost == false,
                let facts = readFacts(FoundSource(space, content, bytes))
            else { continue }
            nameless.append((content, facts.type))
        }
        report.nameless = nameless.count
    }

    // MARK: The new state

    /// Builds the new catalogue and makes it the space's.
    public func rebuild() throws(VaultError) {
        let catalogue: Catalogue
        do throws(FileError) {
            catalogue = try build()
            let frozen = try sql(
                catalogue.commitTransaction(
                    before: { _ throws(CatalogueError) in }, freeze: { space.freeze() }))
            try stored(space.publish(frozen, durable: true))
            // All slots for roots get one of the new state.
            try stored(space.publishMended())
            try stored(space.close())
        } catch {
            throw error == .noRoom ? .noRoom : .damaged("no new catalogue could be written")
        }
        // From here on it is a space like any other: what has no name is looked at and filed as after a kill.
        let library = try Library.open(unlocked, options: options)
        library.didGoLive()
        do throws(FileError) { try library.close() } catch {
            throw error == .noRoom ? .noRoom : .damaged("the recovered files could not be classified")
        }
    }

    private func build() throws(FileError) -> Catalogue {
        var claimed: [Range<UInt64>] = []
        for run in (scan.contents + scan.thumbnails).map(\.run) + scan.records.map(\.run)
        where try stored(space.claim(run)) {
            claimed.append(run.sector..<run.sector + UInt64(run.sectorCount))
        }
        space.beginState(after: scan.newestGeneration)
        let catalogue = try sql(Catalogue(storage: space))
        let used = try catalogue.locked { tables throws(FileError) in
            var tree = SalvagedTree(self, try Tree(tables, options))
            let used = try tree.build()
            try sql(tables.countTotals())
            return used
        }
        space.giveBack(subtracting(used, from: claimed))
        return catalogue
    }
}

/// What of sorted or unsorted `ranges`, which do not overlap, lies in none of `others`.
func subtracting(_ others: [Range<UInt64>], from ranges: [Range<UInt64>]) -> [Range<UInt64>] {
    let others = others.sorted { $0.lowerBound < $1.lowerBound }
    var left: [Range<UInt64>] = []
    var place = 0
    for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
        var start = range.lowerBound
        while place < others.count, others[place].upperBound <= start { place += 1 }
        var at = place
        while at < others.count, others[at].lowerBound < range.upperBound {
            if others[at].lowerBound > start { left.append(start..<others[at].lowerBound) }
            start = max(start, others[at].upperBound)
            at += 1
        }
        if start < range.upperBound { left.append(start..<range.upperBound) }
    }
    return left
}

/// Found bytes as the readers of metadata want them.
private struct FoundSource: ByteSource {
    private let space: Space
    private let content: UInt64
    private let bytes: FoundBytes
    var byteCount: UInt64 { bytes.size }

    init(_ space: Space, _ content: UInt64, _ bytes: FoundBytes) {
        (self.space, self.content, self.bytes) = (space, content, bytes)
    }

    func read(at offset: UInt64, into target: UnsafeMutableRawBufferPointer) -> Int {
        let buffer = Salvage.buffers.take()
        defer { Salvage.buffers.give(buffer) }
        var done = 0
        while done < target.count, offset + UInt64(done) < byteCount {
            let position = offset + UInt64(done)
            guard let piece = bytes.pieces.first(where: { $0.run.end > position }), !piece.isLost,
                piece.run.offset <= position
            else { return -1 }
            let chunk = Int((position - piece.run.offset) / Chunk.bytes)
            guard
                let plain = try? space.read(
                    role: .content, content: content, run: piece.run, chunk: chunk, into: buffer)
            else { return -1 }
            let first = Int(position - piece.run.offset) - chunk * Int(Chunk.bytes)
            let count = min(plain.count - first, target.count - done)
            target[done...].copyBytes(from: plain[first..<first + count])
            done += count
        }
        return done
    }
}
