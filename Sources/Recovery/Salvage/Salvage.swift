import CatalogueRows
import FileRequests
import LinuxIO
package import PhotoImaging
public import PhotoLibrary
import VaultCatalogue
import VaultFormat
public import VaultStore

/// Counts of the files that were found in a space without its catalogue.
public struct SalvageReport: Sendable, Equatable {
    public var photos = 0
    /// Days of these photos.
    public var days = 0
    /// Photos some of whose bytes are lost.
    public var damagedPhotos = 0
    /// Photos in the trash; `photos` does not count them.
    public var trashedPhotos = 0
    /// Copies of photos in albums, sidecars, and all other files that are not photos.
    public var otherFiles = 0
    var damagedFiles = 0
    var damagedTrashed = 0
    /// Without nested albums.
    public var albums = 0
    /// Files whose names are unknown.
    public var nameless = 0
    /// Photos and files that have names but no bytes left.
    public var lost = 0

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
        return text
    }
}

/// Rebuilds a space whose catalogue cannot be read completely, from its extents and identity records.
///
/// `survey` reads everything and changes nothing. `rebuild` writes a new catalogue beside the old one. The old state
/// stays valid until the new one is complete and durable.
public final class Salvage {
    fileprivate static let buffers = BufferPool(bufferBytes: Space.readBufferBytes, keptMax: 2)

    package let unlocked: UnlockedSpace
    package let state: NewState
    package var space: Space { state.space }
    package let options: LibraryOptions
    package let scan: ScanResult
    package let contents: FoundContents
    /// Inodes without a record, as the former catalogue has them.
    private var unrecorded: [UInt64: RecoveredInode] = [:]
    /// The inode whose record tells of a content, where several do.
    private var tellers: [UInt64: UInt64] = [:]
    /// The last segment of the former state, or in which a record's bytes lie, as far as it is plausible.
    private var lastSegment = 0
    /// Whether less was found in a segment than the former state had there; nil if no former state tells.
    private var lacksSectors: Bool?
    /// The newest commit with a record of a file that an earlier repair made without the newest one; 0 if there is
    /// none.
    private var newestGuess: UInt64 = 0
    /// The commit of the last repair, or a later one, if records were away then; else 0.
    private var newestRepair: UInt64 = 0
    /// The newest commit with a record of a file that has a content, by content.
    private(set) var ofFiles: [UInt64: UInt64] = [:]
    private(set) var selector: RecordSelector
    public private(set) var report = SalvageReport()
    /// Contents that neither a record nor the former catalogue names, and their types, if they are pictures or videos.
    package private(set) var nameless: [(content: UInt64, bytes: FoundBytes, type: MediaType?)] = []
    /// States of contents that no record names. The record of a version, or of a file, that does may be away.
    private(set) var unnamed: [(state: UnnamedState, type: MediaType?)] = []

    /// Reads all of a space. Calls `progress` with the number of finished segments.
    ///
    /// - Parameter readOnly: nothing will be rebuilt.
    public static func survey(
        _ unlocked: UnlockedSpace, options: LibraryOptions, readOnly: Bool = false,
        progress: (_ done: Int, _ total: Int) throws(VaultError) -> Void
    ) throws(VaultError) -> Salvage {
        let state = try unlocked.openNewState(readOnly: readOnly)
        let scan = try ScanResult.scan(state, progress: progress)
        // A rebuilding without those records would lose what only they tell.
        if let newer = scan.newer { throw .newer(newer) }
        let salvage = Salvage(unlocked, state, options, scan)
        salvage.plan()
        return salvage
    }

    private init(
        _ unlocked: UnlockedSpace, _ state: NewState, _ options: LibraryOptions, _ scan: ScanResult
    ) {
        (self.unlocked, self.state, self.options, self.scan) = (unlocked, state, options, scan)
        let space = state.space
        let capacity = UInt64(space.segments.count * space.sectors.perSegment * Geometry.sectorBytes)
        contents = FoundContents(
            scan.contents, damagedEnds: scan.damagedEnds,
            // Some segments may be missing.
            storedBytesMax: max(capacity, Self.storedBytesLeast))
        selector = RecordSelector(scan.records)
    }

    private static let storedBytesLeast: UInt64 = 4 << 30

    /// Whether something is known to be lost, or may be.
    var isIncomplete: Bool {
        lacksSectors ?? true || isKnownIncomplete
    }

    private var isKnownIncomplete: Bool {
        !nameless.isEmpty || report.lost + report.damagedPhotos + report.damagedFiles > 0
            || report.damagedTrashed > 0
    }

    /// Whether something tells that records are away, or that an earlier repair took bytes for files without them.
    var lacksRecords: Bool {
        lacksSectors ?? false || isKnownIncomplete || newestGuess > 0 || space.segments.areMissing
    }

    /// Whether records may be away, now or since an earlier repair.
    var mayLackRecords: Bool { lacksRecords || newestRepair > 0 }

    /// The newest commit of a repair that missed records, or a later one; 0 if there was none. What was written up to
    /// it may have come back since.
    var newestIncomplete: UInt64 { max(newestGuess, newestRepair) }

    /// An inode of the new state.
    package struct RecoveredInode {
        package var record: IdentityRecord
        /// Where the record lies; nil if the former catalogue told it.
        package var found: FoundRecord?
        /// The commit as of which it is told.
        package var generation: UInt64
    }

    /// Visits all inodes of users that are not known to be deleted, in the order of their numbers.
    func forEachInode(_ visit: (RecoveredInode) throws(FileError) -> Void) throws(FileError) {
        for ino in Set(selector.records.keys).union(unrecorded.keys).sorted()
        where ino >= WellKnownInode.firstOfUsers && ino <= Geometry.idMax {
            if let recoveredInode = recoveredInode(ino) { try visit(recoveredInode) }
        }
    }

    /// Returns an inode as far as it is known; nil if nothing is known of it, or if it is known to be deleted.
    func recoveredInode(_ ino: UInt64) -> RecoveredInode? {
        guard let found = selector.records[ino], !selector.isRetired(inode: ino),
            case .inode(let record) = read(found), record.row.ino == ino
        else { return unrecorded[ino] }
        return RecoveredInode(record: record, found: found, generation: found.run.generation)
    }

    /// Reads a record again; nil if that fails.
    package func read(_ found: FoundRecord) -> Recorded? {
        let buffer = unsafe Self.buffers.take()
        defer { unsafe Self.buffers.give(buffer) }
        guard
            let plain = try? unsafe space.read(
                role: .identity, content: found.id, run: found.run, chunk: 0, into: buffer)
        else { return nil }
        return unsafe Recorded.decode(plain)?.content
    }

    // MARK: Survey

    private func plan() {
        for found in selector.records.values where found.id >= RetiredIDs.records {
            if case .retired(let block, let bits) = read(found), found.id == RetiredIDs.records + block {
                selector.note(retired: bits, of: block, by: found)
            }
        }
        var known = Known()
        // The visitors write nothing, so they cannot fail.
        try? forEachInode { note($0, &known) }
        let former = try? unlocked.openSpace(readOnly: true)
        if let former { noteSegments(of: former) }
        readCatalogue(of: former, &known)
        var days: Set<Int64> = []
        var named: [ExtentRun] = []
        // As above.
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
            if record.row.flags.isGuess {
                newestGuess = max(newestGuess, recoveredInode.generation)
            }
            if isSuperseded(record) { return }
            let bytes = contents.bytes(of: recoveredInode)
            named += bytes.stored
            if record.hasPlace {
                let content = SnapshotID.source(record.row.content)
                ofFiles[content] = max(ofFiles[content] ?? 0, recoveredInode.generation)
            }
            count(record, bytes, &days)
        }
        report.days = days.count
        nameless = contentsWithoutFile(known.claimed).map { ($0, $1, type(of: $0, $1)) }
        if mayLackRecords {
            for found in nameless { named += found.bytes.stored }
            let numbers = Set(ofFiles.keys).union(nameless.map(\.content))
                .filter { !selector.isRetired(content: $0) }.sorted()
            unnamed = UnnamedState.all(of: numbers, in: contents, named: RangeSet(sectorsOf: named))
                .map { ($0, type(of: $0.content, $0.bytes)) }
        }
        report.nameless = nameless.count + unnamed.count
    }

    /// Contents and directories that the inodes found so far name.
    private struct Known {
        /// Contents of files.
        var claimed: Set<UInt64> = []
        /// Directories in which something has a name.
        var parents: Set<UInt64> = [WellKnownInode.root, WellKnownInode.moments, WellKnownInode.albums]
        /// The best for each content.
        var tellers: [UInt64: Teller] = [:]
    }

    private func note(_ recoveredInode: RecoveredInode, _ known: inout Known) {
        known.parents.formUnion(recoveredInode.record.names.map(\.parent))
        claim(recoveredInode, &known.claimed)
        note(Teller(recoveredInode), of: recoveredInode.record.row, &known.tellers)
        noteSegments(of: recoveredInode.record)
    }

    /// An inode whose record tells of a content.
    private struct Teller {
        var ino: UInt64
        private var isGuess: Bool
        private var generation: UInt64

        init(_ recoveredInode: RecoveredInode) {
            ino = recoveredInode.record.row.ino
            isGuess = recoveredInode.record.row.flags.isGuess
            generation = recoveredInode.generation
        }

        /// Whether its record knows more than another's.
        func isBetter(than other: Teller) -> Bool {
            isGuess == other.isGuess ? generation > other.generation : !isGuess
        }
    }

    private func note(_ teller: Teller, of row: InodeRow, _ known: inout [UInt64: Teller]) {
        guard row.mode & fileTypeMask == regularType, row.content > 0 else { return }
        if let other = known[row.content], !teller.isBetter(than: other) {
            tellers[row.content] = other.ino
            return
        }
        if known.updateValue(teller, forKey: row.content) != nil { tellers[row.content] = teller.ino }
    }

    /// The inode whose record has the rows of a content: of several, the one that knows most.
    func teller(of content: UInt64) -> UInt64? { tellers[content] }

    /// Whether an earlier repair found a file by its bytes alone, and a record tells of these now.
    func isSuperseded(_ record: IdentityRecord) -> Bool {
        guard record.row.flags.contains(.foundWithoutRecord), let teller = teller(of: record.row.content),
            teller != record.row.ino
        else { return false }
        return recoveredInode(teller)?.record.row.flags.contains(.foundWithoutRecord) == false
    }

    private func noteSegments(of record: IdentityRecord) {
        guard let last = record.runs?.lazy.filter({ !$0.isLost }).map(\.sector).max() else { return }
        noteSegment(last / UInt64(space.sectors.perSegment))
    }

    private func noteSegment(_ segment: UInt64) {
        // As `SegmentListing`: more are not lost at once.
        let most = UInt64(space.segments.count + max(4096, space.segments.count * 16))
        if segment < most { lastSegment = max(lastSegment, Int(segment)) }
    }

    /// Notes how many segments the former state has, and whether what was found is less than it has there.
    private func noteSegments(of former: Space) {
        let used = former.sectors.usedCounts
        if let last = used.indices.last { noteSegment(UInt64(last)) }
        var found: [UInt64: Int] = [:]
        for run in (scan.contents + scan.thumbnails).map(\.run) + scan.records.map(\.run) {
            found[run.sector / UInt64(space.sectors.perSegment), default: 0] += run.sectorCount
        }
        lacksSectors = used.enumerated().contains { found[UInt64($0), default: 0] < $1 }
    }

    /// Notes the content of a file. What is found of it besides is filed as a snapshot, if it can have any.
    private func claim(_ recoveredInode: RecoveredInode, _ claimed: inout Set<UInt64>) {
        let (record, row) = (recoveredInode.record, recoveredInode.record.row)
        guard row.mode & fileTypeMask == regularType else { return }
        if !record.hasPlace || SnapshotID.make(of: row.content, number: 1) == nil {
            let bytes = contents.bytes(of: recoveredInode)
            if bytes.pieces.isEmpty || bytes.isGone { return }
        }
        claimed.insert(row.content)
    }

    /// Reads the inodes whose records are lost from the former catalogue: files, and all directories above files. Of
    /// files whose bytes are lost as well the names stay.
    private func readCatalogue(of space: Space?, _ known: inout Known) {
        let former = FormerCatalogue(space)
        let root = selector.records[WellKnownInode.root]
        if former?.isIncomplete ?? root?.isGuess ?? false { newestRepair = root?.run.generation ?? 1 }
        guard let former else { return }
        let nameless = contentsWithoutFile(known.claimed)
        for ino in former.inodes(orOf: Set(nameless.map(\.content)))
        where ino >= WellKnownInode.firstOfUsers && recoveredInode(ino) == nil {
            guard !selector.isRetired(inode: ino), var file = former.inode(ino) else { continue }
            // Where its bytes were is lost too: they come back as those of a file without a record.
            if file.record.runs == nil, file.record.row.mode & fileTypeMask == regularType,
                contents.bytes(of: file).lostBytes > 0
            {
                file.record.row.flags.insert(.foundWithoutRecord)
            }
            unrecorded[ino] = file
            note(file, &known)
        }
        var missing = known.parents.filter { recoveredInode($0) == nil && !selector.isRetired(inode: $0) }
        while let ino = missing.popFirst() {
            guard recoveredInode(ino) == nil, !selector.isRetired(inode: ino),
                let directory = former.inode(ino), directory.record.row.mode & fileTypeMask == directoryType
            else { continue }
            unrecorded[ino] = directory
            missing.formUnion(directory.record.names.map(\.parent))
        }
    }

    private func count(_ record: IdentityRecord, _ bytes: FoundBytes, _ days: inout Set<Int64>) {
        let isDamaged = bytes.lostBytes > 0
        if bytes.isGone {
            report.lost += 1
        } else if record.trashed != nil {
            report.trashedPhotos += 1
            report.damagedTrashed += isDamaged ? 1 : 0
        } else if let photo = record.photo {
            report.photos += 1
            report.damagedPhotos += isDamaged ? 1 : 0
            days.insert(photo.day)
        } else {
            report.otherFiles += 1
            report.damagedFiles += isDamaged ? 1 : 0
        }
    }

    /// Contents that no file has, with their newest bytes, except those that a block of retired numbers lists as older
    /// versions or removed.
    private func contentsWithoutFile(_ claimed: Set<UInt64>) -> [(content: UInt64, bytes: FoundBytes)] {
        contents.numbers.compactMap { content in
            if claimed.contains(content) || selector.isRetired(content: content) { return nil }
            let bytes = contents.newestBytes(of: content)
            return bytes.pieces.isEmpty || bytes.isGone ? nil : (content, bytes)
        }
    }

    /// The type of a picture or video.
    private func type(of content: UInt64, _ bytes: FoundBytes) -> MediaType? {
        if bytes.pieces.first?.isLost != false { return nil }
        return readFacts(FoundSource(space, content, bytes))?.type
    }

    // MARK: The new state

    /// Builds the new catalogue and publishes it as the state of the space.
    public func rebuild() throws(VaultError) {
        let catalogue: Catalogue
        do throws(FileError) {
            catalogue = try build()
            let frozen = try catalogue.commitTransaction(
                before: { _ throws(FileError) in }, freeze: { space.freeze() })
            try stored(space.publish(frozen, durable: true))
            // Every root slot gets a root of the new state.
            try stored(space.publishMended())
            try stored(space.close())
        } catch {
            throw error == .noRoom ? .noRoom : .damaged("no new catalogue could be written")
        }
        // From here on it is a space like any other.
        try classifyFiles()
    }

    /// Opens the rebuilt space as an ordinary one and classifies its files, as after a kill.
    private func classifyFiles() throws(VaultError) {
        let library = try Library.open(unlocked, options: options)
        library.didGoLive()
        do throws(FileError) { try library.close() } catch {
            throw error == .noRoom ? .noRoom : .damaged("the recovered files could not be classified")
        }
    }

    private func build() throws(FileError) -> Catalogue {
        var claimed: [Range<UInt64>] = []
        // Lost bytes keep their places, so that they are there again if their segment is.
        space.segments.countAll(through: lastSegment)
        for run in (scan.contents + scan.thumbnails).map(\.run) + scan.records.map(\.run)
        where try stored(state.allocate(run)) {
            claimed.append(run.sector..<run.sector + UInt64(run.sectorCount))
        }
        state.begin(after: scan.newestGeneration, replacingMissing: !isIncomplete)
        let catalogue = try Catalogue(of: space, readOnly: false)
        let used = try catalogue.locked { tables throws(FileError) in
            var tree = SalvagedTree(self, try Tree(tables, options))
            let used = try tree.build()
            try tables.checks.countTotals()
            return used
        }
        state.free(subtracting(used, from: claimed))
        return catalogue
    }
}

extension IdentityRecord {
    /// Whether the file is not deleted: a copy of a photo in the trash has no name.
    var hasPlace: Bool { !names.isEmpty || photo != nil || row.flags.contains(.copy) }
}

/// Returns the parts of `ranges` that lie in none of `others`. `ranges` may be unsorted, but must not overlap.
package func subtracting(_ others: [Range<UInt64>], from ranges: [Range<UInt64>]) -> [Range<UInt64>] {
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

/// Recovered bytes as a source for the readers of metadata.
private struct FoundSource: ByteSource {
    private let space: Space
    private let content: UInt64
    private let bytes: FoundBytes
    package var byteCount: UInt64 { bytes.size }

    package init(_ space: Space, _ content: UInt64, _ bytes: FoundBytes) {
        (self.space, self.content, self.bytes) = (space, content, bytes)
    }

    package func read(at offset: UInt64, into target: UnsafeMutableRawBufferPointer) -> Int {
        let buffer = unsafe Salvage.buffers.take()
        defer { unsafe Salvage.buffers.give(buffer) }
        var done = 0
        while done < target.count, offset + UInt64(done) < byteCount {
            let position = offset + UInt64(done)
            guard let piece = bytes.pieces.first(where: { $0.run.end > position }), !piece.isLost,
                piece.run.offset <= position
            else { return -1 }
            let chunk = Int((position - piece.run.offset) / Chunk.bytes)
            guard
                let plain = try? unsafe space.read(
                    role: .content, content: content, run: piece.run, chunk: chunk, into: buffer)
            else { return -1 }
            let first = Int(position - piece.run.offset) - chunk * Int(Chunk.bytes)
            let count = min(plain.count - first, target.count - done)
            unsafe target[done...].copyBytes(from: plain[first..<first + count])
            done += count
        }
        return done
    }
}
