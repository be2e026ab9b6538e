package import FileRequests
import LinuxIO
import Synchronization
import VaultCatalogue
import VaultFormat
import VaultStore

/// Room for catalogue pages: every change has it before it is made, so that the next commit has it too.
///
/// Unchecked Sendable: what changes is atomic, or under the lock that is named.
package final class PageRoom: @unchecked Sendable {
    private unowned let session: TreeSession
    /// The most catalogue pages that changed since the transaction began, and are in SQLite's cache only.
    private let unstagedPages = Atomic<Int>(0)
    /// The count of row changes when the transaction began. Under the catalogue's lock.
    private var storedChangeCount: Int64 = 0
    /// Held while room for pages is made; taken before all others but a file's.
    private let vacating = Lock()
    /// `Space.freedSectors` when no more could be made. Under `vacating`.
    private var vainSectors: UInt64?

    init(_ session: TreeSession) { self.session = session }

    /// Catalogue pages that a change of one name changes at most.
    package static let pagesPerChange = 32

    /// Extent rows that are deleted in one change: fewer in a catalogue that is nearly full.
    func reapedRows() -> Int {
        let most = session.space.limits.reapedRows
        return hasRoom(for: .addition, FileContext.pages(ofRows: most)) ? most : min(most, 64)
    }

    /// Waits until the catalogue has room for a few more rows; throws `.noRoom` if it cannot get any. Called before a
    /// user adds something, with the catalogue's lock not held.
    ///
    /// - Parameter replacing: whether the rows take the place of others.
    package func requireRowRoom(replacing: Bool = false) throws(FileError) {
        try requireRoom(for: replacing ? .edit : .addition, pages: Self.pagesPerChange)
    }

    /// Waits until one commit has room for a change of many rows; throws `.noRoom` if it cannot get any. Called before
    /// the change, with the catalogue's lock not held.
    package func requireRoom(toChangeRows count: Int) throws(FileError) {
        // The rows of one inode lie near each other.
        if count > Self.uncheckedRows { try requireRoom(for: .removal, pages: count / 2) }
    }

    /// As `requireRowRoom`, for a new file with so many extent rows.
    package func requireRoom(forRows count: Int) throws(FileError) {
        try requireRoom(for: .addition, pages: Self.pagesPerChange + FileContext.pages(ofRows: count))
    }

    /// Waits until the catalogue has room for so many rows of new bytes of a file, beside all that were promised; may
    /// save the file. Throws `.noRoom` if it cannot get any. The writer's lock is held.
    func requireRoom(forRows count: Int, of file: FileState) throws(FileError) {
        try requireRoom(for: .edit, pages: FileContext.pages(ofRows: count), saving: file)
    }

    /// `pagesPerChange` is enough for so many rows.
    private static let uncheckedRows = 64

    /// As `requireRowRoom`, for a change of so many pages. Where room is short, saves all files, and `file`, whose
    /// writer's lock is held: until then their rows count by their worst case. Then destroys versions and trash.
    func requireRoom(
        for purpose: ChangePurpose, pages: Int, saving file: FileState? = nil
    ) throws(FileError) {
        if hasRoom(for: purpose, pages), !session.committer.isOutOfRoom { return }
        // Room that is made lasts for some changes: each would pay for commits otherwise.
        let pages = purpose == .removal ? pages : pages + session.space.limits.reservedSlots / 2
        if makeRoom(for: purpose, pages) { return }
        if let file, file.unsavedSince != nil { try session.save(file) }
        _ = session.saveFiles(unsavedBefore: .max)
        if makeRoom(for: purpose, pages) { return }
        if session.space.isHostSilent { throw .damaged }
        // Concurrent writes take less room than they reserved: no photo is destroyed for the difference.
        let likely = pages + unstaged + session.context.promisedPages / 4
        if !session.committer.isOutOfRoom, session.space.ledger.hasRoom(for: purpose, pages: likely) {
            return
        }
        // Moving content loses nothing: versions and trash make way only where that does not help.
        while makeSlotRoom() { if makeRoom(for: purpose, pages) { return } }
        while !makeRoom(for: purpose, pages) {
            guard session.committer.makeRowRoom() else { throw .noRoom }
        }
    }

    /// Waits until the next commit has room for a change of so many pages. Returns false if it cannot get any.
    func awaitRoom(for purpose: ChangePurpose, _ pages: Int) -> Bool {
        if hasRoom(for: purpose, pages), purpose == .removal || !session.committer.isOutOfRoom { return true }
        if makeRoom(for: purpose, pages) { return true }
        // Room for the commit itself is enough for a change that makes room.
        return purpose == .removal && session.space.ledger.canCommit(pages: pages + unstaged)
    }

    private func makeRoom(for purpose: ChangePurpose, _ pages: Int) -> Bool {
        session.committer.makePageRoom(for: purpose) { pages + unstaged + promisedPages(beside: purpose) }
    }

    private func hasRoom(for purpose: ChangePurpose, _ pages: Int) -> Bool {
        session.space.ledger.hasRoom(for: purpose, pages: pages + unstaged + promisedPages(beside: purpose))
    }

    /// The most catalogue pages that changed in this transaction, and are in SQLite's cache only.
    var unstaged: Int { unstagedPages.load(ordering: .relaxed) }

    /// Pages for accepted bytes that are not saved yet. Saving them, and removing, must not wait for them.
    private func promisedPages(beside purpose: ChangePurpose) -> Int {
        purpose == .removal ? 0 : session.context.promisedPages
    }

    // MARK: Moving content

    /// Runs moved in one transaction.
    private static let runsPerMove = 32
    /// Segments that are tried before the space counts as full.
    private static let segmentsTried = 4
    /// Commits after which a segment is given up though something in it is still in use.
    private static let idleCommits = 4

    /// Gives the catalogue a pair of segments, emptied if need be, or disk. Returns false if there is none. Called with
    /// the catalogue's lock not held.
    func makeSlotRoom() -> Bool {
        guard !session.isReadOnly, session.space.grows || session.space.segments.mayVacate else {
            return false
        }
        let pages = session.space.segments.pageSegments
        vacating.lock()
        defer { vacating.unlock() }
        // Another thread has made room while this one waited.
        if session.space.segments.pageSegments != pages { return true }
        guard session.space.sectors.freedSectors != vainSectors else { return false }
        // Freed sectors can be used once no root refers to them.
        for _ in 0..<3 where session.space.sectors.pendingBytes > 0 {
            guard commitAndOverwrite() else { return false }
        }
        let isMade = session.space.grows ? session.space.giveBackForSlots() : emptyPair()
        if !isMade { vainSectors = session.space.sectors.freedSectors }
        return isMade
    }

    /// Gives the catalogue a pair of segments, those that hold least. Returns false if no two can be emptied.
    private func emptyPair() -> Bool {
        defer { session.space.segments.endVacating() }
        for _ in 0..<Self.segmentsTried where !session.space.segments.hasVacantPair {
            guard let sectors = session.space.segments.beginVacating() else { break }
            _ = session.saveFiles(unsavedBefore: .max)
            do throws(FileError) { try vacate(sectors) } catch {
                if error == .damaged { session.space.segments.noteUnvacatable(sectors) }
            }
        }
        return session.space.ledger.growIntoVacantPair()
    }

    private func commitAndOverwrite() -> Bool {
        guard session.committer.commitNow() else { return false }
        session.space.eraser.overwrite(most: .max / 2)
        return true
    }

    /// Moves the contents of a segment, but for those that are in use.
    private func vacate(_ sectors: Range<UInt64>) throws(FileError) {
        while let moves = try nextMoves(in: sectors) {
            guard try move(moves) else { return }
        }
        try session.change(for: .removal) { change throws(FileError) in
            // The next durable commits write these records elsewhere.
            change.tree.marks.add(try change.tree.tables.identities.numbers(in: sectors))
        }
        var (used, idle) = (session.space.segments.usedSectors(in: sectors), 0)
        while used > 0, idle < Self.idleCommits, commitAndOverwrite() {
            let left = session.space.segments.usedSectors(in: sectors)
            idle = left < used ? 0 : idle + 1
            used = left
        }
    }

    /// A run to be moved, with its rows.
    private struct Move {
        var rows: [ContentRun]
        /// The runs that replace each row: those outside of the segment as they were, and the new ones.
        var parts: [ExtentRun] = []
        /// The part that is moved, and its new runs.
        var old: ExtentRun
        var new: [ExtentRun] = []

        var run: ExtentRun { rows[0].run }
    }

    /// Seals the next runs in a segment anew; nil if none is left.
    private func nextMoves(in sectors: Range<UInt64>) throws(FileError) -> [Move]? {
        let rows = try session.locked { tree throws(FileError) in
            try tree.tables.extents.rows(in: sectors, limit: Self.runsPerMove)
        }
        if rows.isEmpty { return nil }
        var moves: [Move] = []
        do throws(FileError) {
            var rest = rows[...]
            while let first = rest.first {
                let same = rest.prefix { $0.run.sector == first.run.sector }
                rest = rest.dropFirst(same.count)
                // Rows that share sectors are equal in a sound catalogue.
                guard session.space.segments.isPossible(first.run), same.allSatisfy({ $0.run == first.run })
                else {
                    throw .damaged
                }
                moves.append(try sealedElsewhere(Array(same), sectors))
            }
        } catch {
            session.space.abandon(moves.flatMap(\.new))
            throw error
        }
        return moves
    }

    private func sealedElsewhere(
        _ rows: [ContentRun], _ sectors: Range<UInt64>
    ) throws(FileError) -> Move {
        let run = rows[0].run
        let (lower, upper) = (run.offset(at: sectors.lowerBound), run.offset(at: sectors.upperBound))
        let old = run.part(from: lower, to: upper)
        guard old.length > 0 else { throw .damaged }
        var move = Move(rows: rows, old: old)
        move.new = try stored(session.space.sealElsewhere(old, of: rows[0].content))
        move.parts = [run.part(from: 0, to: lower)] + move.new + [run.part(from: upper, to: .max)]
        move.parts.removeAll { $0.length == 0 }
        return move
    }

    /// Gives rows their new sectors, in one transaction. Returns false if none could get them: files are in use.
    private func move(_ moves: [Move]) throws(FileError) -> Bool {
        let rowCount = moves.reduce(0) { $0 + $1.rows.count + $1.parts.count }
        var (done, left): ([Move], [Move]) = ([], moves)
        defer { session.space.abandon(left.flatMap(\.new)) }
        try session.change(for: .removal, pages: Self.pagesPerChange + rowCount) { change throws(FileError) in
            // Records tell where contents lie.
            let sectors = moves[0].run.sector..<moves[moves.count - 1].run.endSector
            change.tree.marks.add(try change.tree.tables.inodes.numbers(withExtentsIn: sectors))
            left = []
            defer {
                session.space.adopt(done.flatMap(\.new))
                session.space.free(done.map(\.old), overwriting: true)
            }
            let open = change.tree.openFiles(of: Set(moves.flatMap { $0.rows.map(\.content) }))
            for move in moves {
                if (try? apply(move, open, change.tree)) == true {
                    done.append(move)
                } else {
                    left.append(move)
                }
            }
        }
        return !done.isEmpty
    }

    /// Replaces the rows of a run; false if they have changed, or an open file that has them is in use.
    private func apply(_ move: Move, _ open: [FileState], _ tree: Tree) throws(FileError) -> Bool {
        guard try tree.tables.extents.rows(at: move.run.sector) == move.rows else { return false }
        var files: [FileState] = []
        defer { for file in files { file.writer.unlock() } }
        for file in open where move.rows.contains(where: { $0.content == file.content }) {
            // The order of locks is the other way round: whoever has this one may be waiting for the catalogue.
            guard file.writer.tryLock() else { return false }
            files.append(file)
            guard file.mayMove(move.run) else { return false }
        }
        for row in move.rows {
            let first = row.run.offset
            try tree.tables.extents.delete(of: row.content, from: first, through: first)
            for part in move.parts { try tree.tables.extents.insert(part, of: row.content) }
        }
        for file in files { file.move(move.run, to: move.parts) }
        return true
    }

    // MARK: The transaction

    /// Counts the pages that changed in this transaction. Under the catalogue's lock.
    func noteUnstagedPages(_ tables: Tables) {
        let rows = Int(tables.changeCount - storedChangeCount) + session.tree.changedInodes
        let cached = session.space.limits.catalogueCacheKibibytes * 1024 / Geometry.pageBytes
        unstagedPages.store(min(cached, Self.pagesPerRow * rows), ordering: .relaxed)
    }

    /// Pages that a changed row changes at most, in the mean: its own, those of indexes, and those that are split.
    private static let pagesPerRow = 4

    /// Notes that the transaction was ended, so that all changed pages are staged. Under the catalogue's lock.
    func noteTransactionEnd(_ changeCount: Int64) {
        storedChangeCount = changeCount
        unstagedPages.store(0, ordering: .relaxed)
    }
}

extension ExtentRun {
    /// The offset of the first extent of a run that begins at a sector or behind it; the run's end if none does.
    fileprivate func offset(at sector: UInt64) -> UInt64 {
        if sector <= self.sector { return offset }
        return min(offset + (sector - self.sector + Chunk.sectors - 1) / Chunk.sectors * Chunk.bytes, end)
    }
}
