public import VaultFormat

#if DEBUG
    import Glibc
#endif

extension Limits {
    /// The limits with which this process opens spaces: those of production. In a debug build whose environment has
    /// `OBSCURA_LIMITS=least`, the least; the vaults that it makes have the smallest segments then.
    public static let ofProcess: Limits = {
        #if DEBUG
            if let name = getenv("OBSCURA_LIMITS"), String(cString: name) == "least" { return .least }
        #endif
        return .production
    }()
}
