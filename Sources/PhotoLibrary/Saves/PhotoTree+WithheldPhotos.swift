import CatalogueRows
import FileRequests
import KernelNames
import LinuxIO
import PhotoRules
import VaultFormat

/// A photo, with its copies, whose names were removed for good, because no trash is kept. It is withheld from
/// destruction as long as its program may be about to save a new file in its place. After a crash the next mount
/// destroys it as any other orphan.
struct WithheldPhoto {
    /// The inodes, and whether the kernel forgot each meanwhile.
    var inodes: [UInt64: Bool]
    var place: RemovedPlace
    var remover: Int32
    /// Milliseconds of the monotonic clock.
    var time: Int64
}

extension PhotoTree {
    package var hasWithheldPhotos: Bool { !withheldPhotos.isEmpty }

    func isWithheld(_ ino: UInt64) -> Bool { withheldPhotos.contains { $0.inodes[ino] != nil } }

    /// Bytes that are free once nothing is withheld.
    package func withheldBytes() -> UInt64 {
        withheldPhotos.reduce(0) { sum, photo in
            photo.inodes.keys.reduce(sum) { $0 + (cached($1)?.row.allocated ?? 0) }
        }
    }

    /// Withholds a photo. The last photo that the same thread removed was none that it saves.
    func withhold(_ inodes: Set<UInt64>, removedFrom place: RemovedPlace, by remover: Int32, at time: Int64) {
        destroyWithheld { $0.remover == remover || $0.place == place }
        if withheldPhotos.count >= options.limits.removedNames, let first = withheldPhotos.first {
            destroyWithheld { $0.place == first.place }
        }
        withheldPhotos.append(
            WithheldPhoto(
                inodes: Dictionary(uniqueKeysWithValues: inodes.map { ($0, false) }), place: place,
                remover: remover, time: time))
    }

    /// Notes that the kernel has forgotten a nameless inode; false if that is not withheld.
    package func noteForgotten(_ ino: UInt64) -> Bool {
        guard let index = withheldPhotos.firstIndex(where: { $0.inodes[ino] != nil }) else { return false }
        withheldPhotos[index].inodes[ino] = true
        return true
    }

    /// Destroys the withheld photos whose programs have not saved in time.
    package func destroyOverdueWithheld() {
        let limit = clocks.monotonic() - removalMillisecondsMax
        destroyWithheld { $0.time < limit }
    }

    /// Destroys all withheld photos, because their room is needed; false if there are none.
    package func destroyWithheld() -> Bool {
        defer { destroyWithheld { _ in true } }
        return !withheldPhotos.isEmpty
    }

    /// Once the lock is released they are destroyed, unless the kernel still holds them.
    func destroyWithheld(where isOver: (WithheldPhoto) -> Bool) {
        for photo in withheldPhotos where isOver(photo) {
            inodesToDestroy += photo.inodes.filter(\.value).keys
        }
        withheldPhotos.removeAll(where: isOver)
    }

    /// Gives a withheld photo and its copies their names back.
    func restoreWithheld(
        _ photo: Inode, _ lost: [DentryRow], removedFrom place: RemovedPlace, now: Timestamp
    ) throws(FileError) {
        for withheld in withheldPhotos where withheld.place == place {
            // The kernel sends no second FORGET: it is destroyed with its last name.
            if withheld.inodes[photo.ino] == true { restoredPhoto = photo.ino }
        }
        withheldPhotos.removeAll { $0.place == place }
        // Its companions stay with it.
        companionMoves = companionMoves.filter { $1.photo != photo.ino || $1.caller == nil }
        for row in lost {
            guard let inode = try existing(row.ino), let directory = try existing(row.parent),
                directory.isDirectory, directory.row.nlink > 0, try !has(directory, row.name)
            else { continue }
            try leaveOrphans(inode)
            inode.dentries.mayBeStale = false
            try addEntry(
                directory, row.name, inode, isMember: row.isMember, isLink: row.isLink, now: now)
            addLink(to: inode, now: now)
            kernelNames.noteChange(of: directory.ino)
            kernelNames.noteChange(of: inode.ino)
        }
    }
}
