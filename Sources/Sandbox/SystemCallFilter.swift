internal import CSeccomp
internal import Glibc

/// The only system calls that a process may make (seccomp(2), libseccomp). All others fail with EPERM; calls of another
/// architecture's table kill the process.
@safe package struct SystemCallFilter {
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
    ///
    /// - Parameter others: names of system calls that are allowed too.
    package init?(allowing others: [String] = []) {
        guard let context = unsafe seccomp_init(shim_scmp_act_errno(UInt16(EPERM))) else { return nil }
        unsafe self.context = unsafe context
        let notExecutable = scmp_arg_cmp(
            arg: 2, op: SCMP_CMP_MASKED_EQ, datum_a: scmp_datum_t(PROT_EXEC), datum_b: 0)
        let isComplete =
            (Self.allowed + others).allSatisfy { allow($0) }
            && Self.allowedUnlessExecutable.allSatisfy { allow($0, where: notExecutable) }
        guard isComplete else {
            unsafe seccomp_release(context)
            return nil
        }
    }

    /// Confines this thread, and those that it starts, until their end. PR_SET_NO_NEW_PRIVS must be set. Returns
    /// whether it succeeded.
    package func install() -> Bool {
        unsafe seccomp_load(context) == 0
    }

    private func allow(_ name: String, where condition: scmp_arg_cmp? = nil) -> Bool {
        let number = unsafe seccomp_syscall_resolve_name(name)
        guard var condition else {
            return unsafe seccomp_rule_add_array(context, 0x7FFF_0000, number, 0, nil) == 0
        }
        return unsafe seccomp_rule_add_array(context, 0x7FFF_0000, number, 1, &condition) == 0
    }
}
