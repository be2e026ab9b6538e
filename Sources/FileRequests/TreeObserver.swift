/// Receives changes that the kernel did not request. Called from any thread; must only enqueue.
public protocol TreeObserver: AnyObject, Sendable {
    /// The dentry must not be cached any longer: the name is gone, or names another inode.
    func invalidateEntry(parent: UInt64, name: Name)
    /// The name of a file that is gone: the kernel must drop the dentry, so that `forget` follows.
    func dropEntry(parent: UInt64, name: Name)
    /// Attributes and cached pages.
    func invalidateInode(_ ino: UInt64)
    func invalidateAttributes(_ ino: UInt64)
    /// Whether some notifications are still unsent.
    var hasUnsent: Bool { get }
}
