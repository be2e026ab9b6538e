package import FileRequests
import Synchronization
import VaultFormat
import VaultStore

/// Room for catalogue pages: every change has it before it is made, so that the next commit has it too.
extension TreeSession {
    /// Catalogue pages that a change of one name changes at most.
    package static let pagesPerChange = 32

    /// Extent rows that are deleted in one change: fewer in a catalogue that is nearly full.
    func reapedRows() -> Int {
        let most = space.limits.reapedRows
        return hasRoom(for: .addition, FileContext.pages(ofRows: most)) ? most : min(most, 64)
    }

    /// Waits until the catalogue has room for a few more rows; throws `.noRoom` if it cannot get any. Called before a
    /// user adds something, with the catalogue's lock not held.
    ///
    /// - Parameter replacing: whether the rows take the place of others.
    package func requireRowRoom(replacing: Bool = false) throws(FileError) {
        try requireRoom(for: replacing ? .edit : .addition, pages: Self.pagesPerChange)
    }

    /// Waits until one commit has room for a change of many rows; throws `.noRoom` if it cannot get any. Called before
    /// the change, with the catalogue's lock not held.
    package func requireRoom(toChangeRows count: Int) throws(FileError) {
        // The rows of one inode lie near each other.
        if count > Self.uncheckedRows { try requireRoom(for: .removal, pages: count / 2) }
    }

    /// As `requireRowRoom`, for a new file with so many extent rows.
    package func requireRoom(forRows count: Int) throws(FileError) {
        try requireRoom(for: .addition, pages: Self.pagesPerChange + FileContext.pages(ofRows: count))
    }

    /// Waits until the catalogue has room for so many rows of new bytes of a file, beside all that were promised; may
    /// save the file. Throws `.noRoom` if it cannot get any. The writer's lock is held.
    func requireRoom(forRows count: Int, of file: FileState) throws(FileError) {
        try requireRoom(for: .edit, pages: FileContext.pages(ofRows: count), saving: file)
    }

    /// `pagesPerChange` is enough for so many rows.
    private static let uncheckedRows = 64

    /// As `requireRowRoom`, for a change of so many pages. Where room is short, saves all files, and `file`, whose
    /// writer's lock is held: until then their rows count by their worst case. Then destroys versions and trash.
    func requireRoom(
        for purpose: ChangePurpose, pages: Int, saving file: FileState? = nil
    ) throws(FileError) {
        if hasRoom(for: purpose, pages), !committer.isOutOfRoom { return }
        // Room that is made lasts for some changes: each would pay for commits otherwise.
        let pages = purpose == .removal ? pages : pages + space.limits.reservedSlots / 2
        if makeRoom(for: purpose, pages) { return }
        if let file, file.unsavedSince != nil { try save(file) }
        _ = saveFiles(unsavedBefore: .max)
        if makeRoom(for: purpose, pages) { return }
        // Concurrent writes take less room than they reserved: no photo is destroyed for the difference.
        let likely = pages + unstaged + context.promisedPages / 4
        if !committer.isOutOfRoom, space.hasRoom(for: purpose, pages: likely) { return }
        // Moving content loses nothing: versions and trash make way only where that does not help.
        while makeSlotRoom() { if makeRoom(for: purpose, pages) { return } }
        while !makeRoom(for: purpose, pages) {
            guard committer.makeRowRoom() else { throw .noRoom }
        }
    }

    /// Waits until the next commit has room for a change of so many pages. Returns false if it cannot get any.
    func awaitRoom(for purpose: ChangePurpose, _ pages: Int) -> Bool {
        if hasRoom(for: purpose, pages), purpose == .removal || !committer.isOutOfRoom { return true }
        if makeRoom(for: purpose, pages) { return true }
        // Room for the commit itself is enough for a change that makes room.
        return purpose == .removal && space.canCommit(pages: pages + unstaged)
    }

    private func makeRoom(for purpose: ChangePurpose, _ pages: Int) -> Bool {
        committer.makePageRoom(for: purpose) { pages + unstaged + promisedPages(beside: purpose) }
    }

    private func hasRoom(for purpose: ChangePurpose, _ pages: Int) -> Bool {
        space.hasRoom(for: purpose, pages: pages + unstaged + promisedPages(beside: purpose))
    }

    /// The most catalogue pages that changed in this transaction, and are in SQLite's cache only.
    var unstaged: Int { unstagedPages.load(ordering: .relaxed) }

    /// Pages for accepted bytes that are not saved yet. Saving them, and removing, must not wait for them.
    private func promisedPages(beside purpose: ChangePurpose) -> Int {
        purpose == .removal ? 0 : context.promisedPages
    }
}
