import CTurboJPEG
import Foundation
import TestSupport
import Testing

@testable import PhotoImaging

/// Bytes in memory.
struct MemorySource: ByteSource {
    var bytes: [UInt8]
    var byteCount: UInt64 { UInt64(bytes.count) }

    func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let part = bytes.dropFirst(Int(offset)).prefix(buffer.count)
        buffer.copyBytes(from: part)
        return part.count
    }
}

/// Stops with an I/O error after some bytes.
struct FailingSource: ByteSource {
    var byteCount: UInt64 { 100_000 }

    func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        offset == 0 ? 1000 : -1
    }
}

/// Four colours, one in each quarter, as stored.
enum Corner: Equatable {
    case red, green, blue, white

    var rgb: [UInt8] {
        switch self {
        case .red: [255, 0, 0]
        case .green: [0, 255, 0]
        case .blue: [0, 0, 255]
        case .white: [255, 255, 255]
        }
    }

    /// White is a transparent black where `hasHole`.
    func rgba(hasHole: Bool) -> [UInt8] { hasHole && self == .white ? [0, 0, 0, 0] : rgb + [255] }

    static let stored: [[Corner]] = [[.red, .green], [.blue, .white]]
    static let all = Array(stored.joined())
}

/// The pixels of a picture of four corners, row by row.
func quarters(_ width: Int, _ height: Int, pixel: (Corner) -> [UInt8]) -> [UInt8] {
    let (left, above) = ((width + 1) / 2, (height + 1) / 2)
    let rows = Corner.stored.map { repeated(pixel($0[0]), left) + repeated(pixel($0[1]), width - left) }
    return repeated(rows[0], above) + repeated(rows[1], height - above)
}

struct TestPicture {
    enum Kind { case color, gray, cmyk }

    var width = 400
    var height = 300
    var kind = Kind.color
    var isProgressive = false
    var subsampling = TJSAMP_420
    var orientation: UInt16?
    /// Inserted behind the JFIF segment, whole.
    var segments: [UInt8] = []

    /// The colours of the quarters, through the real encoder.
    var jpeg: [UInt8] {
        encode(quarters(width, height) { pixel($0.rgb) })
    }

    /// A pixel as the encoder takes it.
    private func pixel(_ rgb: [UInt8]) -> [UInt8] {
        switch kind {
        case .color: rgb
        case .gray: [rgb[0]]
        // As Adobe stores inks: 255 is none. No black, so the inks are the colours.
        case .cmyk: rgb + [255]
        }
    }

    func encode(_ pixels: [UInt8]) -> [UInt8] {
        let format = kind == .color ? TJPF_RGB : kind == .gray ? TJPF_GRAY : TJPF_CMYK
        let handle = tjInitCompress()!
        defer { tjDestroy(handle) }
        var start: UnsafeMutablePointer<UInt8>?
        var count: UInt = 0
        let result = tjCompress2(
            handle, pixels, Int32(width), 0, Int32(height), format.rawValue, &start, &count,
            Int32((kind == .gray ? TJSAMP_GRAY : subsampling).rawValue), 92,
            isProgressive ? TJFLAG_PROGRESSIVE : 0)
        precondition(result == 0)
        defer { tjFree(start) }
        var bytes = Array(UnsafeBufferPointer(start: start, count: Int(count)))
        let added = (orientation.map(Self.exif) ?? []) + segments
        // JFIF's segment is 18 bytes long and first, except in CMYK pictures, which have an Adobe one.
        bytes.insert(contentsOf: added, at: kind == .cmyk ? 2 : 20)
        return bytes
    }

    static func exif(_ orientation: UInt16) -> [UInt8] {
        let tiff: [UInt8] =
            [0x4D, 0x4D, 0, 42, 0, 0, 0, 8, 0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, UInt8(orientation >> 8)]
            + [UInt8(orientation & 0xFF), 0, 0, 0, 0, 0, 0]
        return segment(0xE1, Array("Exif\0\0".utf8) + tiff)
    }

    static func segment(_ marker: UInt8, _ payload: [UInt8]) -> [UInt8] {
        let length = payload.count + 2
        return [0xFF, marker, UInt8(length >> 8), UInt8(length & 0xFF)] + payload
    }

    /// A part of a profile, which begins in the first part.
    ///
    /// - Parameters:
    ///   - profileBytes: the length that the profile claims; nil: that of this part.
    ///   - space: its kind of colours (ICC.1:2010, 7.2.6).
    static func profilePart(
        _ number: UInt8, of count: UInt8, byteCount: Int, profileBytes: Int? = nil, space: String = "RGB "
    ) -> [UInt8] {
        var body = (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ Int(number)) }
        if number == 1 {
            let claimed = profileBytes ?? byteCount
            body.replaceSubrange(0..<4, with: (0..<4).map { UInt8(claimed >> (24 - 8 * $0) & 0xFF) })
            body.replaceSubrange(16..<20, with: Array(space.utf8))
            // No tags.
            if byteCount >= 132 { body.replaceSubrange(128..<132, with: [0, 0, 0, 0]) }
        }
        return segment(0xE2, Array("ICC_PROFILE\0".utf8) + [number, count] + body)
    }
}

/// A thumbnail decoded again.
struct DecodedThumbnail {
    var size: PixelSize
    var isGray: Bool
    var rgb: [UInt8]

    init?(_ jpeg: [UInt8]) {
        let handle = tjInitDecompress()!
        defer { tjDestroy(handle) }
        var (width, height, subsampling, colorSpace): (Int32, Int32, Int32, Int32) = (0, 0, 0, 0)
        guard
            tjDecompressHeader3(handle, jpeg, UInt(jpeg.count), &width, &height, &subsampling, &colorSpace)
                == 0
        else { return nil }
        size = PixelSize(width: Int(width), height: Int(height))
        isGray = colorSpace == TJCS_GRAY.rawValue
        rgb = [UInt8](repeating: 0, count: Int(width * height) * 3)
        guard
            tjDecompress2(handle, jpeg, UInt(jpeg.count), &rgb, width, 0, height, TJPF_RGB.rawValue, 0) == 0
        else { return nil }
    }

    func pixel(_ x: Int, _ y: Int) -> [UInt8] {
        let at = (y * size.width + x) * 3
        return Array(rgb[at..<at + 3])
    }

    func green(_ x: Int, _ y: Int) -> UInt8 { rgb[(y * size.width + x) * 3 + 1] }

    /// The colours in the middle of the quarters.
    var corners: [[Corner?]] {
        [1, 3].map { row in
            [1, 3].map { column in
                let found = pixel(size.width * column / 4, size.height * row / 4)
                return [.red, .green, .blue, .white].first { corner in
                    zip(corner.rgb, found).allSatisfy { abs(Int($0) - Int($1)) < 30 }
                }
            }
        }
    }
}

/// obscura-worker is built beside the tests.
let workerPath: String = {
    let tests = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    let beside = URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent(
        "obscura-worker"
    ).path
    if FileManager.default.isExecutableFile(atPath: beside) { return beside }
    let bundle = CommandLine.arguments.first { $0.hasSuffix(".xctest") } ?? CommandLine.arguments[0]
    return URL(fileURLWithPath: bundle).deletingLastPathComponent().appendingPathComponent("obscura-worker")
        .path
}()

func makeWorkers(
    count: Int = 1, deadlineMilliseconds: Int = 600_000, trial: String? = nil, quickMilliseconds: Int = 1000,
    pictures: ThumbnailWorkers.Pictures = .all, installed: InstalledThumbnailers? = nil,
    fonts: InstalledFonts = .debian
) -> ThumbnailWorkers {
    ThumbnailWorkers(
        executable: workerPath, count: count, deadlineMilliseconds: deadlineMilliseconds,
        arguments: trial.map { ["--trial", $0] } ?? [], quickMilliseconds: quickMilliseconds,
        pictures: pictures, installed: installed, fonts: fonts)
}

extension ThumbnailWorkers {
    /// The thumbnail of a picture that is recognised as what it is.
    func decoded(_ bytes: [UInt8], _ type: MediaType, box: Int) throws -> DecodedThumbnail {
        #expect(identifyMedia(MemorySource(bytes: bytes)) == type)
        let jpeg = try makeThumbnail(
            of: MemorySource(bytes: bytes), type: type, size: PictureSize(fitting: box))
        return try #require(DecodedThumbnail(jpeg))
    }

    func thumbnail(_ bytes: [UInt8], box: Int = 256) throws(ThumbnailError) -> [UInt8] {
        try makeThumbnail(of: MemorySource(bytes: bytes), type: .jpeg, box: box)
    }
}

/// Processes named obscura-worker that descend from `parent` directly.
func workerProcesses(of parent: Int32 = getpid()) -> [Int32] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
    return names.compactMap { Int32($0) }.filter { process in
        guard let line = kernelText("/proc/\(process)/stat"),
            let close = line.lastIndex(of: ")"), line.contains("(obscura-worker)")
        else { return false }
        let fields = line[close...].split(separator: " ")
        return Int32(fields[2]) == parent
    }
}

/// The descriptors of this process, but for those of files, which tests that run at the same time open.
func openDescriptors() -> Set<String> {
    let all = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    return Set(
        all.filter { number in
            let target =
                (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(number)")) ?? "/"
            return !target.hasPrefix("/") || target.hasPrefix("/memfd:")
        })
}

/// Runs `body` on `count` threads and waits for all of them.
func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) -> DispatchGroup {
    let group = DispatchGroup()
    for index in 0..<count {
        group.enter()
        Thread.detachNewThread {
            body(index)
            group.leave()
        }
    }
    return group
}
