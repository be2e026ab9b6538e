import LinuxIO
import PhotoImaging
import VaultFormat
import VaultStore

/// The bytes of a file that is about to be added to the library: sealed and written, but not referred to yet.
///
/// A crash discards them. The owner either adopts the content, with the catalogue's lock held, or abandons it.
final class SealedContent {
    let content: UInt64
    private(set) var map = ExtentMap()
    /// Plaintext bytes so far: whole chunks, until the last piece.
    private(set) var byteCount: UInt64 = 0
    private(set) var isAdopted = false

    init(content: UInt64) { self.content = content }

    var runs: [ExtentRun] { map.pieces.map(\.run) }

    /// The best sector for the next piece.
    var nextSector: UInt64? { map.pieces.last.map { $0.run.sector + UInt64($0.run.sectorCount) } }

    /// Records the runs in which the next `count` bytes were sealed.
    func append(_ runs: [ExtentRun], _ count: Int) {
        precondition(byteCount % Chunk.bytes == 0)
        let end = byteCount + UInt64(count)
        _ = map.replace(byteCount, (end + Chunk.bytes - 1) / Chunk.bytes * Chunk.bytes, with: runs)
        byteCount = end
    }

    /// Records zeros up to `end`: a whole number of chunks, or the file's end.
    func skip(to end: UInt64) {
        precondition(byteCount % Chunk.bytes == 0 && end >= byteCount)
        byteCount = end
    }

    /// Makes the bytes part of the next commit. The table already has their rows.
    func adopt(_ space: Space) {
        if !runs.isEmpty { space.adopt(runs) }
        isAdopted = true
    }

    /// Frees the sectors, unless they were adopted.
    func abandon(_ space: Space) {
        if !isAdopted, !runs.isEmpty { space.abandon(runs) }
        map = ExtentMap()
    }
}

extension Library {
    /// Seals a file's bytes piece by piece; `proceed` is called with the size of each piece. Returns nil, and keeps
    /// nothing, if the file could not be read to its end, changed meanwhile, or `proceed` returned false.
    func seal(_ source: some ImportSource, _ proceed: (UInt64) -> Bool) throws(FileError) -> SealedContent? {
        let sealed = SealedContent(content: try changing { tree throws(FileError) in tree.makeContent() })
        do throws(FileError) {
            if try fill(sealed, from: source, proceed), source.isUnchanged { return sealed }
        } catch {
            sealed.abandon(space)
            throw error
        }
        sealed.abandon(space)
        return nil
    }

    private func fill(
        _ sealed: SealedContent, from source: some ImportSource, _ proceed: (UInt64) -> Bool
    ) throws(FileError) -> Bool {
        let buffer = context.replies.take()
        defer { context.replies.give(buffer) }
        let end = source.byteCount
        while sealed.byteCount < end {
            let start = sealed.byteCount
            let next = source.storedRange(from: start)
            sealed.skip(to: next.map { max(start, Chunk.start(Chunk.index($0.lowerBound))) } ?? end)
            let skipped = sealed.byteCount - start
            let stop = min(end, next.map { Chunk.start(Chunk.index($0.upperBound - 1) + 1) } ?? end)
            guard stop >= sealed.byteCount, stop > start else { return false }
            let wanted = Int(min(UInt64(buffer.count), stop - sealed.byteCount))
            let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted])
            guard source.read(at: sealed.byteCount, into: piece) == wanted else { return false }
            try add(UnsafeRawBufferPointer(piece), to: sealed)
            guard proceed(skipped + UInt64(wanted)) else { return false }
        }
        return true
    }

    /// Seals a piece except its chunks of zeros: not every host reports holes.
    private func add(_ piece: UnsafeRawBufferPointer, to sealed: SealedContent) throws(FileError) {
        let first = sealed.byteCount
        func chunk(_ start: Int) -> UnsafeRawBufferPointer {
            UnsafeRawBufferPointer(rebasing: piece[start..<min(start + Int(Chunk.bytes), piece.count)])
        }
        var done = 0
        while done < piece.count {
            var end = done
            let isHole = isAllZero(chunk(done))
            repeat { end += chunk(end).count } while end < piece.count && isAllZero(chunk(end)) == isHole
            if isHole {
                sealed.skip(to: first + UInt64(end))
            } else {
                let part = UnsafeRawBufferPointer(rebasing: piece[done..<end])
                let runs = try context.seal(
                    content: sealed.content, offset: first + UInt64(done), part, near: sealed.nextSector,
                    purpose: .user)
                sealed.append(runs, part.count)
            }
            done = end
        }
    }
}
