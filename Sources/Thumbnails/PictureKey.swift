import PhotoImaging

/// Cache key of a picture: the source and its version.
enum PictureKey: Hashable, Sendable {
    case photo(ino: UInt64, version: UInt64, ThumbnailKind, PictureFormat)
    case composition(directory: UInt64, Composition, [CompositionTile])
}

/// A photo in a composition.
package struct CompositionTile: Hashable, Sendable {
    package var photo: UInt64
    package var version: UInt64
    /// Its name in the directory.
    package var name: [UInt8]

    package init(photo: UInt64, version: UInt64, name: [UInt8]) {
        self.photo = photo
        self.version = version
        self.name = name
    }
}
