/// Bounds of an open space's caches, pools, batches and backlogs.
///
/// No stored byte and no result depends on them. They are passed in when a space is opened, so that tests can use
/// `least`: a bound that no test reaches hides bugs.
public struct Limits: Sendable, Hashable {
    // VaultStore.

    /// Segments whose sector bits are cached, in addition to those that an unpublished commit or a write needs.
    public var bitmapSegments = 64
    /// Bytes of that cache: large segments reduce the number of cached ones, but not below four.
    public var bitmapBytes = 16 << 20
    /// Cached nodes of each page map, in addition to dirty ones.
    public var mapNodes = 512
    /// Open segment files.
    public var openSegments = 400
    /// Catalogue pages written by one call.
    public var pagesPerWrite = 64
    /// Page slots that get disk blocks at a time in a vault that grows: 2 MiB of each copy.
    public var slotsPerStep = 512
    /// Page slots that users' rows do not take, so that removing works in a full catalogue; more in a large one.
    public var reservedSlots = 192
    /// Buffers for sealed chunks that are pooled for the next write.
    public var chunkBuffers = 6
    /// Writers wait while more freed bytes than this are not reusable yet; the bound is an eighth of the bytes in use
    /// if that is more.
    public var backlogBytes: UInt64 = 16 << 20
    /// Bytes overwritten in one step.
    public var overwriteStepBytes: UInt64 = 4 << 20

    // VaultCatalogue.

    /// Memory of SQLite's page cache, in KiB.
    public var catalogueCacheKibibytes = 8192

    // Open files.

    /// Changed catalogue pages that wait in memory for a commit, where commits are seldom: 4 KiB each, and as much
    /// again for those of the commit under way.
    public var stagedPages = 16_384

    // PhotoLibrary.

    /// Cached inodes that nothing uses.
    public var cachedInodes = 16_384
    /// Dirty chunks of all files.
    public var dirtyChunks = 128
    /// Buffers of chunks and of replies that are pooled for the next request.
    public var keptChunks = 16
    public var keptReplies = 4
    /// Neighbouring chunks of a file that one call reads.
    public var readChunks = 4
    /// Largest directory whose names are read to cache their hashes, in entries; most hashes cached of one directory.
    public var readNames = 256
    public var nameHashes = 1 << 18
    /// Numbered names in views that are read together to find a free one.
    public var numberedNames = 256
    /// Photos among which similar ones are found: the newest. 70 bytes each, while they are compared.
    public var comparedLikenesses = 1 << 20
    /// Groups of similar photos that are shown.
    public var similarGroups = 10_000
    /// Photos that are shown by place: the newest. 18 bytes each while views show them.
    public var placedPhotos = 1 << 21
    /// Photos whose places changed since they were last shown; with more, all are looked up anew.
    public var changedPositions = 65_536
    /// Blocks of hashes, or of positions, read per acquisition of the catalogue's lock: a few milliseconds.
    public var likenessBlocks = 1024
    /// Photos that left views in a session whose groups keep their names.
    public var removedLikenesses = 16_384
    /// Closed directories whose listings the kernel keeps.
    public var keptListings = 16_384
    /// Threads that received ESTALE and may retry.
    public var retryingThreads = 1024
    /// Threads that looked a file up in a day and may link it; at most twice as many are remembered.
    public var dayLookups = 1024
    /// Inodes with outdated names in the kernel that are remembered when they leave memory; at most twice as many are.
    public var staleInodes = 65_536
    /// Inodes whose names in virtual directories are remembered at least; the kernel looks up those of others again.
    public var virtualNames = 4096
    /// Photos' names that were removed just now, onto which a program may rename a new file; at most twice as many are
    /// remembered.
    public var removedNames = 1024
    /// Photos that became plain files just now, which a program may make photos again; at most twice as many are
    /// remembered.
    public var formerPhotos = 1024
    /// Identity records that one durable commit writes; the same of a commit that a program waits for.
    public var records = 8192
    public var awaitedRecords = 64
    /// Identity records read per acquisition of the catalogue's lock; sealed by one call.
    public var recordsPerLock = 64
    public var recordsPerWrite = 512
    /// Extent rows deleted in one transaction.
    public var reapedRows = 1000
    /// Runs of a snapshot: as many as an identity record lists, because a salvage knows no others. A content of more is
    /// copied.
    public var snapshotRows = 2048
    /// Trash rows read by one query.
    public var trashRows = 100
    /// Remembered files that changed since the newest durable root, to be named if they cannot be written; at most
    /// twice as many.
    public var unwrittenFiles = 4096
    /// Runs and segments whose allocation a check compares at a time.
    public var checkedRuns = 1 << 18
    public var checkedSegments = 1024
    /// Bytes of a file that may be compared with photos while other requests wait for the file or its directory: some
    /// 50 ms.
    public var briefComparisonBytes: UInt64 = 32 << 20
    /// Concurrent requests that compare more; each occupies a thread that could serve others.
    public var longComparisons = 8
    /// Files in memory that wait for classification; the next session classifies the others.
    public var waitingFiles = 65_536
    /// Bytes of pictures held in memory because the vault does not keep them: a screenful of large ones.
    public var heldPictureBytes = 16 << 20
    /// Remembered pictures that cannot be made; others are attempted again.
    public var failedPictures = 4096
    /// Photos per query: of those that need thumbnails, and of those whose thumbnails are dropped.
    public var backgroundThumbnails = 64
    public var thinnedPhotos = 64
    /// Bytes that one copy_file_range(2) copies: the copying program can be interrupted between two.
    public var copiedBytes = 16 << 20

    // obscura.

    /// Files of an export that are synced together before they get their names, and their bytes.
    public var exportedFiles = 256
    public var exportedBytes: UInt64 = 256 << 20

    // FuseBridge.

    /// Notifications queued for the kernel, which takes hundreds of thousands a second. On overflow one notification
    /// covers all.
    public var waitingNotices = 65_536

    public init() {}

    public static let production = Limits()

    /// The smallest values with which everything still works.
    public static let least: Limits = {
        var limits = Limits()
        limits.bitmapSegments = 1
        limits.bitmapBytes = 0
        limits.mapNodes = 1
        limits.openSegments = 1
        limits.pagesPerWrite = 1
        limits.slotsPerStep = 64
        limits.reservedSlots = 32
        limits.chunkBuffers = 0
        limits.backlogBytes = 256 << 10
        limits.overwriteStepBytes = 1
        limits.catalogueCacheKibibytes = 40
        limits.stagedPages = 1
        limits.cachedInodes = 1
        limits.dirtyChunks = 1
        limits.keptChunks = 0
        limits.keptReplies = 0
        limits.readChunks = 1
        limits.readNames = 1
        limits.nameHashes = 1
        limits.numberedNames = 1
        limits.comparedLikenesses = 16
        limits.similarGroups = 4
        limits.placedPhotos = 16
        limits.changedPositions = 1
        limits.likenessBlocks = 1
        limits.removedLikenesses = 1
        limits.keptListings = 1
        // Fewer do not work: every concurrent thread may have to retry, or link or open a file it looked up.
        limits.retryingThreads = 64
        limits.dayLookups = 64
        limits.staleInodes = 64
        limits.virtualNames = 1
        limits.removedNames = 64
        limits.formerPhotos = 64
        limits.records = 1
        limits.awaitedRecords = 1
        limits.recordsPerLock = 1
        limits.recordsPerWrite = 1
        limits.reapedRows = 1
        limits.snapshotRows = 1
        limits.trashRows = 1
        limits.unwrittenFiles = 1
        limits.checkedRuns = 1
        limits.checkedSegments = 1
        limits.briefComparisonBytes = 64 << 10
        limits.longComparisons = 1
        limits.waitingFiles = 1
        limits.heldPictureBytes = 0
        limits.failedPictures = 1
        limits.backgroundThumbnails = 1
        limits.thinnedPhotos = 1
        limits.copiedBytes = 64 << 10
        limits.exportedFiles = 1
        limits.exportedBytes = 1
        // `waitingNotices` stays: kernels before 6.16 have no such notification, and an overflow leaves dentries to
        // their timeouts.
        return limits
    }()
}
