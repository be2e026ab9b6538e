public import VaultFormat

#if DEBUG
    import Glibc
#endif

extension Limits {
    /// The limits with which this process opens spaces: `production`; `least` in a debug build with
    /// `OBSCURA_LIMITS=least` in its environment, whose new vaults then have the smallest segments.
    public static let ofProcess: Limits = {
        #if DEBUG
            if let name = getenv("OBSCURA_LIMITS"), String(cString: name) == "least" { return .least }
        #endif
        return .production
    }()
}
