import CatalogueRows
import FileRequests
import LinuxIO
import PhotoRules
import VaultCatalogue
import VaultFormat
import VaultStore

/// Destroys versions: those that are too old, and those whose room is needed.
package struct VersionExpiry {
    private let session: TreeSession

    package init(_ session: TreeSession) { self.session = session }

    private static let daySeconds: Int64 = 86_400

    // MARK: Age

    /// Destroys versions that have been kept for too long, except originals. As in the trash, one that is found too old
    /// is first only noted, in its time of access, and destroyed if it is still too old a day later. Returns true if
    /// some are left at the time `end`, by the monotonic clock.
    @discardableResult
    package func expire(until end: Int64 = .max) -> Bool {
        // A failure is retried at the next check.
        (try? expireWhatIsDue(until: end)) ?? false
    }

    private func expireWhatIsDue(until end: Int64) throws(FileError) -> Bool {
        guard let days = session.options.versions.daysMax, !session.clock.hasJumped else { return false }
        let now = session.clock.wall
        let limit = now - Int64(days) * Self.daySeconds
        var last: VersionRow?
        while MonotonicClock.milliseconds < end {
            let after = last
            let rows = try oldest(after: after).prefix { !$0.isOriginal && $0.replaced <= limit }
            guard !rows.isEmpty else { return false }
            try session.change(for: .removal) { change throws(FileError) in
                for row in rows { try noteOrEnd(row, now: now, change) }
            }
            last = rows.last
        }
        return true
    }

    private func noteOrEnd(_ row: VersionRow, now: Int64, _ change: Change) throws(FileError) {
        let tree = change.tree
        guard let version = try tree.existing(row.dentry.ino), version.isVersion else { return }
        let noted = version.row.accessed.seconds
        if noted == 0 || noted > now {
            version.row.accessed = Timestamp(seconds: now)
            tree.touch(version)
        } else if noted + Self.daySeconds <= now {
            try tree.versions.discardVersion(row.dentry, change)
        }
    }

    /// The next versions after `last`, in the order in which they are destroyed.
    private func oldest(after last: VersionRow?) throws(FileError) -> [VersionRow] {
        try session.locked { tree throws(FileError) in
            try tree.storeChanges()
            return try tree.tables.versions.oldest(after: last, limit: session.space.limits.trashRows)
        }
    }

    // MARK: Room

    /// Destroys versions, the oldest first and originals last, until `bytes` are freed. Returns false if there were
    /// none. For the committer, when nothing else makes room.
    func destroyOldest(bytes: UInt64) -> Bool {
        var freed: UInt64 = 0
        var last: VersionRow?
        while freed < max(bytes, 1), !session.isReadOnly {
            guard let rows = try? oldest(after: last), let end = rows.last else { break }
            last = end
            for row in rows where freed < max(bytes, 1) {
                freed +=
                    (try? session.change(for: .removal) { change throws(FileError) in try destroy(row, change)
                    })
                    ?? 0
            }
        }
        return freed > 0
    }

    /// Removes a version, and returns the bytes that this frees, at least 1; 0 if the version stays. It stays
    /// if it is open, if another inode shares its content, or if the photo still has all of its bytes. So do
    /// the versions of a photo that is being edited, is empty, or found no room in an edit of this session:
    /// they are all that is left of it.
    private func destroy(_ row: VersionRow, _ change: Change) throws(FileError) -> UInt64 {
        let tree = change.tree
        guard let version = try tree.existing(row.dentry.ino), version.isVersion, version.openCount == 0,
            version.state == nil, try tree.tables.copies.users(of: version.row.content) == 1
        else { return 0 }
        if let file = try tree.versions.file(ofVersion: version) {
            let isWhole = file.row.size > 0 && !session.context.isCutShort(file.ino)
            guard isWhole, file.state?.isBeingEdited != true else { return 0 }
        }
        let (own, besideSource) = try tree.tables.snapshots.ownBytes(of: version.row.content)
        if besideSource == 0 { return 0 }
        try tree.versions.discardVersion(row.dentry, change)
        return max(own, 1)
    }
}
