internal import Glibc
internal import PhotoImaging

/// A decoder for one family of formats: its initializer reads the header, `decode` the pixels. To add a format, write
/// one file with a decoder and name it in ``openPicture(_:type:)``.
///
/// Decoders run in a process that has only one picture and ends with it. A library that cannot continue may end the
/// process at once by ``refusePicture()``.
protocol PictureDecoder: AnyObject {
    /// The stored size, not yet upright, as the file claims it; after `decode`, the size that was decoded.
    var size: PixelSize { get }
    /// The turn that makes the stored pixels upright.
    var orientation: Orientation { get }
    /// The ICC profile of the result of `decode`; empty if there is none.
    var colorProfile: [UInt8] { get }
    /// Decodes the whole picture, in grey or colour, reduced by at most the placement's `reduction`. Nil if it is
    /// damaged or memory is short. Call once.
    func decode(for placement: Placement) -> Pixels?
}

/// The decoder for a picture of `type`. Nil for other types and for a header that cannot be read.
func openPicture(_ picture: ArrivingPicture, type: MediaType) -> (any PictureDecoder)? {
    switch type {
    case .jpeg: JPEGDecoder(picture)
    case .png: PNGDecoder(picture.whole)
    case .webp: WebPDecoder(picture.whole)
    case .gif: GIFDecoder(picture.whole)
    case .tiff: TIFFDecoder(picture.whole)
    case .heic, .avif: HEIFDecoder(picture.whole)
    case .jxl: JXLDecoder(picture.whole)
    default: type.isRaw ? openRaw(picture.whole) : nil
    }
}

/// Whether a picture that claims this size may be decoded.
func isWithinLimits(_ size: PixelSize) -> Bool {
    let (pixels, overflow) = size.width.multipliedReportingOverflow(by: size.height)
    return size.width > 0 && size.height > 0 && !overflow && pixels <= WorkerProtocol.pixelsMax
}

/// Ends this process: the picture has no thumbnail. For libraries whose error handlers must not return.
func refusePicture() -> Never {
    _exit(Int32(WorkerOutcome.refused.rawValue))
}

/// A mapped picture, for the readers of metadata.
struct MappedSource: ByteSource {
    let bytes: UnsafeRawBufferPointer

    var byteCount: UInt64 { UInt64(bytes.count) }

    func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard offset < byteCount else { return 0 }
        let part = bytes[Int(offset)...].prefix(buffer.count)
        buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: part))
        return part.count
    }
}

/// A mapped picture with a position, for libraries that call back to read a file.
final class MappedFile {
    let bytes: UnsafeRawBufferPointer
    private var position = 0
    /// Whether the library reported an error, which it need not return.
    var hasFailed = false

    init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
    }

    /// The object behind the file pointer that a library was given.
    static func of(_ pointer: UnsafeMutableRawPointer?) -> MappedFile {
        Unmanaged<MappedFile>.fromOpaque(pointer!).takeUnretainedValue()
    }

    /// As read(2).
    func read(into target: UnsafeMutableRawPointer?, _ count: Int) -> Int {
        let part = bytes[min(position, bytes.count)...].prefix(count)
        UnsafeMutableRawBufferPointer(start: target, count: count).copyBytes(from: part)
        position += part.count
        return part.count
    }

    /// As lseek(2). Libraries seek beyond the end too.
    func seek(_ offset: UInt64, _ origin: Int32) -> UInt64 {
        let base = origin == SEEK_CUR ? position : origin == SEEK_END ? bytes.count : 0
        let (target, overflow) = base.addingReportingOverflow(Int(truncatingIfNeeded: offset))
        guard !overflow, target >= 0 else { return .max }
        position = target
        return UInt64(target)
    }
}

extension UnsafeMutablePointer<UInt8> {
    /// Multiplies the colours of `count` RGBA pixels by their opacity.
    func multiplyByAlpha(count: Int) {
        for pixel in stride(from: 0, to: count * 4, by: 4) {
            let alpha = UInt32(self[pixel + 3])
            guard alpha < 255 else { continue }
            for channel in pixel..<pixel + 3 {
                self[channel] = UInt8((UInt32(self[channel]) * alpha + 127) / 255)
            }
        }
    }
}
