package import LinuxIO
package import PhotoImaging

/// Makes pictures: worker processes, or a stand-in in tests. Every call throws `cancelled` once `cancellation` is
/// cancelled.
package protocol PictureMaking: Sendable {
    /// Types that can be decoded now. May read directories of the system: do not call it under the catalogue's lock.
    var decodableTypes: Set<MediaType> { get }

    func makeThumbnail(
        of source: any ByteSource, _ type: MediaType, _ size: PictureSize, _ format: PictureFormat,
        unless cancellation: Cancellation
    ) throws(ThumbnailError) -> [UInt8]

    /// The likeness hash of a JPEG thumbnail; see `ThumbnailWorkers.likenessHash`.
    func likenessHash(of jpeg: [UInt8], unless cancellation: Cancellation) throws(ThumbnailError) -> UInt64?

    /// A JPEG of up to five tiles in a pile, the first on top.
    func composeStack(
        _ pictures: [[UInt8]], size: PictureSize, unless cancellation: Cancellation
    ) throws(ThumbnailError) -> [UInt8]

    /// A JPEG of a grid with a label under each picture.
    func composeSheet(
        _ pictures: [(jpeg: [UInt8], label: String)], title: String, unless cancellation: Cancellation
    ) throws(ThumbnailError) -> [UInt8]

    /// Releases resources that are only needed while pictures are made.
    func releaseIdle()

    /// Ends pictures that are being made: those calls throw `cancelled`.
    func shutDown()
}

extension ThumbnailWorkers: PictureMaking {
    package func makeThumbnail(
        of source: any ByteSource, _ type: MediaType, _ size: PictureSize, _ format: PictureFormat,
        unless cancellation: Cancellation
    ) throws(ThumbnailError) -> [UInt8] {
        try makeThumbnail(of: source, type: type, size: size, format: format, unless: cancellation)
    }
}
