import CJPEG
import CJPEGStream
import CTurboJPEG
import Foundation
import TestSupport
import Testing

@testable import PhotoImaging

/// A JPEG of noise and edges, 400 by 300 pixels, so 25 MCUs in a row.
///
/// - Parameter interval: MCUs between restart markers; 0: there are none.
private func makeJPEG(interval: UInt32, isGray: Bool = false, seed: UInt64) -> [UInt8] {
    let (width, height, channels) = (400, 300, isGray ? 1 : 3)
    var random = RandomSource(seed)
    var pixels = (0..<width * height * channels).map { index in
        UInt8(truncatingIfNeeded: index / channels % width / 16 * 40) ^ UInt8(random.next() & 63)
    }
    let encoder = UnsafeMutablePointer<jpeg_compress_struct>.allocate(capacity: 1)
    let errors = UnsafeMutablePointer<jpeg_error_mgr>.allocate(capacity: 1)
    defer {
        jpeg_destroy_compress(encoder)
        encoder.deallocate()
        errors.deallocate()
    }
    encoder.initialize(to: jpeg_compress_struct())
    encoder.pointee.err = jpeg_std_error(errors)
    jpeg_CreateCompress(encoder, JPEG_LIB_VERSION, MemoryLayout<jpeg_compress_struct>.size)
    var start: UnsafeMutablePointer<UInt8>?
    var count: UInt = 0
    jpeg_mem_dest(encoder, &start, &count)
    (encoder.pointee.image_width, encoder.pointee.image_height) = (400, 300)
    encoder.pointee.input_components = Int32(channels)
    encoder.pointee.in_color_space = isGray ? JCS_GRAYSCALE : JCS_RGB
    jpeg_set_defaults(encoder)
    encoder.pointee.restart_interval = interval
    jpeg_start_compress(encoder, 1)
    pixels.withUnsafeMutableBufferPointer { pixels in
        for y in 0..<height {
            var row: JSAMPROW? = pixels.baseAddress! + y * width * channels
            jpeg_write_scanlines(encoder, &row, 1)
        }
    }
    jpeg_finish_compress(encoder)
    defer { free(start) }
    return Array(UnsafeBufferPointer(start: start, count: Int(count)))
}

/// A JPEG that comes in pieces.
private final class Pieces {
    private var random: RandomSource
    private let byteCount: Int
    private var there = 0

    init(of byteCount: Int, seed: UInt64) {
        self.byteCount = byteCount
        random = RandomSource(seed)
    }

    func wait(for count: Int) -> Int {
        there = min(max(there, count) + Int(random.next() % 3000), byteCount)
        return there
    }
}

/// The pixels, decoded as they come in pieces; nil where they are refused.
private func streamed(_ jpeg: [UInt8], divisor: Int, seed: UInt64) -> [UInt8]? {
    let pieces = Pieces(of: jpeg.count, seed: seed)
    return withExtendedLifetime(pieces) {
        jpeg.withUnsafeBufferPointer { bytes in
            let stream = jpeg_stream_open(
                bytes.baseAddress, bytes.count,
                { Unmanaged<Pieces>.fromOpaque($0!).takeUnretainedValue().wait(for: $1) },
                Unmanaged.passUnretained(pieces).toOpaque())
            guard let stream else { return nil }
            defer { jpeg_stream_close(stream) }
            let channels = jpeg_stream_colors_of(stream) == jpeg_stream_gray ? 1 : 4
            let width = (jpeg_stream_width(stream) + divisor - 1) / divisor
            let height = (jpeg_stream_height(stream) + divisor - 1) / divisor
            var pixels = [UInt8](repeating: 0, count: width * height * channels)
            let result = jpeg_stream_decode(stream, Int32(divisor), &pixels, width * channels, height)
            return result == 0 ? pixels : nil
        }
    }
}

/// The same by TurboJPEG.
private func decoded(_ jpeg: [UInt8], divisor: Int) -> [UInt8]? {
    let handle = tjInitDecompress()
    defer { tjDestroy(handle) }
    var (width, height, subsampling, colors): (Int32, Int32, Int32, Int32) = (0, 0, 0, 0)
    tjDecompressHeader3(handle, jpeg, UInt(jpeg.count), &width, &height, &subsampling, &colors)
    let isGray = colors == TJCS_GRAY.rawValue
    let (wide, high) = ((Int(width) + divisor - 1) / divisor, (Int(height) + divisor - 1) / divisor)
    var pixels = [UInt8](repeating: 0, count: wide * high * (isGray ? 1 : 4))
    let result = tjDecompress2(
        handle, jpeg, UInt(jpeg.count), &pixels, Int32(wide), 0, Int32(high),
        (isGray ? TJPF_GRAY : TJPF_RGBX).rawValue, 0)
    return result == 0 || tjGetErrorCode(handle) == TJERR_WARNING.rawValue ? pixels : nil
}

extension WorkerTests {
    @Suite("Decoders: pictures that arrive in pieces") struct StreamTests {
        @Test(arguments: [0, 1, 2, 7, 25, 26, 50, 100, 475, 60_000] as [UInt32], [false, true])
        func `pixels are the library's with any restarts`(interval: UInt32, isGray: Bool) throws {
            let jpeg = makeJPEG(interval: interval, isGray: isGray, seed: UInt64(interval))
            for divisor in [1, 2, 4, 8] {
                let expected = try #require(decoded(jpeg, divisor: divisor))
                #expect(streamed(jpeg, divisor: divisor, seed: 1) == expected, "\(divisor)")
            }
        }

        @Test(arguments: [0, 1, 25, 50] as [UInt32])
        func `damage shows as the library shows it`(interval: UInt32) throws {
            let whole = makeJPEG(interval: interval, seed: 7)
            let scan = try #require(Data(whole).range(of: Data([0xFF, 0xDA]))).upperBound + 12
            var random = RandomSource(UInt64(interval))
            for round in 0..<60 {
                var jpeg = whole
                for _ in 0..<Int.random(in: 1...8, using: &random) {
                    let place = Int.random(in: scan..<jpeg.count, using: &random)
                    switch Int.random(in: 0..<4, using: &random) {
                    case 0: jpeg[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
                    case 1: jpeg.removeSubrange(place..<min(place + 40, jpeg.count))
                    case 2: jpeg.replaceSubrange(place..<place, with: [0xFF, 0xD0 + UInt8(round % 8)])
                    default: jpeg[place] = 0xFF
                    }
                    if jpeg.count < scan + 100 { jpeg = whole }
                }
                if round % 5 == 0 { jpeg.removeLast(jpeg.count / 3) }
                let seen = streamed(jpeg, divisor: 8, seed: UInt64(round))
                #expect(seen == decoded(jpeg, divisor: 8), "round \(round)")
            }
        }

        /// The worker decodes the first bytes while the rest comes.
        @Test func `a picture may arrive slowly`() throws {
            let workers = makeWorkers()
            let jpeg = makeJPEG(interval: 25, seed: 3)
            let slow = try workers.makeThumbnail(of: SlowSource(bytes: jpeg), type: .jpeg, box: 256)
            #expect(slow == (try workers.thumbnail(jpeg)))
        }

        @Test func `a picture that stops arriving says nothing about itself`() throws {
            let workers = makeWorkers()
            let jpeg = makeJPEG(interval: 0, seed: 3)
            #expect(throws: ThumbnailError.workerFailed) {
                let broken = SlowSource(bytes: jpeg, endsAt: jpeg.count / 2)
                return try workers.makeThumbnail(of: broken, type: .jpeg, box: 256)
            }
            #expect(try !workers.thumbnail(jpeg).isEmpty)
        }
    }
}

/// Gives little at a time.
private struct SlowSource: ByteSource {
    var bytes: [UInt8]
    /// An I/O error from here on.
    var endsAt = Int.max
    var byteCount: UInt64 { UInt64(bytes.count) }

    func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        if offset >= endsAt { return -1 }
        let part = bytes.dropFirst(Int(offset)).prefix(min(buffer.count, 777))
        buffer.copyBytes(from: part)
        return part.count
    }
}
