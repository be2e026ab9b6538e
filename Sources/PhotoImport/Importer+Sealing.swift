import FileRequests
import LinuxIO
import PhotoImaging
import PhotoLibrary
import VaultStore

extension Importer {
    /// Seals a file's bytes piece by piece; `proceed` is called with the size of each piece. Returns nil, and keeps
    /// nothing, if the file could not be read to its end, changed meanwhile, or `proceed` returned false.
    func seal(_ source: some ImportSource, _ proceed: (UInt64) -> Bool) throws(FileError) -> SealedContent? {
        session.committer.waitForStagedPages()
        try session.room.requireRowRoom()
        let sealed = SealedContent(
            content: try session.change { change throws(FileError) in change.tree.makeContent() })
        do throws(FileError) {
            if try fill(sealed, from: source, proceed), source.isUnchanged {
                // One commit gets all of its rows.
                try session.room.requireRoom(forRows: sealed.runs.count)
                return sealed
            }
        } catch {
            sealed.abandon(session.space)
            throw error
        }
        sealed.abandon(session.space)
        return nil
    }

    private func fill(
        _ sealed: SealedContent, from source: some ImportSource, _ proceed: (UInt64) -> Bool
    ) throws(FileError) -> Bool {
        let buffer = unsafe session.context.replies.take()
        defer { unsafe session.context.replies.give(buffer) }
        let end = source.byteCount
        while sealed.byteCount < end {
            let start = sealed.byteCount
            let next = source.storedRange(from: start)
            sealed.skip(to: next.map { max(start, Chunk.start(Chunk.index($0.lowerBound))) } ?? end)
            let skipped = sealed.byteCount - start
            let stop = min(end, next.map { Chunk.start(Chunk.index($0.upperBound - 1) + 1) } ?? end)
            guard stop >= sealed.byteCount, stop > start else { return false }
            let wanted = Int(min(UInt64(buffer.count), stop - sealed.byteCount))
            let piece = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted])
            guard unsafe source.read(at: sealed.byteCount, into: piece) == wanted else { return false }
            try unsafe add(UnsafeRawBufferPointer(piece), to: sealed)
            guard proceed(skipped + UInt64(wanted)) else { return false }
        }
        return true
    }

    /// Seals a piece except its chunks of zeros: not every host reports holes.
    private func add(_ piece: UnsafeRawBufferPointer, to sealed: SealedContent) throws(FileError) {
        let first = sealed.byteCount
        func chunk(_ start: Int) -> UnsafeRawBufferPointer {
            unsafe UnsafeRawBufferPointer(rebasing: piece[start..<min(start + Int(Chunk.bytes), piece.count)])
        }
        var done = 0
        while done < piece.count {
            var end = done
            let isHole = unsafe isAllZero(chunk(done))
            repeat {
                unsafe end += chunk(end).count
            } while unsafe end < piece.count && isAllZero(chunk(end)) == isHole
            if isHole {
                sealed.skip(to: first + UInt64(end))
            } else {
                let part = unsafe UnsafeRawBufferPointer(rebasing: piece[done..<end])
                let runs = try unsafe session.context.seal(
                    content: sealed.content, offset: first + UInt64(done), part, near: sealed.nextSector,
                    purpose: .user)
                sealed.append(runs, part.count)
            }
            done = end
        }
    }
}
