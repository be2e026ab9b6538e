package import CatalogueRows
package import FileRequests
import KernelNames
package import LinuxIO
package import PhotoRules
import VaultCatalogue
package import VaultStore

/// Effects of a file's classification.
extension PhotoTree {
    /// Applies the classification of a regular file: moves it into moments, out of them, or to another day.
    package func apply(_ classification: Classification, to inode: Inode, _ space: Space, now: Timestamp)
        throws(FileError)
    {
        guard inode.isRegular else { return }
        var probe: MediaProbe?
        var place: (directory: Inode, row: DentryRow)?
        if case .media(let seen) = classification {
            probe = seen
            place = try classifiableName(of: inode)
        }
        let facts = ClassificationFacts(
            isPhoto: inode.isPhoto, isCopy: inode.isCopy, isNamed: inode.row.nlink > 0,
            hasPhotoName: place != nil, isEmpty: inode.row.size == 0)
        switch classificationEffect(of: facts, as: classification) {
        case .nothing: return
        case .demote: try demote(inode, space, now: now)
        case .promote:
            guard let probe, let place else { return }
            try promote(inode, probe, place.row, in: place.directory, space, now: now)
        case .redate:
            guard let probe else { return }
            if let place,
                try becomeCopy(inode, probe, named: place.row.name, in: place.directory, space, now: now)
            {
                return
            }
            try redate(inode, probe, now: now)
        }
    }

    /// Makes a file a photo.
    private func promote(
        _ inode: Inode, _ probe: MediaProbe, _ place: DentryRow, in directory: Inode, _ space: Space,
        now: Timestamp
    ) throws(FileError) {
        var row = PhotoRow(inode.row, probe, named: place.name, now: now)
        if let backup = try backup(of: place.name, in: directory, except: inode) {
            let staying = try staying(of: backup, savedAs: place.name, in: directory)
            try replacePhoto(
                from: backup, to: inode, row, except: staying, in: directory, named: place.name,
                seen: probe, space, now: now)
            return
        }
        let former = try takeFormer(of: inode)
        if former?.row.isPinned != true,
            try becomeCopy(inode, probe, named: place.name, in: directory, space, now: now)
        {
            return
        }
        if let former {
            row.former = former.row.former
            setNameGivenInMoments(inode, isGiven: former.isNameGiven)
            if try moment(of: inode) == nil {
                row.inherit(from: former.row, now: now.seconds)
                row = try datedByStill(row)
                let name = former.isNameGiven ? former.place.name : place.name
                try addMoment(inode, day: row.day, name: name, now: now)
                return try storePhoto(inode, row)
            }
            try storePhoto(inode, former.row)
            return try refile(inode, row, from: former.row, now: now)
        }
        row = try datedByStill(row)
        // A plain file may already have names in days; these count even if they are names of working files.
        if let own = try moment(of: inode) {
            try keepOnly(own.row, amongDaysOf: inode, now: now)
            if row.day != own.directory.row.day { row.pin(to: own.directory.row.day) }
            setNameGivenInMoments(inode, isGiven: true)
        } else {
            try addMoment(inode, day: row.day, name: place.name, now: now)
        }
        try storePhoto(inode, row)
        try numberWithPartner(inode, named: place.name, now: now)
        try dateVideos(of: row, now: now)
    }

    /// Removes all names in days but one: moments holds every photo once.
    ///
    /// - Parameter keepsBackups: whether backup names beside that one stay too.
    func keepOnly(
        _ own: DentryRow, amongDaysOf inode: Inode, keepsBackups: Bool = false, now: Timestamp
    ) throws(FileError) {
        for (directory, other) in try moments(of: inode) where other.id != own.id {
            if keepsBackups, other.parent == own.parent, backupOriginal(other.name) != nil { continue }
            try withdraw(other, in: directory, inode, now: now)
            try removeLink(to: inode, now: now)
            kernelNames.noteChange(of: inode.ino)
        }
    }

    /// Dates a photo by its new bytes, unless the user chose its day.
    private func redate(
        _ inode: Inode, _ probe: MediaProbe, now: Timestamp
    ) throws(FileError) {
        let old = try photo(inode)
        let names = try names(of: inode)
        var name = names.first?.name ?? []
        for row in names {
            if try !self.inode(row.parent).isDay {
                name = row.name
                break
            }
        }
        var row = PhotoRow(inode.row, probe, named: name, now: now)
        row.former = old.former
        try refile(inode, row, from: old, now: now)
    }

    /// Stores the row of a photo with new bytes, and moves it to their day if that is another.
    ///
    /// - Parameter old: the row before they were written.
    private func refile(
        _ inode: Inode, _ new: PhotoRow, from old: PhotoRow, now: Timestamp
    ) throws(FileError) {
        var row = new
        let isKept = row.inherit(from: old, now: now.seconds)
        row = try datedByStill(row)
        if !isKept && row.day != old.day {
            if let own = try moment(of: inode) {
                try queueCompanionMoves(
                    of: inode, own.row.name, in: own.directory, captured: old.captured, to: row.day)
            }
            try moveMoment(inode, to: row.day, now: now)
        }
        try storePhoto(inode, row)
    }

    /// Notes that the time of modification of a file was set. Returns whether that dates it: it is a photo without any
    /// other date. A day that was kept when the photo was saved is given up.
    package func followTime(_ inode: Inode) throws(FileError) -> Bool {
        // The time of an emptied photo is that of no picture.
        guard inode.isPhoto, inode.row.size > 0 || inode.state != nil else { return false }
        var row = try photo(inode)
        guard row.isDatedByMtime, !row.isPinned else { return false }
        let kept = row.source
        row.forgetKeptDay()
        if row.source != kept { try storePhoto(inode, row) }
        return true
    }

    /// Turns a former photo into a plain file, which leaves moments unless its only name is there.
    func demote(_ inode: Inode, _ space: Space, now: Timestamp) throws(FileError) {
        try noteFormer(inode)
        if inode.row.nlink > 1 { try removeMoment(inode, now: now) }
        try deletePhoto(inode, space)
    }

    /// Removes a photo from the space: from moments and from every album, with its copies.
    package func removePhoto(_ photo: Inode, now: Timestamp) throws(FileError) {
        for inode in [photo] + (try copies(of: photo)) {
            inode.dentries.mayBeStale = true
            for name in try names(of: inode) {
                let directory = try self.inode(name.parent)
                try removeEntry(directory, name.id, inode, now: now)
                try removeLink(to: inode, now: now)
                // The kernel itself removes the dentry of the name in a day.
                if !directory.isDay { noteLost(name, in: directory) }
            }
            kernelNames.noteChange(of: inode.ino)
        }
    }

    /// Tells the kernel to forget a file's name that is gone or names another file now, and the attributes of its
    /// directory. The kernel looks names in days up each time, but keeps their dentries too: a dentry keeps the inode,
    /// and the inode its bytes.
    func noteLost(_ row: DentryRow, in directory: Inode) {
        kernelNames.noteLoss(of: row.name, in: row.parent)
        if !directory.isDay { kernelNames.noteChange(of: row.parent) }
    }

    /// Removes a file's name without a request of the kernel. The caller updates the link count.
    package func withdraw(_ row: DentryRow, in directory: Inode, _ inode: Inode, now: Timestamp)
        throws(FileError)
    {
        try removeEntry(directory, row.id, inode, now: now)
        noteLost(row, in: directory)
    }

    /// Whether a program wrote a file in order to replace another; see `PhotoRules.isNewFile`.
    func isNewFile(_ inode: Inode, named id: UInt64, in directory: Inode) throws(FileError) -> Bool {
        guard inode.ino >= firstOfSession, inode.row.nlink <= 2 else { return false }
        var isPinned = false
        if inode.isPhoto, !directory.isDay { isPinned = try photo(inode).isPinned }
        return PhotoRules.isNewFile(
            try placedNames(of: inode), own: id, isInDay: directory.isDay, isOfSession: true,
            isPinned: isPinned)
    }
}
