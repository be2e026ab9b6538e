internal import CSeccomp
internal import CShims
internal import Glibc

/// Limits of the worker and everything it forks.
private enum Limit {
    static let addressSpaceBytes: rlim_t = 1 << 30
    static let descriptors: rlim_t = 16
    /// Processor time for one picture; no valid picture needs as much. The client's deadline is longer, so that a busy
    /// machine does not reject a good picture.
    static let processorSecondsMax: rlim_t = 10
}

/// Permanently takes from this process: capabilities, privileges gained by exec, core dumps, tracing by its own user,
/// and unlimited memory and descriptors. Returns whether all of it succeeded.
func confineWorker() -> Bool {
    // Raises the limit of locked memory to the hard limit; the soft limit is often lower. Root removes the limit while
    // it still has its capabilities, which are dropped below.
    var locked = rlimit()
    if !setLimit(__RLIMIT_MEMLOCK, rlim_t.max),
        getrlimit(__rlimit_resource_t(__RLIMIT_MEMLOCK.rawValue), &locked) == 0
    {
        _ = setLimit(__RLIMIT_MEMLOCK, locked.rlim_max, hard: locked.rlim_max)
    }
    return dropCapabilities()
        && shim_prctl(shim_PR_SET_NO_NEW_PRIVS, 1) == 0
        && shim_prctl(shim_PR_SET_DUMPABLE, 0) == 0
        && setLimit(RLIMIT_CORE, 0)
        && setLimit(RLIMIT_AS, Limit.addressSpaceBytes)
        && setLimit(RLIMIT_DATA, Limit.addressSpaceBytes)
        && setLimit(RLIMIT_NOFILE, Limit.descriptors)
}

/// Drops all capabilities (present if root mounts), also those that a later exec could give back.
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

/// Confines a decoding process further: it dies with its parent, writes no file, cannot fork, and has a limit of
/// processor time, counted from the fork. Returns whether that succeeded.
func confineFork(of parent: pid_t) -> Bool {
    shim_prctl(shim_PR_SET_PDEATHSIG, UInt(SIGKILL)) == 0
        && getppid() == parent  // The parent could have died before the line above.
        && setLimit(RLIMIT_CPU, Limit.processorSecondsMax)
        && setLimit(RLIMIT_FSIZE, 0)
        && setLimit(__RLIMIT_NPROC, 0)
}

private func setLimit(_ resource: __rlimit_resource, _ soft: rlim_t, hard: rlim_t? = nil) -> Bool {
    var limit = rlimit(rlim_cur: soft, rlim_max: hard ?? soft)
    return setrlimit(__rlimit_resource_t(resource.rawValue), &limit) == 0
}

/// The only system calls that a decoding process may make (seccomp(2), libseccomp). All others fail with EPERM; calls
/// of another architecture's table kill the process.
struct SystemCallFilter {
    private let context: scmp_filter_ctx

    /// Memory that is not executable, futexes, the clock, random bytes, yielding, return from signals, exit. No
    /// descriptor can be opened or used: there is no read, no write, no open.
    private static let allowed = [
        "brk", "munmap", "mremap", "madvise", "mlock", "mlock2", "munlock", "futex", "clock_gettime",
        "gettimeofday",
        "getrandom", "sched_yield", "rt_sigreturn", "restart_syscall", "exit", "exit_group",
    ]
    /// Allowed if the third argument, the protection, lacks PROT_EXEC.
    private static let allowedUnlessExecutable = ["mmap", "mprotect"]

    /// Prepares the filter. Nil if libseccomp fails.
    init?() {
        guard let context = seccomp_init(shim_scmp_act_errno(UInt16(EPERM))) else { return nil }
        self.context = context
        let notExecutable = scmp_arg_cmp(
            arg: 2, op: SCMP_CMP_MASKED_EQ, datum_a: scmp_datum_t(PROT_EXEC), datum_b: 0)
        let isComplete =
            Self.allowed.allSatisfy { allow($0) }
            && Self.allowedUnlessExecutable.allSatisfy { allow($0, where: notExecutable) }
        guard isComplete else {
            seccomp_release(context)
            return nil
        }
    }

    /// Confines this process until its end. PR_SET_NO_NEW_PRIVS must be set. Returns whether it succeeded.
    func install() -> Bool {
        seccomp_load(context) == 0
    }

    private func allow(_ name: String, where condition: scmp_arg_cmp? = nil) -> Bool {
        let number = seccomp_syscall_resolve_name(name)
        guard var condition else { return seccomp_rule_add_array(context, 0x7FFF_0000, number, 0, nil) == 0 }
        return seccomp_rule_add_array(context, 0x7FFF_0000, number, 1, &condition) == 0
    }
}
