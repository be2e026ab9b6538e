/// The listings of directories that the kernel keeps in its page cache (FOPEN_CACHE_DIR), and whether they are current.
///
/// The kernel notices only changes by its own requests for the directory. So every OPENDIR is told to keep the pages
/// (FOPEN_KEEP_CACHE) only if no name of the directory has changed since the pages were dropped, by any request.
/// A handle from before a change may still fill pages with its former entries: until it is closed, nothing is kept.
///
/// Guarded by the lock of the tree that owns it.
public struct KeptListings: Sendable {
    private struct Listing {
        /// Changes of the directory's names so far.
        var revision: UInt64 = 0
        /// The revision whose pages the kernel may keep; nil if none.
        var kept: UInt64?
        /// Open handles, by the revision at which they were opened.
        var handles: [UInt64: Int] = [:]
        /// Whether the kernel may have filled pages since the last notice.
        var isRead = false
    }

    /// The answer to OPENDIR.
    public struct Opened: Sendable, Equatable {
        /// Whether the kernel's pages are current.
        public let isKept: Bool
        let revision: UInt64
    }

    private let directoriesMax: Int
    private var listings: [UInt64: Listing] = [:]

    /// - Parameter directoriesMax: closed directories whose listings are kept at most.
    public init(directoriesMax: Int) { self.directoriesMax = directoriesMax }

    /// Directories that are open, or whose listings the kernel keeps.
    var count: Int { listings.count }

    /// OPENDIR. `close` follows with the result.
    public mutating func open(_ directory: UInt64) -> Opened {
        if listings.count >= directoriesMax && listings[directory] == nil { dropClosed() }
        let revision = listings[directory, default: Listing()].revision
        listings[directory, default: Listing()].handles[revision, default: 0] += 1
        return Opened(isKept: listings[directory]?.kept == revision, revision: revision)
    }

    /// READDIR by a handle: the kernel has its answer to OPENDIR, so it has dropped the pages if it was told to.
    public mutating func noteRead(_ directory: UInt64, by opened: Opened) {
        guard var listing = listings[directory] else { return }
        listing.isRead = true
        let isCurrent = listing.revision == opened.revision && listing.handles.count == 1
        if isCurrent { listing.kept = listing.revision }
        listings[directory] = listing
    }

    /// RELEASEDIR.
    public mutating func close(_ directory: UInt64, _ opened: Opened) {
        guard var listing = listings[directory], let count = listing.handles[opened.revision] else { return }
        listing.handles[opened.revision] = count > 1 ? count - 1 : nil
        let isUnused = listing.handles.isEmpty && listing.kept != listing.revision
        listings[directory] = isUnused ? nil : listing
    }

    /// Notes a change of the directory's names. Returns true if an open handle could read the listing from the start
    /// again (rewinddir(3)) without an OPENDIR: then the kernel must drop the pages now.
    mutating func change(_ directory: UInt64) -> Bool {
        guard var listing = listings[directory] else { return false }
        listing.kept = nil
        guard !listing.handles.isEmpty else {
            listings[directory] = nil
            return false
        }
        listing.revision += 1
        let mustDrop = listing.isRead
        listing.isRead = false
        listings[directory] = listing
        return mustDrop
    }

    /// Forgets the listings of directories that are not open.
    private mutating func dropClosed() { listings = listings.filter { !$0.value.handles.isEmpty } }
}
