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

    private static let stagedFraction = 64
    private static let stagedPagesMax = 49_152
}
