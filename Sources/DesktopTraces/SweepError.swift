package import LinuxIO

/// A failed system call: the process of a sweep could not give up its rights.
package struct SweepError: Error {
    /// The attempt, in the form "opening it".
    package var doing: String
    /// The reason.
    package var error: Errno
}
