internal import CWebP
internal import Glibc
internal import PhotoImaging

/// A WebP, or the first frame of an animation, read by libwebp.
final class WebPDecoder: PictureDecoder {
    private let demuxer: OpaquePointer
    private var frame: WebPIterator
    private var features = WebPBitstreamFeatures()
    let size: PixelSize
    let orientation: Orientation
    let colorProfile: [UInt8]

    /// Reads the header. Nil when libwebp finds no frame.
    init?(_ bytes: UnsafeRawBufferPointer) {
        var data = WebPData(bytes: bytes.bindMemory(to: UInt8.self).baseAddress, size: bytes.count)
        guard let demuxer = WebPDemux(&data) else { return nil }
        var frame = WebPIterator()
        guard WebPDemuxGetFrame(demuxer, 1, &frame) != 0,
            WebPGetFeatures(frame.fragment.bytes, frame.fragment.size, &features) == VP8_STATUS_OK
        else {
            WebPDemuxDelete(demuxer)
            return nil
        }
        self.demuxer = demuxer
        self.frame = frame
        size = PixelSize(width: Int(features.width), height: Int(features.height))
        orientation = Orientation(readFacts(MappedSource(bytes: bytes)))
        colorProfile = Self.profile(demuxer)
    }

    deinit {
        WebPDemuxReleaseIterator(&frame)
        WebPDemuxDelete(demuxer)
    }

    private static func profile(_ demuxer: OpaquePointer) -> [UInt8] {
        var chunk = WebPChunkIterator()
        guard WebPDemuxGetChunk(demuxer, "ICCP", 1, &chunk) != 0 else { return [] }
        defer { WebPDemuxReleaseChunkIterator(&chunk) }
        return Array(UnsafeBufferPointer(start: chunk.chunk.bytes, count: chunk.chunk.size))
    }

    /// libwebp itself averages pixels, row by row.
    func decode(for placement: Placement) -> Pixels? {
        let factor = placement.reduction(of: size)
        let scaled = PixelSize(width: max(size.width / factor, 1), height: max(size.height / factor, 1))
        let hasAlpha = features.has_alpha != 0
        guard let pixels = Pixels(size: scaled, channels: 4, hasAlpha: hasAlpha) else { return nil }
        var config = WebPDecoderConfig()
        guard WebPInitDecoderConfig(&config) != 0 else { return nil }
        config.options.use_threads = 0
        // Scaling to the same size would still make colours coarser.
        config.options.use_scaling = factor > 1 ? 1 : 0
        config.options.scaled_width = Int32(scaled.width)
        config.options.scaled_height = Int32(scaled.height)
        // Small letters: multiplied by the opacity.
        config.output.colorspace = MODE_rgbA
        config.output.is_external_memory = 1
        config.output.u.RGBA.rgba = pixels.start
        config.output.u.RGBA.stride = Int32(pixels.rowBytes)
        config.output.u.RGBA.size = pixels.rowBytes * scaled.height
        defer { WebPFreeDecBuffer(&config.output) }
        guard WebPDecode(frame.fragment.bytes, frame.fragment.size, &config) == VP8_STATUS_OK else {
            return nil
        }
        return pixels
    }
}
