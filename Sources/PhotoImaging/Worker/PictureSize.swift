/// What a thumbnail is to be like. Never enlarged.
public struct PictureSize: Hashable, Sendable {
    /// Pixels across.
    public var width: Int
    /// Pixels down.
    public var height: Int
    /// Whether the picture is cropped to fill that box, rather than made to fit inside.
    public var isFilled: Bool

    /// A box of `width` by `height` pixels.
    public init(width: Int, height: Int, isFilled: Bool = false) {
        self.width = width
        self.height = height
        self.isFilled = isFilled
    }
}

/// How a thumbnail is encoded: PNG for the freedesktop repository.
public enum PictureFormat: Sendable {
    case jpeg, png
}

extension ThumbnailWorkers {
    /// As the others. Only pictures that fit inside, as JPEG.
    public func makeThumbnail(
        of source: some ByteSource, type: MediaType, size: PictureSize, format: PictureFormat = .jpeg
    ) throws(ThumbnailError) -> [UInt8] {
        guard !size.isFilled, format == .jpeg else { throw .unavailable }
        return try makeThumbnail(
            of: source, type: type, box: PixelSize(width: size.width, height: size.height))
    }

    public func composeStack(_ pictures: [[UInt8]], size: PictureSize) throws(ThumbnailError) -> [UInt8] {
        throw .unavailable
    }

    public func composeSheet(
        _ pictures: [(jpeg: [UInt8], label: String)], title: String
    ) throws(ThumbnailError) -> [UInt8] {
        throw .unavailable
    }
}
