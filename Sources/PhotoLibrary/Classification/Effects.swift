package import CatalogueRows
package import FileRequests
import KernelNames
import LinuxIO
package import PhotoRules
import VaultCatalogue
import VaultFormat
package import VaultStore

/// Effects of a file's classification.
package final class Effects {
    private unowned let tree: Tree

    init(_ tree: Tree) { self.tree = tree }

    /// Applies the classification of a regular file: moves it into moments, out of them, or to another day.
    package func apply(_ classification: Classification, to inode: Inode, _ space: Space, _ change: Change)
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
        case .demote: try demote(inode, space, change)
        case .promote:
            guard let probe, let place else { return }
            try promote(inode, probe, place.row, in: place.directory, space, change)
        case .redate:
            guard let probe else { return }
            if let place,
                try tree.copies.becomeCopy(
                    inode, probe, named: place.row.name, in: place.directory, space, change)
            {
                return
            }
            try redate(inode, probe, change)
        }
    }

    /// Makes a file a photo.
    private func promote(
        _ inode: Inode, _ probe: MediaProbe, _ place: DentryRow, in directory: Inode, _ space: Space,
        _ change: Change
    ) throws(FileError) {
        var row = PhotoRow(inode.row, probe, named: place.name, now: change.now)
        if let backup = try tree.saves.backup(of: place.name, in: directory, except: inode) {
            let staying = try tree.saves.staying(of: backup, savedAs: place.name, in: directory)
            try tree.saves.replacePhoto(
                from: backup, to: inode, row, except: staying, in: directory, named: place.name,
                seen: probe, space, change)
            return
        }
        let former = try tree.saves.takeFormer(of: inode)
        if former?.row.isPinned != true,
            try tree.copies.becomeCopy(inode, probe, named: place.name, in: directory, space, change)
        {
            return
        }
        if let former {
            row.former = former.row.former
            tree.moments.setNameGivenInMoments(inode, isGiven: former.isNameGiven)
            if try tree.moments.moment(of: inode) == nil {
                row.inherit(from: former.row, now: change.now.seconds)
                row = try tree.groups.datedByStill(row)
                let name = former.isNameGiven ? former.place.name : place.name
                try tree.moments.addMoment(inode, day: row.day, name: name, now: change.now)
                return try tree.photos.storePhoto(inode, row, change)
            }
            try tree.photos.storePhoto(inode, former.row, change)
            return try refile(inode, row, from: former.row, change)
        }
        row = try tree.groups.datedByStill(row)
        // A plain file may already have names in days; these count even if they are names of working files.
        if let own = try tree.moments.moment(of: inode) {
            try tree.moments.keepOnly(own.row, amongDaysOf: inode, now: change.now)
            if row.day != own.directory.row.day { row.pin(to: own.directory.row.day) }
            tree.moments.setNameGivenInMoments(inode, isGiven: true)
        } else {
            try tree.moments.addMoment(inode, day: row.day, name: place.name, now: change.now)
        }
        try tree.photos.storePhoto(inode, row, change)
        try tree.groups.numberWithPartner(inode, named: place.name, now: change.now)
        try tree.groups.dateVideos(of: row, change)
    }

    /// Dates a photo by its new bytes, unless the user chose its day.
    private func redate(
        _ inode: Inode, _ probe: MediaProbe, _ change: Change
    ) throws(FileError) {
        let old = try tree.photos.photo(inode)
        var row = PhotoRow(inode.row, probe, named: try datingName(of: inode), now: change.now)
        row.former = old.former
        try refile(inode, row, from: old, change)
    }

    /// The name of a photo whose date counts: the first in an album, else that in its day.
    func datingName(of photo: Inode) throws(FileError) -> [UInt8] {
        let names = try tree.names(of: photo)
        for row in names where try !tree.inode(row.parent).isDay { return row.name }
        return names.first?.name ?? []
    }

    /// Stores the row of a photo with new bytes, and moves it to their day if that is another.
    ///
    /// - Parameter old: the row before they were written.
    private func refile(
        _ inode: Inode, _ new: PhotoRow, from old: PhotoRow, _ change: Change
    ) throws(FileError) {
        var row = new
        let isKept = row.inherit(from: old, now: change.now.seconds)
        row = try tree.groups.datedByStill(row)
        // A sidecar dates the photos beside it, no others, in whichever order they arrive.
        let isBySidecar = row.isDatedBySidecar || old.isDatedBySidecar
        if !isKept && row.day != old.day {
            if let own = try tree.moments.moment(of: inode) {
                try tree.companions.queueCompanionMoves(
                    of: inode, own.row.name, in: own.directory, captured: old.captured, to: row.day,
                    withPhotos: !isBySidecar, change)
            }
            try tree.moments.moveMoment(inode, to: row.day, now: change.now)
        }
        try tree.photos.storePhoto(inode, row, change)
        if isBySidecar { try tree.groups.dateVideos(of: row, change) }
    }

    /// Notes that the time of modification of a file was set. Returns whether that dates it: it is a photo without any
    /// other date. A day that was kept when the photo was saved is given up.
    package func followTime(_ inode: Inode, _ space: Space, _ change: Change) throws(FileError) -> Bool {
        if inode.isCopy { try tree.copies.takePart(inode, space, change) }
        // The time of an emptied photo is that of no picture.
        guard inode.isPhoto, inode.row.size > 0 || inode.state != nil else { return false }
        var row = try tree.photos.photo(inode)
        guard row.isDatedByMtime, !row.isPinned else { return false }
        let kept = row.source
        row.forgetKeptDay()
        if row.source != kept { try tree.photos.storePhoto(inode, row, change) }
        return true
    }

    /// Turns a former photo into a plain file, which leaves moments unless its only name is there.
    func demote(_ inode: Inode, _ space: Space, _ change: Change) throws(FileError) {
        try tree.saves.noteFormer(inode)
        if inode.row.nlink > 1 { try tree.moments.removeMoment(inode, now: change.now) }
        try tree.photos.deletePhoto(inode, space, change)
    }

    /// The first name that lets classification take the file for a photo, with its directory; nil if all
    /// names are those of working files.
    package func classifiableName(of inode: Inode) throws(FileError) -> (directory: Inode, row: DentryRow)? {
        for row in try tree.names(of: inode) {
            let directory = try tree.inode(row.parent)
            if try isClassifiable(row.name, in: directory) { return (directory, row) }
        }
        return nil
    }

    /// Whether a file of that name in that directory may be a photo.
    package func isClassifiable(_ name: [UInt8], in directory: Inode) throws(FileError) -> Bool {
        if isWorkingName(name) { return false }
        return try !tree.isInWorkingDirectory(directory)
    }
}
