import CTurboJPEG

/// A picture through the real encoder, with the metadata that filing looks at.
struct Photo {
    var width = 64
    var height = 48
    /// `DateTimeOriginal`.
    var taken: String? = "2019:03:04 05:06:07"
    var orientation: Int?
    /// Makes its pixels others than those of the next.
    var seed: UInt8 = 1

    /// The left half is red, the right half blue, over a little noise.
    var bytes: [UInt8] {
        var pixels = [UInt8](repeating: 0, count: width * height * 3)
        var noise = UInt32(seed)
        for y in 0..<height {
            for x in 0..<width {
                noise = noise &* 1_664_525 &+ 1_013_904_223
                let at = (y * width + x) * 3
                pixels[at + (x < width / 2 ? 0 : 2)] = 255 - UInt8(noise >> 28)
            }
        }
        let handle = tjInitCompress()
        defer { tjDestroy(handle) }
        var start: UnsafeMutablePointer<UInt8>?
        var count: UInt = 0
        let result = tjCompress2(
            handle, pixels, Int32(width), 0, Int32(height), TJPF_RGB.rawValue, &start, &count,
            Int32(TJSAMP_444.rawValue), 90, 0)
        precondition(result == 0)
        defer { tjFree(start) }
        var bytes = Array(UnsafeBufferPointer(start: start, count: Int(count)))
        // Behind JFIF's segment, which is 18 bytes long.
        bytes.insert(contentsOf: metadata, at: 20)
        return bytes
    }

    private var metadata: [UInt8] {
        func entry(_ tag: Int, _ type: Int, _ count: Int, _ value: [UInt8]) -> [UInt8] {
            short(tag) + short(type) + long(count) + value
        }
        var main: [[UInt8]] = []
        if let orientation { main.append(entry(0x0112, 3, 1, short(orientation) + [0, 0])) }
        let detailsAt = 8 + 2 + (main.count + 1) * 12 + 4
        if taken != nil { main.append(entry(0x8769, 4, 1, long(detailsAt))) }
        guard !main.isEmpty else { return [] }
        var block = Array("MM\0*".utf8) + long(8) + short(main.count) + main.joined() + long(0)
        if let taken {
            let text = Array(taken.utf8) + [0]
            block += short(1) + entry(0x9003, 2, text.count, long(detailsAt + 18)) + long(0) + text
        }
        return [0xFF, 0xE1] + short(block.count + 8) + Array("Exif\0\0".utf8) + block
    }

    private func short(_ value: Int) -> [UInt8] { [UInt8(value >> 8 & 255), UInt8(value & 255)] }
    private func long(_ value: Int) -> [UInt8] { short(value >> 16) + short(value & 0xFFFF) }
}

/// A thumbnail decoded again.
struct Decoded {
    let width: Int
    let height: Int
    private let pixels: [UInt8]

    init?(_ jpeg: [UInt8]) {
        let handle = tjInitDecompress()
        defer { tjDestroy(handle) }
        var (wide, high, subsampling, space): (Int32, Int32, Int32, Int32) = (0, 0, 0, 0)
        guard
            tjDecompressHeader3(handle, jpeg, UInt(jpeg.count), &wide, &high, &subsampling, &space) == 0
        else { return nil }
        var decoded = [UInt8](repeating: 0, count: Int(wide * high) * 3)
        guard
            tjDecompress2(
                handle, jpeg, UInt(jpeg.count), &decoded, wide, 0, high, TJPF_RGB.rawValue, 0) == 0
        else { return nil }
        (width, height, pixels) = (Int(wide), Int(high), decoded)
    }

    func isRed(_ x: Int, _ y: Int) -> Bool {
        let at = (y * width + x) * 3
        return pixels[at] > 150 && pixels[at + 2] < 100
    }
}
