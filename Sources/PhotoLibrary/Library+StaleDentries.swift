import VaultCatalogue
import VaultFormat
import VaultStore

/// Resolves the file that a request is about. The kernel sends inode numbers, and goes on using a dentry that now names
/// another file until it is notified. After ESTALE it looks the name up again, in the same thread, but only once.
extension Library {
    /// State of a thread that received ESTALE.
    enum Retry: Equatable {
        /// It is expected to look the name up again.
        case refused
        /// It did: the name resolved to this inode.
        case found(UInt64)
    }

    /// The inode that a thread opens or changes by a name. Throws `.stale` if that name may belong to another file by
    /// now: even after a lookup of the right name, by this thread or another, the kernel may still use an outdated
    /// dentry. Under the catalogue's lock.
    func resolve(_ ino: UInt64, _ tree: Tree, by caller: Caller) throws(FileError) -> Inode {
        let retry = tree.retries.isEmpty ? nil : tree.retries.removeValue(forKey: caller.pid)
        do throws(FileError) {
            let inode = try tree.inode(ino)
            if inode.hasUnconfirmedDentry && isKernelNotified { inode.hasUnconfirmedDentry = false }
            if inode.mayHaveStaleDentry || inode.hasUnconfirmedDentry && retry != .found(ino) { throw .stale }
            return inode
        } catch {
            if error == .stale {
                // Entries of threads that ended meanwhile would never be removed.
                if tree.retries.count >= space.limits.retries { tree.retries = [:] }
                tree.retries[caller.pid] = .refused
            }
            throw error
        }
    }

    /// As `resolve`, for requests that may also come by a descriptor. The kernel does not tell which; if no handle is
    /// open it is a name. `caller` is nil for requests of this program.
    func resolveUnlessOpen(_ ino: UInt64, _ tree: Tree, by caller: Caller?) throws(FileError) -> Inode {
        guard let caller, tree.cached(ino)?.openCount ?? 0 == 0 else { return try tree.inode(ino) }
        return try resolve(ino, tree, by: caller)
    }

    /// The inode whose attributes are requested. Throws `.stale` if it has no name any more but is requested by one:
    /// the kernel refuses to link an inode with link count zero, and would show a photo as it was before it was saved.
    /// Does not throw while the inode has other names: the kernel also requests attributes before it opens, and could
    /// then get ESTALE twice.
    func shown(_ ino: UInt64, _ handle: FileHandle?, _ tree: Tree) throws(FileError) -> Inode {
        let inode = try tree.inode(ino, handle)
        if inode.mayHaveStaleDentry, inode.row.nlink == 0, inode.openCount == 0, !isKernelNotified {
            throw .stale
        }
        return inode
    }

    /// Notes a lookup of one of the inode's names.
    func noteLookedUp(_ inode: Inode, _ tree: Tree, by caller: Caller) {
        if !tree.retries.isEmpty { noteRetry(inode, tree, by: caller) }
        guard inode.mayHaveStaleDentry || inode.hasUnconfirmedDentry else { return }
        inode.hasUnconfirmedDentry = !isKernelNotified
        inode.mayHaveStaleDentry = false
    }

    private func noteRetry(_ inode: Inode, _ tree: Tree, by caller: Caller) {
        let found = Retry.found(inode.ino)
        // Threads that found it before may have used a name that it has lost.
        if inode.mayHaveStaleDentry { tree.retries = tree.retries.filter { $0.value != found } }
        guard !inode.continuesPath, let retry = tree.retries[caller.pid] else { return }
        // The kernel may look the name up twice; then it uses the result, or never does.
        tree.retries[caller.pid] = retry == .refused || retry == found ? found : nil
    }
}
