internal import PhotoImaging

/// The first of two steps of reducing a picture: averages squares of `factor` by `factor` pixels as a decoder delivers
/// rows, so that a large picture is never in memory as a whole.
struct RowReducer: ~Copyable {
    private let height: Int
    private var pixels: Pixels
    /// One row: the rows since the last emitted one.
    private let sums: SquareSums
    /// Rows taken.
    private(set) var rowCount = 0
    private let width: Int

    /// For a picture of `size` and rows of 1 or 4 channels. Nil when there is no memory.
    init?(_ size: PixelSize, channels: Int, hasAlpha: Bool, factor: Int) {
        let factor = SquareSums.usable(factor)
        guard
            let pixels = SquareSums.makePixels(size, channels: channels, hasAlpha: hasAlpha, factor: factor),
            let sums = SquareSums(width: size.width, channels: channels, factor: factor, rowCount: 1)
        else { return nil }
        (width, height) = (size.width, size.height)
        self.pixels = pixels
        self.sums = sums
    }

    /// Takes the next row, one byte a channel. Rows beyond the last are ignored.
    mutating func add(_ row: UnsafePointer<UInt8>) {
        guard rowCount < height else { return }
        defer { rowCount += 1 }
        let factor = sums.factor
        let output = pixels.start + rowCount / factor * pixels.rowBytes
        if factor == 1 {
            output.update(from: row, count: pixels.rowBytes)
            return
        }
        sums.add(row, x: 0, count: width, toRow: 0)
        let rowsInSums = rowCount % factor + 1
        if rowsInSums == factor || rowCount + 1 == height {
            sums.emit(row: 0, rowsInSums: rowsInSums, to: output)
        }
    }

    /// The smaller picture. Rows that never came are white, or transparent.
    consuming func finish() -> Pixels {
        let complete = (rowCount == height ? pixels.size.height : rowCount / sums.factor) * pixels.rowBytes
        (pixels.start + complete).update(
            repeating: pixels.hasAlpha ? 0 : 255, count: pixels.rowBytes * pixels.size.height - complete)
        return pixels
    }
}
