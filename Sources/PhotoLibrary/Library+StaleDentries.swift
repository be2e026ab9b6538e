import VaultCatalogue
import VaultFormat
import VaultStore

/// Which file a request means. The kernel asks by inode, and goes on believing a name that came to mean another file
/// until it is told. Told that what it uses is stale, it asks for the name again, in the same thread: but once.
extension Library {
    /// What became of a thread that was told that what it uses is stale.
    enum Retry: Equatable {
        /// It is to ask for the name again.
        case refused
        /// It did: the name means this inode.
        case found(UInt64)
    }

    /// The inode that a thread opens or changes by a name. Throws `stale` where that name may be another file's by now:
    /// though another name, the right one, was looked up, by it or somebody else, the kernel may still believe the
    /// wrong one. Under the catalogue's lock.
    func resolve(_ ino: UInt64, _ tree: Tree, by caller: Caller) throws(FileError) -> Inode {
        let retry = tree.retries.isEmpty ? nil : tree.retries.removeValue(forKey: caller.pid)
        do throws(FileError) {
            let inode = try tree.inode(ino)
            if inode.hasUnconfirmedDentry && isKernelTold { inode.hasUnconfirmedDentry = false }
            if inode.mayHaveStaleDentry || inode.hasUnconfirmedDentry && retry != .found(ino) { throw .stale }
            return inode
        } catch {
            if error == .stale {
                // Threads that end meanwhile never come back.
                if tree.retries.count >= space.limits.retries { tree.retries = [:] }
                tree.retries[caller.pid] = .refused
            }
            throw error
        }
    }

    /// As `resolve`, for requests that may also come by a descriptor. The kernel does not tell which; where no handle
    /// is open it is a name. `caller` is `nil` for requests of this program.
    func resolveUnlessOpen(_ ino: UInt64, _ tree: Tree, by caller: Caller?) throws(FileError) -> Inode {
        guard let caller, tree.cached(ino)?.openCount ?? 0 == 0 else { return try tree.inode(ino) }
        return try resolve(ino, tree, by: caller)
    }

    /// The inode whose attributes are asked for. Throws `stale` where it has no name any more, but is asked for by one:
    /// the kernel makes no link to what it counts no names of, and shows what a photo was like before it was saved. Not
    /// where it has others: the kernel also asks before it opens, and then may be told so twice.
    func shown(_ ino: UInt64, _ handle: FileHandle?, _ tree: Tree) throws(FileError) -> Inode {
        let inode = try tree.inode(ino, handle)
        if inode.mayHaveStaleDentry, inode.row.nlink == 0, inode.openCount == 0, !isKernelTold {
            throw .stale
        }
        return inode
    }

    /// A name of it was looked up.
    func noteLookedUp(_ inode: Inode, _ tree: Tree, by caller: Caller) {
        if !tree.retries.isEmpty { noteRetry(inode, tree, by: caller) }
        guard inode.mayHaveStaleDentry || inode.hasUnconfirmedDentry else { return }
        inode.hasUnconfirmedDentry = !isKernelTold
        inode.mayHaveStaleDentry = false
    }

    private func noteRetry(_ inode: Inode, _ tree: Tree, by caller: Caller) {
        let found = Retry.found(inode.ino)
        // Who found it before may have done so by the name that it lost then.
        if inode.mayHaveStaleDentry { tree.retries = tree.retries.filter { $0.value != found } }
        guard !inode.leadsOn, let retry = tree.retries[caller.pid] else { return }
        // The kernel may ask twice for the name; then it uses what it found, or never.
        tree.retries[caller.pid] = retry == .refused || retry == found ? found : nil
    }
}
