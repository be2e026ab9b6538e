package import CatalogueRows
package import FileRequests
import KernelNames
package import LinuxIO
package import PhotoRules
import VaultCatalogue
package import VaultStore

/// A file to add to the tree: its bytes are sealed, but it has no name yet.
package struct Arrival {
    package var name: [UInt8]
    package var details: FileDetails
    package var sealed: SealedContent

    package init(name: [UInt8], details: FileDetails, sealed: SealedContent) {
        (self.name, self.details, self.sealed) = (name, details, sealed)
    }
}

/// A sidecar to add next to its photo.
package struct SidecarArrival {
    package var file: Arrival
    /// A file with exactly these bytes at the sidecar's place, unless its photo is numbered.
    package var equal: UInt64?

    package init(file: Arrival, equal: UInt64?) { (self.file, self.equal) = (file, equal) }
}

/// Files that are added though they were never open, and edited photos of an export, which become the present bytes of
/// their originals.
package final class Imports {
    private unowned let tree: Tree

    init(_ tree: Tree) { self.tree = tree }

    /// Gives an imported photo its names and its row.
    ///
    /// - Parameter isNameGivenInMoments: whether its name in moments comes from no album.
    package func enter(
        _ photo: Arrival, _ sidecars: [SidecarArrival], _ row: PhotoRow, album: UInt64?, day: Int64,
        isNameGivenInMoments: Bool, _ space: Space, _ change: Change
    ) throws(FileError) -> (photo: UInt64, sidecars: [UInt64?]) {
        let now = Timestamp.now()
        let directory = try album.map { ino throws(FileError) in try tree.directory(ino) }
        if let directory, directory.area != .album || directory.row.nlink == 0 { throw .noEntry }
        // An export tells where its photos were.
        let isOfExport = album == nil && !isNameGivenInMoments
        var row = row
        if row.day != day { row.pin(to: day) } else if !isOfExport { row = try tree.groups.datedByStill(row) }
        let dayDirectory = try tree.moments.dayDirectory(row.day, now: now)
        let inode = try adopt(photo, in: directory ?? dayDirectory, space, now: now)
        row.ino = inode.ino
        do throws(FileError) {
            try tree.photos.storePhoto(inode, row, change)
            // Of a photo that an export gives its day, the export's albums tell.
            tree.moments.setNameGivenInMoments(inode, isGiven: isNameGivenInMoments)
            let first = try place(inode, photo.name, sidecars, in: directory ?? dayDirectory, space, now: now)
            if directory != nil { _ = try place(inode, photo.name, [], in: dayDirectory, space, now: now) }
            if !isOfExport {
                try tree.groups.numberWithPartner(inode, named: photo.name, now: now)
                try tree.groups.dateVideos(of: row, change)
            }
            return (inode.ino, first)
        } catch {
            orphanIfNameless(inode, now: now)
            throw error
        }
    }

    /// Makes an inode without a name for a file whose bytes are sealed. An error before the bytes are adopted leaves
    /// nothing behind. The caller gives the inode a name, or passes it to `withdraw`.
    package func adopt(_ file: Arrival, in directory: Inode, _ space: Space, now: Timestamp) throws(FileError)
        -> Inode
    {
        let sealed = file.sealed
        do throws(FileError) {
            for run in sealed.runs { try tree.tables.extents.insert(run, of: sealed.content) }
        } catch {
            // If rows stay, the transaction has failed, and so does its commit.
            try? tree.tables.extents.delete(of: sealed.content, from: 0, through: UInt64(Int64.max))
            throw error
        }
        sealed.adopt(space)
        let inode = try makeFile(file.details, content: sealed.content, in: directory, now: now)
        inode.row.size = sealed.byteCount
        inode.row.allocated = sealed.map.allocated
        return inode
    }

    /// A regular file without a name, with an existing content or a new empty one.
    private func makeFile(
        _ details: FileDetails, content: UInt64?, in directory: Inode, now: Timestamp
    ) throws(FileError) -> Inode {
        let inode = tree.makeInode(
            mode: details.mode & permissionMask | regularType, in: directory, details.owner, now: now,
            content: content)
        inode.row.modified = details.modified
        inode.row.accessed = details.accessed
        inode.row.revision = 1
        guard !details.attributes.isEmpty else { return inode }
        inode.row.flags.insert(.hasAttributes)
        for attribute in details.attributes {
            do throws(FileError) {
                try tree.tables.attributes.store(inode.ino, attribute.name, attribute.value)
            } catch {
                orphanIfNameless(inode, now: now)
                throw error
            }
        }
        return inode
    }

    /// Makes a copy of a photo, with a name in an album.
    package func enterCopy(
        of photo: Inode, _ name: [UInt8], _ details: FileDetails, in directory: Inode, _ space: Space,
        _ change: Change
    ) throws(FileError) -> UInt64 {
        let now = Timestamp.now()
        let copy = try makeFile(details, content: nil, in: directory, now: now)
        do throws(FileError) {
            copy.row.size = photo.row.size
            try tree.copies.makeCopy(copy, of: photo, space, change)
            try tree.addEntry(directory, try tree.freeName(directory, name), copy, now: now)
        } catch {
            orphanIfNameless(copy, now: now)
            throw error
        }
        tree.addLink(to: copy, now: now)
        try tree.sidecars.noteDescribed(photo, beside: copy, by: change.thread)
        return copy.ino
    }

    /// Whether a photo, or a copy of it, has a name in a directory.
    package func lies(_ photo: Inode, in directory: UInt64) throws(FileError) -> Bool {
        for file in [photo] + (try tree.copies.copies(of: photo)) {
            if try tree.tables.dentries.names(of: file.ino).contains(where: { $0.parent == directory }) {
                return true
            }
        }
        return false
    }

    /// Makes a new inode an orphan, which will be destroyed. Has no effect if it got a name.
    package func orphanIfNameless(_ inode: Inode, now: Timestamp) {
        guard inode.row.nlink == 0, !tree.orphans.contains(inode.ino) else { return }
        inode.isForgotten = true
        inode.row.changed = now
        tree.touch(inode)
        tree.orphans.add(inode.ino)
    }

    /// Gives a photo a name in an album or a day, and its sidecars names next to it, numbered if one of the names is
    /// taken. Returns the inode of each sidecar; nil if its name would be too long.
    package func place(
        _ photo: Inode, _ name: [UInt8], _ sidecars: [SidecarArrival], in directory: Inode, _ space: Space,
        now: Timestamp
    ) throws(FileError) -> [UInt64?] {
        let shown = try tree.freeName(directory, name) { candidate throws(FileError) in
            try areFree(sidecars, of: name, for: candidate, in: directory)
        }
        try tree.addEntry(directory, shown, photo, isMember: !directory.isDay, now: now)
        tree.addLink(to: photo, now: now)
        return try sidecars.map { sidecar throws(FileError) -> UInt64? in
            let beside = companionName(sidecar.file.name, of: name, for: shown)
            guard beside.count <= nameBytesMax else { return nil }
            if let found = try tree.tables.dentries.entry(directory.ino, beside) { return found.ino }
            return try enter(sidecar.file, as: beside, in: directory, space, now: now)
        }
    }

    /// Adds a plain file under a free name.
    package func enter(
        _ file: Arrival, as name: [UInt8], in directory: Inode, _ space: Space, now: Timestamp
    ) throws(FileError) -> UInt64 {
        let inode = try adopt(file, in: directory, space, now: now)
        do throws(FileError) { try tree.addEntry(directory, name, inode, now: now) } catch {
            orphanIfNameless(inode, now: now)
            throw error
        }
        tree.addLink(to: inode, now: now)
        return inode.ino
    }

    /// Whether every sidecar's name next to `candidate` is free, or belongs to a file with the same bytes.
    private func areFree(
        _ sidecars: [SidecarArrival], of name: [UInt8], for candidate: [UInt8], in directory: Inode
    ) throws(FileError) -> Bool {
        for sidecar in sidecars {
            let beside = companionName(sidecar.file.name, of: name, for: candidate)
            guard beside.count <= nameBytesMax,
                let found = try tree.tables.dentries.entry(directory.ino, beside), found.ino != sidecar.equal
            else { continue }
            return false
        }
        return true
    }

    /// The places of a sidecar next to each name of a photo, and the files there.
    ///
    /// - Parameter name: the photo's name next to which the sidecar is called `sidecar`.
    package func places(
        of photo: UInt64, beside sidecar: [UInt8], named name: [UInt8]
    ) throws(FileError) -> [(directory: Inode, name: [UInt8], found: UInt64?)] {
        try tree.tables.dentries.names(of: photo).map { row throws(FileError) in
            let beside = companionName(sidecar, of: name, for: row.name)
            return (
                try tree.inode(row.parent), beside, try tree.tables.dentries.entry(row.parent, beside)?.ino
            )
        }
    }

    /// Settles a photo in `day`: pins it there only if its bytes, its names and the sidecars next to them give it
    /// another.
    package func pinIfNeeded(
        _ inode: Inode, _ classification: Classification, in day: Int64, _ change: Change
    )
        throws(FileError)
    {
        guard inode.isPhoto, case .media(let probe) = classification else { return }
        let old = try tree.photos.photo(inode)
        var settled: PhotoRow?
        for name in try tree.tables.dentries.names(of: inode.ino) {
            var row = PhotoRow(inode.row, probe, named: name.name, now: change.now)
            let isItsOwn = row.day == day
            if !isItsOwn { row.pin(to: day) }
            if settled == nil || isItsOwn { settled = row }
            if isItsOwn { break }
        }
        guard var row = settled else { return }
        (row.former, row.arrived) = (old.former, old.arrived)
        row.group = row.group ?? old.group
        // Its metadata gave it its position when it was imported.
        row.position = nil
        if row != old { try tree.photos.storePhoto(inode, row, change) }
        try tree.moments.moveMoment(inode, to: day, now: change.now)
    }

    /// Makes an imported file the present bytes of a photo. Returns its inode.
    package func enter(
        edit: Arrival, _ row: PhotoRow, of ino: UInt64, _ space: Space, _ change: Change
    ) throws(FileError) -> UInt64 {
        let now = Timestamp.now()
        let old = try tree.inode(ino)
        // Without a version the bytes of the original would be lost.
        guard tree.versions.policy != .off, old.isPhoto, old.row.size > 0, old.state?.isSaved ?? true,
            let own = try tree.moments.moment(of: old)
        else { throw .noEntry }
        let new = try adopt(edit, in: own.directory, space, now: now)
        var row = row
        row.ino = new.ino
        do throws(FileError) {
            try tree.saves.replacePhoto(
                from: old, to: new, row, except: [], in: own.directory, named: own.row.name, space, change)
        } catch {
            orphanIfNameless(new, now: now)
            throw error
        }
        // It was replaced elsewhere, and not just now: the next edit keeps the bytes that came with this one.
        if let directory = try tree.versions.versionsDirectory(of: new.ino),
            let original = try tree.find(directory, originalName)?.inode
        {
            let replaced = min(edit.details.modified.seconds, tree.clocks.wall() - versionSeconds)
            original.row.changed = Timestamp(seconds: replaced)
            tree.touch(original)
        }
        for name in try tree.names(of: new) { try giveExtension(of: edit.name, to: name, of: new, now: now) }
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
        let directory = try tree.inode(row.parent)
        try rename(row, of: inode, in: directory, to: stem + wanted, now: now)
    }

    /// Renames a photo without a request of the kernel, numbered if the name is taken, with the sidecars beside it that
    /// have its whole name.
    func rename(
        _ row: DentryRow, of photo: Inode, in directory: Inode, to wanted: [UInt8], now: Timestamp
    ) throws(FileError) {
        let name = try tree.freeName(directory, wanted)
        for sidecar in sidecarNames(row.name) where sidecar.starts(with: row.name) {
            guard let found = try tree.find(directory, sidecar), found.inode.isRegular, !found.inode.isPhoto
            else {
                continue
            }
            let beside = try tree.freeName(directory, companionName(sidecar, of: row.name, for: name))
            let own = DentryRow(parent: directory.ino, id: found.id, name: sidecar, ino: found.inode.ino)
            try rename(own, of: found.inode, in: directory, as: beside, now: now)
        }
        try rename(row, of: photo, in: directory, as: name, now: now)
    }

    private func rename(
        _ row: DentryRow, of inode: Inode, in directory: Inode, as name: [UInt8], now: Timestamp
    ) throws(FileError) {
        guard name.count <= nameBytesMax else { return }
        try tree.withdraw(row, in: directory, inode, now: now)
        try tree.addEntry(directory, name, inode, isMember: row.isMember, isLink: row.isLink, now: now)
        tree.kernelNames.noteChange(of: inode.ino)
    }
}
