import CatalogueRows

extension Inode {
    package var isPhoto: Bool { row.flags.contains(.photo) }
    /// A photo that was taken out of moments: its only names are in the trash.
    package var isTrashed: Bool { row.flags.contains(.trashed) }
    /// A copy of a photo, which is another inode.
    package var isCopy: Bool { row.flags.contains(.copy) }
    /// A former state of a photo: nothing changes it any more.
    package var isVersion: Bool { row.flags.contains(.version) }
}
