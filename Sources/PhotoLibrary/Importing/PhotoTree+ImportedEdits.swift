package import CatalogueRows
package import FileRequests
import KernelNames
import LinuxIO
import PhotoRules
import VaultCatalogue
package import VaultStore

/// Edited photos of an export, which become the present bytes of their originals.
extension PhotoTree {
    /// Makes an imported file the present bytes of a photo. Returns its inode.
    package func enter(
        edit: Arrival, _ row: PhotoRow, of ino: UInt64, _ space: Space
    ) throws(FileError) -> UInt64 {
        let now = Timestamp.now()
        let old = try inode(ino)
        // Without a version the bytes of the original would be lost.
        guard versions != .off, old.isPhoto, old.row.size > 0, old.state?.isSaved ?? true,
            let own = try moment(of: old)
        else { throw .noEntry }
        let new = try adopt(edit, in: own.directory, space, now: now)
        var row = row
        row.ino = new.ino
        do throws(FileError) {
            try replacePhoto(
                from: old, to: new, row, except: [], in: own.directory, named: own.row.name, space, now: now)
        } catch {
            orphanIfNameless(new, now: now)
            throw error
        }
        // It was replaced elsewhere, and not just now: the next edit keeps the bytes that came with this one.
        if let directory = try versionsDirectory(of: new.ino),
            let original = try find(directory, originalName)?.inode
        {
            let replaced = min(edit.details.modified.seconds, clocks.wall() - versionSeconds)
            original.row.changed = Timestamp(seconds: replaced)
            touch(original)
        }
        for name in try names(of: new) { try giveExtension(of: edit.name, to: name, of: new, now: now) }
        return new.ino
    }

    /// Gives a file's name, and those of the sidecars beside it, the extension of `model`.
    private func giveExtension(
        of model: [UInt8], to row: DentryRow, of inode: Inode, now: Timestamp
    ) throws(FileError) {
        let stem = stemOf(row.name)
        let (own, wanted) = (row.name.dropFirst(stem.count), model.dropFirst(stemOf(model).count))
        let areSame =
            String(decoding: own, as: UTF8.self).lowercased()
            == String(decoding: wanted, as: UTF8.self).lowercased()
        guard !wanted.isEmpty, !areSame else { return }
        let directory = try self.inode(row.parent)
        try rename(row, of: inode, in: directory, to: stem + wanted, now: now)
    }

    /// Renames a photo without a request of the kernel, numbered if the name is taken, with the sidecars beside it that
    /// have its whole name.
    func rename(
        _ row: DentryRow, of photo: Inode, in directory: Inode, to wanted: [UInt8], now: Timestamp
    ) throws(FileError) {
        let name = try freeName(directory, wanted)
        for sidecar in sidecarNames(row.name) where sidecar.starts(with: row.name) {
            guard let found = try find(directory, sidecar), found.inode.isRegular, !found.inode.isPhoto else {
                continue
            }
            let beside = try freeName(directory, companionName(sidecar, of: row.name, for: name))
            let own = DentryRow(parent: directory.ino, id: found.id, name: sidecar, ino: found.inode.ino)
            try rename(own, of: found.inode, in: directory, as: beside, now: now)
        }
        try rename(row, of: photo, in: directory, as: name, now: now)
    }

    private func rename(
        _ row: DentryRow, of inode: Inode, in directory: Inode, as name: [UInt8], now: Timestamp
    ) throws(FileError) {
        guard name.count <= nameBytesMax else { return }
        try withdraw(row, in: directory, inode, now: now)
        try addEntry(directory, name, inode, isMember: row.isMember, isLink: row.isLink, now: now)
        kernelNames.noteChange(of: inode.ino)
    }
}
