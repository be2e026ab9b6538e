import CatalogueRows
import FileRequests
import KernelNames
import LinuxIO
import VaultCatalogue
import VaultFormat
import VaultStore

/// Destroys trash: entries that are too old, and photos whose room is needed.
package struct TrashExpiry {
    private let session: TreeSession

    package init(_ session: TreeSession) { self.session = session }

    // MARK: Age

    private static let daySeconds: Int64 = 86_400
    /// An entry noted as too old is destroyed if it is still too old this many seconds later.
    private static let noteSeconds: Int64 = daySeconds

    /// Destroys entries that have been in the trash for too long. An entry found too old is first only noted, so that a
    /// clock that is wrong once destroys nothing. Returns true if some are left at the time `end`, by the monotonic
    /// clock.
    @discardableResult
    package func expire(until end: Int64 = .max) -> Bool {
        // A failure is retried at the next check of the trash.
        (try? expireWhatIsDue(until: end)) ?? false
    }

    private func expireWhatIsDue(until end: Int64) throws(FileError) -> Bool {
        let now = session.clock.wall
        if session.clock.hasJumped {
            // Entries added since the session began were dated by the clock as it was before it was set.
            let (start, expected) = (session.clock.start, session.clock.expected)
            try session.change { change throws(FileError) in
                try change.tree.tables.trash.redate(from: start, through: expected, to: now)
            }
            return false
        }
        let limit = now - Int64(session.options.trashDays) * Self.daySeconds
        try session.change { change throws(FileError) in
            try change.tree.tables.trash.clearNotes(now: now, since: limit)
            try change.tree.tables.trash.note(since: limit, now: now)
        }
        var last: TrashRow?
        repeat {
            let rows = try session.locked { tree throws(FileError) in
                try tree.tables.trash.due(
                    notedBy: now - Self.noteSeconds, after: last, limit: session.space.limits.trashRows)
            }
            for row in rows { try destroy(row, since: limit, until: end) }
            last = rows.last
        } while last != nil && MonotonicClock.milliseconds < end
        return last != nil
    }

    /// Destroys the entry of a row, except files that came into the trash after `limit`.
    private func destroy(_ row: TrashRow, since limit: Int64, until end: Int64) throws(FileError) {
        if row.id != 0, let directory = try trashedDirectory(row) {
            for below in try directories(below: directory).reversed() {
                guard MonotonicClock.milliseconds < end else { return }
                try clear(below, since: limit)
            }
        }
        try session.change(for: .removal) { change throws(FileError) in
            try change.tree.trash.discard(row, since: limit, change)
        }
    }

    /// The directory that an entry in the trash names; nil if it is not a directory, or gone.
    private func trashedDirectory(_ row: TrashRow) throws(FileError) -> UInt64? {
        try session.locked { tree throws(FileError) in
            guard try tree.trash.trashedName(row) != nil else { return nil }
            return try tree.inode(row.ino).isDirectory ? row.ino : nil
        }
    }

    /// A directory and all directories below it, each before those in it.
    private func directories(below top: UInt64) throws(FileError) -> [UInt64] {
        var found = [top]
        var next = 0
        while next < found.count {
            try eachPage(of: found[next]) { page throws(FileError) in found += page.directories.sorted() }
            next += 1
        }
        return found
    }

    /// Removes the entries of a directory in the trash, except those that came after `limit` and non-empty directories.
    private func clear(_ directory: UInt64, since limit: Int64) throws(FileError) {
        try eachPage(of: directory) { page throws(FileError) in
            try session.change(for: .removal) { change throws(FileError) in
                for row in page.rows {
                    try change.tree.trash.discard(row, since: limit, change)
                }
            }
        }
    }

    private func eachPage(
        of directory: UInt64,
        _ body: ((rows: [DentryRow], directories: Set<UInt64>)) throws(FileError) -> Void
    ) throws(FileError) {
        var cookie: UInt64 = 0
        while true {
            let page = try session.locked { tree throws(FileError) in
                try tree.page(of: directory, after: cookie)
            }
            guard let last = page.rows.last else { return }
            try body(page)
            cookie = last.id
        }
    }

    // MARK: Room

    /// Destroys photos in the trash, the oldest first, until `bytes` are freed. Returns false if there were none. For
    /// the committer, when nothing else makes room.
    func destroyOldest(bytes: UInt64) -> Bool {
        var freed: UInt64 = 0
        var last: TrashRow?
        while freed < max(bytes, 1) {
            guard
                let row = try? session.locked({ tree throws(FileError) in
                    try tree.tables.trash.oldestPhotos(after: last, limit: 1).first
                })
            else { break }
            last = row
            // The next one may be removable.
            try? session.change(for: .removal) { change throws(FileError) in
                // An open file would keep its room.
                guard let inode = try change.tree.existing(row.ino), inode.openCount == 0, inode.state == nil
                else {
                    return
                }
                let bytes = inode.row.allocated
                try change.tree.trash.discard(row, since: .max, change)
                if change.inodesToDestroy.contains(row.ino) { freed += max(bytes, 1) }
            }
        }
        return freed > 0
    }
}
