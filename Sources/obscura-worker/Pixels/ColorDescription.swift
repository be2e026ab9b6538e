internal import PhotoImaging

/// The colours of a picture by code points: ITU-T H.273, 8.1 to 8.3.
struct ColorDescription {
    var primaries: Int
    var transfer: Int
    var matrix: Int
    var isFullRange: Bool

    /// JPEG's matrix and range, other colours as sRGB.
    static let unspecified = ColorDescription(primaries: 2, transfer: 2, matrix: 2, isFullRange: true)

    /// With the bitstream's code points where these tell none. Its range belongs to its matrix.
    func completed(by other: ColorDescription?) -> ColorDescription {
        guard let other else { return self }
        var result = matrix == 2 && other.matrix != 2 ? other : self
        result.primaries = primaries == 2 ? other.primaries : primaries
        result.transfer = transfer == 2 ? other.transfer : transfer
        return result
    }

    var isHDR: Bool { TransferFunction.isHDR(transfer) }

    /// Colours outside of sRGB's gamut: BT.2020, and P3 with the white of cinema or of displays.
    var isWide: Bool { [9, 11, 12].contains(primaries) }

    /// The weights of red, green and blue in luma. BT.601's where the matrix is not specified. Nil for a matrix that is
    /// not of this form, such as those of constant luminance (10, 13) and ICtCp (14).
    var lumaWeights: SIMD4<Double>? {
        switch matrix {
        case 1: SIMD4(0.2126, 0.7152, 0.0722, 0)
        case 2, 5, 6: SIMD4(0.299, 0.587, 0.114, 0)
        case 4: SIMD4(0.30, 0.59, 0.11, 0)
        case 7: SIMD4(0.212, 0.701, 0.087, 0)
        case 9: SIMD4(0.2627, 0.6780, 0.0593, 0)
        // Derived from the primaries.
        case 12: Chromaticities(primaries).toXYZ.row(1)
        default: nil
        }
    }
}

extension ColorDescription {
    init(_ coded: CodedColors) {
        self.init(
            primaries: coded.primaries, transfer: coded.transfer, matrix: coded.matrix,
            isFullRange: coded.isFullRange)
    }
}

/// The colours of red, green, blue and white of a display: CIE 1931 x and y.
struct Chromaticities {
    private var red: SIMD2<Double>
    private var green: SIMD2<Double>
    private var blue: SIMD2<Double>
    private var white = SIMD2(0.3127, 0.3290)

    /// The primaries of a code point of H.273, table 2; BT.709's for all that are not wide.
    init(_ primaries: Int) {
        switch primaries {
        case 9:
            (red, green, blue) = (SIMD2(0.708, 0.292), SIMD2(0.170, 0.797), SIMD2(0.131, 0.046))
        case 11, 12:
            (red, green, blue) = (SIMD2(0.680, 0.320), SIMD2(0.265, 0.690), SIMD2(0.150, 0.060))
            if primaries == 11 { white = SIMD2(0.314, 0.351) }
        default:
            (red, green, blue) = (SIMD2(0.640, 0.330), SIMD2(0.300, 0.600), SIMD2(0.150, 0.060))
        }
    }

    /// The chromaticities that a file gives itself, as PNG's cHRM does. Nil if a point is no colour, or the three
    /// primaries span no triangle: then no matrix converts them.
    init?(red: SIMD2<Double>, green: SIMD2<Double>, blue: SIMD2<Double>, white: SIMD2<Double>) {
        for point in [red, green, blue, white] {
            guard (0...1).contains(point.x), (0.001...1).contains(point.y), point.sum() <= 1 else {
                return nil
            }
        }
        (self.red, self.green, self.blue, self.white) = (red, green, blue, white)
        let (first, second) = (green - red, blue - red)
        let area = abs(first.x * second.y - first.y * second.x)
        let light = (toBT709 * SIMD4(1, 1, 1, 0))
        guard area > 0.001, [light.x, light.y, light.z].allSatisfy({ abs($0 - 1) < 0.01 }) else { return nil }
    }

    /// Whether they are those of sRGB, as far as libpng distinguishes them.
    var areStandard: Bool {
        let standard = Chromaticities(1)
        let differences = [
            red - standard.red, green - standard.green, blue - standard.blue, white - standard.white,
        ]
        return differences.allSatisfy { abs($0.x) <= 0.01 && abs($0.y) <= 0.01 }
    }

    /// The matrix from linear red, green and blue to XYZ with a white of luminance 1 (SMPTE RP 177).
    var toXYZ: Matrix3 {
        func point(_ xy: SIMD2<Double>) -> SIMD4<Double> {
            SIMD4(xy.x / xy.y, 1, (1 - xy.x - xy.y) / xy.y, 0)
        }
        let unscaled = Matrix3(columns: (point(red), point(green), point(blue)))
        let scale = unscaled.inverse * point(white)
        return Matrix3(
            columns: (
                unscaled.columns.0 * scale.x, unscaled.columns.1 * scale.y, unscaled.columns.2 * scale.z
            ))
    }

    /// The matrix from linear colours of these primaries to linear colours of BT.709, whose primaries sRGB has. Whites
    /// become white.
    var toBT709: Matrix3 {
        let target = Chromaticities(1).toXYZ.inverse * toXYZ
        // Cinema's white is greenish: scaled to equal parts, as colours are seen.
        var safe = target * SIMD4(1, 1, 1, 0)
        safe.w = 1
        return Matrix3(
            columns: (
                target.columns.0 / safe, target.columns.1 / safe, target.columns.2 / safe
            ))
    }
}

/// A matrix of three rows and columns. The fourth element of each column is unused.
struct Matrix3 {
    var columns: (SIMD4<Double>, SIMD4<Double>, SIMD4<Double>)

    func row(_ index: Int) -> SIMD4<Double> {
        SIMD4(columns.0[index], columns.1[index], columns.2[index], 0)
    }

    static func * (matrix: Matrix3, vector: SIMD4<Double>) -> SIMD4<Double> {
        matrix.columns.0 * vector.x + matrix.columns.1 * vector.y + matrix.columns.2 * vector.z
    }

    static func * (left: Matrix3, right: Matrix3) -> Matrix3 {
        Matrix3(columns: (left * right.columns.0, left * right.columns.1, left * right.columns.2))
    }

    /// The inverse, by the adjugate. The matrix must be regular, as those of displays are.
    var inverse: Matrix3 {
        func cross(_ one: SIMD4<Double>, _ other: SIMD4<Double>) -> SIMD4<Double> {
            SIMD4(
                one.y * other.z - one.z * other.y, one.z * other.x - one.x * other.z,
                one.x * other.y - one.y * other.x, 0)
        }
        let rows = (cross(columns.1, columns.2), cross(columns.2, columns.0), cross(columns.0, columns.1))
        let determinant = (columns.0 * rows.0).sum()
        func column(_ index: Int) -> SIMD4<Double> {
            SIMD4(rows.0[index], rows.1[index], rows.2[index], 0) / determinant
        }
        return Matrix3(columns: (column(0), column(1), column(2)))
    }
}
