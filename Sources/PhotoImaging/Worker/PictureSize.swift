/// The box of a thumbnail and how the thumbnail is placed in it. A thumbnail is never larger than the picture.
public struct PictureSize: Hashable, Sendable {
    /// Pixels across, at most.
    public var width: Int
    /// Pixels down, at most.
    public var height: Int
    /// Whether the picture fills the box and is cropped evenly; otherwise the whole picture fits inside.
    public var isFilled: Bool

    /// A box of `width` by `height` pixels.
    public init(width: Int, height: Int, isFilled: Bool = false) {
        self.width = width
        self.height = height
        self.isFilled = isFilled
    }

    /// A square box to fit in.
    public init(fitting side: Int) {
        self.init(width: side, height: side)
    }

    /// The box without `isFilled`.
    package var box: PixelSize { PixelSize(width: width, height: height) }
}

/// The file format of a thumbnail.
public enum PictureFormat: Sendable {
    /// Transparent pixels are blended with white.
    case jpeg
    /// The format of the freedesktop thumbnail repositories. Transparency is kept.
    case png
}
