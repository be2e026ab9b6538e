internal import Glibc
internal import PhotoImaging

/// Side of the square to which a picture is reduced before it is hashed, in pixels.
private let side = 32
/// Pictures whose standard deviation is less, in levels of 255, have no hash: what is left is noise.
private let contrastMin: Float = 2.5

/// The likeness hash of a JPEG; 0 if it has next to no contrast; nil if it cannot be decoded.
///
/// The bits are the signs of the 64 lowest frequencies of the picture in grey (DCT-II), without its mean:
/// recompression, size and light change few of them (after Zauner, *Implementation and Benchmarking of Perceptual
/// Image Hash Functions*, 2010, 3.2.1; signs, which need no median). Frequencies beside each other are 37 bits apart:
/// the search for near hashes sorts by blocks of bits, which should be independent.
func likenessHash(of picture: ArrivingPicture, in box: PictureSize) -> UInt64? {
    guard let decoder = openPicture(picture, type: .jpeg), isWithinLimits(decoder.size) else { return nil }
    let placement = Placement(of: decoder.size, turnedBy: decoder.orientation, in: box)
    guard let pixels = decoder.decode(for: placement), pixels.size.width > 0, pixels.size.height > 0 else {
        return nil
    }
    let grey = averages(of: pixels)
    let mean = grey.reduce(0, +) / Float(grey.count)
    let variance = grey.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / Float(grey.count)
    guard variance >= contrastMin * contrastMin else { return 0 }
    var hash: UInt64 = 0
    for (index, frequency) in lowestFrequencies.enumerated()
    where coefficient(of: grey, across: frequency.across, down: frequency.down) > 0 {
        hash |= 1 << UInt64(index * 37 % 64)
    }
    // These two are no hashes.
    return hash > 1 ? hash : 2
}

/// The mean luminance (ITU-T T.871) of each cell of a grid of `side` by `side` over the picture.
private func averages(of pixels: borrowing Pixels) -> [Float] {
    let (width, height, channels) = (pixels.size.width, pixels.size.height, pixels.channels)
    var means = [Float](repeating: 0, count: side * side)
    for row in 0..<side {
        let lines = cell(row, of: height)
        for column in 0..<side {
            let dots = cell(column, of: width)
            var sum: Float = 0
            for y in lines {
                for x in dots {
                    let pixel = pixels.start + y * pixels.rowBytes + x * channels
                    sum +=
                        channels == 1
                        ? Float(pixel[0])
                        : 0.299 * Float(pixel[0]) + 0.587 * Float(pixel[1]) + 0.114 * Float(pixel[2])
                }
            }
            means[row * side + column] = sum / Float(lines.count * dots.count)
        }
    }
    return means
}

/// The pixels of a cell along a side of that many pixels: at least one.
private func cell(_ index: Int, of length: Int) -> Range<Int> {
    let first = min(index * length / side, length - 1)
    return first..<max((index + 1) * length / side, first + 1)
}

/// The 64 lowest frequencies but the mean, from the lowest.
private let lowestFrequencies: [(across: Int, down: Int)] = Array(
    (1..<side).flatMap { sum in (0...sum).map { (across: sum - $0, down: $0) } }.prefix(64))

/// A coefficient of the DCT-II, not scaled.
private func coefficient(of grey: [Float], across: Int, down: Int) -> Float {
    let (columns, rows) = (wave(across), wave(down))
    var sum: Float = 0
    for row in 0..<side {
        var line: Float = 0
        for column in 0..<side { line += grey[row * side + column] * columns[column] }
        sum += line * rows[row]
    }
    return sum
}

/// The samples of a frequency's cosine.
private func wave(_ frequency: Int) -> [Float] {
    (0..<side).map { cosf(Float.pi * Float(frequency) * (2 * Float($0) + 1) / Float(2 * side)) }
}
