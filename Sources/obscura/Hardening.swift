import CShims
import Glibc
import LinuxIO

/// Keeps the memory of this process out of files in every case.
///
/// The crash reporter, on unless the environment says otherwise, is dropped. No core is written, and no process
/// of the same user may look inside. Programs started from here leave no cores either.
func hardenProcess() throws(Failure) {
    obscura_drop_crash_reporter()
    // 1 and not 0: the kernel then does not even run the program that core_pattern may name (core(5)), which keeps
    // command lines in the journal and pictures in cores.
    let resource = __rlimit_resource_t(RLIMIT_CORE.rawValue)
    var limit = rlimit()
    getrlimit(resource, &limit)
    limit = rlimit(rlim_cur: min(1, limit.rlim_max), rlim_max: min(1, limit.rlim_max))
    guard setrlimit(resource, &limit) == 0, obscura_forbid_dumps() == 0 else {
        throw Failure("obscura", "forbidding core dumps", .last)
    }
    // Executed through /proc/self/exe it would be listed as "exe".
    _ = obscura_set_process_name("obscura")
}

/// More than passwords and keys take at once.
private let lockedBytes = 256 << 10

/// Fails if memory cannot be locked: libsodium would go on all the same, with keys that may be swapped out.
func requireLockableMemory() throws(Failure) {
    let memory = mmap(nil, lockedBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    guard let memory, memory != MAP_FAILED else { throw Failure("memory", "allocating some for keys", .last) }
    defer { munmap(memory, lockedBytes) }
    guard mlock(memory, lockedBytes) == 0 else {
        throw Failure(
            .failed, "memory",
            "passwords and keys would be swapped out: let this user lock \(lockedBytes >> 10) KiB (ulimit -l)"
        )
    }
}
