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
    /// A part of a row: its codes, and the result of their conversion.
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
    /// sRGB's: libjxl does not convert to a profile. Light in numbers, of which codes would be too coarse for dark
    /// parts of HDR, gets the perceptual quantizer.
    private static func chooseColors(_ decoder: OpaquePointer, _ info: JxlBasicInfo) {
        guard info.uses_original_profile == JXL_FALSE else { return }
        let original = encoding(decoder, JXL_COLOR_PROFILE_TARGET_ORIGINAL)
        var chosen = JxlColorEncoding()
        if original == nil {
            JxlColorEncodingSetToSRGB(&chosen, info.num_color_channels == 1 ? JXL_TRUE : JXL_FALSE)
        } else if let original, original.transfer_function == JXL_TRANSFER_FUNCTION_LINEAR,
            info.intensity_target > standardNits
        {
            chosen = original
            chosen.transfer_function = JXL_TRANSFER_FUNCTION_PQ
        } else {
            return
        }
        // Where libjxl refuses, it says which colours it delivers instead.
        _ = JxlDecoderSetPreferredColorProfile(decoder, &chosen)
    }

    func decode(for placement: Placement) -> Pixels? {
        let hasAlpha = info.alpha_bits > 0
        let channels = info.num_color_channels == 1 && !hasAlpha && conversion == nil ? 1 : 4
        var format = JxlPixelFormat(
            num_channels: UInt32(channels),
            data_type: conversion == nil ? JXL_TYPE_UINT8 : JXL_TYPE_UINT16, endianness: JXL_NATIVE_ENDIAN,
            align: 0)
        rows = RegionReducer(
            size, channels: channels, hasAlpha: hasAlpha, factor: placement.reduction(of: size))
        guard rows != nil else { return nil }
        codes = .allocate(capacity: size.width)
        run = .allocate(capacity: size.width * channels)
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

    /// Takes pixels as libjxl delivers them: colours are multiplied by the opacity where the file stores them so.
    private func add(_ pixels: UnsafeRawPointer, _ x: Int, _ y: Int, _ count: Int) {
        guard let codes, let run, count <= size.width else { return }
        let hasAlpha = info.alpha_bits > 0
        let isMultiplied = hasAlpha && info.alpha_premultiplied != JXL_FALSE
        if let conversion {
            for index in 0..<count {
                let pixel = pixels.loadUnaligned(fromByteOffset: index &* 8, as: SIMD4<UInt16>.self)
                codes[index] = Self.scaled(isMultiplied ? Self.unmultiplied(pixel) : pixel)
            }
            run.withMemoryRebound(to: SIMD4<UInt8>.self, capacity: count) {
                conversion.convert(codes, into: $0, count: count)
            }
        } else if hasAlpha && !isMultiplied {
            run.update(from: pixels.assumingMemoryBound(to: UInt8.self), count: count * 4)
        } else {
            rows?.add(pixels.assumingMemoryBound(to: UInt8.self), x: x, y: y, count: count)
            return
        }
        if hasAlpha { run.multiplyByAlpha(count: count) }
        rows?.add(run, x: x, y: y, count: count)
    }

    private static func unmultiplied(_ pixel: SIMD4<UInt16>) -> SIMD4<UInt16> {
        guard pixel.w > 0 else { return SIMD4() }
        let limit = SIMD4<UInt32>(repeating: 0xFFFF)
        let colors = SIMD4<UInt32>(truncatingIfNeeded: pixel) &* 0xFFFF / UInt32(pixel.w)
        var whole = SIMD4<UInt16>(truncatingIfNeeded: colors.clamped(lowerBound: SIMD4(), upperBound: limit))
        whole.w = pixel.w
        return whole
    }

    /// Colours of 16 bits as a conversion takes them, and the opacity in 8 bits.
    @inline(__always)
    private static func scaled(_ pixel: SIMD4<UInt16>) -> SIMD4<UInt16> {
        let codeMax = UInt32(DisplayConversion.codeMax)
        let factors = SIMD4(codeMax, codeMax, codeMax, 0xFF)
        let wide = SIMD4<UInt32>(truncatingIfNeeded: pixel) &* factors &+ 0x7FFF
        return SIMD4<UInt16>(truncatingIfNeeded: wide / 0xFFFF)
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
