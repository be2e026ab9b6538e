import CatalogueRows
package import FileRequests
import KernelNames
package import LinuxIO
import VaultCatalogue

extension Tree {
    /// Applies the changes of SETATTR, except the size.
    package func set(_ changes: AttributeChanges, on inode: Inode, now: Timestamp) throws(FileError) {
        try setOwner(changes, on: inode)
        if let mode = changes.mode {
            inode.row.mode = inode.row.mode & fileTypeMask | mode & permissionMask
            inode.state?.notePrivileges(mode & (setUserID | setGroupID) != 0)
        }
        if let accessed = changes.accessed { inode.row.accessed = accessed.value(now) }
        if let modified = changes.modified { inode.row.modified = modified.value(now) }
        inode.row.changed = changes.changed ?? now
        inode.state?.noteTimesSet(isModifiedSet: changes.modified != nil)
        touch(inode)
    }

    private func setOwner(_ changes: AttributeChanges, on inode: Inode) throws(FileError) {
        guard changes.uid != nil || changes.gid != nil else { return }
        let shown = attributes(of: inode.row)
        let uid = changes.uid ?? shown.uid
        let gid = changes.gid ?? shown.gid
        // Owners that are not kept, or not shown, cannot be set; setting the present owner is no change.
        if !options.mountedByRoot || options.uid != nil || options.gid != nil {
            guard uid == shown.uid && gid == shown.gid else { throw .notPermitted }
        } else {
            inode.row.uid = uid
            inode.row.gid = gid
        }
        if !inode.isDirectory && changes.mode == nil { dropPrivileges(inode) }
    }

    /// Clears set-user-ID, and set-group-ID unless it means mandatory locking.
    package func dropPrivileges(_ inode: Inode) {
        guard inode.row.mode & (setUserID | setGroupID) != 0, !inode.isDirectory else { return }
        inode.row.mode &= ~setUserID
        if inode.row.mode & groupExecute != 0 { inode.row.mode &= ~setGroupID }
        touch(inode)
        kernelNames.noteChange(of: inode.ino)
    }

    /// Notes a change other than of the file's bytes.
    package func noteChanged(_ inode: Inode) {
        inode.row.changed = .now()
        touch(inode)
    }
}

extension FileState {
    fileprivate func notePrivileges(_ hasThem: Bool) { view.withLock { mayHavePrivileges = hasThem } }
}
