package import LinuxIO

/// Why nothing can be received.
package enum ReceiveError: Error {
    /// No space is mounted in that directory.
    case notMounted(String)
    /// This machine has no default route, and no address was named.
    case noRoute
    /// The text is no address.
    case invalidAddress(String)
    /// No phone can reach that address, for a reason, or it cannot be listened on. `own`: addresses of this machine.
    case unusableAddress(ListeningAddress, reason: String, own: [String])
    /// `obscura-receiver` is not beside this program.
    case noServer
    /// `obscura-receiver` ended, or could not be confined.
    case serverNotReady
    /// A failed system call on `what`: `doing` names the attempt, in the form "opening it".
    case system(what: String, doing: String, Errno)
}
