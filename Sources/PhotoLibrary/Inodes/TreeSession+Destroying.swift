import CatalogueRows
package import FileRequests
import LinuxIO
import VaultCatalogue
import VaultFormat
import VaultStore

/// The end of an inode: it lives while it has a name, is open, or is known to the kernel. Without a name it is an
/// orphan, and the table `orphan` lists it for the next mount.
extension TreeSession {
    /// Destroys an inode that has neither names nor users, in batches so that the lock is never held for long.
    package func destroy(_ ino: UInt64) throws(FileError) {
        var isDone = false
        while !isDone {
            let rows = room.reapedRows()
            let pages = PageRoom.pagesPerChange + FileContext.pages(ofRows: rows)
            isDone = try change(for: .removal, pages: pages) { change throws(FileError) in
                guard change.tree.orphans.contains(ino) else { return true }
                let inode = try change.tree.inode(ino)
                guard inode.openCount == 0 else { return true }
                return try destroySome(inode, rows: rows, change)
            }
        }
    }

    /// Destroys an inode, or as many of its extents as a change takes: true once it is gone.
    func destroySome(_ inode: Inode, rows: Int, _ change: Change) throws(FileError) -> Bool {
        let tree = change.tree
        let content = inode.row.content
        let overwrites = inode.isPhoto || inode.isCopy || inode.isVersion
        if content != 0 && (inode.row.size > 0 || inode.row.flags.contains(.shared)),
            try !tree.copies.leaveContent(of: inode)
        {
            let runs = try tree.tables.extents.firstRuns(of: content, limit: rows)
            if let first = runs.first, let last = runs.last {
                try tree.tables.extents.delete(of: content, from: first.offset, through: last.offset)
                space.free(try tree.contents.unnamed(runs, of: content), overwriting: overwrites)
                // A root between two batches may be the last one.
                inode.row.allocated -= min(inode.row.allocated, runs.reduce(0) { $0 + $1.length })
                tree.touch(inode)
            }
            if runs.count == rows { return false }
            tree.marks.retire(content: content)
        }
        try tree.marks.retire(inode: inode.ino, tree.tables, space, overwriting: overwrites)
        // A copy that takes the photo's place takes its versions first.
        if inode.isPhoto { try tree.photos.deletePhoto(inode, space, change) }
        if inode.isRegular { try tree.versions.removeVersions(of: inode.ino, change) }
        if inode.isCopy { try tree.copies.forgetCopy(inode) }
        if inode.row.flags.contains(.hasAttributes) {
            try tree.tables.attributes.deleteAll(inode.ino)
        }
        if inode.row.mode & fileTypeMask == linkType { try tree.tables.links.delete(inode.ino) }
        try tree.tables.inodes.delete(inode.ino)
        try tree.forgetDestroyed(inode)
        context.forgetCutShort(inode.ino)
        return true
    }

    /// Destroys the nameless inodes that earlier sessions left, until it is cancelled.
    package func reapOrphans(unless isCancelled: () -> Bool) throws(FileError) {
        var last: UInt64 = 0
        while !isCancelled() {
            let found = try locked { tree throws(FileError) in
                let rows = try tree.tables.orphans.numbers(after: last, limit: 100)
                let left = rows.filter { !tree.orphans.contains($0) }
                for ino in left { tree.orphans.adopt(ino) }
                return (end: rows.last, left: left)
            }
            guard let end = found.end else { return }
            last = end
            for ino in found.left where !isCancelled() { try destroy(ino) }
        }
    }

    /// Destroys all nameless inodes, at the end of the session.
    package func reapAllOrphans() throws(FileError) {
        try reapOrphans { false }
        for ino in try locked({ tree throws(FileError) in tree.orphans.all }) { try destroy(ino) }
    }

    /// FORGET: the kernel no longer holds the inode. This only matters if the inode has no name left.
    package func forget(_ ino: UInt64) {
        let orphan = try? locked { tree throws(FileError) -> Inode? in
            guard tree.orphans.contains(ino), !tree.saves.noteForgotten(ino) else { return nil }
            let inode = try tree.inode(ino)
            inode.isForgotten = true
            return inode.openCount == 0 ? inode : nil
        }
        guard let orphan else { return }
        // Changes that could not be saved at close must not be saved any more: nothing would free them again.
        if let file = orphan.state {
            file.writer.lock()
            file.discard()
            file.writer.unlock()
        }
        // If this fails, the next session finds the inode in the table of orphans.
        try? destroy(ino)
    }

    /// So many days are looked at before other requests are served: the rows of a large library's days lie in as many
    /// pages, each of which a host elsewhere may have to be asked for.
    private static let daysAtOnce = 200

    /// Removes empty days that classification created, until it is cancelled. They are not listed. If there is none,
    /// reads no day.
    ///
    /// - Parameter isCancelled: called between steps, where other requests may go first.
    package func dropEmptyDays(unless isCancelled: () -> Bool) throws(FileError) {
        var dropped: [UInt64] = []
        var last: UInt64? = 0
        while let id = last, !isCancelled() {
            last = try change(for: .removal) { change throws(FileError) in
                // The query reads stored rows.
                try change.tree.storeChanges()
                let moments = try change.tree.inode(WellKnownInode.moments)
                if moments.hasOnlyListedDirectories { return nil }
                let found = try change.tree.tables.dentries.emptyDays(
                    in: WellKnownInode.moments, after: id, among: Self.daysAtOnce)
                for row in found.days {
                    let day = try change.tree.inode(row.ino)
                    let (modified, changed) = (moments.row.modified, moments.row.changed)
                    try change.tree.removeEntry(moments, row.id, day, now: changed)
                    moments.row.modified = modified
                    try change.tree.removeLink(to: day, now: changed)
                    day.isForgotten = true
                    dropped.append(row.ino)
                }
                return found.last
            }
        }
        for ino in dropped { try destroy(ino) }
    }
}
