internal import LinuxIO
public import VaultFormat

#if DEBUG
    import Glibc
#endif

extension Limits {
    /// The limits with which this process opens spaces: `production`, with more memory on a machine that has more;
    /// `least` in a debug build with `OBSCURA_LIMITS=least` in its environment, whose new vaults then have the smallest
    /// segments.
    public static let ofProcess: Limits = {
        #if DEBUG
            if let name = getenv("OBSCURA_LIMITS"), String(cString: name) == "least" { return .least }
        #endif
        var limits = production
        // The more photos a commit has, the fewer pages are written once more in the next.
        limits.stagedPages = max(limits.stagedPages, min(stagedPagesMax, memoryBytes / stagedFraction / 4096))
        return limits
    }()

    /// As `ofProcess`, for a command that only checks a space. It searches index entries in no order, so the pages of
    /// indexes stay in memory where there is enough of it.
    public static let ofCheck: Limits = {
        var limits = ofProcess
        guard limits != .least else { return limits }
        let cache = max(
            limits.catalogueCacheKibibytes, min(checkCacheMax, memoryBytes / checkFraction / 1024))
        limits.mapNodes *= cache / limits.catalogueCacheKibibytes
        limits.catalogueCacheKibibytes = cache
        return limits
    }()

    /// Twice this share is used: see `CatalogueChecks`.
    private static let checkFraction = 64
    private static let checkCacheMax = 262_144
    private static let stagedFraction = 64
    private static let stagedPagesMax = 49_152
}
