package import VaultFormat
import VaultStore

/// How a mount shows owners and permissions, and the limits of its memory.
package struct TreeOptions: Sendable {
    /// The mounting user: owner of everything without an owner of its own.
    package var owner: (uid: UInt32, gid: UInt32)
    /// Whether owners are kept and can be set.
    package var mountedByRoot: Bool
    /// Shown instead of the owners, if given.
    package var uid: UInt32?
    package var gid: UInt32?
    /// Permission bits that are never shown.
    package var umask: UInt32?
    package var limits = Limits.ofProcess

    package init(owner: (uid: UInt32, gid: UInt32), mountedByRoot: Bool) {
        self.owner = owner
        self.mountedByRoot = mountedByRoot
    }
}
