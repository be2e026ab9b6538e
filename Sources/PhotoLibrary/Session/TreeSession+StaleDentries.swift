import CatalogueRows
package import FileRequests
import KernelNames
import VaultCatalogue

/// Resolves the inode of a request. The kernel sends inode numbers, and goes on using a dentry that now names another
/// file until it is notified; see `KernelNames`.
extension TreeSession {
    /// The inode that a thread opens or changes by a name. Throws `.stale` if that name may belong to another file by
    /// now. Under the catalogue's lock.
    package func resolve(_ ino: UInt64, _ tree: Tree, by caller: Caller) throws(FileError) -> Inode {
        do throws(FileError) {
            let inode = try tree.inode(ino)
            let mustRetry = tree.kernelNames.mustRetry(
                ino, &inode.dentries, by: caller.pid, isNotified: isKernelNotified)
            if mustRetry { throw .stale }
            return inode
        } catch {
            if error == .stale { tree.kernelNames.noteRefused(caller.pid) }
            throw error
        }
    }

    /// As `resolve`, for requests that may also come by a descriptor. The kernel does not tell which; if no handle is
    /// open it is a name. `caller` is nil for requests of this program.
    package func resolveUnlessOpen(_ ino: UInt64, _ tree: Tree, by caller: Caller?) throws(FileError)
        -> Inode
    {
        guard let caller, tree.cached(ino)?.hasHandles != true else { return try tree.inode(ino) }
        return try resolve(ino, tree, by: caller)
    }

    /// The inode whose attributes are requested. Throws `.stale` if it has no name any more but is requested by one:
    /// the kernel refuses to link an inode with link count zero, and would show a photo as it was before it was saved.
    /// Does not throw while the inode has other names: the kernel also requests attributes before it opens, and could
    /// then get ESTALE twice.
    package func shown(_ ino: UInt64, _ open: FileState?, _ tree: Tree) throws(FileError) -> Inode {
        let inode = if let open { open.inode } else { try tree.inode(ino) }
        if inode.dentries.mayBeStale, inode.row.nlink == 0, !inode.hasHandles, !isKernelNotified {
            throw .stale
        }
        return inode
    }

    /// Notes a lookup of one of the inode's names.
    package func noteLookedUp(_ inode: Inode, _ tree: Tree, by caller: Caller) {
        tree.kernelNames.noteLookup(
            of: inode.ino, &inode.dentries, continuesPath: inode.continuesPath, by: caller.pid,
            isNotified: isKernelNotified)
    }
}
