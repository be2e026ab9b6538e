import CatalogueRows
public import FileRequests
import KernelNames
import LinuxIO
import PhotoRules
import VaultCatalogue
import VaultStore

/// A name as the tables have it, for a request that removes it or moves it away.
struct StoredPlace {
    var directory: UInt64
    var name: Name
    /// The photo that must have the name; nil: any file.
    var photo: UInt64?

    /// In a group of similar photos, or a town: the photo's name in moments. Throws `.readOnly` for all other virtual
    /// directories.
    init(of name: Name, in parent: UInt64, _ library: Library) throws(FileError) {
        switch Node(parent) {
        case .real(let directory): (self.directory, self.name) = (directory, name)
        case .view(let node):
            guard library.options.views, node.allowsRemoval else { throw .readOnly }
            let session = library.session
            (directory, self.name, photo) = try session.views.viewing { tree throws(FileError) in
                guard let photo = try session.views.photo(named: name.bytes, in: node, tree),
                    let moment = try tree.moments.moment(of: photo)
                else { throw .noEntry }
                return (moment.directory.ino, Name(moment.row.name), photo.ino)
            }
        case .version, .thumbnail: throw .readOnly
        }
    }
}

/// Removal of names.
extension Library {
    /// unlink(2). In moments it removes a photo from the space, albums included, and moves it into the trash;
    /// what goes with it is noted. In a group of similar photos, or a town, the same, as its name in moments.
    public func unlink(_ parent: UInt64, _ name: Name, _ caller: Caller) throws(FileError) {
        try check(name)
        defer { session.observer?.awaitLostNames(locked: [parent]) }
        var isDone = false
        while !isDone {
            let place = try StoredPlace(of: name, in: parent, self)
            let info = try session.trashInfo(forRemoving: place.name, from: place.directory)
            defer { session.destroyUnused(info) }
            isDone = try unlinkOnce(place, caller, info)
        }
    }

    /// Returns false if the name has become that of a photo, whose removal needs a `TrashInfo`, or of another photo
    /// than the one to remove.
    private func unlinkOnce(_ place: StoredPlace, _ caller: Caller, _ info: TrashInfo?) throws(FileError)
        -> Bool
    {
        let name = place.name
        return try session.change(by: caller.pid, for: .removal) { change throws(FileError) in
            let directory = try change.tree.directory(place.directory)
            guard let found = try change.tree.find(directory, name.bytes) else {
                if place.photo != nil { return false }
                throw .noEntry
            }
            if let photo = place.photo, found.inode.ino != photo { return false }
            guard !found.inode.isDirectory else { throw .isDirectory }
            let isForTrash = try change.tree.trash.goesIntoTrash(
                found.inode, named: name.bytes, in: directory)
            if isForTrash && info == nil { return false }
            let now = Timestamp.now()
            let isPhoto = found.inode.isPhoto
            let removed = try isPhoto ? change.tree.names(of: found.inode).first { $0.id == found.id } : nil
            let lost = try change.tree.saves.namesLost(withRemoving: found.inode, from: directory)
            let sidecars = change.tree.sidecars
            if let photo = try change.tree.copies.photo(representedBy: found.inode) {
                try sidecars.noteRemoved(photo: photo.ino, from: directory)
            } else {
                try sidecars.noteRemoved(found.inode, name.bytes, from: directory, by: caller.pid)
            }
            if directory.isDay && isPhoto {
                try change.tree.trash.removePhoto(
                    found.inode, named: name.bytes, in: directory, info, caller, session.space, change)
            } else if isForTrash {
                try change.tree.trash.removePlainFile(
                    found.inode, found.id, named: name.bytes, in: directory, info, caller, session.space,
                    now: now)
            } else {
                try change.tree.removeEntry(directory, found.id, found.inode, now: now)
                try change.tree.removeLink(to: found.inode, now: now)
            }
            // The kernel knows the name in the day, but the request names another one.
            if place.photo != nil {
                change.tree.kernelNames.noteLoss(of: name.bytes, in: directory.ino, isInDay: true)
            }
            if let removed {
                change.tree.saves.noteRemoved(removed, of: found.inode, lost: lost, from: directory, caller)
            }
            return true
        }
    }

    /// rmdir(2).
    public func removeDirectory(_ parent: UInt64, _ name: Name, _ caller: Caller) throws(FileError) {
        try check(name)
        if case .view(let view) = Node(parent), options.views {
            return try session.views.removeDirectory(named: name.bytes, in: view)
        }
        guard Node(parent).isReal else { throw .readOnly }
        // Sidecars of removed photos may still be in their day.
        if parent == WellKnownInode.moments { try session.applyCompanionMoves() }
        try session.change(for: .removal) { change throws(FileError) in
            let directory = try change.tree.directory(parent)
            guard let found = try change.tree.find(directory, name.bytes) else { throw .noEntry }
            guard found.inode.isDirectory else { throw .notDirectory }
            if directory.area == .root,
                try !change.tree.isInTrash(found.inode) || change.tree.trash.isKept(name.bytes)
            {
                throw .notPermitted
            }
            guard found.inode.row.size == 0 else { throw .notEmpty }
            let now = Timestamp.now()
            try change.tree.removeEntry(directory, found.id, found.inode, now: now)
            try change.tree.removeLink(to: found.inode, now: now)
        }
    }
}
