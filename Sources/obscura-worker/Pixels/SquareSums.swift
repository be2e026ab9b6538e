internal import Glibc
internal import PhotoImaging

/// Sums of squares of `factor` by `factor` pixels, one row of sums for each row of the smaller picture that is under
/// way, one byte a channel. ``RowReducer`` and ``RegionReducer`` average by it.
struct SquareSums: ~Copyable {
    let factor: Int
    /// Pixels of a row of the large picture.
    private let width: Int
    private let channels: Int
    private let rowCount: Int
    private let columns: Int
    private let start: UnsafeMutablePointer<UInt32>

    /// Largest factor: larger sums would overflow their words.
    private static let factorMax = 4096

    /// The factor that is used where `factor` is asked for.
    static func usable(_ factor: Int) -> Int { min(max(factor, 1), factorMax) }

    /// The smaller picture, to be filled. Nil when there is no memory.
    static func makePixels(_ size: PixelSize, channels: Int, hasAlpha: Bool, factor: Int) -> Pixels? {
        let reduced = PixelSize(
            width: (size.width + factor - 1) / factor, height: (size.height + factor - 1) / factor)
        var pixels = Pixels(size: reduced, channels: channels, hasAlpha: hasAlpha)
        pixels?.covered = (Double(size.width) / Double(factor), Double(size.height) / Double(factor))
        return pixels
    }

    /// Zeros.
    ///
    /// - Parameters:
    ///   - width: that of the large picture, with 1 or 4 channels.
    ///   - rowCount: rows of sums; none are needed where nothing is averaged.
    init?(width: Int, channels: Int, factor: Int, rowCount: Int) {
        (self.factor, self.width, self.channels, self.rowCount) = (factor, width, channels, rowCount)
        columns = (width + factor - 1) / factor
        let memory = calloc(max(columns * channels * rowCount, 1), MemoryLayout<UInt32>.size)
        guard let memory else { return nil }
        start = memory.assumingMemoryBound(to: UInt32.self)
    }

    deinit { free(start) }

    /// Adds `count` pixels from column `x` of the large picture on to a row of sums.
    func add(_ run: UnsafePointer<UInt8>, x: Int, count: Int, toRow row: Int) {
        precondition(0 <= x && 0 <= count && count <= width - x && 0 <= row && row < rowCount)
        let sums = start + row * columns * channels
        if channels == 4 { addColor(run, x, count, sums) } else { addGray(run, x, count, sums) }
    }

    private func addColor(
        _ run: UnsafePointer<UInt8>, _ x: Int, _ count: Int, _ sums: UnsafeMutablePointer<UInt32>
    ) {
        let (source, target) = (UnsafeRawPointer(run), UnsafeMutableRawPointer(sums))
        var column = x / factor
        var end = min((column &+ 1) &* factor &- x, count)
        var index = 0
        while index < count {
            let place = column &* MemoryLayout<SIMD4<UInt32>>.size
            var sum = target.loadUnaligned(fromByteOffset: place, as: SIMD4<UInt32>.self)
            while index < end {
                let pixel = source.loadUnaligned(fromByteOffset: index &* 4, as: SIMD4<UInt8>.self)
                sum = sum &+ SIMD4<UInt32>(truncatingIfNeeded: pixel)
                index &+= 1
            }
            target.storeBytes(of: sum, toByteOffset: place, as: SIMD4<UInt32>.self)
            column &+= 1
            end = min(end &+ factor, count)
        }
    }

    private func addGray(
        _ run: UnsafePointer<UInt8>, _ x: Int, _ count: Int, _ sums: UnsafeMutablePointer<UInt32>
    ) {
        var column = x / factor
        var end = min((column &+ 1) &* factor &- x, count)
        var index = 0
        while index < count {
            var sum: UInt32 = 0
            while index < end {
                sum &+= UInt32(run[index])
                index &+= 1
            }
            sums[column] &+= sum
            column &+= 1
            end = min(end &+ factor, count)
        }
    }

    /// Writes the averages of a row of sums, and makes the sums zeros.
    ///
    /// - Parameter rowsInSums: rows of the large picture that were added.
    func emit(row: Int, rowsInSums: Int, to output: UnsafeMutablePointer<UInt8>) {
        let sums = start + row * columns * channels
        let rest = width % factor
        for column in 0..<columns {
            let columnsInSums = rest != 0 && column + 1 == columns ? rest : factor
            let count = UInt32(columnsInSums * rowsInSums)
            for index in column * channels..<(column + 1) * channels {
                output[index] = UInt8(truncatingIfNeeded: (sums[index] &+ count / 2) / count)
                sums[index] = 0
            }
        }
    }
}
