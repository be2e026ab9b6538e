internal import Glibc
internal import PhotoImaging

/// A stack of tiles on white, the first one straight on top, the others turned a little. Tiles that cannot be decoded
/// are left out. Nil when none is left and when memory is short.
func drawStack(_ composition: CompositionRequest, size: PixelSize) -> Pixels? {
    let layout = StackLayout(size)
    var pictures: [Picture] = []
    for tile in composition.tiles.prefix(CompositionRequest.stackTilesMax) {
        guard let pixels = decodeTile(tile.jpeg, fitting: layout.pictureBox) else { continue }
        pictures.append(Picture(pixels))
    }
    guard !pictures.isEmpty, let stack = Pixels(size: size, channels: 4) else { return nil }
    stack.fillWithWhite()
    for index in pictures.indices.reversed() {
        stack.draw(PlacedTile(pictures[index], layout, index))
    }
    return stack
}

/// Decoded pixels in an object, so that an array can hold them.
private final class Picture {
    let pixels: Pixels

    init(_ pixels: consuming Pixels) {
        self.pixels = pixels
    }
}

/// The layout of a stack. Lengths are in pixels.
private struct StackLayout {
    /// The whole stack.
    let size: PixelSize
    /// Width of the white frame around each picture.
    let border: Int
    /// Distance that a shadow reaches.
    let shadow: Double
    /// Largest offset of a tile from the middle, horizontally and vertically.
    let scatter: Double
    /// The box of each picture, small enough that neither tile nor shadow is cut off.
    let pictureBox: PixelSize

    /// White room all around.
    private static let margin = 2.0
    /// Degrees clockwise, for the front tile first.
    static let angles = [0, -3.4, 2.6, -1.6, 4]
    /// Multiples of `scatter`, for the front tile first.
    static let offsets: [(x: Double, y: Double)] = [(0, 0), (-1, 0.4), (1, -0.6), (0.5, -1), (-0.6, 1)]

    init(_ size: PixelSize) {
        self.size = size
        let side = Double(min(size.width, size.height))
        border = max(Int((side * 0.022).rounded()), 1)
        shadow = side * 0.035
        scatter = side * 0.014
        // A tile turned by the largest angle needs its width plus this fraction of its height.
        let slant = sin(4 * Double.pi / 180)
        let taken = 2 * (shadow + scatter + Self.margin) + 2 * Double(border) * (1 + slant)
        func room(_ length: Int, _ other: Int) -> Double {
            (Double(length) - taken) / (Double(length) + slant * Double(other))
        }
        let part = max(min(room(size.width, size.height), room(size.height, size.width)), 0)
        pictureBox = PixelSize(
            width: max(Int(Double(size.width) * part), 1), height: max(Int(Double(size.height) * part), 1))
    }
}

/// A placed tile. Points are relative to its middle, along its own sides.
private struct PlacedTile {
    private typealias Vector = SIMD2<Double>

    private let picture: Picture
    private let layout: StackLayout
    private let center: Vector
    private let direction: Vector
    /// Half of the picture, and of the tile with its border.
    private let inner: Vector
    private let outer: Vector

    private static let paper = SIMD4<Double>(repeating: 253)
    private static let edgeShade = 0.12
    private static let shadowStrength = 0.42

    init(_ picture: Picture, _ layout: StackLayout, _ index: Int) {
        self.picture = picture
        self.layout = layout
        let border = Double(layout.border)
        let size = picture.pixels.size
        inner = Vector(Double(size.width), Double(size.height)) / 2
        outer = inner + Vector(repeating: border)
        let angle = StackLayout.angles[index] * Double.pi / 180
        direction = Vector(cos(angle), sin(angle))
        let offset = StackLayout.offsets[index]
        let middle = Vector(Double(layout.size.width), Double(layout.size.height)) / 2
        // Whole pixels, so that the front one stays sharp.
        let corner = (middle - outer).rounded(.down)
        center = corner + outer + layout.scatter * Vector(offset.x, offset.y)
    }

    /// Rows that the tile and its shadow touch.
    var rows: Range<Int> {
        let half = abs(direction.y) * outer.x + abs(direction.x) * outer.y + layout.shadow + 1
        let lower = max(Int(center.y - half), 0)
        return lower..<max(min(Int(center.y + half) + 1, layout.size.height), lower)
    }

    /// The colour at the middle of a pixel, over the colour `below`.
    func color(x: Int, y: Int, over below: SIMD4<Double>) -> SIMD4<Double> {
        let point = local(Vector(Double(x) + 0.5, Double(y) + 0.5) - center)
        let paperCover = Self.cover(point, outer)
        if paperCover == 1 { return surface(point) }
        // The light comes from above.
        let fallen = local(Vector(Double(x) + 0.5, Double(y) + 0.5 - layout.shadow / 3) - center)
        let shade = 1 - Self.shadowStrength * Self.softCover(fallen, outer, reach: layout.shadow * 2 / 3)
        return below * shade * (1 - paperCover) + surface(point) * paperCover
    }

    private func local(_ vector: Vector) -> Vector {
        Vector(
            vector.x * direction.x + vector.y * direction.y, vector.y * direction.x - vector.x * direction.y)
    }

    /// The tile itself: the picture, its white frame, and a grey edge against the white behind it.
    private func surface(_ point: Vector) -> SIMD4<Double> {
        let pictureCover = Self.cover(point, inner)
        if pictureCover == 1 { return sample(point + inner) }
        let depth = min(outer.x - abs(point.x), outer.y - abs(point.y))
        let paper = Self.paper * (1 - Self.edgeShade * max(0, 1 - max(depth, 0)))
        guard pictureCover > 0 else { return paper }
        return paper * (1 - pictureCover) + sample(point + inner) * pictureCover
    }

    /// The share of a pixel at `point` that a rectangle of half size `half` covers.
    private static func cover(_ point: Vector, _ half: Vector) -> Double {
        min(max(half.x - abs(point.x) + 0.5, 0), 1) * min(max(half.y - abs(point.y) + 0.5, 0), 1)
    }

    /// The same for a rectangle that fades out evenly from `reach` inside to `reach` outside.
    private static func softCover(_ point: Vector, _ half: Vector, reach: Double) -> Double {
        func soft(_ inside: Double) -> Double {
            let part = min(max(inside / (2 * reach) + 0.5, 0), 1)
            return part * part * (3 - 2 * part)
        }
        return soft(half.x - abs(point.x)) * soft(half.y - abs(point.y))
    }

    /// The colour between the four nearest pixels of the picture; `point` is relative to its upper left corner.
    private func sample(_ point: Vector) -> SIMD4<Double> {
        let size = picture.pixels.size
        let x = min(max(point.x - 0.5, 0), Double(size.width - 1))
        let y = min(max(point.y - 0.5, 0), Double(size.height - 1))
        let (left, top) = (Int(x), Int(y))
        let (right, bottom) = (min(left + 1, size.width - 1), min(top + 1, size.height - 1))
        let (across, down) = (x - Double(left), y - Double(top))
        let upper = pixel(left, top) * (1 - across) + pixel(right, top) * across
        let lower = pixel(left, bottom) * (1 - across) + pixel(right, bottom) * across
        return upper * (1 - down) + lower * down
    }

    private func pixel(_ x: Int, _ y: Int) -> SIMD4<Double> {
        let start = picture.pixels.start + y * picture.pixels.rowBytes + x * 4
        return SIMD4(Double(start[0]), Double(start[1]), Double(start[2]), 255)
    }
}

extension Pixels {
    /// Draws a tile and its shadow.
    fileprivate func draw(_ tile: PlacedTile) {
        for y in tile.rows {
            for x in 0..<size.width {
                let pixel = start + y * rowBytes + x * 4
                let below = SIMD4(Double(pixel[0]), Double(pixel[1]), Double(pixel[2]), 255)
                let color = tile.color(x: x, y: y, over: below)
                for channel in 0..<3 { pixel[channel] = UInt8(min(max(color[channel], 0), 255).rounded()) }
            }
        }
    }
}
