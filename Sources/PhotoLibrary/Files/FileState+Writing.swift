package import FileRequests
import Glibc
package import LinuxIO
import VaultFormat
import VaultStore

/// Changing a file's bytes. The writer's lock is held throughout.
extension FileState {
    /// Maximum file size, so that offsets fit everywhere.
    package static let sizeMax = Geometry.fileBytesMax

    /// Writes bytes. Returns their number: fewer than all only if an error came after some.
    ///
    /// - Parameter isWriteback: whether the kernel writes pages of a mapping. It takes a short count for all of them:
    ///   an error must be thrown, though some bytes are written.
    /// - Parameter isHeld: whether `bytes` stay valid, and may be overwritten by others who write there, until
    ///   `sealAccepted`, which must be called even after an error.
    package func write(
        at offset: UInt64, _ bytes: UnsafeRawBufferPointer, isWriteback: Bool = false, isHeld: Bool = false,
        now: Timestamp
    ) throws(FileError) -> Int {
        guard offset <= Self.sizeMax, UInt64(bytes.count) <= Self.sizeMax - offset else { throw .fileTooBig }
        var done = 0
        do throws(FileError) {
            try context.session.room.requireRoom(forRows: 0, of: self)
            try beginChange(keeping: size)
            while done < bytes.count {
                let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[done...])
                unsafe done += try writeSome(at: offset + UInt64(done), rest, isHeld: isHeld, now)
                // Rows that one commit can hold.
                if unsavedRows > Self.unsavedRowsMax { try context.session.save(self) }
            }
        } catch {
            if error == .noRoom { context.noteCutShort(ino) }
            if done > 0 && !isWriteback { return done }
            throw error
        }
        return done
    }

    /// With more extent rows to save, a file is saved while it is written.
    private static let unsavedRowsMax = 256

    /// Writes up to the next chunk boundary, or as many whole chunks as there are.
    private func writeSome(
        at offset: UInt64, _ bytes: UnsafeRawBufferPointer, isHeld: Bool, _ now: Timestamp
    ) throws(FileError) -> Int {
        if !context.isTight {
            do throws(FileError) {
                return try unsafe writeAmply(at: offset, bytes, isHeld: isHeld, now)
            } catch {
                // The room reserved for buffered bytes is generous: sealed at once, they may still fit.
                guard error == .noRoom else { throw error }
            }
        }
        let within = offset % Chunk.bytes
        if within == 0 && bytes.count >= Int(Chunk.bytes) {
            let chunk = unsafe UnsafeRawBufferPointer(rebasing: bytes[..<Int(Chunk.bytes)])
            try unsafe writeWhole(at: offset, chunk, now)
            return chunk.count
        }
        let count = min(bytes.count, Int(Chunk.bytes - within))
        let part = unsafe UnsafeRawBufferPointer(rebasing: bytes[..<count])
        try unsafe writeThrough(Chunk.index(offset), within, part, now)
        return count
    }

    /// As `writeSome`, where there is room enough to seal the bytes later.
    private func writeAmply(
        at offset: UInt64, _ bytes: UnsafeRawBufferPointer, isHeld: Bool, _ now: Timestamp
    ) throws(FileError) -> Int {
        let within = offset % Chunk.bytes
        if within == 0 && bytes.count >= Int(Chunk.bytes) {
            if isHeld {
                try unsafe accept(
                    Chunk.index(offset), UnsafeRawBufferPointer(rebasing: bytes[..<Int(Chunk.bytes)]), now)
                return Int(Chunk.bytes)
            }
            let whole = bytes.count / Int(Chunk.bytes) * Int(Chunk.bytes)
            try unsafe writeWhole(at: offset, UnsafeRawBufferPointer(rebasing: bytes[..<whole]), now)
            return whole
        }
        let count = min(bytes.count, Int(Chunk.bytes - within))
        try unsafe writePart(
            Chunk.index(offset), within, UnsafeRawBufferPointer(rebasing: bytes[..<count]), now)
        return count
    }

    /// Seals whole chunks from the request's own buffer.
    private func writeWhole(at offset: UInt64, _ bytes: UnsafeRawBufferPointer, _ now: Timestamp)
        throws(FileError)
    {
        let end = offset + UInt64(bytes.count)
        let overhead = UInt64(bytes.count) / Chunk.bytes * Self.overheadBytes
        try context.reserve(UInt64(bytes.count) + overhead, atOnce: true)
        let runs = try unsafe context.seal(
            content: content, offset: offset, bytes, near: sectorBehind(offset), purpose: .user)
        try requireRoom(for: runs)
        view.lock()
        defer { view.unlock() }
        replaceChunks(offset, end, with: runs)
        noteWritten(size: max(size, end), now)
    }

    /// Waits until the catalogue has room for the rows of sealed bytes; abandons them if it cannot get any.
    private func requireRoom(for runs: [ExtentRun]) throws(FileError) {
        do throws(FileError) { try context.session.room.requireRoom(forRows: runs.count, of: self) } catch {
            context.space.abandon(runs)
            throw error
        }
    }

    /// Writes into one chunk, and seals it before the answer.
    private func writeThrough(
        _ index: UInt64, _ within: UInt64, _ bytes: UnsafeRawBufferPointer, _ now: Timestamp
    ) throws(FileError) {
        if dirty[index] != nil { try seal(index) }
        let start = Chunk.start(index)
        let end = within + UInt64(bytes.count)
        let buffer = unsafe context.chunks.take()
        defer { unsafe context.chunks.give(buffer) }
        var valid: UInt64 = 0
        let stored = map.storedBytes(inChunk: index)
        if stored > 0 && !(within == 0 && end >= stored) {
            try unsafe copyStored(
                map, start, into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(stored)]))
            valid = stored
        }
        if within > valid {
            unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[Int(valid)..<Int(within)]).zero()
        }
        unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[Int(within)..<Int(end)]).copyMemory(from: bytes)
        valid = max(valid, end)
        try context.reserve(valid + Self.overheadBytes, atOnce: true)
        let runs = try unsafe context.seal(
            content: content, offset: start, UnsafeRawBufferPointer(rebasing: buffer[..<Int(valid)]),
            near: sectorBehind(start), purpose: .user)
        try requireRoom(for: runs)
        view.withLock {
            replaceChunks(start, start + Chunk.bytes, with: runs)
            noteWritten(size: max(size, start + end), now)
        }
    }

    /// Replaces the chunks of a range, sealed or dirty. Both locks are held.
    private func replaceChunks(_ lower: UInt64, _ upper: UInt64, with runs: [ExtentRun]) {
        if !dirty.isEmpty {
            for index in Chunk.index(lower)..<Chunk.index(upper) { drop(index) }
        }
        replace(lower, upper, with: runs)
    }

    /// Takes one whole chunk, which stays in the request's own buffer until it is sealed.
    private func accept(_ index: UInt64, _ bytes: UnsafeRawBufferPointer, _ now: Timestamp) throws(FileError)
    {
        let chunk = unsafe DirtyChunk(borrowing: bytes)
        try context.countDirty(for: self)
        do throws(FileError) { try reserve(for: chunk, Chunk.bytes) } catch {
            context.uncountDirty(reserved: 0)
            throw error
        }
        view.lock()
        defer { view.unlock() }
        drop(index)
        dirty[index] = chunk
        noteWritten(size: max(size, Chunk.start(index + 1)), now)
    }

    /// Seals the chunks of a request that `write` accepted, by one call if all of them are left. What cannot be sealed
    /// stays dirty, in buffers of its own: the next flush or fsync reports the error.
    package func sealAccepted(at offset: UInt64, _ bytes: UnsafeRawBufferPointer) {
        guard unsafe !bytes.isEmpty else { return }
        let all = Chunk.index(offset)...Chunk.index(offset + UInt64(bytes.count - 1))
        let left = all.filter { unsafe dirty[$0]?.isBorrowed(from: bytes) == true }
        if left.count == all.count, left.allSatisfy({ dirty[$0]?.valid == Chunk.bytes }),
            let runs = try? unsafe context.seal(
                content: content, offset: offset, bytes, near: sectorBehind(offset), purpose: .user,
                isAccepted: true)
        {
            return view.withLock { replaceChunks(offset, offset + UInt64(bytes.count), with: runs) }
        }
        for index in left {
            // A chunk that cannot be sealed stays dirty, with a buffer of its own.
            try? seal(index)
            guard let chunk = dirty[index], unsafe chunk.isBorrowed(from: bytes) else { continue }
            let own = unsafe context.chunks.take()
            view.withLock { unsafe chunk.stopBorrowing(own) }
        }
    }

    /// Writes into one chunk's buffer.
    private func writePart(
        _ index: UInt64, _ within: UInt64, _ bytes: UnsafeRawBufferPointer, _ now: Timestamp
    ) throws(FileError) {
        let end = within + UInt64(bytes.count)
        let chunk = try dirtyChunk(index, overwriting: within..<end, isSystem: false)
        try reserve(for: chunk, end)
        view.lock()
        unsafe put(bytes, into: chunk, at: within)
        noteWritten(size: max(size, Chunk.start(index) + end), now)
        let isComplete = end == Chunk.bytes
        view.unlock()
        // The chunk is written to its end. The next write goes to another chunk, so this one can be sealed meanwhile.
        if isComplete { try? seal(index) }
    }

    /// Reserves room in steps, so that most writes need no reservation.
    private func reserve(for chunk: DirtyChunk, _ end: UInt64) throws(FileError) {
        guard end > chunk.reserved else { return }
        let rounded = (end + 16_383) / 16_384 * 16_384
        let wanted = rounded + rounded / 4 + Self.overheadBytes
        try context.reserve(wanted - chunk.reserved)
        chunk.reserved = wanted
    }

    /// Room reserved for a chunk beside its bytes and a quarter of them: the overhead of its extent. In pieces of one
    /// sector, of which 416 bytes are plaintext, the chunk takes less than that quarter more.
    private static let overheadBytes: UInt64 = 1024

    /// Copies into a chunk, and zeros a gap before the bytes. Both locks are held.
    private func put(_ bytes: UnsafeRawBufferPointer, into chunk: DirtyChunk, at within: UInt64) {
        guard let start = unsafe chunk.buffer.baseAddress else { return }
        if within > chunk.valid { unsafe memset(start + Int(chunk.valid), 0, Int(within - chunk.valid)) }
        if let source = bytes.baseAddress { unsafe memcpy(start + Int(within), source, bytes.count) }
        chunk.valid = max(chunk.valid, within + UInt64(bytes.count))
        changeCount += 1
    }

    /// The chunk's buffer, filled with the stored bytes, unless all of them are overwritten anyway.
    private func dirtyChunk(
        _ index: UInt64, overwriting range: Range<UInt64>, isSystem: Bool
    ) throws(FileError) -> DirtyChunk {
        if let known = dirty[index] { return known }
        let stored = map.storedBytes(inChunk: index)
        try context.countDirty(for: self)
        let chunk = unsafe DirtyChunk(context.chunks.take(), valid: 0)
        do throws(FileError) {
            if stored > 0 && !(range.lowerBound == 0 && range.upperBound >= stored) {
                let part = unsafe UnsafeMutableRawBufferPointer(rebasing: chunk.buffer[..<Int(stored)])
                try unsafe copyStored(map, Chunk.start(index), into: part)
                chunk.valid = stored
            }
            if !isSystem { try reserve(for: chunk, range.upperBound) }
        } catch {
            context.uncountDirty(reserved: chunk.reserved)
            unsafe context.chunks.give(chunk.buffer)
            throw error
        }
        view.withLock { dirty[index] = chunk }
        return chunk
    }

    /// The best sector for the next chunk: directly after the preceding bytes.
    private func sectorBehind(_ offset: UInt64) -> UInt64? {
        let at = map.firstIndex(after: offset) - 1
        guard map.pieces.indices.contains(at) else { return nil }
        let run = map.pieces[at].run
        if run.isLost { return nil }
        return run.sector + (run.length * Chunk.sectors + Chunk.bytes - 1) / Chunk.bytes
    }

    /// Seals one dirty chunk.
    private func seal(_ index: UInt64) throws(FileError) {
        guard let chunk = dirty[index] else { return }
        let start = Chunk.start(index)
        let bytes = unsafe UnsafeRawBufferPointer(rebasing: chunk.buffer[..<Int(chunk.valid)])
        // A chunk left by a truncation has no reserved room, and must be sealed even in a full space.
        let runs =
            unsafe chunk.valid == 0
            ? []
            : try context.seal(
                content: content, offset: start, bytes, near: sectorBehind(start),
                purpose: chunk.reserved == 0 ? .system : .user, isAccepted: true)
        view.withLock { replaceChunks(start, start + Chunk.bytes, with: runs) }
    }

    /// Seals every dirty chunk, in order. Returns true if there was one.
    @discardableResult
    package func sealDirty() throws(FileError) -> Bool {
        if dirty.isEmpty { return false }
        for index in dirty.keys.sorted() { try seal(index) }
        return true
    }

    /// Shortens the file, or extends it by a hole.
    package func truncate(to newSize: UInt64, now: Timestamp) throws(FileError) {
        guard newSize <= Self.sizeMax else { throw .fileTooBig }
        try beginChange(keeping: newSize)
        // A commit can hold only so many removed rows.
        while let cut = nextCut(above: newSize) {
            try cutOff(at: cut, now)
            try context.session.save(self)
        }
        try cutOff(at: newSize, now)
    }

    /// The size to which the file is cut next, if much has to go.
    private func nextCut(above newSize: UInt64) -> UInt64? {
        let first = map.firstIndex(after: newSize)
        let kept = map.pieces.count - 2 * Self.unsavedRowsMax
        guard kept > first else { return nil }
        let cut = (map.pieces[kept].run.offset + Chunk.bytes - 1) / Chunk.bytes * Chunk.bytes
        return cut > newSize && cut < size && map.firstIndex(after: cut) < map.pieces.count ? cut : nil
    }

    private func cutOff(at newSize: UInt64, _ now: Timestamp) throws(FileError) {
        if newSize < size {
            let within = newSize % Chunk.bytes
            let index = Chunk.index(newSize)
            if within > 0, let kept = try keptChunk(index, cutAt: within) {
                view.withLock { kept.valid = min(kept.valid, within) }
            }
            view.lock()
            let firstGone = within == 0 ? index : index + 1
            for gone in dirty.keys where gone >= firstGone { drop(gone) }
            replace(Chunk.start(firstGone), UInt64(Int64.max) / Chunk.bytes * Chunk.bytes, with: [])
            view.unlock()
        }
        view.withLock { noteWritten(size: newSize, now) }
    }

    /// The dirty chunk to cut; made from the stored chunk if that reaches beyond the cut.
    private func keptChunk(_ index: UInt64, cutAt within: UInt64) throws(FileError) -> DirtyChunk? {
        if let known = dirty[index] { return known }
        guard map.storedBytes(inChunk: index) > within else { return nil }
        return try dirtyChunk(index, overwriting: 0..<0, isSystem: true)
    }

    /// Makes a range read as zeros: whole chunks become holes. Does not change the size.
    package func clear(_ lower: UInt64, _ upper: UInt64, now: Timestamp) throws(FileError) {
        let upper = min(upper, size)
        guard lower < upper else { return }
        try beginChange(keeping: size)
        let firstWhole = (lower + Chunk.bytes - 1) / Chunk.bytes
        // The last chunk is a whole one if the range reaches the file's end.
        let lastWhole = upper == size ? (upper + Chunk.bytes - 1) / Chunk.bytes : upper / Chunk.bytes
        if firstWhole < lastWhole {
            view.withLock {
                for index in dirty.keys where index >= firstWhole && index < lastWhole { drop(index) }
                replace(Chunk.start(firstWhole), Chunk.start(lastWhole), with: [])
            }
        }
        let head = Chunk.index(lower)
        let hasHead = lower % Chunk.bytes != 0
        if hasHead {
            try clearPart(head, lower % Chunk.bytes, min(upper, Chunk.start(head + 1)) - Chunk.start(head))
        }
        if Chunk.start(lastWhole) < upper, !(hasHead && head == lastWhole) {
            try clearPart(lastWhole, 0, upper - Chunk.start(lastWhole))
        }
        view.withLock { noteWritten(size: size, now) }
    }

    private func clearPart(_ index: UInt64, _ lower: UInt64, _ upper: UInt64) throws(FileError) {
        let reach = dirty[index]?.valid ?? map.storedBytes(inChunk: index)
        guard lower < reach else { return }
        let chunk = try dirtyChunk(index, overwriting: 0..<0, isSystem: true)
        view.withLock {
            let end = min(upper, chunk.valid)
            guard lower < end, let start = unsafe chunk.buffer.baseAddress else { return }
            unsafe memset(start + Int(lower), 0, Int(end - lower))
            changeCount += 1
        }
    }
}
