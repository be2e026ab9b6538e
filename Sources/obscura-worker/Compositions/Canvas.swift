internal import PhotoImaging

extension Pixels {
    /// Makes all pixels white and opaque.
    func fillWithWhite() {
        start.update(repeating: 255, count: rowBytes * size.height)
    }

    /// Copies a picture of four channels into this one, its upper left corner to `x`, `y`. It must fit.
    func place(_ picture: borrowing Pixels, x: Int, y: Int) {
        precondition(channels == 4 && picture.channels == 4 && x >= 0 && y >= 0)
        precondition(x + picture.size.width <= size.width && y + picture.size.height <= size.height)
        for row in 0..<picture.size.height {
            (start + (y + row) * rowBytes + x * 4).update(
                from: picture.start + row * picture.rowBytes, count: picture.rowBytes)
        }
    }

    /// The same picture in four channels. Nil when there is no memory.
    consuming func inColor() -> Pixels? {
        if channels == 4 { return self }
        guard let color = Pixels(size: size, channels: 4) else { return nil }
        for index in 0..<size.width * size.height {
            (color.start + index * 4).update(repeating: start[index], count: 4)
        }
        return color
    }
}

/// The picture of a tile, reduced to fit in `box`, in four channels. Nil when it cannot be decoded.
func decodeTile(_ jpeg: [UInt8], fitting box: PixelSize) -> Pixels? {
    var tile: Pixels?
    jpeg.withUnsafeBytes { tile = decodeTile($0, fitting: box) }
    return tile
}

private func decodeTile(_ jpeg: UnsafeRawBufferPointer, fitting box: PixelSize) -> Pixels? {
    guard let decoder = JPEGDecoder(ArrivingPicture(whole: jpeg)), isWithinLimits(decoder.size) else {
        return nil
    }
    let size = PictureSize(width: box.width, height: box.height)
    let placement = Placement(of: decoder.size, turnedBy: .upright, in: size)
    guard let decoded = decoder.decode(for: placement) else { return nil }
    return decoded.resized(for: placement)?.inColor()
}
