internal import Glibc
internal import PhotoImaging

/// What ``RowReducer`` does, for a decoder that delivers parts of rows in any order: averages squares of `factor` by
/// `factor` pixels, so that a large picture is never in memory as a whole.
struct RegionReducer: ~Copyable {
    private let factor: Int
    private let size: PixelSize
    private let pixels: Pixels
    /// One for each channel of `pixels`; none where nothing is averaged.
    private let sums: Sums
    /// Pixels that have not come yet.
    private var missing: Int

    /// Largest `factor`: larger sums would overflow their words.
    private static let factorMax = 4096

    /// For a picture of `size` with 1 or 4 channels. Nil when there is no memory.
    init?(_ size: PixelSize, channels: Int, hasAlpha: Bool, factor: Int) {
        let factor = min(max(factor, 1), Self.factorMax)
        let reduced = PixelSize(
            width: (size.width + factor - 1) / factor, height: (size.height + factor - 1) / factor)
        guard var pixels = Pixels(size: reduced, channels: channels, hasAlpha: hasAlpha) else { return nil }
        pixels.covered = (Double(size.width) / Double(factor), Double(size.height) / Double(factor))
        let sums = Sums(count: factor == 1 ? 0 : pixels.rowBytes * reduced.height)
        guard factor == 1 || sums.start != nil else { return nil }
        self.sums = sums
        self.factor = factor
        self.size = size
        self.pixels = pixels
        missing = size.width * size.height
    }

    /// Takes `count` pixels of row `y` from column `x` on, one byte a channel. Each pixel comes once.
    mutating func add(_ run: UnsafePointer<UInt8>, x: Int, y: Int, count: Int) {
        precondition(0 <= x && 0 <= y && 0 <= count && count <= size.width - x && y < size.height)
        missing -= count
        let row = y / factor * pixels.rowBytes
        guard let sums = sums.start else {
            (pixels.start + row + x * pixels.channels).update(from: run, count: count * pixels.channels)
            return
        }
        if pixels.channels == 4 {
            sumColor(run, x, count, into: UnsafeMutableRawPointer(sums + row))
        } else {
            for index in 0..<count { sums[row + (x + index) / factor] &+= UInt32(run[index]) }
        }
    }

    private func sumColor(
        _ run: UnsafePointer<UInt8>, _ x: Int, _ count: Int, into row: UnsafeMutableRawPointer
    ) {
        let source = UnsafeRawPointer(run)
        var index = 0
        while index < count {
            let column = (x &+ index) / factor
            let end = min((column &+ 1) &* factor &- x, count)
            let place = column &* MemoryLayout<SIMD4<UInt32>>.size
            var sum = row.loadUnaligned(fromByteOffset: place, as: SIMD4<UInt32>.self)
            while index < end {
                let pixel = source.loadUnaligned(fromByteOffset: index &* 4, as: SIMD4<UInt8>.self)
                sum = sum &+ SIMD4<UInt32>(truncatingIfNeeded: pixel)
                index &+= 1
            }
            row.storeBytes(of: sum, toByteOffset: place, as: SIMD4<UInt32>.self)
        }
    }

    /// The smaller picture. Nil if pixels are missing.
    consuming func finish() -> Pixels? {
        guard missing == 0 else { return nil }
        if let sums = sums.start {
            for y in 0..<pixels.size.height {
                let rows = min(size.height - y * factor, factor)
                for x in 0..<pixels.size.width {
                    let count = UInt32(min(size.width - x * factor, factor) * rows)
                    let start = y * pixels.rowBytes + x * pixels.channels
                    for index in start..<start + pixels.channels {
                        pixels.start[index] = UInt8(truncatingIfNeeded: (sums[index] &+ count / 2) / count)
                    }
                }
            }
        }
        return pixels
    }
}

private struct Sums: ~Copyable {
    /// Nil for none, and when there is no memory.
    let start: UnsafeMutablePointer<UInt32>?

    /// Zeros.
    init(count: Int) {
        let memory = count > 0 ? calloc(count, MemoryLayout<UInt32>.size) : nil
        start = memory?.assumingMemoryBound(to: UInt32.self)
    }

    deinit {
        free(start)
    }
}
