import FileRequests
import LinuxIO
package import VaultFormat
import VaultStore

/// Contents shared by several inodes. A shared content is never changed: a file gets its own before it is written.
extension FileState {
    /// Call before every change of the bytes, with the writer's lock held. If the content is shared, the bytes before
    /// `keeping` are sealed anew as a content of the file's own.
    func beginChange(keeping kept: UInt64) throws(FileError) {
        noteUnsaved()
        if !isBeingEdited {
            // Set before the version exists: while it alone has the old bytes, it must not be destroyed for
            // room.
            beginEdit()
            do throws(FileError) { try context.session.keepVersion(of: self, keeping: kept) } catch {
                context.session.endEdit(of: self)
                throw error
            }
        }
        // Test and mark in one step, so that no other inode begins to share a content that is about to change.
        let isShared = view.withLock {
            if !self.isShared { isNewer = true }
            return self.isShared
        }
        if isShared { try leaveShared(keeping: kept) }
    }

    private func leaveShared(keeping kept: UInt64) throws(FileError) {
        guard let content = try context.session.unsharedContent(for: self) else { return }
        var own = ExtentMap(content: content)
        do throws(FileError) {
            try copyPieces(before: kept, into: &own)
        } catch {
            context.space.abandon(own.pieces.map(\.run))
            throw error
        }
        view.lock()
        defer { view.unlock() }
        map = own
        changeCount += 1
        self.isShared = false
        isNewer = true
        hasRows = false
        countUnsaved(rows: own.pieces.count)
        unsavedRange = (0, UInt64(Int64.max) / Chunk.bytes * Chunk.bytes)
    }

    /// Seals the stored bytes before `end` into another map, some chunks at a time.
    private func copyPieces(before end: UInt64, into own: inout ExtentMap) throws(FileError) {
        let end = min(end, size)
        let buffer = unsafe context.replies.take()
        defer { unsafe context.replies.give(buffer) }
        var next = map.nextStored(0)
        while let start = next, start < end {
            let first = Chunk.start(Chunk.index(start))
            let stop = min(map.endOfStored(start), end, first + UInt64(buffer.count))
            let part = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(stop - first)])
            try unsafe copyStored(map, first, into: part)
            let near = own.pieces.last.map { $0.run.sector + UInt64($0.run.sectorCount) }
            let runs = try unsafe context.seal(
                content: own.content, offset: first, UnsafeRawBufferPointer(part), near: near, purpose: .user)
            let whole = (stop + Chunk.bytes - 1) / Chunk.bytes * Chunk.bytes
            _ = own.replace(first, whole, with: runs)
            next = map.nextStored(max(stop, first + 1))
        }
    }

    /// Adopts the content of another inode with the same bytes. The writer's lock is held, or the file is not open. The
    /// caller holds the catalogue's lock and frees the extents in the old content's rows.
    package func adopt(_ content: UInt64, _ runs: [ExtentRun]) {
        view.lock()
        defer { view.unlock() }
        for index in Array(dirty.keys) { drop(index) }
        let pending = map.pieces.filter { !$0.isSaved }.map(\.run)
        if !pending.isEmpty { context.space.abandon(pending) }
        map = ExtentMap(content: content, saved: runs)
        changeCount += 1
        isShared = true
        freed = []
        hasRows = !runs.isEmpty
        unsavedRange = nil
        forgetUnsavedRows()
    }

    /// Notes that no other inode has this content any more, and that it is about to change. Under the
    /// catalogue's lock.
    package func unshare() {
        view.withLock {
            isShared = false
            isNewer = true
        }
    }

    /// Notes, before a change, whether the content has snapshots: then saved runs stay separate, as their rows are. The
    /// writer's lock is held.
    package func noteSnapshots(_ hasSnapshots: Bool) { view.withLock { map.joinsSaved = !hasSnapshots } }

    /// Whether a run of the content may be moved: the catalogue's rows are those of the map. The writer's lock is held.
    package func mayMove(_ run: ExtentRun) -> Bool {
        unsavedRange == nil && freed.isEmpty && view.withLock { map.hasSaved(run) }
    }

    /// Notes that the bytes of a run lie elsewhere now, as the catalogue's rows say. The writer's lock and the
    /// catalogue's are held.
    package func move(_ run: ExtentRun, to runs: [ExtentRun]) {
        view.withLock {
            map.move(run, to: runs)
            changeCount += 1
        }
    }

    /// Whether all changes are saved. The writer's lock is held.
    package var isSaved: Bool { view.withLock { !isNewer && dirty.isEmpty } }

    /// Locks out writers if the file is saved and has no open writer; otherwise returns false and locks nothing.
    package func lockIfQuiescent() -> Bool {
        guard writer.tryLock() else { return false }
        if view.withLock({ !isNewer && dirty.isEmpty && writerCount == 0 }) { return true }
        writer.unlock()
        return false
    }

    /// Allows other inodes to share this content from now on; false if the file has unsaved changes or is
    /// about to change.
    package func share() -> Bool {
        view.withLock {
            guard !isNewer, dirty.isEmpty else { return false }
            isShared = true
            return true
        }
    }
}
