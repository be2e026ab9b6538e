/// A path, and the message about it.
package struct PathNote: Equatable {
    /// The file or directory at fault.
    package var path: HostPath
    /// Printed after the path and a colon.
    package var reason: String

    /// A note of these two.
    package init(path: HostPath, reason: String) {
        self.path = path
        self.reason = reason
    }
}
