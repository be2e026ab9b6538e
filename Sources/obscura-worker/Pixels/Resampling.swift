internal import Glibc
internal import PhotoImaging

extension Pixels {
    /// The part of the picture that `placement` shows, reduced by a filter wide enough to prevent aliasing. Nil if
    /// memory is short.
    consuming func resized(for placement: Placement) -> Pixels? {
        let target = placement.target
        if target == size, placement.showsAll { return self }
        guard let resized = Pixels(size: target, channels: channels, hasAlpha: hasAlpha) else { return nil }
        let columns = ReductionFilter(
            samples: size.width, covered: covered.width, part: placement.part.width, to: target.width)
        let rows = ReductionFilter(
            samples: size.height, covered: covered.height, part: placement.part.height, to: target.height)
        var band = RowBand(count: rowBytes, rowsMax: rows.tapsMax)
        // Vertical pass first: it adds whole rows, many samples at a time.
        for y in 0..<target.height {
            let taps = rows.taps(of: y)
            let row = band.sum(taps.weights, from: taps.first) { UnsafePointer(start + $0 * rowBytes) }
            let output = resized.start + y * resized.rowBytes
            if channels == 4 {
                reduceColor(row, by: columns, into: output)
            } else {
                reduceGray(row, by: columns, into: output)
            }
        }
        return resized
    }
}

/// The source rows for the next row of the reduced picture, each converted once.
private struct RowBand: ~Copyable {
    private typealias Samples = SIMD16<Float>
    /// Vectors in a row; the last one may be partly unused.
    private let samplesPerRow: Int
    private let count: Int
    /// A ring: row `y` is at index `y % rowsMax`.
    private let rows: UnsafeMutableBufferPointer<Samples>
    private let rowsMax: Int
    private let result: UnsafeMutableBufferPointer<Samples>
    /// The rows to add.
    private let starts: UnsafeMutableBufferPointer<UnsafeMutablePointer<Samples>>
    /// The first row that is not yet converted.
    private var next = 0

    /// A band of at most `rowsMax` rows of `count` samples.
    init(count: Int, rowsMax: Int) {
        self.count = count
        self.rowsMax = rowsMax
        samplesPerRow = (count + Samples.scalarCount - 1) / Samples.scalarCount
        rows = .allocate(capacity: samplesPerRow * rowsMax)
        rows.initialize(repeating: .zero)
        result = .allocate(capacity: samplesPerRow)
        result.initialize(repeating: .zero)
        starts = .allocate(capacity: rowsMax)
        starts.initialize(repeating: rows.baseAddress!)
    }

    deinit {
        rows.deallocate()
        result.deallocate()
        starts.deallocate()
    }

    /// The weighted sum of `weights.count` rows from `first` on. Valid until the next call, which must not need earlier
    /// rows. `row` returns the start of a row of the picture.
    mutating func sum(
        _ weights: UnsafeBufferPointer<Float>, from first: Int, row: (Int) -> UnsafePointer<UInt8>
    ) -> UnsafePointer<Float> {
        for y in max(first, next)..<max(first + weights.count, next) { convert(row(y), to: y) }
        next = max(first + weights.count, next)
        for tap in 0..<weights.count { starts[tap] = place(of: first + tap) }
        for index in 0..<samplesPerRow {
            var sum = Samples.zero
            for tap in 0..<weights.count {
                sum += weights[tap] * starts[tap][index]
            }
            result[index] = sum
        }
        return UnsafeRawPointer(result.baseAddress!).assumingMemoryBound(to: Float.self)
    }

    private func place(of y: Int) -> UnsafeMutablePointer<Samples> {
        rows.baseAddress! + y % rowsMax * samplesPerRow
    }

    private func convert(_ source: UnsafePointer<UInt8>, to y: Int) {
        let samples = UnsafeMutableRawPointer(place(of: y)).assumingMemoryBound(to: Float.self)
        var index = 0
        while index < count {
            samples[index] = Float(source[index])
            index &+= 1
        }
    }
}

private func reduceColor(
    _ row: UnsafePointer<Float>, by filter: borrowing ReductionFilter,
    into output: UnsafeMutablePointer<UInt8>
) {
    let zero = SIMD4<Float>(repeating: 0)
    let white = SIMD4<Float>(repeating: 255)
    for x in 0..<filter.count {
        let taps = filter.taps(of: x)
        var pixel = UnsafeRawPointer(row + taps.first * 4)
        var sum = SIMD4<Float>(repeating: 0.5)
        var tap = 0
        while tap < taps.weights.count {
            sum += taps.weights[tap] * pixel.loadUnaligned(as: SIMD4<Float>.self)
            pixel += MemoryLayout<SIMD4<Float>>.size
            tap &+= 1
        }
        let above = sum.replacing(with: zero, where: sum .< zero)
        let rounded = above.replacing(with: white, where: above .> white)
        for channel in 0..<4 { output[x &* 4 &+ channel] = UInt8(rounded[channel]) }
    }
}

private func reduceGray(
    _ row: UnsafePointer<Float>, by filter: borrowing ReductionFilter,
    into output: UnsafeMutablePointer<UInt8>
) {
    for x in 0..<filter.count {
        let taps = filter.taps(of: x)
        var sum: Float = 0.5
        for tap in 0..<taps.weights.count { sum += taps.weights[tap] * row[taps.first + tap] }
        output[x] = UInt8(min(max(sum, 0), 255))
    }
}

/// The source samples, and their weights, of each sample of a reduced line.
struct ReductionFilter: ~Copyable {
    /// Samples of the reduced line.
    let count: Int
    /// Source samples per reduced sample, at most.
    let tapsMax: Int
    private let firsts: UnsafeMutableBufferPointer<Int>
    private let weights: UnsafeMutableBufferPointer<Float>

    /// A filter that reduces the middle `part` (a fraction) of a line to `target` samples. The line covers `covered` of
    /// `samples` samples.
    init(samples: Int, covered: Double, part: Double, to target: Int) {
        precondition(0 < target && 0 < samples && covered <= Double(samples) && 0 < part && part <= 1)
        count = target
        let start = Float(covered * (1 - part) / 2)
        let step = Float(covered * part) / Float(target)
        // Never sharper than the source samples.
        let scale = max(step, 1)
        let radius = Self.lobes * scale
        tapsMax = min(Int(2 * radius) + 2, samples)
        firsts = .allocate(capacity: target)
        weights = .allocate(capacity: target * tapsMax)
        for index in 0..<target {
            let center = start + (Float(index) + 0.5) * step
            let first = max(min(Int(center - radius), samples - tapsMax), 0)
            firsts.initializeElement(at: index, to: first)
            var sum: Float = 0
            for tap in 0..<tapsMax {
                let weight = Self.lanczos((Float(first + tap) + 0.5 - center) / scale)
                weights.initializeElement(at: index * tapsMax + tap, to: weight)
                sum += weight
            }
            for tap in 0..<tapsMax { weights[index * tapsMax + tap] /= sum }
        }
    }

    deinit {
        firsts.deallocate()
        weights.deallocate()
    }

    /// The source samples of reduced sample `index`: those from `first` on, with `weights` that add up to 1. Valid for
    /// the lifetime of the filter.
    func taps(of index: Int) -> (first: Int, weights: UnsafeBufferPointer<Float>) {
        let part = weights[index * tapsMax..<(index + 1) * tapsMax]
        return (firsts[index], UnsafeBufferPointer(rebasing: part))
    }

    private static let lobes: Float = 3

    /// Lanczos' window of the ideal filter (Duchon, 1979): 0 from 3 on.
    private static func lanczos(_ distance: Float) -> Float {
        let x = abs(distance) * .pi
        if x < 1e-4 { return 1 }
        if x >= lobes * .pi { return 0 }
        return lobes * sinf(x) * sinf(x / lobes) / (x * x)
    }
}
