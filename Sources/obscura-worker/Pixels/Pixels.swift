internal import Glibc
internal import PhotoImaging

/// Decoded pixels, rows without gaps: one byte each (grey) or four (red, green, blue, opacity).
struct Pixels: ~Copyable {
    let size: PixelSize
    /// 1 or 4.
    let channels: Int
    /// Whether the fourth byte is the opacity and the colours are premultiplied; otherwise that byte is unused.
    let hasAlpha: Bool
    /// The part of `size` that the picture covers, in pixels: slightly less than `size` if the last column and row were
    /// made of fewer source pixels than the others.
    var covered: (width: Double, height: Double)
    let start: UnsafeMutablePointer<UInt8>

    /// Pixels with undefined content. Nil when memory is short.
    init?(size: PixelSize, channels: Int, hasAlpha: Bool = false) {
        precondition(channels == 4 || channels == 1 && !hasAlpha)
        let byteCount = size.width * size.height * channels
        guard let memory = malloc(byteCount) else { return nil }
        lockAsFarAsAllowed(UnsafeRawBufferPointer(start: memory, count: byteCount))
        self.size = size
        self.channels = channels
        self.hasAlpha = hasAlpha
        covered = (Double(size.width), Double(size.height))
        start = memory.bindMemory(to: UInt8.self, capacity: byteCount)
    }

    deinit {
        free(start)
    }

    /// Bytes from one row to the next.
    var rowBytes: Int { size.width * channels }

    /// Blends transparent pixels with white. The fourth byte is unused from then on.
    func layOnWhite() {
        guard hasAlpha else { return }
        for pixel in stride(from: 0, to: rowBytes * size.height, by: 4) {
            let white = 255 - UInt32(start[pixel + 3])
            for channel in pixel..<pixel + 3 {
                start[channel] = UInt8(min(UInt32(start[channel]) + white, 255))
            }
            start[pixel + 3] = 255
        }
    }

    /// Turns cyan, magenta, yellow, black into red, green, blue. `areInverted`: 255 stands for no ink.
    func convertInksToRGB(areInverted: Bool) {
        precondition(channels == 4)
        let flip: UInt8 = areInverted ? 0 : 0xFF
        for pixel in stride(from: 0, to: rowBytes * size.height, by: 4) {
            let light = UInt32(start[pixel + 3] ^ flip)
            for channel in pixel..<pixel + 3 {
                start[channel] = UInt8((UInt32(start[channel] ^ flip) * light + 127) / 255)
            }
        }
    }

    /// These pixels, turned upright; all of them, beyond `covered` too. Nil when memory is short.
    consuming func turned(by orientation: Orientation) -> Pixels? {
        if orientation == .upright { return self }
        guard
            let turned = Pixels(
                size: orientation.isTransposed ? size.transposed : size, channels: channels,
                hasAlpha: hasAlpha)
        else {
            return nil
        }
        // The stored pixel for (x, y) is at origin + x · across + y · down.
        let lastColumn = (size.width - 1) * channels
        let lastRow = (size.height - 1) * rowBytes
        let (origin, across, down) =
            switch orientation {
            case .upright: (0, channels, rowBytes)
            case .mirrored: (lastColumn, -channels, rowBytes)
            case .halfTurn: (lastRow + lastColumn, -channels, -rowBytes)
            case .flipped: (lastRow, channels, -rowBytes)
            case .transposed: (0, rowBytes, channels)
            case .quarterTurnRight: (lastRow, -rowBytes, channels)
            case .transverse: (lastRow + lastColumn, -rowBytes, -channels)
            case .quarterTurnLeft: (lastColumn, rowBytes, -channels)
            }
        var destination = turned.start
        for y in 0..<turned.size.height {
            var source = start + origin + y * down
            for _ in 0..<turned.size.width {
                destination.update(from: source, count: channels)
                destination += channels
                source += across
            }
        }
        return turned
    }
}
