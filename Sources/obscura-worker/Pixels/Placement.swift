internal import PhotoImaging

/// The part of a stored picture that a thumbnail shows, and the thumbnail's size before it is turned upright.
struct Placement {
    /// The thumbnail's size before it is turned upright.
    let target: PixelSize
    /// The visible middle part of the picture: fractions of its width and height, at most 1.
    let part: (width: Double, height: Double)

    /// Places a picture of `size`, to be turned by `orientation`, in `box`.
    init(of size: PixelSize, turnedBy orientation: Orientation, in box: PictureSize) {
        var box = box
        if orientation.isTransposed { swap(&box.width, &box.height) }
        target = size.placed(in: box)
        guard box.isFilled else {
            part = (1, 1)
            return
        }
        // The part has the target's aspect ratio and is as wide or as high as the picture. If the picture is too small
        // to fill the box, the part is the target itself.
        let scale = min(
            max(Double(target.width) / Double(size.width), Double(target.height) / Double(size.height)), 1)
        part = (
            min(Double(target.width) / scale / Double(size.width), 1),
            min(Double(target.height) / scale / Double(size.height), 1)
        )
    }

    /// Whether nothing is cut off.
    var showsAll: Bool { part.width == 1 && part.height == 1 }

    /// The divisor, at least 1, by which a picture of `size` may be reduced before the filter resizes it to the target.
    /// The filter's input may be slightly less than twice the target: 12-megapixel photos are 4000 pixels wide, and for
    /// a target of 256 an input of 500 is as good as 1000 and cheaper.
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
