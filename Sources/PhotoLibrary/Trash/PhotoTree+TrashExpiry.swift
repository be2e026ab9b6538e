package import CatalogueRows
package import FileRequests
import LinuxIO
package import VaultCatalogue

/// Removal from the trash by age, or because room is needed.
extension PhotoTree {
    /// The name in the trash that a row is about; nil if it is gone.
    package func trashedName(_ row: TrashRow) throws(FileError) -> DentryRow? {
        guard let name = try sql(tables.dentries(of: row.ino)).first(where: { $0.id == row.id }),
            try isInTrash(inode(name.parent))
        else { return nil }
        return name
    }

    /// Removes the entry of a row and the row, if the entry came into the trash at `limit` or before.
    package func discard(_ row: TrashRow, since limit: Int64, _ namelessInodes: inout [UInt64])
        throws(FileError)
    {
        if row.id != 0 {
            if let name = try trashedName(row) {
                try discard(name, since: limit, &namelessInodes)
            } else {
                try sql(tables.deleteTrash(row.ino, row.id))
            }
            return
        }
        guard let inode = try existing(row.ino), inode.isTrashed, row.since <= limit else { return }
        let names = try sql(tables.dentries(of: row.ino))
        for name in names {
            guard try isInTrash(self.inode(name.parent)) else {
                // A directory was restored, but the daemon was killed before it reached this file.
                try restore(inode, now: .now())
                return
            }
        }
        for name in names { try discard(name, now: .now(), &namelessInodes) }
    }

    /// Removes a name in the trash, unless its inode came there after `limit` or is a non-empty directory.
    package func discard(_ name: DentryRow, since limit: Int64, _ namelessInodes: inout [UInt64])
        throws(FileError)
    {
        // Removed since it was read.
        guard try sql(tables.dentry(name.parent, name.name))?.id == name.id else { return }
        let inode = try self.inode(name.ino)
        if inode.isDirectory && inode.row.size > 0 { return }
        if let row = try sql(tables.trashRow(name.ino, name.id)), row.since > limit { return }
        if inode.isTrashed, let row = try sql(tables.trashRow(name.ino, 0)), row.since > limit { return }
        try sql(tables.deleteTrash(name.ino, name.id))
        try discard(name, now: .now(), &namelessInodes)
    }
}
