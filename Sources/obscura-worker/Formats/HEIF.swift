internal import CHEIF
internal import Glibc
internal import PhotoImaging

/// The primary picture of a HEIC or AVIF, or its embedded thumbnail where that shows the same and is large enough, read
/// by libheif. The file's turns and crops are applied here: libheif 1.15 gives a wrong size where they stand before
/// `ispe`.
final class HEIFDecoder: PictureDecoder {
    private let context: OpaquePointer
    private let primary: OpaquePointer
    private let file: UnsafeRawBufferPointer
    private let isAV1: Bool
    private let geometry: HEIFGeometry
    /// Of the primary picture. Nil if libheif transforms the picture, because other items draw it, or because libheif
    /// transforms its opacity in any case.
    private let item: HEIFGeometry.Item?
    private let hasTransformedTiles: Bool
    /// As the bitstream tells them.
    private let codedColors: CodedColors?
    /// As the file tells it, until `decode` corrects it.
    private(set) var size: PixelSize
    let orientation: Orientation
    let colorProfile: [UInt8]

    /// Reads the header. Nil when libheif cannot.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard let (context, primary) = Self.open(bytes) else { return nil }
        (self.context, self.primary, file) = (context, primary, bytes)
        let source = MappedSource(bytes: bytes)
        isAV1 = identifyMedia(source) == .avif
        geometry = HEIFGeometry(source)
        var id: heif_item_id = 0
        _ = heif_context_get_primary_image_ID(context, &id)
        let transformsOpacity = Self.hasTransformedOpacity(primary, geometry)
        item = geometry.item(id).flatMap { $0.isDrawnByOthers || transformsOpacity ? nil : $0 }
        hasTransformedTiles = geometry.hasTransformedTiles(id)
        codedColors = geometry.codedColors(id)
        let told = Self.size(of: primary)
        if let item {
            let shown = item.shown(of: item.size ?? told)
            size = shown.part.size
            orientation = Orientation(rawValue: UInt16(shown.orientation)) ?? .upright
        } else {
            size = told
            orientation = .upright
        }
        colorProfile = Self.profile(primary)
    }

    deinit {
        heif_image_handle_release(primary)
        heif_context_free(context)
    }

    private static func open(_ bytes: UnsafeRawBufferPointer) -> (OpaquePointer, OpaquePointer)? {
        guard let context = heif_context_alloc() else { return nil }
        heif_context_set_max_decoding_threads(context, 0)
        var primary: OpaquePointer?
        guard heif_context_read_from_memory_without_copy(context, bytes.baseAddress, bytes.count, nil).isOK,
            heif_context_get_primary_image_handle(context, &primary).isOK, let primary
        else {
            heif_context_free(context)
            return nil
        }
        return (context, primary)
    }

    private static func size(of handle: OpaquePointer) -> PixelSize {
        PixelSize(
            width: Int(heif_image_handle_get_width(handle)), height: Int(heif_image_handle_get_height(handle))
        )
    }

    /// Whether the opacity may be an item with turns, flips or crops. Other auxiliary pictures are taken for it.
    private static func hasTransformedOpacity(_ primary: OpaquePointer, _ geometry: HEIFGeometry) -> Bool {
        guard heif_image_handle_has_alpha_channel(primary) != 0 else { return false }
        var ids = [heif_item_id](repeating: 0, count: 8)
        let count = heif_image_handle_get_list_of_auxiliary_image_IDs(primary, 0, &ids, Int32(ids.count))
        return ids.prefix(Int(count)).contains { geometry.item($0)?.isTransformed != false }
    }

    private static func profile(_ handle: OpaquePointer) -> [UInt8] {
        let count = heif_image_handle_get_raw_color_profile_size(handle)
        guard (1...WorkerProtocol.colorProfileBytesMax).contains(count),
            heif_image_handle_get_color_profile_type(handle) != heif_color_profile_type_nclx
        else { return [] }
        var profile = [UInt8](repeating: 0, count: count)
        guard heif_image_handle_get_raw_color_profile(handle, &profile).isOK else { return [] }
        return profile
    }

    func decode(for placement: Placement) -> Pixels? {
        if let colors = misconvertedColors { return decodeUnconverted(colors, for: placement) }
        if let pixels = decodeEmbeddedThumbnail(for: placement) { return pixels }
        // libheif turns each tile where it stands.
        if hasTransformedTiles { return nil }
        guard let image = DecodedImage(primary, isAV1: isAV1, transforms: item == nil, coded: codedColors)
        else {
            return nil
        }
        return reduced(image, placement)
    }

    /// The colours that a box of code points tells if libheif converts them wrongly, and in full resolution.
    private var misconvertedColors: ColorDescription? {
        guard codedColors?.chroma == 3, !geometry.matrixOffsets.isEmpty,
            let colors = DecodedImage.colors(of: primary)?.completed(
                by: codedColors.map { ColorDescription($0) }),
            !colors.isConvertedRightly(bits: Int(heif_image_handle_get_luma_bits_per_pixel(primary)))
        else { return nil }
        return colors
    }

    /// Decodes a copy of the file whose boxes say that the planes are green, blue and red of full range: these libheif
    /// leaves as they are.
    private func decodeUnconverted(_ colors: ColorDescription, for placement: Placement) -> Pixels? {
        guard !hasTransformedTiles, let memory = malloc(file.count) else { return nil }
        defer { free(memory) }
        lockAsFarAsAllowed(UnsafeRawBufferPointer(start: memory, count: file.count))
        let copy = UnsafeMutableRawBufferPointer(start: memory, count: file.count)
        copy.copyMemory(from: file)
        for offset in geometry.matrixOffsets.map({ Int($0) }) where offset + 3 <= copy.count {
            copy.storeBytes(of: 0, toByteOffset: offset, as: UInt16.self)
            copy[offset + 2] |= 0x80
        }
        guard let (context, primary) = Self.open(UnsafeRawBufferPointer(copy)) else { return nil }
        defer {
            heif_image_handle_release(primary)
            heif_context_free(context)
        }
        return DecodedImage(primary, isAV1: isAV1, transforms: item == nil, unconverted: colors).flatMap {
            reduced($0, placement)
        }
    }

    private func reduced(_ image: DecodedImage, _ placement: Placement) -> Pixels? {
        if isAV1, let item, let told = item.size, image.size.exceeds(told) {
            // AV1 is coded without padding: this is a larger layer than the one that the file chooses (`a1op`), as
            // libheif 1.15 does not choose. It shows the same.
            guard !item.isCropped, image.size.isLayer(of: told) else { return nil }
            return reduced(image, PixelPart(left: 0, top: 0, size: image.size), placement)
        }
        let stored = image.size.smaller(of: item?.size)
        let part = item?.shown(of: stored).part ?? PixelPart(left: 0, top: 0, size: stored)
        size = part.size
        return reduced(image, part, placement)
    }

    /// The pixels of the first embedded thumbnail that shows the same as the picture, is large enough, and is as large
    /// as the file says.
    private func decodeEmbeddedThumbnail(for placement: Placement) -> Pixels? {
        guard let item else { return nil }
        var ids = [heif_item_id](repeating: 0, count: 8)
        let count = heif_image_handle_get_list_of_thumbnail_IDs(primary, &ids, Int32(ids.count))
        for id in ids.prefix(Int(count)) {
            guard let copy = geometry.item(id), !copy.isDrawnByOthers, item.isShown(by: copy),
                let told = copy.size, isWithinLimits(told), placement.isServed(by: told),
                told.hasAspect(of: size)
            else { continue }
            var handle: OpaquePointer?
            guard heif_image_handle_get_thumbnail(primary, id, &handle).isOK, let handle else { continue }
            defer { heif_image_handle_release(handle) }
            // The thumbnails of Canon's and Sony's cameras are coded with padding at the right and below, beyond the
            // size that the file gives (ISO/IEC 23008-12, 6.5.3).
            let coded = geometry.codedColors(id)
            guard let image = DecodedImage(handle, isAV1: isAV1, transforms: false, coded: coded),
                image.size.width >= told.width, image.size.height >= told.height
            else { continue }
            return reduced(image, PixelPart(left: 0, top: 0, size: told), placement)
        }
        return nil
    }

    private func reduced(_ image: DecodedImage, _ part: PixelPart, _ placement: Placement) -> Pixels? {
        // A profile describes the colours better than code points do.
        let conversion = colorProfile.isEmpty ? DisplayConversion(image.colors) : nil
        let codeMax = conversion == nil ? 255 : DisplayConversion.codeMax
        let width = part.size.width
        guard isWithinLimits(part.size),
            let planes = HEIFPlanes(
                image.image, image.colors, codeMax: codeMax, areUnconverted: image.isUnconverted),
            part.left + width <= planes.size.width, part.top + part.size.height <= planes.size.height,
            var rows = RowReducer(
                part.size, channels: 4, hasAlpha: planes.hasAlpha, factor: placement.reduction(of: part.size))
        else { return nil }
        let codes = UnsafeMutablePointer<SIMD4<UInt16>>.allocate(capacity: width)
        let row = UnsafeMutablePointer<SIMD4<UInt8>>.allocate(capacity: width)
        defer {
            codes.deallocate()
            row.deallocate()
        }
        for y in part.top..<part.top + part.size.height {
            planes.convert(y: y, left: part.left, count: width, into: codes)
            if let conversion {
                conversion.convert(codes, into: row, count: width)
            } else {
                for x in 0..<width { row[x] = SIMD4<UInt8>(truncatingIfNeeded: codes[x]) }
            }
            row.withMemoryRebound(to: UInt8.self, capacity: width * 4) { row in
                if planes.hasAlpha && !image.isMultiplied { row.multiplyByAlpha(count: width) }
                rows.add(row)
            }
        }
        return rows.finish()
    }
}

/// A picture as libheif decodes it, in the form in which it is coded.
private final class DecodedImage {
    let image: OpaquePointer
    let size: PixelSize
    let colors: ColorDescription
    /// Whether the planes of green, blue and red are those of `colors`.
    let isUnconverted: Bool

    /// Nil if libheif cannot.
    ///
    /// - Parameters:
    ///   - transforms: whether libheif applies the file's turns and crops.
    ///   - unconverted: the colours of planes that the file says to be green, blue and red.
    init?(_ handle: OpaquePointer, isAV1: Bool, transforms: Bool, unconverted: ColorDescription) {
        let undefined = (heif_colorspace_undefined, heif_chroma_undefined)
        guard let decoded = Self.decode(handle, undefined, isAV1: isAV1, transforms: transforms) else {
            return nil
        }
        (image, size, colors, isUnconverted) = (decoded, Self.size(of: decoded), unconverted, true)
        isMultiplied = heif_image_is_premultiplied_alpha(decoded) != 0
    }

    /// Nil if libheif cannot.
    ///
    /// - Parameters:
    ///   - transforms: whether libheif applies the file's turns and crops.
    ///   - coded: the colours as the bitstream tells them.
    init?(_ handle: OpaquePointer, isAV1: Bool, transforms: Bool, coded: CodedColors?) {
        let told = Self.colors(of: handle)
        let inBitstream = coded.map { ColorDescription($0) }
        // libheif 1.15 converts to red, green and blue by the bitstream's code points, unless the file has a box for
        // them: one that tells nothing means JPEG's then.
        let isConverted =
            coded?.chroma == 0 || told.map { $0.completed(by: inBitstream).matrix == $0.matrix } ?? true
        // It expands planes of what the box says to be limited range.
        let isExpanded = !isConverted && told?.isFullRange == false
        if isExpanded, coded?.isFullRange == true { return nil }
        let form =
            isConverted
            ? (heif_colorspace_undefined, heif_chroma_undefined)
            : (heif_colorspace_YCbCr, heif_chroma(UInt32(coded?.chroma ?? 1)))
        guard let decoded = Self.decode(handle, form, isAV1: isAV1, transforms: transforms) else {
            return nil
        }
        (image, size, isUnconverted) = (decoded, Self.size(of: decoded), false)
        var colors =
            told.map { $0.completed(by: inBitstream) } ?? inBitstream
            ?? Self.colors { heif_image_get_nclx_color_profile(decoded, $0) } ?? .unspecified
        if isExpanded { colors.isFullRange = true }
        self.colors = colors
        isMultiplied = heif_image_is_premultiplied_alpha(decoded) != 0
    }

    let isMultiplied: Bool

    deinit {
        heif_image_release(image)
    }

    private static func decode(
        _ handle: OpaquePointer, _ form: (heif_colorspace, heif_chroma), isAV1: Bool, transforms: Bool
    ) -> OpaquePointer? {
        guard let options = heif_decoding_options_alloc() else { return nil }
        defer { heif_decoding_options_free(options) }
        options.pointee.ignore_transformations = transforms ? 0 : 1
        var image: OpaquePointer?
        func decode() -> Bool { heif_decode_image(handle, &image, form.0, form.1, options).isOK }
        // dav1d, the default of libheif, starts a thread for each processor, which the sandbox forbids.
        let isDecoded =
            !isAV1
            ? decode()
            : "aom".withCString { name in
                options.pointee.decoder_id = name
                return decode()
            }
        return isDecoded ? image : nil
    }

    private static func size(of image: OpaquePointer) -> PixelSize {
        PixelSize(
            width: Int(heif_image_get_primary_width(image)), height: Int(heif_image_get_primary_height(image))
        )
    }

    /// The code points in a box of the file.
    static func colors(of handle: OpaquePointer) -> ColorDescription? {
        colors { heif_image_handle_get_nclx_color_profile(handle, $0) }
    }

    /// The code points that a function of libheif gives. Nil without any.
    private static func colors(
        _ get: (UnsafeMutablePointer<UnsafeMutablePointer<heif_color_profile_nclx>?>) -> heif_error
    ) -> ColorDescription? {
        var found: UnsafeMutablePointer<heif_color_profile_nclx>?
        guard get(&found).isOK, let found else { return nil }
        defer { heif_nclx_color_profile_free(found) }
        return ColorDescription(
            primaries: Int(found.pointee.color_primaries.rawValue),
            transfer: Int(found.pointee.transfer_characteristics.rawValue),
            matrix: Int(found.pointee.matrix_coefficients.rawValue),
            isFullRange: found.pointee.full_range_flag != 0)
    }
}

extension PixelSize {
    fileprivate func exceeds(_ told: PixelSize) -> Bool { width > told.width || height > told.height }

    /// Whether this may be a larger layer of a picture of that size: the ratio of the sides is the same within two of
    /// its pixels, as each layer is rounded.
    fileprivate func isLayer(of told: PixelSize) -> Bool {
        abs(Double(told.width) * Double(height) / Double(width) - Double(told.height)) <= 2
    }

    /// The part of this size that lies inside of `told`.
    fileprivate func smaller(of told: PixelSize?) -> PixelSize {
        guard let told else { return self }
        return PixelSize(width: min(width, told.width), height: min(height, told.height))
    }
}

extension heif_error {
    fileprivate var isOK: Bool { code == heif_error_Ok }
}

/// Replaces libde265's function of that name, which libheif calls for every picture: the sandbox forbids threads, and
/// without them libde265 decodes in the calling thread.
@_cdecl("de265_start_worker_threads")
public func startNoWorkerThreads(_ decoder: OpaquePointer?, _ count: CInt) -> CInt {
    0
}
