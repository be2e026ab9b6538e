import CatalogueRows
import FileTree

extension Inode {
    var isPhoto: Bool { row.flags.contains(.photo) }
    /// A photo that was taken out of moments: its only names are in the trash.
    var isTrashed: Bool { row.flags.contains(.trashed) }
    /// A copy of a photo, which is another inode.
    var isCopy: Bool { row.flags.contains(.copy) }
}
