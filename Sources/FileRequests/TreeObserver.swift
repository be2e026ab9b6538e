/// Receives changes that the kernel did not request. Called from any thread; all but `awaitLostNames` only enqueue.
public protocol TreeObserver: AnyObject, Sendable {
    /// The dentry must not be cached any longer: the name is gone, or names another inode.
    ///
    /// - Parameter isInDay: whether it is a name in a day or a view, which the kernel looks up whenever it uses it.
    func invalidateEntry(parent: UInt64, name: Name, isInDay: Bool)
    /// The name of a file that is gone: the kernel must drop the dentry, so that `forget` follows.
    func dropEntry(parent: UInt64, name: Name, isInDay: Bool)
    /// Attributes and cached pages.
    func invalidateInode(_ ino: UInt64)
    func invalidateAttributes(_ ino: UInt64)
    /// Whether some notifications are still unsent.
    var hasUnsent: Bool { get }
    /// Returns when the kernel has dropped the names of `dropEntry` that are not in days, or soon: for the end of a
    /// request, whose client may ask for one of those names next.
    ///
    /// - Parameter locked: the directories that the kernel has locked for the request. It does not wait for a name in
    ///   one of those: the kernel drops that only after the answer.
    func awaitLostNames(locked: [UInt64])
}
