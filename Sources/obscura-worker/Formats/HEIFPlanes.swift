internal import CHEIF
internal import PhotoImaging

/// The planes of a picture that libheif has decoded, as they are coded, and their conversion to red, green, blue and
/// opacity (ITU-T H.273, 8.3). libheif 1.15 takes grey of limited range for full range, and delivers colours as red,
/// green and blue in any case.
struct HEIFPlanes {
    private let planes: [Plane]
    private let alpha: Plane?
    /// Size of the first plane, in pixels.
    let size: PixelSize
    /// Largest value of a converted colour. The opacity's is 255.
    private let codeMax: Int32

    private struct Plane {
        let start: UnsafePointer<UInt8>
        let stride: Int
        let size: PixelSize
        let bits: Int
        /// 1 where the plane has half the columns, or rows, of the picture.
        var shift = SIMD2(0, 0)
        /// Contribution of each value to red, green, blue and opacity.
        var table: [SIMD4<Int32>] = []

        init?(_ image: OpaquePointer, _ channel: heif_channel) {
            var stride: Int32 = 0
            guard let start = heif_image_get_plane_readonly(image, channel, &stride) else { return nil }
            (self.start, self.stride) = (start, Int(stride))
            bits = Int(heif_image_get_bits_per_pixel_range(image, channel))
            size = PixelSize(
                width: Int(heif_image_get_width(image, channel)),
                height: Int(heif_image_get_height(image, channel)))
            guard (8...16).contains(bits), size.width > 0, size.height > 0,
                self.stride >= size.width * (bits > 8 ? 2 : 1)
            else { return nil }
        }
    }

    /// Fractional bits of the tables.
    private static let fractionBits: Int32 = 12

    /// Nil for a form that is not understood.
    ///
    /// - Parameters:
    ///   - codeMax: the largest value of a converted colour, at most 4095.
    ///   - areUnconverted: whether the planes of green, blue and red are the first to the third of `colors`.
    init?(_ image: OpaquePointer, _ colors: ColorDescription, codeMax: Int, areUnconverted: Bool) {
        let space = heif_image_get_colorspace(image)
        let chroma = heif_image_get_chroma_format(image)
        let isGray = space == heif_colorspace_monochrome
        let isRGB = space == heif_colorspace_RGB
        guard isGray || isRGB && chroma == heif_chroma_444 || space == heif_colorspace_YCbCr else {
            return nil
        }
        guard isRGB || !areUnconverted else { return nil }
        let isConverted = isRGB && !areUnconverted
        let channels =
            isGray
            ? [heif_channel_Y]
            : areUnconverted
                ? [heif_channel_G, heif_channel_B, heif_channel_R]
                : isRGB
                    ? [heif_channel_R, heif_channel_G, heif_channel_B]
                    : [heif_channel_Y, heif_channel_Cb, heif_channel_Cr]
        var planes = channels.compactMap { Plane(image, $0) }
        guard planes.count == channels.count else { return nil }
        let size = planes[0].size
        let alpha = Plane(image, heif_channel_Alpha)
        if isConverted, !colors.isConvertedRightly(bits: planes[0].bits) { return nil }
        // Values of planes of RGB have their full range.
        let contributions =
            isConverted
            ? Contribution.rgb : isGray ? Contribution.gray(colors) : Contribution.luma(colors, chroma)
        guard let contributions else { return nil }
        for index in planes.indices {
            if index > 0, !isRGB {
                planes[index].shift = SIMD2(
                    chroma == heif_chroma_444 ? 0 : 1, chroma == heif_chroma_420 ? 1 : 0)
            }
            let shift = planes[index].shift
            guard (size.width - 1) >> shift.x < planes[index].size.width,
                (size.height - 1) >> shift.y < planes[index].size.height
            else { return nil }
            planes[index].table = Self.table(
                contributions[index], bits: planes[index].bits, codeMax: codeMax, isFirst: index == 0)
        }
        if let alpha {
            guard alpha.size.width >= size.width, alpha.size.height >= size.height else { return nil }
        }
        (self.planes, self.alpha, self.size, self.codeMax) = (planes, alpha, size, Int32(codeMax))
    }

    private static func table(
        _ contribution: Contribution, bits: Int, codeMax: Int, isFirst: Bool
    ) -> [SIMD4<Int32>] {
        let unit = Double(codeMax << Int(fractionBits))
        let rounding = isFirst ? Double(1 << (fractionBits - 1)) : 0
        return (0..<1 << bits).map { value in
            let part = contribution.range.part(value, bits: bits)
            let weighted = contribution.weights * (part * unit) + rounding
            return SIMD4<Int32>(weighted.rounded(.toNearestOrEven))
        }
    }

    var hasAlpha: Bool { alpha != nil }

    /// Converts the pixels of row `y` from column `left` on, `count` in all.
    func convert(y: Int, left: Int, count: Int, into target: UnsafeMutablePointer<SIMD4<UInt16>>) {
        let limit = SIMD4<Int32>(repeating: codeMax)
        withRow(0, y) { first in
            guard planes.count > 1 else {
                for x in 0..<count { target[x] = Self.code(first[left &+ x], limit) }
                return
            }
            withRow(1, y) { second in
                withRow(2, y) { third in
                    for x in 0..<count {
                        target[x] = Self.code(
                            first[left &+ x] &+ second[left &+ x] &+ third[left &+ x], limit)
                    }
                }
            }
        }
        guard let alpha else { return }
        let row = alpha.start + y * alpha.stride
        let valueMax = 1 << alpha.bits - 1
        for x in 0..<count {
            let value = alpha.bits > 8 ? Self.word(row, left + x) : Int(row[left + x])
            target[x].w = UInt16((min(value, valueMax) * 255 + valueMax / 2) / valueMax)
        }
    }

    @inline(__always)
    private static func code(_ sum: SIMD4<Int32>, _ limit: SIMD4<Int32>) -> SIMD4<UInt16> {
        var code = SIMD4<UInt16>(
            truncatingIfNeeded: (sum &>> fractionBits).clamped(lowerBound: SIMD4(), upperBound: limit))
        code.w = 255
        return code
    }

    @inline(__always)
    private static func word(_ row: UnsafePointer<UInt8>, _ index: Int) -> Int {
        Int(UnsafeRawPointer(row).loadUnaligned(fromByteOffset: index &* 2, as: UInt16.self))
    }

    /// The contributions of a plane's row to the pixels of row `y` of the picture.
    private struct Row {
        let start: UnsafePointer<UInt8>
        let table: UnsafePointer<SIMD4<Int32>>
        let mask: Int
        let shift: Int
        let isWide: Bool

        subscript(x: Int) -> SIMD4<Int32> {
            @inline(__always) get {
                let index = x &>> shift
                return table[(isWide ? HEIFPlanes.word(start, index) : Int(start[index])) & mask]
            }
        }
    }

    @inline(__always)
    private func withRow(_ index: Int, _ y: Int, _ body: (Row) -> Void) {
        let plane = planes[index]
        plane.table.withUnsafeBufferPointer { table in
            guard let first = table.baseAddress else { return }
            body(
                Row(
                    start: plane.start + (y >> plane.shift.y) * plane.stride, table: first,
                    mask: table.count - 1, shift: plane.shift.x, isWide: plane.bits > 8))
        }
    }
}

extension ColorDescription {
    /// Whether libheif 1.15 makes red, green and blue of that many bits of these colours without a fault. It compresses
    /// the limited range of a picture that is coded in red, green and blue, cuts YCgCo to 8 bits and ignores its
    /// range, and takes matrices that it does not know for that of JPEG.
    func isConvertedRightly(bits: Int) -> Bool {
        switch matrix {
        case 0: isFullRange
        case 8: isFullRange && bits == 8
        default: lumaWeights != nil
        }
    }
}

/// A plane's part in red, green and blue.
private struct Contribution {
    var range: ValueRange
    var weights: SIMD4<Double>

    static let rgb: [Contribution]? = [
        Contribution(range: .full, weights: SIMD4(1, 0, 0, 0)),
        Contribution(range: .full, weights: SIMD4(0, 1, 0, 0)),
        Contribution(range: .full, weights: SIMD4(0, 0, 1, 0)),
    ]

    static func gray(_ colors: ColorDescription) -> [Contribution]? {
        [Contribution(range: colors.isFullRange ? .full : .limited, weights: SIMD4(1, 1, 1, 0))]
    }

    /// Nil for matrices that mix more than luma and chroma, such as ICtCp.
    static func luma(_ colors: ColorDescription, _ chroma: heif_chroma) -> [Contribution]? {
        let value: ValueRange = colors.isFullRange ? .full : .limited
        let difference: ValueRange = colors.isFullRange ? .fullDifference : .limitedDifference
        let luma = Contribution(range: value, weights: SIMD4(1, 1, 1, 0))
        if colors.matrix == 0 {
            // Green, blue, red.
            guard chroma == heif_chroma_444 else { return nil }
            return [SIMD4(0, 1, 0, 0), SIMD4(0, 0, 1, 0), SIMD4(1, 0, 0, 0)]
                .map { Contribution(range: value, weights: $0) }
        }
        if colors.matrix == 8 {
            return [
                luma, Contribution(range: difference, weights: SIMD4(-1, 1, -1, 0)),
                Contribution(range: difference, weights: SIMD4(1, 0, -1, 0)),
            ]
        }
        guard let weight = colors.lumaWeights else { return nil }
        let (red, green, blue) = (weight.x, weight.y, weight.z)
        return [
            luma,
            Contribution(
                range: difference, weights: SIMD4(0, -2 * blue * (1 - blue) / green, 2 * (1 - blue), 0)),
            Contribution(
                range: difference, weights: SIMD4(2 * (1 - red), -2 * red * (1 - red) / green, 0, 0)),
        ]
    }
}

/// The meaning of a plane's values.
private enum ValueRange {
    case full, limited, fullDifference, limitedDifference

    /// From 0 to 1, and for a difference from -0.5 to 0.5; of limited ranges, a little more.
    func part(_ value: Int, bits: Int) -> Double {
        let unit = Double(1 << bits) / 256
        let middle = Double(1 << (bits - 1))
        let valueMax = Double(1 << bits - 1)
        return switch self {
        case .full: Double(value) / valueMax
        case .limited: (Double(value) - 16 * unit) / (219 * unit)
        case .fullDifference: (Double(value) - middle) / valueMax
        case .limitedDifference: (Double(value) - middle) / (224 * unit)
        }
    }
}
