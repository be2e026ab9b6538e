/// How a mount makes its thumbnails.
package struct ThumbnailSettings: Sendable {
    /// Whether the vault keeps no pictures, so that none are made before they are requested.
    package var readOnly = false
    /// The worker executable; nil: no thumbnails can be made.
    package var workerPath: String?
    /// Maximum number of worker processes.
    package var workerCount = 2
    /// Data directories of the XDG Base Directory Specification, most important first, where thumbnailers for formats
    /// that the workers do not decode are registered.
    package var dataDirectories: [String] = []
    /// Makes thumbnails instead of the worker, in tests.
    package var maker: (any PictureMaking)?
    /// Milliseconds without writes after which thumbnails of new photos are made without a request.
    package var settleMilliseconds = BackgroundThumbnailer.settleMilliseconds
    /// Maximum bytes of pictures in memory that the vault does not keep.
    package var heldBytesMax = 16 << 20
    /// Maximum number of pictures that are remembered as impossible.
    package var impossibleMax = 4096

    package init() {}
}
