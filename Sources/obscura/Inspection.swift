import Glibc

#if DEBUG
    /// Set, the processes of a debug build that get a space's key stop themselves (SIGSTOP), so that a test can look
    /// at their memory: `import` and `export` once their work is done and the keys are still there, they and the daemon
    /// once all is written and wiped and only their end is left. Release builds do not have this.
    let inspectionVariable = "OBSCURA_STOP_FOR_INSPECTION"

    func stopForInspection() {
        if getenv(inspectionVariable) != nil { raise(SIGSTOP) }
    }
#else
    @inline(__always)
    func stopForInspection() {}
#endif
