import CatalogueRows
import FileRequests
import FileTree
import Glibc
import KernelNames
import LinuxIO
import PhotoRules
import PhotoTree
import VaultCatalogue
import VaultFormat
import VaultStore

/// The trash: `.trashinfo` files, restoring, expiry, and purging to make room.
extension Library {
    /// A sealed `.trashinfo` file for a photo with this name in its day; nil if removing the name needs none. The
    /// caller finally calls `giveUp` on it.
    func trashInfo(forRemoving name: Name, from parent: UInt64) throws(FileError) -> TrashInfo? {
        guard !isReadOnly else { return nil }
        let day = try locked { tree throws(FileError) -> Int64? in
            let directory = try tree.directory(parent)
            return try tree.isForTrash(directory, name.bytes) ? directory.row.day : nil
        }
        guard let day else { return nil }
        let content = try changing { tree throws(FileError) in tree.makeContent() }
        let path = Array("moments/".utf8) + dayName(day) + [UInt8(ascii: "/")] + name.bytes
        let text = trashInfoText(path: path, deleted: options.clocks.wall())
        // If there is no room for it, the photo is kept without it.
        let runs = try? text.withUnsafeBytes { bytes in
            try space.write(
                role: .content, content: content, offset: 0, bytes, near: nil, purpose: .system)
        }
        return TrashInfo(content: content, runs: runs ?? [], byteCount: text.count)
    }

    /// Frees the sectors, unless they were used.
    func giveUp(_ info: TrashInfo?) {
        if let info, !info.isAdopted { space.abandon(info.runs) }
    }

    /// Restores a file that has left the trash as a photo; false if it was not a photo.
    func restoreIfTrashed(_ ino: UInt64) throws(FileError) -> Bool {
        guard try locked({ tree throws(FileError) in try tree.trashedPhoto(behind: tree.inode(ino)) != nil })
        else { return false }
        return try changing { tree throws(FileError) in
            guard let photo = try tree.trashedPhoto(behind: tree.inode(ino)) else { return false }
            try tree.restore(photo, now: .now())
            return true
        }
    }

    // MARK: Age

    /// Dates a name in the trash to now, and notifies the kernel of the directories that changed with it.
    func dateTrash(_ name: Name, in directory: UInt64, changed: [UInt64]) throws(FileError) {
        let now = clock.wall
        try changing { tree throws(FileError) in
            guard let row = try sql(tree.tables.dentry(directory, name.bytes)) else { return }
            try sql(tree.tables.store(TrashRow(ino: row.ino, id: row.id, since: now)))
            for ino in [directory] + changed { tree.kernelNames.noteChange(of: ino) }
        }
    }

    /// An entry noted as too old is destroyed if it is still too old this many seconds later.
    private static let noteSeconds: Int64 = 86_400

    /// Destroys entries that have been in the trash for too long. An entry found too old is first only noted, so that a
    /// clock that is wrong once destroys nothing. Returns true if some are left at the time `end`, by the monotonic
    /// clock.
    @discardableResult
    func expireTrash(until end: Int64 = .max) -> Bool {
        // A failure is retried at the next check of the trash.
        (try? expireWhatIsDue(until: end)) ?? false
    }

    private func expireWhatIsDue(until end: Int64) throws(FileError) -> Bool {
        let now = clock.wall
        if clock.hasJumped {
            // Entries added since the session began were dated by the clock as it was before it was set.
            let (start, expected) = (clock.start, clock.expected)
            try changing { tree throws(FileError) in
                try sql(tree.tables.redateTrash(from: start, through: expected, to: now))
            }
            return false
        }
        let limit = now - Int64(options.trashDays) * Self.noteSeconds
        try changing { tree throws(FileError) in
            try sql(tree.tables.clearTrashNotes(now: now, since: limit))
            try sql(tree.tables.noteTrash(since: limit, now: now))
        }
        var last: TrashRow?
        repeat {
            let rows = try locked { tree throws(FileError) in
                try sql(
                    tree.tables.dueTrash(
                        notedBy: now - Self.noteSeconds, after: last, limit: space.limits.trashRows))
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
        try destroyNow { tree, pendingErase throws(FileError) in
            try tree.discard(row, since: limit, &pendingErase)
        }
    }

    /// The directory that an entry in the trash names; nil if it is not a directory, or gone.
    private func trashedDirectory(_ row: TrashRow) throws(FileError) -> UInt64? {
        try locked { tree throws(FileError) in
            guard try tree.trashedName(row) != nil else { return nil }
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
            try destroyNow { tree, pendingErase throws(FileError) in
                for row in page.rows { try tree.discard(row, since: limit, &pendingErase) }
            }
        }
    }

    private func eachPage(
        of directory: UInt64,
        _ body: ((rows: [DentryRow], directories: Set<UInt64>)) throws(FileError) -> Void
    ) throws(FileError) {
        var cookie: UInt64 = 0
        while true {
            let page = try locked { tree throws(FileError) in try tree.page(of: directory, after: cookie) }
            guard let last = page.rows.last else { return }
            try body(page)
            cookie = last.id
        }
    }

    /// Runs `body`, which removes names, and destroys the inodes that it reports as nameless, unless they are open.
    private func destroyNow(_ body: (PhotoTree, inout [UInt64]) throws(FileError) -> Void) throws(FileError) {
        let pendingErase = try changing { tree throws(FileError) in
            var pendingErase: [UInt64] = []
            try body(tree, &pendingErase)
            return pendingErase
        }
        // The kernel may not know them, and then sends no FORGET.
        for ino in pendingErase { forget(ino) }
    }

    // MARK: Room

    /// Destroys photos in the trash, the oldest first, until `bytes` are freed. Returns false if there were none. For
    /// the committer, when nothing else makes room.
    func destroyOldestTrash(bytes: UInt64) -> Bool {
        var freed: UInt64 = 0
        var last: TrashRow?
        while freed < max(bytes, 1) {
            guard
                let row = try? locked({ tree throws(FileError) in
                    try sql(tree.tables.oldestTrashedPhotos(after: last, limit: 1)).first
                })
            else { break }
            last = row
            try? destroyNow { tree, pendingErase throws(FileError) in
                // An open file would keep its room.
                guard let inode = try tree.existing(row.ino), inode.openCount == 0, inode.state == nil else {
                    return
                }
                let bytes = inode.row.allocated
                try tree.discard(row, since: .max, &pendingErase)
                if pendingErase.contains(row.ino) { freed += max(bytes, 1) }
            }
        }
        return freed > 0
    }
}

/// A number that is computed at most once a second.
final class TimedCache: @unchecked Sendable {
    private static let keptMilliseconds: Int64 = 1000

    private let lock = Lock()
    // Both under `lock`.
    private var known: UInt64 = 0
    private var until: Int64 = 0

    func value(_ count: () -> UInt64) -> UInt64 {
        lock.lock()
        defer { lock.unlock() }
        let now = MonotonicClock.milliseconds
        if now >= until {
            known = count()
            until = now + Self.keptMilliseconds
        }
        return known
    }
}

/// The wall clock of one session.
struct SessionClock: Sendable {
    /// Tolerated difference between the clocks, in seconds: corrections of a synchronized clock are smaller.
    private static let jumpSecondsMax: Int64 = 600

    private let clocks: Clocks
    /// The wall clock when the session began.
    let start: Int64
    private let bootStart: Int64

    init(_ clocks: Clocks) {
        self.clocks = clocks
        start = clocks.wall()
        bootStart = clocks.boot()
    }

    var wall: Int64 { clocks.wall() }
    /// The wall clock's expected time, if it was not set.
    var expected: Int64 { start + clocks.boot() - bootStart }
    fileprivate var hasJumped: Bool { abs(wall - expected) > Self.jumpSecondsMax }
}
