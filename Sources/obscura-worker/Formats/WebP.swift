internal import CWebP
internal import Glibc
internal import PhotoImaging

/// A WebP, or the first frame of an animation in its place on the canvas, read by libwebp. The rest of the canvas is
/// transparent: browsers ignore the background colour of the file.
final class WebPDecoder: PictureDecoder {
    private let demuxer: OpaquePointer
    private var frame: WebPIterator
    private var features = WebPBitstreamFeatures()
    /// The canvas.
    let size: PixelSize
    private let frameSize: PixelSize
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
        let canvas = PixelSize(
            width: Int(WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_WIDTH)),
            height: Int(WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_HEIGHT)))
        frameSize = PixelSize(width: Int(features.width), height: Int(features.height))
        // The demuxer has checked that a frame of an animation lies inside; a still picture fills its canvas.
        size = canvas
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

    /// libwebp itself averages pixels, row by row, where the frame fills the canvas.
    func decode(for placement: Placement) -> Pixels? {
        let factor = placement.reduction(of: size)
        guard frameSize == size else { return placed(reducedBy: factor) }
        let scaled = PixelSize(width: max(size.width / factor, 1), height: max(size.height / factor, 1))
        return decodeFrame(to: scaled)
    }

    /// The frame in pixels of `scaled`, at most as many as it has.
    private func decodeFrame(to scaled: PixelSize) -> Pixels? {
        let hasAlpha = features.has_alpha != 0
        guard let pixels = Pixels(size: scaled, channels: 4, hasAlpha: hasAlpha) else { return nil }
        var config = WebPDecoderConfig()
        guard WebPInitDecoderConfig(&config) != 0 else { return nil }
        config.options.use_threads = 0
        // Scaling to the same size would still make colours coarser.
        config.options.use_scaling = scaled != frameSize ? 1 : 0
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

    /// The canvas with the frame on it: the frame's edges need not lie on the squares that are averaged.
    private func placed(reducedBy factor: Int) -> Pixels? {
        let left = Int(frame.x_offset)
        let top = Int(frame.y_offset)
        guard left >= 0, top >= 0, left + frameSize.width <= size.width,
            top + frameSize.height <= size.height,
            isWithinLimits(frameSize), let pixels = decodeFrame(to: frameSize),
            var rows = RowReducer(size, channels: 4, hasAlpha: true, factor: factor)
        else { return nil }
        let row = UnsafeMutablePointer<UInt8>.allocate(capacity: size.width * 4)
        defer { row.deallocate() }
        for y in 0..<size.height {
            row.initialize(repeating: 0, count: size.width * 4)
            if y >= top, y < top + frameSize.height {
                (row + left * 4).update(
                    from: pixels.start + (y - top) * pixels.rowBytes, count: pixels.rowBytes)
            }
            rows.add(row)
        }
        return rows.finish()
    }
}
