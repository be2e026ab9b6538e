internal import Glibc
internal import Sandbox

/// Limits of the worker and everything it forks.
private enum Limit {
    static let process = ProcessLimits(addressSpaceBytes: 1 << 30, descriptors: 16)
    /// Processor time for one picture; no valid picture needs as much. The client's deadline is longer, so that a busy
    /// machine does not reject a good picture.
    static let processorSecondsMax: rlim_t = 10
}

/// Confines the worker and its forks: see `confine`. Returns whether all of it succeeded.
func confineWorker() -> Bool {
    // Raises the limit of locked memory to the hard limit; the soft limit is often lower. Root removes the limit while
    // it still has its capabilities, which are dropped below.
    var locked = rlimit()
    if !setLimit(__RLIMIT_MEMLOCK, rlim_t.max),
        getrlimit(__rlimit_resource_t(__RLIMIT_MEMLOCK.rawValue), &locked) == 0
    {
        _ = setLimit(__RLIMIT_MEMLOCK, locked.rlim_max, hard: locked.rlim_max)
    }
    return confine(to: Limit.process)
}

/// Confines a decoding process further: it dies with its parent, writes no file, cannot fork, and has a limit of
/// processor time, counted from the fork. Returns whether that succeeded.
func confineFork(of parent: pid_t) -> Bool {
    dieWithParent(parent)
        && setLimit(RLIMIT_CPU, Limit.processorSecondsMax)
        && setLimit(RLIMIT_FSIZE, 0)
        && setLimit(__RLIMIT_NPROC, 0)
}
