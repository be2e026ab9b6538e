/// Width and height in pixels.
public struct PixelSize: Hashable, Sendable {
    /// Pixels across.
    public var width: Int
    /// Pixels down.
    public var height: Int

    /// A size of `width` by `height` pixels.
    public init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }

    /// Width and height exchanged, as after a quarter turn.
    public var transposed: PixelSize { PixelSize(width: height, height: width) }

    /// The largest size of this aspect ratio that fits inside `box`: rounded to the nearest pixel, at least one pixel
    /// each way, never larger than this size. Both sizes must be at least 1 by 1 and below 2^31.
    public func fitted(in box: PixelSize) -> PixelSize {
        precondition(width > 0 && height > 0 && box.width > 0 && box.height > 0)
        if width <= box.width && height <= box.height { return self }
        if width * box.height >= height * box.width {
            let fittedHeight = (2 * height * box.width + width) / (2 * width)
            return PixelSize(width: box.width, height: min(max(fittedHeight, 1), box.height))
        }
        return transposed.fitted(in: box.transposed).transposed
    }

    /// Whether a picture of this size can be a smaller copy of one of `size`: the same aspect ratio, rounded to pixels.
    package func hasAspect(of size: PixelSize) -> Bool {
        guard width > 0, height > 0, size.width > 0, size.height > 0 else { return false }
        let down = Double(size.height) * Double(width) / Double(size.width)
        let across = Double(size.width) * Double(height) / Double(size.height)
        return abs(down - Double(height)) <= 1 || abs(across - Double(width)) <= 1
    }

    /// The thumbnail's size for a picture of this size, fitted inside the box or filling it. If it fills the box, the
    /// visible part of the picture has the thumbnail's aspect ratio.
    package func placed(in size: PictureSize) -> PixelSize {
        guard size.isFilled else { return fitted(in: size.box) }
        // The scale that covers the box, but never enlarges.
        let scale = min(1, max(Double(size.width) / Double(width), Double(size.height) / Double(height)))
        return PixelSize(
            width: min(size.width, max(Int((Double(width) * scale).rounded()), 1)),
            height: min(size.height, max(Int((Double(height) * scale).rounded()), 1)))
    }
}
