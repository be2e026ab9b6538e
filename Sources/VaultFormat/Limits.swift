/// Bounds of what an open space keeps in memory or does at once: caches, pools, batches and backlogs.
///
/// No byte and no result depends on them. They are passed in when a space is opened, so that tests run with `least` as
/// well: a bound that no test reaches hides mistakes.
public struct Limits: Sendable, Hashable {
    // VaultStore.

    /// Segments whose sector bits are kept in memory, besides those that an unpublished commit or a write holds.
    public var bitmapSegments = 64
    /// Bytes that these may take: fewer segments where segments are large, but four.
    public var bitmapBytes = 16 << 20
    /// Nodes of each page map, besides changed ones.
    public var mapNodes = 512
    /// Open segment files.
    public var openSegments = 400
    /// Catalogue pages that are written by one call.
    public var pagesPerWrite = 64
    /// Page slots that are given disk blocks at a time in a vault that grows: 2 MiB of each copy.
    public var slotsPerStep = 512
    /// Buffers for sealed chunks that are kept for the next write.
    public var chunkBuffers = 6
    /// Bytes given back and not yet reusable at which writers wait; more only where this is less than an eighth of
    /// what is in use.
    public var backlogBytes: UInt64 = 16 << 20
    /// Bytes overwritten in one step.
    public var overwriteStepBytes: UInt64 = 4 << 20

    // VaultCatalogue.

    /// Memory of SQLite's page cache, in KiB.
    public var catalogueCacheKibibytes = 8192

    // PhotoLibrary.

    /// Inodes kept in memory that nobody uses.
    public var cachedInodes = 16_384
    /// Chunks of all files that are not sealed yet.
    public var dirtyChunks = 128
    /// Buffers of such chunks, and of replies, that are kept for the next request.
    public var keptChunks = 16
    public var keptReplies = 4
    /// Entries up to which a directory's names are read to remember their hashes, and hashes remembered of one.
    public var readNames = 256
    public var nameHashes = 1 << 18
    /// Threads remembered that received ESTALE and may retry.
    public var retries = 1024
    /// Threads remembered that found a file in a day and may link it; twice as many at most.
    public var dayLookups = 1024
    /// Identity records that one durable commit writes, and one that a program waits for.
    public var records = 8192
    public var awaitedRecords = 64
    /// Identity records read with the catalogue's lock held once, and sealed by one call.
    public var recordsPerLock = 64
    public var recordsPerWrite = 512
    /// Extent rows deleted in one transaction.
    public var reapedRows = 1000
    /// Trash rows looked at in one query.
    public var trashRows = 100
    /// Files that changed since the newest durable root and are remembered, to be named where they cannot be written;
    /// twice as many at most.
    public var unwrittenFiles = 4096
    /// Runs, and segments, whose allocation a check compares at a time.
    public var checkedRuns = 1 << 18
    public var checkedSegments = 1024
    /// Bytes of a file that are compared with photos while others wait for the file, or for its directory: some 50 ms.
    public var briefComparisonBytes: UInt64 = 32 << 20
    /// Requests that compare more at the same time; each occupies a thread that serves others.
    public var longComparisons = 8
    /// Files that wait for the follow-up in memory; the others are taken up by the next session.
    public var waitingFiles = 65_536
    /// Bytes of pictures kept in memory that the vault does not keep: a screen full of large ones.
    public var heldPictureBytes = 16 << 20
    /// Pictures remembered that cannot be made; of others that is found out again.
    public var impossiblePictures = 4096
    /// Photos looked at in one go: whose pictures are made ahead, and whose are dropped.
    public var backgroundThumbnails = 64
    public var thinnedPhotos = 64
    /// Bytes that one copy_file_range(2) copies: between two it can be interrupted.
    public var copiedBytes = 16 << 20

    // FuseBridge.

    /// Notifications that wait for the kernel. It takes hundreds of thousands a second; of more it is told all at once.
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
        limits.chunkBuffers = 0
        limits.backlogBytes = 256 << 10
        limits.overwriteStepBytes = 1
        limits.catalogueCacheKibibytes = 40
        limits.cachedInodes = 1
        limits.dirtyChunks = 1
        limits.keptChunks = 0
        limits.keptReplies = 0
        limits.readNames = 1
        limits.nameHashes = 1
        // Fewer would not do: each thread that works at once may be told to retry, or link what it found.
        limits.retries = 64
        limits.dayLookups = 64
        limits.records = 1
        limits.awaitedRecords = 1
        limits.recordsPerLock = 1
        limits.recordsPerWrite = 1
        limits.reapedRows = 1
        limits.trashRows = 1
        limits.unwrittenFiles = 1
        limits.checkedRuns = 1
        limits.checkedSegments = 1
        limits.briefComparisonBytes = 64 << 10
        limits.longComparisons = 1
        limits.waitingFiles = 1
        limits.heldPictureBytes = 0
        limits.impossiblePictures = 1
        limits.backgroundThumbnails = 1
        limits.thinnedPhotos = 1
        limits.copiedBytes = 64 << 10
        // Kernels before 6.16 cannot be told all at once: there an overflow leaves names to their timeouts.
        return limits
    }()
}
