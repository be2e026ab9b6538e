import CatalogueRows
import FileRequests
import FileTree
import VaultCatalogue

/// The tree with its photos: what the rules for photos have to remember from one request to the next. Only under the
/// catalogue's lock.
final class PhotoTree: Tree {
    let libraryOptions: LibraryOptions
    /// Whether a photo has new bytes, so that it needs a thumbnail.
    var hasNewPhoto = false
    /// Files that are to follow a photo to another day, by inode; see `CompanionMove`.
    var companionMoves: [UInt64: CompanionMove] = [:]
    /// The thread whose request is served; -1 if none.
    var actor: Int32 = -1
    /// Whether thumbnails of a batch are being made, and photos that lost theirs meanwhile.
    var isBatchActive = false
    var lateThumbnailPending: [UInt64] = []

    init(_ tables: Tables, _ options: LibraryOptions) throws(FileError) {
        libraryOptions = options
        try super.init(tables, options.treeOptions)
    }

    /// A copy waits for its photo to be restored from the trash.
    override func isKept(_ inode: Inode) throws(FileError) -> Bool { try waitsForPhoto(inode) }

    /// The bytes of photos, of which thumbnails may take a share.
    override func countedBytes(of row: InodeRow) -> UInt64 {
        row.flags.contains(.photo) ? row.countedBytes : 0
    }
}
