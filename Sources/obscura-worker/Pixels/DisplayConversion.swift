internal import Glibc
internal import PhotoImaging

/// Converts pixels whose colours no profile describes to sRGB: HDR is tone-mapped, colours outside of sRGB's gamut are
/// clipped.
///
/// HDR is mapped as ffmpeg does with `zscale=t=linear:npl=203,zscale=p=bt709,tonemap=hable,zscale=t=bt709`: the white
/// of a page has 203 nits (ITU-R BT.2408), and bright parts keep their details.
struct DisplayConversion {
    /// Linear light of each code from 0 to ``codeMax``. HDR: 1 is 203 nits, or for hybrid log-gamma, the scene's white.
    private let light: [Float]
    private let toBT709: (SIMD4<Float>, SIMD4<Float>, SIMD4<Float>)
    private let toneMaps: Bool
    /// The display's light for a scene's luminance (hybrid log-gamma only), by its square root.
    private let sceneGain: [Float]
    private let sceneWeights: SIMD4<Float>
    /// The code of 8 bits for linear light, by its square root: codes of dark colours are close together.
    private let codes: [UInt8]

    /// The largest code of a channel in the rows that are converted.
    static let codeMax = 4095
    private static let rootMax = 4095
    private static let whiteNits = 203.0

    /// Nil for colours that are shown as they are.
    ///
    /// - Parameter chromaticities: those of the file, instead of the code point's.
    init?(_ colors: ColorDescription, _ chromaticities: Chromaticities? = nil) {
        guard colors.isHDR || colors.isWide else { return nil }
        self.init(
            chromaticities ?? Chromaticities(colors.primaries), isHDR: colors.isHDR,
            isHLG: colors.transfer == TransferFunction.hybridLogGamma
        ) { part in
            switch colors.transfer {
            case TransferFunction.perceptualQuantizer: perceptualQuantizer(part) / Self.whiteNits
            case TransferFunction.hybridLogGamma: hybridLogGamma(part)
            default: standardRGB(part)
            }
        }
    }

    /// For codes that are a power of light, such as 0.45455, of a display with these colours, or sRGB's. Nil for
    /// colours that are shown as they are: a power near that of displays is taken for sRGB's curve, as libpng does.
    init?(power: Double, _ chromaticities: Chromaticities?) {
        let isStandard = abs(power * Self.displayPower - 1) < Self.powerDifference
        guard power > 0, !isStandard || chromaticities?.areStandard == false else { return nil }
        self.init(chromaticities ?? Chromaticities(1), isHDR: false, isHLG: false) { part in
            isStandard ? standardRGB(part) : pow(part, 1 / power)
        }
    }

    private static let displayPower = 2.2
    /// PNG_GAMMA_THRESHOLD of libpng.
    private static let powerDifference = 0.05

    /// - Parameter lightOf: linear light of a code from 0 to 1.
    private init(_ chromaticities: Chromaticities, isHDR: Bool, isHLG: Bool, lightOf: (Double) -> Double) {
        let matrix = chromaticities.toBT709
        func single(_ column: SIMD4<Double>) -> SIMD4<Float> { SIMD4<Float>(column) }
        toBT709 = (single(matrix.columns.0), single(matrix.columns.1), single(matrix.columns.2))
        light = (0...Self.codeMax).map { Float(lightOf(Double($0) / Double(Self.codeMax))) }
        sceneWeights = single(chromaticities.toXYZ.row(1))
        // BT.2100, table 5: a display of 1000 nits, whose system gamma is 1.2.
        let displayWhite = 1000 / Self.whiteNits
        let roots = (0...Self.rootMax).map { Double($0) / Double(Self.rootMax) }
        sceneGain = isHLG ? roots.map { Float(displayWhite * pow($0, 0.4)) } : []
        toneMaps = isHDR
        codes = roots.map { root in
            let light = root * root
            return UInt8((isHDR ? pow(light, 1 / 2.4) : standardRGBCode(light)) * 255 + 0.5)
        }
    }

    /// Converts a row of `count` pixels, channels from 0 to ``codeMax``. The fourth channel is copied.
    func convert(
        _ row: UnsafePointer<SIMD4<UInt16>>, into target: UnsafeMutablePointer<SIMD4<UInt8>>, count: Int
    ) {
        light.withUnsafeBufferPointer { light in
            codes.withUnsafeBufferPointer { codes in
                for index in 0..<count {
                    let pixel = row[index]
                    let stored = SIMD4<Float>(
                        light[Int(pixel.x)], light[Int(pixel.y)], light[Int(pixel.z)], 0)
                    let shown = display(stored).squareRoot() * Float(Self.rootMax)
                    target[index] = SIMD4(
                        codes[Int(shown.x)], codes[Int(shown.y)], codes[Int(shown.z)],
                        UInt8(truncatingIfNeeded: pixel.w))
                }
            }
        }
    }

    /// Linear light of an sRGB display, each channel from 0 to 1.
    @inline(__always)
    private func display(_ stored: SIMD4<Float>) -> SIMD4<Float> {
        var color = stored
        if !sceneGain.isEmpty {
            let luminance = min(max((stored * sceneWeights).sum(), 0), 1)
            color *= sceneGain[Int(luminance.squareRoot() * Float(Self.rootMax))]
        }
        color = toBT709.0 * color.x + toBT709.1 * color.y + toBT709.2 * color.z
        if toneMaps { color = ToneCurve.map(color) }
        return color.clamped(lowerBound: SIMD4(), upperBound: SIMD4(repeating: 1))
    }
}

/// John Hable's filmic curve, applied to the brightest channel so that hues stay, as in ffmpeg's `vf_tonemap.c`.
private enum ToneCurve {
    /// Luminance, relative to the white, above which colours fade.
    private static let fadingMin: Float = 2
    /// Of red, green and blue in luminance, as in BT.2020.
    private static let weights = SIMD4<Float>(0.2627, 0.6780, 0.0593, 0)
    /// Light, relative to the white, that becomes the display's brightest.
    private static let peak: Float = 10

    @inline(__always)
    private static func hable(_ light: Float) -> Float {
        (light * (light * 0.15 + 0.05) + 0.004) / (light * (light * 0.15 + 0.5) + 0.06) - 0.02 / 0.3
    }

    @inline(__always)
    static func map(_ color: SIMD4<Float>) -> SIMD4<Float> {
        let luminance = (color * weights).sum()
        let fading = max(luminance - fadingMin, 0) / max(luminance, fadingMin)
        let faded = color + (SIMD4(repeating: luminance) - color) * fading
        let signal = max(faded.x, faded.y, faded.z, 1e-6)
        return faded * (hable(signal) / hable(peak) / signal)
    }
}

/// Nits of a code from 0 to 1 (SMPTE ST 2084; BT.2100, table 4).
private func perceptualQuantizer(_ code: Double) -> Double {
    let root = pow(code, 32 / 2523.0)
    return 10_000 * pow(max(root - 0.8359375, 0) / (18.8515625 - 18.6875 * root), 8192 / 1305.0)
}

/// The scene's light, from 0 to 1, of a code from 0 to 1 (ARIB STD-B67; BT.2100, table 5).
private func hybridLogGamma(_ code: Double) -> Double {
    code <= 0.5 ? code * code / 3 : (exp((code - 0.55991073) / 0.17883277) + 0.28466892) / 12
}

/// The light, from 0 to 1, of a code from 0 to 1 (IEC 61966-2-1).
private func standardRGB(_ code: Double) -> Double {
    code <= 0.04045 ? code / 12.92 : pow((code + 0.055) / 1.055, 2.4)
}

/// The inverse of `standardRGB`.
private func standardRGBCode(_ light: Double) -> Double {
    light <= 0.0031308 ? light * 12.92 : 1.055 * pow(light, 1 / 2.4) - 0.055
}
