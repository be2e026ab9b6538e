internal import PhotoImaging

/// Averages squares of `factor` by `factor` pixels as a decoder delivers parts of rows, in any order, so that a large
/// picture is never in memory as a whole. ``RowReducer`` takes less memory where whole rows come in order.
struct RegionReducer: ~Copyable {
    private let size: PixelSize
    private let pixels: Pixels
    private let sums: SquareSums
    /// Pixels that have not come yet.
    private var missing: Int

    /// For a picture of `size` with 1 or 4 channels. Nil when there is no memory.
    init?(_ size: PixelSize, channels: Int, hasAlpha: Bool, factor: Int) {
        let factor = SquareSums.usable(factor)
        guard
            let pixels = SquareSums.makePixels(size, channels: channels, hasAlpha: hasAlpha, factor: factor),
            let sums = SquareSums(
                width: size.width, channels: channels, factor: factor,
                rowCount: factor == 1 ? 0 : pixels.size.height)
        else { return nil }
        self.size = size
        self.pixels = pixels
        self.sums = sums
        missing = size.width * size.height
    }

    /// Takes `count` pixels of row `y` from column `x` on, one byte a channel. Each pixel comes once.
    mutating func add(_ run: UnsafePointer<UInt8>, x: Int, y: Int, count: Int) {
        precondition(0 <= x && 0 <= y && 0 <= count && count <= size.width - x && y < size.height)
        missing -= count
        if sums.factor == 1 {
            (pixels.start + y * pixels.rowBytes + x * pixels.channels)
                .update(from: run, count: count * pixels.channels)
        } else {
            sums.add(run, x: x, count: count, toRow: y / sums.factor)
        }
    }

    /// The smaller picture. Nil if pixels are missing.
    consuming func finish() -> Pixels? {
        guard missing == 0 else { return nil }
        if sums.factor > 1 {
            for y in 0..<pixels.size.height {
                sums.emit(
                    row: y, rowsInSums: min(size.height - y * sums.factor, sums.factor),
                    to: pixels.start + y * pixels.rowBytes)
            }
        }
        return pixels
    }
}
