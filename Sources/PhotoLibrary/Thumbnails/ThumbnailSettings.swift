/// How a mount makes its thumbnails.
package struct ThumbnailSettings: Sendable {
    /// Whether the vault keeps no pictures, so that none are made before they are requested.
    let readOnly: Bool
    /// The worker executable; nil: no thumbnails can be made.
    let workerPath: String?
    /// Maximum number of worker processes.
    let workerCount: Int
    /// Data directories of the XDG Base Directory Specification, most important first, where thumbnailers for formats
    /// that the workers do not decode are registered.
    let dataDirectories: [String]
    /// Makes thumbnails instead of the worker, in tests.
    let maker: (any PictureMaking)?
    /// Milliseconds without writes after which thumbnails of new photos are made without a request.
    let settleMilliseconds: Int64
    /// Maximum bytes of pictures in memory that the vault does not keep.
    let heldBytesMax: Int
    /// Maximum number of pictures that are remembered as failed.
    let failedMax: Int
    /// Numbers that the kernel has already; nil: none.
    let nodes: VirtualNodes?

    package init(
        readOnly: Bool, workerPath: String?, workerCount: Int, dataDirectories: [String],
        maker: (any PictureMaking)?, settleMilliseconds: Int64, heldBytesMax: Int, failedMax: Int,
        nodes: VirtualNodes? = nil
    ) {
        (self.readOnly, self.workerPath, self.workerCount) = (readOnly, workerPath, workerCount)
        (self.dataDirectories, self.maker) = (dataDirectories, maker)
        self.settleMilliseconds = settleMilliseconds
        (self.heldBytesMax, self.failedMax, self.nodes) = (heldBytesMax, failedMax, nodes)
    }
}
