import PhotoImaging

/// Cache key of a picture: the source and its revision.
enum PictureKey: Hashable, Sendable {
    case photo(ino: UInt64, revision: UInt64, ThumbnailKind, PictureFormat)
    case composition(directory: UInt64, Composition, [CompositionTile])
}

/// A photo in a composition.
package struct CompositionTile: Hashable, Sendable {
    package var photo: UInt64
    package var revision: UInt64
    /// Its name in the directory.
    package var name: [UInt8]

    package init(photo: UInt64, revision: UInt64, name: [UInt8]) {
        self.photo = photo
        self.revision = revision
        self.name = name
    }
}
