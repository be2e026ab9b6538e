package import CatalogueRows
package import FileRequests
import KernelNames
package import LinuxIO
package import PhotoRules
package import VaultCatalogue
import VaultFormat

/// The tree with its photos: the state of the rules for photos from one request to the next. Only under the
/// catalogue's lock.
package final class PhotoTree: Tree {
    /// How many days removed entries stay in the trash; 0: a photo removed from moments is destroyed at once.
    let trashDays: Int
    let versions: VersionPolicy
    let clocks: Clocks
    /// Whether a photo has new bytes, so that it needs a thumbnail.
    package var hasNewPhoto = false
    /// Files that are to follow a photo to another day, by inode; see `CompanionMove`.
    package internal(set) var companionMoves: [UInt64: CompanionMove] = [:]
    /// Photos' names that unlink(2) removed just now, and that are not in use again.
    var removedNames: RecentTable<RemovedPlace, RemovedName>
    /// Photos that became plain files just now, by inode.
    var formerPhotos: RecentTable<UInt64, FormerPhoto>
    /// Photos that were removed for good just now, in the order of removal.
    var withheldPhotos: [WithheldPhoto] = []
    /// The inode of a photo that this request gave its names back, and that the kernel has forgotten; else 0.
    var restoredPhoto: UInt64 = 0
    /// When the newest versions were taken, by the photos' inodes.
    var lastKept: RecentTable<UInt64, Int64>
    /// The thread whose request is served; -1 if none.
    package var callerThread: Int32 = -1
    /// When photos last came into views or left them; the earliest time at the start of a session.
    package var viewsModified = Timestamp(seconds: 0)
    /// Whether thumbnails of a batch are being made, and photos that lost theirs meanwhile.
    var isBatchActive = false
    var lateThumbnailPending: [UInt64] = []

    package init(
        _ tables: Tables, _ options: TreeOptions, trashDays: Int, versions: VersionPolicy,
        _ clocks: Clocks
    ) throws(FileError) {
        (self.trashDays, self.versions, self.clocks) = (trashDays, versions, clocks)
        removedNames = RecentTable(countMax: options.limits.removedNames)
        formerPhotos = RecentTable(countMax: options.limits.formerPhotos)
        lastKept = RecentTable(countMax: options.limits.formerPhotos)
        try super.init(tables, options)
    }

    /// A copy waits for its photo to be restored from the trash.
    package override func isKept(_ inode: Inode) throws(FileError) -> Bool { try waitsForPhoto(inode) }

    /// A removed name is in use again.
    package override func didAdd(_ name: [UInt8], to directory: UInt64) {
        let place = RemovedPlace(directory: directory, name: name)
        if !removedNames.isEmpty { removedNames.remove(place) }
        if !withheldPhotos.isEmpty { destroyWithheld { $0.place == place } }
    }

    package override func willStoreMarks() throws(CatalogueError) { try settleViewNames() }

    /// The bytes of photos, of which thumbnails may take a share.
    package override func countedBytes(of row: InodeRow) -> UInt64 {
        row.flags.contains(.photo) ? row.countedBytes : 0
    }
}
