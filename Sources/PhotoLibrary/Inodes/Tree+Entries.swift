package import CatalogueRows
package import FileRequests
import KernelNames
package import LinuxIO
import PhotoRules
import VaultCatalogue
import VaultFormat
import VaultStore

/// Files and names that a request makes, finds or takes away.
extension Tree {
    /// Some entries of a directory, and the inodes of the directories among them.
    package func page(
        of directory: UInt64, after cookie: UInt64
    ) throws(FileError) -> (rows: [DentryRow], directories: Set<UInt64>) {
        let rowsMax = 64
        var rows: [DentryRow] = []
        try tables.dentries.each(in: directory, after: cookie) {
            rows.append($0)
            return rows.count < rowsMax
        }
        var directories: Set<UInt64> = []
        for row in rows {
            let inode = try inode(row.ino)
            if inode.isDirectory { directories.insert(row.ino) }
        }
        return (rows, directories)
    }

    /// Creates a file and its name, if the rules of the directory allow it.
    package func make(
        _ parent: UInt64, _ name: [UInt8], mode: UInt32, _ caller: Caller,
        _ complete: (Tree, Inode) throws(FileError) -> Void
    ) throws(FileError) -> (directory: Inode, inode: Inode) {
        let directory = try self.directory(parent)
        let type = mode & fileTypeMask
        if try has(directory, name) { throw .exists }
        let kind: NewFile =
            switch type {
            case directoryType: .directory
            case regularType: .regularFile
            default: .special
            }
        guard mayMake(kind, named: name, in: directory.area) else { throw .notPermitted }
        // The directory was removed while a process was using it.
        guard directory.row.nlink > 0 else { throw .noEntry }
        let now = Timestamp.now()
        let inode = makeInode(mode: mode, in: directory, caller, now: now)
        if type != directoryType { inode.row.nlink = 1 }
        try complete(self, inode)
        try addEntry(directory, name, inode, now: now)
        return (directory, inode)
    }

    /// Tells the kernel to forget a file's name that is gone or names another file now, and the attributes of its
    /// directory. The kernel looks names in days up each time, but keeps their dentries too: a dentry keeps the inode,
    /// and the inode its bytes.
    func noteLost(_ row: DentryRow, in directory: Inode) {
        kernelNames.noteLoss(of: row.name, in: row.parent, isInDay: directory.isDay)
        if !directory.isDay { kernelNames.noteChange(of: row.parent) }
    }

    /// Removes a file's name without a request of the kernel. The caller updates the link count.
    package func withdraw(_ row: DentryRow, in directory: Inode, _ inode: Inode, now: Timestamp)
        throws(FileError)
    {
        try removeEntry(directory, row.id, inode, now: now)
        noteLost(row, in: directory)
    }

    /// The name, or a free numbered form of it, as by `firstFreeName`.
    ///
    /// - Parameter suits: a further condition on a free name.
    package func freeName(
        _ directory: Inode, _ name: [UInt8],
        suits: ([UInt8]) throws(FileError) -> Bool = { _ throws(FileError) in true }
    ) throws(FileError) -> [UInt8] {
        try firstFreeName(name) { candidate throws(FileError) in
            guard try !has(directory, candidate) else { return false }
            return try suits(candidate)
        }
    }
}
