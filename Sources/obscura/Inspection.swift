import Glibc

#if DEBUG
    /// Set, the daemon of a debug build stops (SIGSTOP) once all is written and wiped and only its end is left, so
    /// that a test can look at its memory. Release builds do not have this.
    let inspectionVariable = "OBSCURA_STOP_AT_END"

    func stopForInspection() {
        if getenv(inspectionVariable) != nil { raise(SIGSTOP) }
    }
#endif
