import CatalogueRows
package import FileRequests
import LinuxIO
import PhotoRules
import VaultCatalogue

extension Renames {
    /// RENAME_EXCHANGE: two names exchange their inodes. Plain POSIX in albums; also allowed within a day. Elsewhere
    /// the rules of moments forbid it.
    package func exchange(_ request: RenameRequest) throws(FileError) {
        guard let target = request.target else { throw .noEntry }
        let (from, to, now) = (request.from, request.to, request.now)
        let (first, second) = (request.source, target.inode)
        let isAllowed = mayExchange(
            from.area, to.area, isSameDirectory: from.ino == to.ino, isFromTrash: request.isFromTrash,
            isIntoTrash: request.isIntoTrash)
        guard isAllowed else { throw .notPermitted }
        if first.isDirectory, try tree.isInside(to, first) { throw .invalid }
        if second.isDirectory, try tree.isInside(from, second) { throw .invalid }
        for (inode, name, directory) in [(first, request.name, from), (second, request.newName, to)] {
            try tree.sidecars.noteRemoved(inode, name, from: directory, by: request.caller.pid)
        }
        let isMember = try tree.find(to, request.newName)?.isMember ?? false
        let isFirstLink = try tree.names(of: first).contains { $0.id == request.sourceID && $0.isLink }
        let isSecondLink = try tree.names(of: second).contains { $0.id == target.id && $0.isLink }
        try tree.removeEntry(from, request.sourceID, first, now: now)
        try tree.removeEntry(to, target.id, second, now: now)
        try tree.addEntry(from, request.name, second, isMember: isMember, isLink: isSecondLink, now: now)
        try tree.addEntry(
            to, request.newName, first, isMember: request.isMember, isLink: isFirstLink, now: now)
        for inode in [first, second] {
            inode.row.changed = now
            tree.touch(inode)
            if inode.isPhoto, from.isDay, request.changesName {
                tree.moments.setNameGivenInMoments(inode, isGiven: true)
            }
        }
    }
}
