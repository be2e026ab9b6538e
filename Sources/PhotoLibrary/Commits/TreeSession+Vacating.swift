import FileRequests
import LinuxIO
import VaultCatalogue
import VaultFormat
import VaultStore

/// Room for pages where content has taken all: in a space of fixed size what lies in the emptiest segments is moved; a
/// full host gets back the disk of what was removed.
extension TreeSession {
    /// Runs moved in one transaction.
    private static let runsPerMove = 32
    /// Segments that are tried before the space counts as full.
    private static let segmentsTried = 4
    /// Commits after which a segment is given up though something in it is still in use.
    private static let idleCommits = 4

    /// Gives the catalogue a pair of segments, emptied if need be, or disk. Returns false if there is none. Called with
    /// the catalogue's lock not held.
    func makeSlotRoom() -> Bool {
        guard !isReadOnly, space.grows || space.mayVacate else { return false }
        let pages = space.pageSegments
        vacating.lock()
        defer { vacating.unlock() }
        // Another thread has made room while this one waited.
        if space.pageSegments != pages { return true }
        guard space.freedSectors != vainSectors else { return false }
        // Freed sectors can be used once no root refers to them.
        for _ in 0..<3 where space.pendingBytes > 0 {
            guard commitAndOverwrite() else { return false }
        }
        let isMade = space.grows ? space.giveBackForSlots() : emptyPair()
        if !isMade { vainSectors = space.freedSectors }
        return isMade
    }

    /// Gives the catalogue a pair of segments, those that hold least. Returns false if no two can be emptied.
    private func emptyPair() -> Bool {
        defer { space.endVacating() }
        for _ in 0..<Self.segmentsTried where !space.hasVacantPair {
            guard let sectors = space.beginVacating() else { break }
            _ = saveFiles(unsavedBefore: .max)
            do throws(FileError) { try vacate(sectors) } catch {
                if error == .damaged { space.noteUnvacatable(sectors) }
            }
        }
        return space.growIntoVacantPair()
    }

    private func commitAndOverwrite() -> Bool {
        guard committer.commitNow() else { return false }
        space.overwriteFreed(most: .max / 2)
        return true
    }

    /// Moves the contents of a segment, but for those that are in use.
    private func vacate(_ sectors: Range<UInt64>) throws(FileError) {
        while let moves = try nextMoves(in: sectors) {
            guard try move(moves) else { return }
        }
        try change(for: .removal) { change throws(FileError) in
            // The next durable commits write these records elsewhere.
            change.tree.unrecorded.formUnion(try sql(change.tree.tables.identities(in: sectors)))
        }
        var (used, idle) = (space.usedSectors(in: sectors), 0)
        while used > 0, idle < Self.idleCommits, commitAndOverwrite() {
            let left = space.usedSectors(in: sectors)
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
        let rows = try locked { tree throws(FileError) in
            try sql(tree.tables.rows(in: sectors, limit: Self.runsPerMove))
        }
        if rows.isEmpty { return nil }
        var moves: [Move] = []
        do throws(FileError) {
            var rest = rows[...]
            while let first = rest.first {
                let same = rest.prefix { $0.run.sector == first.run.sector }
                rest = rest.dropFirst(same.count)
                // Rows that share sectors are equal in a sound catalogue.
                guard space.isPossible(first.run), same.allSatisfy({ $0.run == first.run }) else {
                    throw .damaged
                }
                moves.append(try sealedElsewhere(Array(same), sectors))
            }
        } catch {
            space.abandon(moves.flatMap(\.new))
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
        move.new = try stored(space.sealElsewhere(old, of: rows[0].content))
        move.parts = [run.part(from: 0, to: lower)] + move.new + [run.part(from: upper, to: .max)]
        move.parts.removeAll { $0.length == 0 }
        return move
    }

    /// Gives rows their new sectors, in one transaction. Returns false if none could get them: files are in use.
    private func move(_ moves: [Move]) throws(FileError) -> Bool {
        let rowCount = moves.reduce(0) { $0 + $1.rows.count + $1.parts.count }
        var (done, left): ([Move], [Move]) = ([], moves)
        defer { space.abandon(left.flatMap(\.new)) }
        try change(for: .removal, pages: Self.pagesPerChange + rowCount) { change throws(FileError) in
            // Records tell where contents lie.
            let sectors = moves[0].run.sector..<moves[moves.count - 1].run.endSector
            change.tree.unrecorded.formUnion(try sql(change.tree.tables.inodes(withExtentsIn: sectors)))
            left = []
            defer {
                space.adopt(done.flatMap(\.new))
                space.free(done.map(\.old), overwriting: true)
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
        guard try sql(tree.tables.rows(at: move.run.sector)) == move.rows else { return false }
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
            try sql(tree.tables.deleteExtents(of: row.content, from: first, through: first))
            for part in move.parts { try sql(tree.tables.insert(part, of: row.content)) }
        }
        for file in files { file.move(move.run, to: move.parts) }
        return true
    }
}

extension ExtentRun {
    /// The offset of the first extent of a run that begins at a sector or behind it; the run's end if none does.
    fileprivate func offset(at sector: UInt64) -> UInt64 {
        if sector <= self.sector { return offset }
        return min(offset + (sector - self.sector + Chunk.sectors - 1) / Chunk.sectors * Chunk.bytes, end)
    }
}
