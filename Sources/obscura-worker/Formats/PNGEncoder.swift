internal import CPNG
internal import Glibc
internal import PhotoImaging

/// Encodes a PNG of 8 bits a channel: grey, or colour with opacity if the pixels have it. A libpng error ends the
/// process.
func encodePNG(_ pixels: borrowing Pixels, colorProfile: [UInt8]) -> [UInt8] {
    var png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nil, { _, _ in refusePicture() }, { _, _ in })
    var info = png_create_info_struct(png)
    guard png != nil, info != nil else { refusePicture() }
    defer { png_destroy_write_struct(&png, &info) }
    let sink = Sink()
    png_set_write_fn(
        png, Unmanaged.passUnretained(sink).toOpaque(),
        { png, bytes, count in
            Unmanaged<Sink>.fromOpaque(png_get_io_ptr(png)).takeUnretainedValue().bytes
                .append(contentsOf: UnsafeBufferPointer(start: bytes, count: count))
        }, { _ in })
    // An invalid profile is no reason for a missing thumbnail.
    png_set_benign_errors(png, 1)
    let type =
        pixels.channels == 1
        ? PNG_COLOR_TYPE_GRAY : pixels.hasAlpha ? PNG_COLOR_TYPE_RGBA : PNG_COLOR_TYPE_RGB
    png_set_IHDR(
        png, info, UInt32(pixels.size.width), UInt32(pixels.size.height), 8, Int32(type), PNG_INTERLACE_NONE,
        PNG_COMPRESSION_TYPE_BASE, PNG_FILTER_TYPE_BASE)
    if !colorProfile.isEmpty {
        png_set_iCCP(png, info, "ICC", PNG_COMPRESSION_TYPE_BASE, colorProfile, UInt32(colorProfile.count))
    }
    png_write_info(png, info)
    if pixels.channels == 4, !pixels.hasAlpha { png_set_filler(png, 0, PNG_FILLER_AFTER) }
    if pixels.hasAlpha { pixels.divideByAlpha() }
    for row in 0..<pixels.size.height { png_write_row(png, pixels.start + row * pixels.rowBytes) }
    png_write_end(png, info)
    return sink.bytes
}

/// The buffer that libpng writes to.
private final class Sink {
    var bytes: [UInt8] = []
}

extension Pixels {
    /// Divides the colours by the opacity again, as PNG stores them.
    fileprivate func divideByAlpha() {
        for pixel in stride(from: 0, to: rowBytes * size.height, by: 4) {
            let alpha = UInt32(start[pixel + 3])
            guard alpha > 0, alpha < 255 else { continue }
            for channel in pixel..<pixel + 3 {
                start[channel] = UInt8(min((UInt32(start[channel]) * 255 + alpha / 2) / alpha, 255))
            }
        }
    }
}
