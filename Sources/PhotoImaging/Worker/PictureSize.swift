/// What a thumbnail is to be like. It is never larger than the picture.
public struct PictureSize: Hashable, Sendable {
    /// Pixels across, at most.
    public var width: Int
    /// Pixels down, at most.
    public var height: Int
    /// Whether the picture fills the box, its edges cut off evenly; else all of it fits inside.
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

    /// The box without its manner.
    package var box: PixelSize { PixelSize(width: width, height: height) }
}

/// How a thumbnail is written.
public enum PictureFormat: Sendable {
    /// On white where the picture is transparent.
    case jpeg
    /// What the freedesktop repositories hold. Transparency is kept.
    case png
}
