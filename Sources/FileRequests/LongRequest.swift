public import LinuxIO

/// A client's request that may take long.
public protocol LongRequest {
    /// Runs `work`, which takes long; other requests are served meanwhile. `work` ends soon after it is cancelled.
    func lasting(_ work: (Cancellation) -> Void)
}
