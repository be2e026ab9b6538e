internal import Glibc
internal import PhotoImaging

extension Pixels {
    /// The part of the picture that `placement` shows, made smaller by a filter as wide as the reduction asks
    /// for, so that nothing aliases. Nil when there is no memory.
    consuming func resized(for placement: Placement) -> Pixels? {
        let target = placement.target
        if target == size, placement.showsAll { return self }
        guard let resized = Pixels(size: target, channels: channels, hasAlpha: hasAlpha) else { return nil }
        let columns = ReductionFilter(
            samples: size.width, covered: covered.width, part: placement.part.width, to: target.width)
        let rows = ReductionFilter(
            samples: size.height, covered: covered.height, part: placement.part.height, to: target.height)
        let count = rowBytes
        let row = UnsafeMutablePointer<Float>.allocate(capacity: count)
        defer { row.deallocate() }
        // Down first: that pass is along the rows, where the compiler can add many pixels at a time.
        for y in 0..<target.height {
            row.initialize(repeating: 0, count: count)
            let taps = rows.taps(of: y)
            for tap in 0..<taps.weights.count {
                add(start + (taps.first + tap) * count, times: taps.weights[tap], to: row, count: count)
            }
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

private func add(
    _ source: UnsafePointer<UInt8>, times weight: Float, to row: UnsafeMutablePointer<Float>, count: Int
) {
    var index = 0
    while index < count {
        row[index] += weight * Float(source[index])
        index &+= 1
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

/// For each sample of a reduced line, which samples of the line it is made of and how much of each.
struct ReductionFilter: ~Copyable {
    /// Samples of the reduced line.
    let count: Int
    private let tapsMax: Int
    private let firsts: UnsafeMutableBufferPointer<Int>
    private let weights: UnsafeMutableBufferPointer<Float>

    /// The middle `part` (a fraction) of a line that covers `covered` of `samples` samples, made `target`
    /// long.
    init(samples: Int, covered: Double, part: Double, to target: Int) {
        precondition(0 < target && 0 < samples && covered <= Double(samples) && 0 < part && part <= 1)
        count = target
        let start = Float(covered * (1 - part) / 2)
        let step = Float(covered * part) / Float(target)
        // Never sharper than the samples are.
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

    /// The samples that sample `index` is made of: `weights`, which add up to 1, are of those from `first`
    /// on. Valid as long as the filter is.
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
