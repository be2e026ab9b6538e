import LinuxIO
import VaultFormat
import VaultStore

/// Contents that several inodes have. Nobody changes one: whoever writes leaves it to the others first.
extension FileState {
    /// To be called before every change of the bytes, with the writer's lock held. Of a shared content, what lies
    /// before `keeping` is sealed anew as a content of the file's own.
    func beginChange(keeping kept: UInt64) throws(FileError) {
        noteUnsaved()
        // In one step with the question: nobody begins to share what is about to change.
        let isShared = view.withLock {
            if !self.isShared { isNewer = true }
            return self.isShared
        }
        if isShared { try leaveShared(keeping: kept) }
    }

    private func leaveShared(keeping kept: UInt64) throws(FileError) {
        guard let content = try context.contentOfItsOwn(self) else { return }
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
        unsavedRange = (0, UInt64(Int64.max) / Chunk.bytes * Chunk.bytes)
    }

    /// Seals what is stored before `end` into another map, some chunks at a time.
    private func copyPieces(before end: UInt64, into own: inout ExtentMap) throws(FileError) {
        let end = min(end, size)
        let buffer = context.replies.take()
        defer { context.replies.give(buffer) }
        var next = map.nextStored(0)
        while let start = next, start < end {
            let first = Chunk.start(Chunk.index(start))
            let stop = min(map.endOfStored(start), end, first + UInt64(buffer.count))
            let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(stop - first)])
            try copyStored(map, first, into: part)
            let near = own.pieces.last.map { $0.run.sector + UInt64($0.run.sectorCount) }
            let runs = try context.seal(
                content: own.content, offset: first, UnsafeRawBufferPointer(part), near: near, purpose: .user)
            let whole = (stop + Chunk.bytes - 1) / Chunk.bytes * Chunk.bytes
            _ = own.replace(first, whole, with: runs)
            next = map.nextStored(max(stop, first + 1))
        }
    }

    /// Takes another inode's content for its own, which has the same bytes. The writer's lock is held, or nobody has
    /// the file open; under the catalogue's lock, which frees what the rows of the old content say.
    func adopt(_ content: UInt64, _ runs: [ExtentRun]) {
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
    }

    /// Nobody else has this content after all: it may be changed, and is about to be. Under the catalogue's lock.
    func keepForItself() {
        view.withLock {
            isShared = false
            isNewer = true
        }
    }

    /// Locks out writers, if the file is saved and none is at it; false, and nothing locked, otherwise.
    func holdStill() -> Bool {
        guard writer.tryLock() else { return false }
        if view.withLock({ !isNewer && dirty.isEmpty && writerCount == 0 }) { return true }
        writer.unlock()
        return false
    }

    /// Lets others have this content from now on; false where the file is about to change it.
    func share() -> Bool {
        view.withLock {
            guard !isNewer, dirty.isEmpty else { return false }
            isShared = true
            return true
        }
    }
}
