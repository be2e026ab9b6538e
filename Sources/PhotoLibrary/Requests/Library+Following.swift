import CatalogueRows
import FileRequests
public import VaultStore

/// A mount beside one that writes: see `UnlockedSpace.follows`. It shows one published state after another, each by a
/// library of its own. Numbers of inodes mean the same in all.
extension Library {
    /// Whether `newer` may find something.
    public var follows: Bool { options.follows }

    /// Opening fails while the other mount overwrites what it reads.
    private static let openingAttempts = 5

    /// The space in its newest durable state; nil if this is it. Handles of files that were opened here may be used
    /// there.
    public func newer() throws(VaultError) -> Library? {
        guard let unlocked, follows else { return nil }
        var options = options
        options.virtualNodes = virtual?.service.nodes
        for attempt in 1... {
            guard try unlocked.newestDurable() > session.space.generation else { return nil }
            do throws(VaultError) {
                let next = try Library.open(unlocked, options: options)
                next.mountStatus = mountStatus
                return next
            } catch {
                if attempt == Self.openingAttempts { throw error }
            }
        }
        return nil
    }

    /// Runs `body` with this library's state of a file that was opened in an earlier one. Throws `.stale` if its bytes
    /// are others now: one handle never shows parts of both.
    func withNewer<R>(
        _ earlier: FileState, _ body: (FileState) throws(FileError) -> R
    ) throws(FileError) -> R {
        try session.withState(of: earlier.ino) { file throws(FileError) in
            let (old, new) = (earlier.inode.row, file.inode.row)
            guard old.content == new.content, old.revision == new.revision, old.size == new.size else {
                throw .stale
            }
            return try body(file)
        }
    }
}
