internal import CJXL
internal import Glibc
internal import PhotoImaging

/// A JPEG XL, or the first frame of an animation, read by libjxl, which delivers parts of rows group by group: only the
/// reduced picture is kept. A file that is cut has no picture.
final class JXLDecoder: PictureDecoder {
    private let decoder: OpaquePointer
    private let info: JxlBasicInfo
    let size: PixelSize
    let orientation: Orientation
    let colorProfile: [UInt8]
    /// For colours that the file describes by numbers. A profile is copied.
    private let conversion: DisplayConversion?
    private var rows: RegionReducer?
    /// A part of a row: its codes, as a conversion takes them or of 8 bits, and the result.
    private var codes: UnsafeMutablePointer<SIMD4<UInt16>>?
    private var run: UnsafeMutablePointer<UInt8>?

    /// Nits of a display without HDR, which the encoder takes for a file that does not tell.
    private static let standardNits: Float = 255

    /// Reads the header. Nil when libjxl cannot, and for inks, which need their profile.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard let decoder = JxlDecoderCreate(nil) else { return nil }
        let events =
            JXL_DEC_BASIC_INFO.rawValue | JXL_DEC_COLOR_ENCODING.rawValue | JXL_DEC_FULL_IMAGE.rawValue
        var info = JxlBasicInfo()
        guard JxlDecoderSubscribeEvents(decoder, Int32(events)) == JXL_DEC_SUCCESS,
            JxlDecoderSetKeepOrientation(decoder, JXL_TRUE) == JXL_DEC_SUCCESS,
            JxlDecoderSetInput(decoder, bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count)
                == JXL_DEC_SUCCESS,
            JxlDecoderProcessInput(decoder) == JXL_DEC_BASIC_INFO,
            JxlDecoderGetBasicInfo(decoder, &info) == JXL_DEC_SUCCESS,
            !Self.hasInks(decoder, info), JxlDecoderProcessInput(decoder) == JXL_DEC_COLOR_ENCODING
        else {
            JxlDecoderDestroy(decoder)
            return nil
        }
        // There is no more than these bytes.
        JxlDecoderCloseInput(decoder)
        self.decoder = decoder
        self.info = info
        size = PixelSize(width: Int(info.xsize), height: Int(info.ysize))
        orientation = Orientation(rawValue: UInt16(truncatingIfNeeded: info.orientation.rawValue)) ?? .upright
        Self.chooseColors(decoder, info)
        if let encoding = Self.encoding(decoder, JXL_COLOR_PROFILE_TARGET_DATA) {
            conversion = DisplayConversion(encoding)
            colorProfile = []
        } else {
            conversion = nil
            colorProfile = Self.profile(decoder)
        }
    }

    deinit {
        JxlDecoderDestroy(decoder)
        codes?.deallocate()
        run?.deallocate()
    }

    private static func hasInks(_ decoder: OpaquePointer, _ info: JxlBasicInfo) -> Bool {
        (0..<Int(info.num_extra_channels)).contains { index in
            var channel = JxlExtraChannelInfo()
            return JxlDecoderGetExtraChannelInfo(decoder, index, &channel) != JXL_DEC_SUCCESS
                || channel.type == JXL_CHANNEL_BLACK
        }
    }

    /// Nil for colours that only a profile describes.
    private static func encoding(
        _ decoder: OpaquePointer, _ target: JxlColorProfileTarget
    ) -> JxlColorEncoding? {
        var encoding = JxlColorEncoding()
        guard shim_jxl_encoding(decoder, target, &encoding) != 0,
            encoding.color_space == JXL_COLOR_SPACE_RGB || encoding.color_space == JXL_COLOR_SPACE_GRAY
        else { return nil }
        return encoding
    }

    private static func profile(_ decoder: OpaquePointer) -> [UInt8] {
        let count = shim_jxl_profile_size(decoder)
        guard (1...WorkerProtocol.colorProfileBytesMax).contains(count) else { return [] }
        var profile = [UInt8](repeating: 0, count: count)
        return shim_jxl_profile(decoder, &profile, count) != 0 ? profile : []
    }

    /// Colours that are stored as they are seen (XYB) become those of the original where code points describe it, else
    /// sRGB's: libjxl does not convert to a profile. HDR of a profile, or in linear light, of which codes would be too
    /// coarse for dark parts, gets the perceptual quantizer.
    private static func chooseColors(_ decoder: OpaquePointer, _ info: JxlBasicInfo) {
        guard info.uses_original_profile == JXL_FALSE else { return }
        let isHDR = info.intensity_target > standardNits
        var chosen = JxlColorEncoding()
        if let original = encoding(decoder, JXL_COLOR_PROFILE_TARGET_ORIGINAL) {
            guard isHDR, original.transfer_function == JXL_TRANSFER_FUNCTION_LINEAR else { return }
            chosen = original
        } else {
            JxlColorEncodingSetToSRGB(&chosen, info.num_color_channels == 1 ? JXL_TRUE : JXL_FALSE)
        }
        if isHDR { chosen.transfer_function = JXL_TRANSFER_FUNCTION_PQ }
        // Where libjxl refuses, it says which colours it delivers instead.
        _ = JxlDecoderSetPreferredColorProfile(decoder, &chosen)
    }

    /// Whether the result is grey without opacity.
    private var isGray: Bool { info.num_color_channels == 1 && info.alpha_bits == 0 && conversion == nil }

    func decode(for placement: Placement) -> Pixels? {
        // Of this form alone libjxl 0.7 delivers each group once decoded; else it decodes the whole picture first.
        var format = JxlPixelFormat(
            num_channels: 4, data_type: JXL_TYPE_FLOAT, endianness: JXL_NATIVE_ENDIAN, align: 0)
        rows = RegionReducer(
            size, channels: isGray ? 1 : 4, hasAlpha: info.alpha_bits > 0,
            factor: placement.reduction(of: size))
        guard rows != nil else { return nil }
        codes = .allocate(capacity: size.width)
        run = .allocate(capacity: size.width * 4)
        guard JxlDecoderProcessInput(decoder) == JXL_DEC_NEED_IMAGE_OUT_BUFFER,
            JxlDecoderSetImageOutCallback(
                decoder, &format,
                { target, x, y, count, pixels in
                    guard let target, let pixels else { return }
                    Unmanaged<JXLDecoder>.fromOpaque(target).takeUnretainedValue().add(pixels, x, y, count)
                }, Unmanaged.passUnretained(self).toOpaque()) == JXL_DEC_SUCCESS,
            JxlDecoderProcessInput(decoder) == JXL_DEC_FULL_IMAGE
        else { return nil }
        return rows.take()?.finish()
    }

    /// Takes pixels as libjxl delivers them, from 0 to 1 and, in files that are odd or forged, beyond. Colours are
    /// multiplied by the opacity where the file stores them so.
    private func add(_ pixels: UnsafeRawPointer, _ x: Int, _ y: Int, _ count: Int) {
        guard let codes, let run, count <= size.width else { return }
        let hasAlpha = info.alpha_bits > 0
        let isMultiplied = hasAlpha && info.alpha_premultiplied != JXL_FALSE
        let pixelBytes = MemoryLayout<SIMD4<Float>>.size
        let codeMax = Float(conversion == nil ? 255 : DisplayConversion.codeMax)
        let scale = SIMD4(codeMax, codeMax, codeMax, 255)
        for index in 0..<count {
            var pixel = pixels.loadUnaligned(fromByteOffset: index &* pixelBytes, as: SIMD4<Float>.self)
            if isMultiplied, conversion != nil { pixel = Self.unmultiplied(pixel) }
            codes[index] = SIMD4<UInt16>(Self.clamped(pixel) * scale + 0.5)
        }
        guard !isGray else {
            for index in 0..<count { run[index] = UInt8(truncatingIfNeeded: codes[index].x) }
            rows?.add(run, x: x, y: y, count: count)
            return
        }
        run.withMemoryRebound(to: SIMD4<UInt8>.self, capacity: count) { run in
            if let conversion {
                conversion.convert(codes, into: run, count: count)
            } else {
                for index in 0..<count { run[index] = SIMD4<UInt8>(truncatingIfNeeded: codes[index]) }
            }
        }
        if hasAlpha, !isMultiplied || conversion != nil { run.multiplyByAlpha(count: count) }
        rows?.add(run, x: x, y: y, count: count)
    }

    /// From 0 to 1; 0 for not-a-number.
    @inline(__always)
    private static func clamped(_ pixel: SIMD4<Float>) -> SIMD4<Float> {
        let positive = SIMD4<Float>().replacing(with: pixel, where: pixel .> 0)
        return positive.replacing(with: 1, where: positive .> 1)
    }

    private static func unmultiplied(_ pixel: SIMD4<Float>) -> SIMD4<Float> {
        guard pixel.w > 0 else { return SIMD4() }
        var colors = pixel / pixel.w
        colors.w = pixel.w
        return colors
    }
}

extension DisplayConversion {
    /// Nil for colours that are shown as they are.
    fileprivate init?(_ encoding: JxlColorEncoding) {
        func point(_ pair: (Double, Double)) -> SIMD2<Double> { SIMD2(pair.0, pair.1) }
        // The numbers are there for well-known colours too.
        let chromaticities =
            encoding.color_space == JXL_COLOR_SPACE_GRAY
            ? nil
            : Chromaticities(
                red: point(encoding.primaries_red_xy), green: point(encoding.primaries_green_xy),
                blue: point(encoding.primaries_blue_xy), white: point(encoding.white_point_xy))
        switch encoding.transfer_function {
        case JXL_TRANSFER_FUNCTION_PQ, JXL_TRANSFER_FUNCTION_HLG:
            // The values are those of H.273.
            let colors = ColorDescription(
                primaries: 1, transfer: Int(encoding.transfer_function.rawValue), matrix: 0, isFullRange: true
            )
            self.init(colors, chromaticities)
        case JXL_TRANSFER_FUNCTION_LINEAR: self.init(power: 1, chromaticities)
        case JXL_TRANSFER_FUNCTION_GAMMA: self.init(power: encoding.gamma, chromaticities)
        // SMPTE ST 428-1.
        case JXL_TRANSFER_FUNCTION_DCI: self.init(power: 1 / 2.6, chromaticities)
        default: self.init(power: 1 / 2.2, chromaticities)
        }
    }
}
