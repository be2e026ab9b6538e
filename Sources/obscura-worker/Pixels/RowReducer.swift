internal import Glibc
internal import PhotoImaging

/// The first of two steps of reducing a picture: averages squares of `factor` by `factor` pixels as a decoder delivers
/// rows, so that a large picture is never in memory as a whole.
struct RowReducer: ~Copyable {
    private let factor: Int
    private let width: Int
    private let height: Int
    private var pixels: Pixels
    private let sums: Sums
    /// Rows taken.
    private(set) var rowCount = 0

    /// Largest `factor`: larger sums would overflow their words.
    private static let factorMax = 4096

    /// For a picture of `size` and rows of 1 or 4 channels. Nil when there is no memory.
    init?(_ size: PixelSize, channels: Int, hasAlpha: Bool, factor: Int) {
        let factor = min(max(factor, 1), Self.factorMax)
        let reduced = PixelSize(
            width: (size.width + factor - 1) / factor, height: (size.height + factor - 1) / factor)
        guard var pixels = Pixels(size: reduced, channels: channels, hasAlpha: hasAlpha) else { return nil }
        pixels.covered = (Double(size.width) / Double(factor), Double(size.height) / Double(factor))
        self.factor = factor
        width = size.width
        height = size.height
        sums = Sums(count: pixels.rowBytes)
        self.pixels = pixels
    }

    /// Takes the next row, one byte a channel. Rows beyond the last are ignored.
    mutating func add(_ row: UnsafePointer<UInt8>) {
        guard rowCount < height else { return }
        defer { rowCount += 1 }
        if factor == 1 {
            (pixels.start + rowCount * pixels.rowBytes).update(from: row, count: pixels.rowBytes)
            return
        }
        if pixels.channels == 4 { sumColor(row) } else { sumGray(row) }
        let rowsInSums = rowCount % factor + 1
        if rowsInSums == factor || rowCount + 1 == height { emit(rowsInSums) }
    }

    /// The smaller picture. Rows that never came are white, or transparent.
    consuming func finish() -> Pixels {
        let complete = (rowCount == height ? pixels.size.height : rowCount / factor) * pixels.rowBytes
        (pixels.start + complete).update(
            repeating: pixels.hasAlpha ? 0 : 255, count: pixels.rowBytes * pixels.size.height - complete)
        return pixels
    }

    private func sumColor(_ row: UnsafePointer<UInt8>) {
        let source = UnsafeRawPointer(row)
        let target = UnsafeMutableRawPointer(sums.start)
        var x = 0
        var column = 0
        while x < width {
            let end = min(x &+ factor, width)
            var sum = target.load(fromByteOffset: column, as: SIMD4<UInt32>.self)
            while x < end {
                let pixel = source.loadUnaligned(fromByteOffset: x &* 4, as: SIMD4<UInt8>.self)
                sum = sum &+ SIMD4<UInt32>(truncatingIfNeeded: pixel)
                x &+= 1
            }
            target.storeBytes(of: sum, toByteOffset: column, as: SIMD4<UInt32>.self)
            column &+= MemoryLayout<SIMD4<UInt32>>.size
        }
    }

    private func sumGray(_ row: UnsafePointer<UInt8>) {
        var x = 0
        var column = 0
        while x < width {
            let end = min(x &+ factor, width)
            var sum: UInt32 = 0
            while x < end {
                sum &+= UInt32(row[x])
                x &+= 1
            }
            sums.start[column] &+= sum
            column &+= 1
        }
    }

    private func emit(_ rowsInSums: Int) {
        let output = pixels.start + rowCount / factor * pixels.rowBytes
        let channels = pixels.channels
        let rest = width % factor
        for column in 0..<pixels.size.width {
            let columnsInSums = rest != 0 && column + 1 == pixels.size.width ? rest : factor
            let count = UInt32(columnsInSums * rowsInSums)
            for index in column * channels..<(column + 1) * channels {
                output[index] = UInt8(truncatingIfNeeded: (sums.start[index] &+ count / 2) / count)
                sums.start[index] = 0
            }
        }
    }
}

/// Sums of the rows since the last emitted row.
private struct Sums: ~Copyable {
    let start: UnsafeMutablePointer<UInt32>

    init(count: Int) {
        start = .allocate(capacity: count)
        start.initialize(repeating: 0, count: count)
    }

    deinit {
        start.deallocate()
    }
}
