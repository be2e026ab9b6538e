import CatalogueRows
package import FileRequests
import LinuxIO
import VaultCatalogue
import VaultFormat
import VaultStore

/// Saving open files to the tree.
extension TreeSession {
    /// Seals the dirty chunks and writes the rows, in one transaction with `also`. The writer's lock is held.
    ///
    /// - Parameter isClassified: whether `also` classifies the file. Else the close of its writer will; and without
    ///   one, because of a crash, the next session, for which the file is noted.
    package func save(
        _ file: FileState, by thread: Int32 = -1, isClassified: Bool = false,
        also: (Change) throws(FileError) -> Void = { _ in }
    )
        throws(FileError)
    {
        guard !file.isDiscarded else { return }
        let isNews = !isClassified && file.isUnnoted
        try file.sealDirty()
        let pages = PageRoom.pagesPerChange + FileContext.pages(ofRows: file.unsavedRows)
        try change(by: thread, for: .removal, pages: pages) { change throws(FileError) in
            try store(file, change)
            if isNews { try change.tree.tables.pendingClassification.add(file.ino) }
            try also(change)
            // Closed before, but could not be saved then.
            if file.inode.openCount == 0 { file.inode.state = nil }
        }
        if isNews { file.isNotedPending = true }
        file.forgetUnsavedRows()
        file.hasNewBytes = false
        if file.unsavedSince != nil {
            file.unsavedSince = nil
            context.unregister(file)
        }
    }

    /// Saves a file that has unsaved changes, or that is not noted for the next session.
    package func saveForGood(_ file: FileState) throws(FileError) {
        if file.isUnnoted || file.unsavedSince != nil { try save(file) }
    }

    /// Returns a new content for a file that is about to leave its shared one; nil if no other file has that.
    func unsharedContent(for file: FileState) throws(FileError) -> UInt64? {
        try change { change throws(FileError) in
            let content = file.inode.row.content
            let users = try change.tree.tables.copies.users(of: content)
            guard users > 1 || SnapshotID.isSnapshot(content) else {
                file.unshare()
                file.inode.row.flags.remove(.shared)
                change.tree.touch(file.inode)
                return nil
            }
            return change.tree.makeContent()
        }
    }

    /// The catalogue's part of saving.
    private func store(_ file: FileState, _ change: Change) throws(FileError) {
        let (tree, inode) = (change.tree, file.inode)
        if file.content != inode.row.content {
            try tree.copies.replaceContent(of: inode, by: file.content, space, change)
        }
        var hasSnapshots = false
        if !file.freed.isEmpty { hasSnapshots = try tree.tables.snapshots.exist(of: file.content) }
        if hasSnapshots { for run in file.freed { try tree.tables.snapshots.cut(run) } }
        if let range = file.unsavedRange {
            tree.marks.add(inode.ino)
            let saved = file.view.withLock { file.map.markSaved(range.lower, range.upper) }
            if file.hasRows {
                try tree.tables.extents.delete(of: file.content, from: saved.first, through: saved.last)
            }
            for piece in saved.rows { try tree.tables.extents.insert(piece.run, of: file.content) }
            if !saved.rows.isEmpty { file.hasRows = true }
            if !saved.adopted.isEmpty { space.adopt(saved.adopted) }
            file.unsavedRange = nil
        }
        if !file.freed.isEmpty {
            space.free(hasSnapshots ? try tree.tables.snapshots.unnamed(file.freed) : file.freed)
            file.freed = []
        }
        if file.hasNewBytes && inode.isPhoto {
            try tree.photos.deleteThumbnails(inode, space)
            try tree.likenesses.forget(inode.ino)
            // Also if there were none: they may be in the making, of the bytes before.
            try tree.pendingPictures.noteThumbnailPending(inode.ino)
            change.hasNewPhoto = true
        }
        file.view.lock()
        defer { file.view.unlock() }
        guard file.isNewer else { return }
        file.saveAttributes()
        if file.hasNewBytes {
            inode.row.revision += 1
            inode.row.flags.subtract(.guesses)
        }
        tree.touch(inode)
    }

    /// Ends an edit of a file. The writer's lock is held.
    package func endEdit(of file: FileState) {
        guard file.endEdit() else { return }
        // Without room for the note the picture is made when it is requested.
        try? change { change throws(FileError) in
            guard file.inode.isPhoto else { return }
            try change.tree.pendingPictures.noteThumbnailPending(file.ino)
            change.hasNewPhoto = true
        }
    }

    /// Saves the files that have been unsaved since before `limit`, by the monotonic clock. Returns true if some are
    /// left.
    func saveFiles(unsavedBefore limit: Int64) -> Bool {
        for file in context.unsavedFiles {
            // A file being written is retried later: the committer waits for no file.
            guard file.writer.tryLock() else { continue }
            defer { file.writer.unlock() }
            guard let since = file.unsavedSince, since <= limit else { continue }
            // A failed file stays unsaved; the next flush or fsync reports the error.
            try? save(file)
        }
        return !context.unsavedFiles.isEmpty
    }

    /// Saves the inode's file if it is open and has unsaved changes.
    package func saveIfOpen(_ ino: UInt64) throws(FileError) {
        guard let file = try locked({ tree throws(FileError) in tree.cached(ino)?.state }) else { return }
        file.writer.lock()
        defer { file.writer.unlock() }
        if file.unsavedSince != nil { try save(file) }
    }
}
