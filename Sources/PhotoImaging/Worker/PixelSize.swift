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

    /// Width and height exchanged, as by a quarter turn.
    public var transposed: PixelSize { PixelSize(width: height, height: width) }

    /// The largest size of this ratio that fits inside `box`: rounded to the nearest pixel, at least one
    /// pixel each way, never larger than the size itself. Both sizes are at least 1 by 1 and below 2^31.
    public func fitted(in box: PixelSize) -> PixelSize {
        precondition(width > 0 && height > 0 && box.width > 0 && box.height > 0)
        if width <= box.width && height <= box.height { return self }
        if width * box.height >= height * box.width {
            let fittedHeight = (2 * height * box.width + width) / (2 * width)
            return PixelSize(width: box.width, height: min(max(fittedHeight, 1), box.height))
        }
        return transposed.fitted(in: box.transposed).transposed
    }
}
