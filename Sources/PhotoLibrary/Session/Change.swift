package import LinuxIO

/// One change of the tree: its time, the thread that asked for it, and the work that waits for the release of the
/// catalogue's lock. It is made under that lock, so the times of changes are in their order.
package final class Change {
    package let tree: Tree
    /// The thread whose request makes it; -1 if it is none of a client.
    let thread: Int32
    package let now = Timestamp.now()
    /// Whether a photo has new bytes, so that it needs a thumbnail.
    var hasNewPhoto = false
    /// Orphans to be destroyed when the lock is released: for an inode that the kernel does not know, no FORGET comes.
    var inodesToDestroy: [UInt64] = []
    /// The inode of a photo that got its names back, and that the kernel has forgotten; else 0.
    var restoredPhoto: UInt64 = 0

    init(_ tree: Tree, by thread: Int32) { (self.tree, self.thread) = (tree, thread) }
}
