import Glibc

#if DEBUG
    /// If set, the processes of a debug build that get a space's key stop themselves (SIGSTOP), so that a test can
    /// inspect their memory: `import` and `export` when their work is done and the keys are still there; they and the
    /// daemon when everything is written and wiped, just before they end. Release builds do not have this.
    let inspectionVariable = "OBSCURA_STOP_FOR_INSPECTION"

    func stopForInspection() {
        if getenv(inspectionVariable) != nil { raise(SIGSTOP) }
    }
#else
    @inline(__always)
    func stopForInspection() {}
#endif
