internal import CShims
package import Glibc

/// Resource limits of a confined process.
package struct ProcessLimits: Sendable {
    /// RLIMIT_AS and RLIMIT_DATA, in bytes.
    package var addressSpaceBytes: rlim_t
    /// RLIMIT_NOFILE.
    package var descriptors: rlim_t

    package init(addressSpaceBytes: rlim_t, descriptors: rlim_t) {
        self.addressSpaceBytes = addressSpaceBytes
        self.descriptors = descriptors
    }
}

/// Permanently takes from this process: capabilities, privileges gained by exec, core dumps, tracing by its own user,
/// and unlimited memory and descriptors. Returns whether all of it succeeded.
package func confine(to limits: ProcessLimits) -> Bool {
    dropCapabilities()
        && shim_prctl(shim_PR_SET_NO_NEW_PRIVS, 1) == 0
        && shim_prctl(shim_PR_SET_DUMPABLE, 0) == 0
        && setLimit(RLIMIT_CORE, 0)
        && setLimit(RLIMIT_AS, limits.addressSpaceBytes)
        && setLimit(RLIMIT_DATA, limits.addressSpaceBytes)
        && setLimit(RLIMIT_NOFILE, limits.descriptors)
}

/// Makes this process die with its parent. Returns whether that succeeded.
package func dieWithParent(_ parent: pid_t) -> Bool {
    // The parent could have died before the first line.
    shim_prctl(shim_PR_SET_PDEATHSIG, UInt(SIGKILL)) == 0 && getppid() == parent
}

/// Drops all capabilities (present for root), also those that a later exec could give back.
private func dropCapabilities() -> Bool {
    var capability: Int32 = 0
    while true {
        let isBounding = shim_bounding_has(capability)
        // The kernel knows no further capabilities.
        if isBounding < 0 { break }
        // An ordinary user may not shrink the bounding set, but holds none of it, and no_new_privs keeps it so.
        if isBounding > 0, shim_bounding_drop(capability) != 0, errno != EPERM { return false }
        capability += 1
    }
    return capability > 0 && shim_clear_capabilities() == 0
}

/// setrlimit(2) with the same soft and hard limit, unless `hard` is given.
package func setLimit(_ resource: __rlimit_resource, _ soft: rlim_t, hard: rlim_t? = nil) -> Bool {
    var limit = rlimit(rlim_cur: soft, rlim_max: hard ?? soft)
    return unsafe setrlimit(__rlimit_resource_t(resource.rawValue), &limit) == 0
}
