public import Glibc

/// How a process ended.
public enum ProcessEnd: Equatable, Sendable {
    case exited(Int32)
    case signalled(Int32)

    /// Decodes a status of waitpid(2). WIFEXITED and the like are macros, which Swift does not import.
    public init(status: Int32) {
        let signal = status & 0x7F
        self = signal == 0 ? .exited(status >> 8 & 0xFF) : .signalled(signal)
    }
}

/// Waits for a child of this process to end.
public func waitForEnd(of process: pid_t) -> ProcessEnd {
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0 {
        if errno != EINTR { return .exited(-1) }
    }
    return ProcessEnd(status: status)
}
