import CJXL
import Foundation
import PhotoImaging

/// A JPEG XL by libjxl's own encoder: without loss and in the original colours, or with a small loss and in XYB.
struct TestJXL {
    enum Colors {
        /// sRGB's.
        case standard
        /// The primaries and transfer function of H.273.
        case points(JxlPrimaries, JxlTransferFunction)
        /// Codes are this power of light, of a display with sRGB's primaries.
        case power(Double)
        /// Primaries of no well-known name: red, green, blue.
        case primaries([SIMD2<Double>])
        case profile([UInt8])
    }

    var width = 400
    var height = 300
    var colors = Colors.standard
    /// Of the brightest code; 0: the encoder's default.
    var nits: Float = 0
    var isLossless = true
    /// 8 or 16, with the lower byte first.
    var bits = 8
    /// Grey, colours, and each with opacity: 1 to 4.
    var channels = 3
    /// Colours are told to be multiplied by the opacity: only for 16 bits without loss.
    var isMultiplied = false
    var orientation = 1
    var hasContainer = false
    /// Groups in another order than from left to right.
    var beginsInMiddle = false

    /// Four colours, one in each quarter; the lower right one transparent where there is opacity.
    var bytes: [UInt8]? {
        let hasHole = channels % 2 == 0
        return encode(
            quarters(width, height) { corner in
                let pixel = corner.rgba(hasHole: hasHole)
                let samples = pixel.prefix(channels < 3 ? 1 : 3) + (hasHole ? [pixel[3]] : [])
                return bits == 8 ? Array(samples) : samples.flatMap { [$0, $0] }
            })
    }

    /// Nil if libjxl refuses.
    func encode(_ pixels: [UInt8]) -> [UInt8]? {
        guard let encoder = JxlEncoderCreate(nil) else { return nil }
        defer { JxlEncoderDestroy(encoder) }
        var info = JxlBasicInfo()
        JxlEncoderInitBasicInfo(&info)
        info.xsize = UInt32(width)
        info.ysize = UInt32(height)
        info.bits_per_sample = UInt32(bits)
        info.num_color_channels = channels < 3 ? 1 : 3
        info.orientation = JxlOrientation(rawValue: UInt32(orientation))
        info.uses_original_profile = isLossless ? JXL_TRUE : JXL_FALSE
        if channels % 2 == 0 {
            info.num_extra_channels = 1
            info.alpha_bits = UInt32(bits)
        }
        info.intensity_target = nits
        let settings = JxlEncoderFrameSettingsCreate(encoder, nil)
        var format = JxlPixelFormat(
            num_channels: UInt32(channels), data_type: bits == 8 ? JXL_TYPE_UINT8 : JXL_TYPE_UINT16,
            endianness: JXL_LITTLE_ENDIAN, align: 0)
        JxlEncoderUseContainer(encoder, hasContainer ? JXL_TRUE : JXL_FALSE)
        // Without these the level would refuse 16 bits.
        JxlEncoderSetCodestreamLevel(encoder, isLossless && bits == 16 ? 10 : -1)
        guard JxlEncoderSetBasicInfo(encoder, &info) == JXL_ENC_SUCCESS, setColors(encoder),
            JxlEncoderFrameSettingsSetOption(settings, JXL_ENC_FRAME_SETTING_EFFORT, isLossless ? 1 : 3)
                == JXL_ENC_SUCCESS
        else { return nil }
        if isLossless { JxlEncoderSetFrameLossless(settings, JXL_TRUE) }
        if beginsInMiddle {
            JxlEncoderFrameSettingsSetOption(settings, JXL_ENC_FRAME_SETTING_GROUP_ORDER, 1)
        }
        guard JxlEncoderAddImageFrame(settings, &format, pixels, pixels.count) == JXL_ENC_SUCCESS else {
            return nil
        }
        JxlEncoderCloseInput(encoder)
        let bytes = output(of: encoder)
        return isMultiplied ? bytes.flatMap(Self.multiplied) : bytes
    }

    /// Sets the bit of the header that says so, which libjxl 0.7 never does.
    private static func multiplied(_ bytes: [UInt8]) -> [UInt8]? {
        for bit in 400..<500 {
            var changed = bytes
            changed[bit / 8] ^= 1 << (bit % 8)
            if isToldMultiplied(changed) { return changed }
        }
        return nil
    }

    private static func isToldMultiplied(_ bytes: [UInt8]) -> Bool {
        guard let decoder = JxlDecoderCreate(nil) else { return false }
        defer { JxlDecoderDestroy(decoder) }
        return bytes.withUnsafeBufferPointer { bytes in
            var info = JxlBasicInfo()
            var format = JxlPixelFormat(
                num_channels: 4, data_type: JXL_TYPE_UINT16, endianness: JXL_NATIVE_ENDIAN, align: 0)
            let events = Int32(JXL_DEC_BASIC_INFO.rawValue | JXL_DEC_FULL_IMAGE.rawValue)
            return JxlDecoderSubscribeEvents(decoder, events) == JXL_DEC_SUCCESS
                && JxlDecoderSetInput(decoder, bytes.baseAddress, bytes.count) == JXL_DEC_SUCCESS
                && JxlDecoderProcessInput(decoder) == JXL_DEC_BASIC_INFO
                && JxlDecoderGetBasicInfo(decoder, &info) == JXL_DEC_SUCCESS
                && info.alpha_premultiplied == JXL_TRUE && info.alpha_bits == 16
                && JxlDecoderProcessInput(decoder) == JXL_DEC_NEED_IMAGE_OUT_BUFFER
                && JxlDecoderSetImageOutCallback(decoder, &format, { _, _, _, _, _ in }, nil)
                    == JXL_DEC_SUCCESS
                && JxlDecoderProcessInput(decoder) == JXL_DEC_FULL_IMAGE
        }
    }

    private func output(of encoder: OpaquePointer) -> [UInt8]? {
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 1 << 20)
        while true {
            let (status, count) = part.withUnsafeMutableBufferPointer { part in
                var next = part.baseAddress
                var rest = part.count
                let status = JxlEncoderProcessOutput(encoder, &next, &rest)
                return (status, part.count - rest)
            }
            bytes += part[..<count]
            if status == JXL_ENC_SUCCESS { return bytes }
            guard status == JXL_ENC_NEED_MORE_OUTPUT else { return nil }
        }
    }

    private func setColors(_ encoder: OpaquePointer) -> Bool {
        var encoding = JxlColorEncoding()
        JxlColorEncodingSetToSRGB(&encoding, channels < 3 ? JXL_TRUE : JXL_FALSE)
        switch colors {
        case .standard: break
        case .points(let primaries, let transfer):
            encoding.primaries = primaries
            encoding.transfer_function = transfer
        case .power(let power):
            encoding.transfer_function = JXL_TRANSFER_FUNCTION_GAMMA
            encoding.gamma = power
        case .primaries(let points):
            encoding.primaries = JXL_PRIMARIES_CUSTOM
            encoding.primaries_red_xy = (points[0].x, points[0].y)
            encoding.primaries_green_xy = (points[1].x, points[1].y)
            encoding.primaries_blue_xy = (points[2].x, points[2].y)
        case .profile(let bytes):
            return JxlEncoderSetICCProfile(encoder, bytes, bytes.count) == JXL_ENC_SUCCESS
        }
        return JxlEncoderSetColorEncoding(encoder, &encoding) == JXL_ENC_SUCCESS
    }
}

/// The ICC profile that libjxl makes of the colours of a file.
func jxlProfile(_ bytes: [UInt8]) -> [UInt8]? {
    guard let decoder = JxlDecoderCreate(nil) else { return nil }
    defer { JxlDecoderDestroy(decoder) }
    return bytes.withUnsafeBufferPointer { bytes in
        guard
            JxlDecoderSubscribeEvents(decoder, Int32(JXL_DEC_COLOR_ENCODING.rawValue)) == JXL_DEC_SUCCESS,
            JxlDecoderSetInput(decoder, bytes.baseAddress, bytes.count) == JXL_DEC_SUCCESS,
            JxlDecoderProcessInput(decoder) == JXL_DEC_COLOR_ENCODING
        else { return nil }
        let count = shim_jxl_profile_size(decoder)
        var profile = [UInt8](repeating: 0, count: count)
        return shim_jxl_profile(decoder, &profile, count) != 0 ? profile : nil
    }
}
