internal import PhotoImaging

/// The part of a stored picture that a thumbnail shows, and the thumbnail's size before it is turned upright.
struct Placement {
    /// The thumbnail, as stored.
    let target: PixelSize
    /// The middle of the picture that is shown: fractions of its width and height, at most 1.
    let part: (width: Double, height: Double)

    /// How a picture of `size`, to be turned by `orientation`, is shown in `box`.
    init(of size: PixelSize, turnedBy orientation: Orientation, in box: PictureSize) {
        var box = box
        if orientation.isTransposed { swap(&box.width, &box.height) }
        target = size.placed(in: box)
        guard box.isFilled else {
            part = (1, 1)
            return
        }
        // The part has the target's ratio and is as wide or as high as the picture; of a picture that is too
        // small to fill the box, it is the target itself.
        let scale = min(
            max(Double(target.width) / Double(size.width), Double(target.height) / Double(size.height)), 1)
        part = (
            min(Double(target.width) / scale / Double(size.width), 1),
            min(Double(target.height) / scale / Double(size.height), 1)
        )
    }

    /// Whether nothing is cut off.
    var showsAll: Bool { part.width == 1 && part.height == 1 }

    /// The divisor by which a picture of `size` may be reduced before the filter makes the target of it: at least 1.
    /// A little less than twice the target is left: 12-megapixel cameras are 4000 pixels wide, and 500 are as good a
    /// beginning for 256 as 1000, and cheaper.
    func reduction(of size: PixelSize) -> Int {
        let leftMin = 1.875
        let across = Double(size.width) * part.width / (Double(target.width) * leftMin)
        let down = Double(size.height) * part.height / (Double(target.height) * leftMin)
        return max(Int(min(across, down)), 1)
    }

    /// Whether a smaller copy of the picture, of `size`, has all the pixels that the target needs.
    func isServed(by size: PixelSize) -> Bool {
        Double(size.width) * part.width >= Double(target.width)
            && Double(size.height) * part.height >= Double(target.height)
    }
}
