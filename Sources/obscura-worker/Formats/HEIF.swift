internal import CHEIF
internal import Glibc
internal import PhotoImaging

/// The primary picture of a HEIC or AVIF, or its embedded thumbnail where that is large enough, read by
/// libheif, which turns it upright itself.
final class HEIFDecoder: PictureDecoder {
    private let context: OpaquePointer
    private let primary: OpaquePointer
    private let isAV1: Bool
    let size: PixelSize
    let orientation = Orientation.upright
    let colorProfile: [UInt8]
    /// Whether libheif turns the picture.
    private let isTurned: Bool

    /// Largest relative difference between the aspect ratios of a picture and its thumbnail; beyond it they show
    /// different parts.
    private static let ratioErrorMax = 0.02

    /// Reads the header. Nil when libheif cannot.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard let context = heif_context_alloc() else { return nil }
        heif_context_set_max_decoding_threads(context, 0)
        var primary: OpaquePointer?
        guard heif_context_read_from_memory_without_copy(context, bytes.baseAddress, bytes.count, nil).isOK,
            heif_context_get_primary_image_handle(context, &primary).isOK, let primary
        else {
            heif_context_free(context)
            return nil
        }
        self.context = context
        self.primary = primary
        let facts = readFacts(MappedSource(bytes: bytes))
        isAV1 = facts?.type == .avif
        isTurned = Orientation(facts) != .upright
        size = Self.size(of: primary)
        colorProfile = Self.profile(primary)
    }

    deinit {
        heif_image_handle_release(primary)
        heif_context_free(context)
    }

    private static func size(of handle: OpaquePointer) -> PixelSize {
        PixelSize(
            width: Int(heif_image_handle_get_width(handle)), height: Int(heif_image_handle_get_height(handle))
        )
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
        if let thumbnail = embeddedThumbnail(for: placement) {
            defer { heif_image_handle_release(thumbnail) }
            if let pixels = decode(thumbnail, placement) { return pixels }
        }
        return decode(primary, placement)
    }

    /// The first embedded thumbnail of the same ratio that is large enough. The caller releases it.
    private func embeddedThumbnail(for placement: Placement) -> OpaquePointer? {
        var ids = [heif_item_id](repeating: 0, count: 8)
        let count = heif_image_handle_get_list_of_thumbnail_IDs(primary, &ids, Int32(ids.count))
        for id in ids.prefix(Int(count)) {
            var handle: OpaquePointer?
            guard heif_image_handle_get_thumbnail(primary, id, &handle).isOK, let handle else { continue }
            let found = Self.size(of: handle)
            let ratio = Double(found.width * size.height) / Double(max(found.height * size.width, 1))
            if isWithinLimits(found), placement.isServed(by: found), abs(ratio - 1) <= Self.ratioErrorMax {
                return handle
            }
            heif_image_handle_release(handle)
        }
        return nil
    }

    private func decode(_ handle: OpaquePointer, _ placement: Placement) -> Pixels? {
        guard let options = heif_decoding_options_alloc() else { return nil }
        defer { heif_decoding_options_free(options) }
        options.pointee.convert_hdr_to_8bit = 1
        var image: OpaquePointer?
        // dav1d, the default of libheif, starts a thread for each processor, which the sandbox forbids.
        let result = withDecoderName { name in
            options.pointee.decoder_id = name
            return heif_decode_image(
                handle, &image, heif_colorspace_RGB, heif_chroma_interleaved_RGBA, options)
        }
        guard result.isOK, let image else { return nil }
        defer { heif_image_release(image) }
        let decoded = PixelSize(
            width: Int(heif_image_get_width(image, heif_channel_interleaved)),
            height: Int(heif_image_get_height(image, heif_channel_interleaved)))
        guard let shown = shownSize(of: decoded, Self.size(of: handle), isPrimary: handle == primary) else {
            return nil
        }
        return reduced(
            image, shown, hasAlpha: heif_image_handle_has_alpha_channel(handle) != 0, placement)
    }

    /// The visible part, from the top left. The thumbnails of Canon's and Sony's cameras are coded with padding at the
    /// right and below, beyond the size that the file gives (ISO/IEC 23008-12, 6.5.3). Nil for a thumbnail whose
    /// rotation has moved the padding elsewhere.
    private func shownSize(of decoded: PixelSize, _ told: PixelSize, isPrimary: Bool) -> PixelSize? {
        let isPadded = decoded.width > told.width || decoded.height > told.height
        if isPadded, isTurned { return isPrimary ? decoded : nil }
        return PixelSize(width: min(decoded.width, told.width), height: min(decoded.height, told.height))
    }

    private func withDecoderName<R>(_ body: (UnsafePointer<CChar>?) -> R) -> R {
        isAV1 ? "aom".withCString(body) : body(nil)
    }

    private func reduced(
        _ image: OpaquePointer, _ size: PixelSize, hasAlpha: Bool, _ placement: Placement
    ) -> Pixels? {
        var stride: Int32 = 0
        guard isWithinLimits(size),
            let plane = heif_image_get_plane(image, heif_channel_interleaved, &stride),
            Int(stride) >= size.width * 4,
            var rows = RowReducer(
                size, channels: 4, hasAlpha: hasAlpha, factor: placement.reduction(of: size))
        else { return nil }
        let isMultiplied = heif_image_is_premultiplied_alpha(image) != 0
        for y in 0..<size.height {
            let row = plane + y * Int(stride)
            if hasAlpha && !isMultiplied { row.multiplyByAlpha(count: size.width) }
            rows.add(row)
        }
        return rows.finish()
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
