internal import PhotoImaging

/// A line of text as dots: ink or paper.
struct TextLine {
    private(set) var width: Int
    let height: Int
    private var ink: [Bool]

    /// What words in names of files end with.
    private static let wordEnds: Set<Character> = [" ", "_", "-", "."]

    /// `text` at its smallest: a dot for each of the font's.
    init(_ text: String) {
        let glyphs = text.map { Glyph($0) }
        width = glyphs.reduce(0) { $0 + $1.width + 1 }
        height = Glyph.rowCount
        ink = [Bool](repeating: false, count: width * height)
        var left = 0
        for glyph in glyphs {
            for (y, row) in glyph.rows.enumerated() {
                for x in 0..<glyph.width where row & 1 << x != 0 { ink[y * width + left + x] = true }
            }
            left += glyph.width + 1
        }
    }

    private init(width: Int, height: Int) {
        self.width = width
        self.height = height
        ink = [Bool](repeating: false, count: width * height)
    }

    /// Whether there is ink; none outside.
    subscript(x: Int, y: Int) -> Bool {
        x >= 0 && x < width && y >= 0 && y < height && ink[y * width + x]
    }

    /// Twice as large, slants and rounds without steps (Eric Johnston's EPX, 1992).
    var doubled: TextLine {
        var doubled = TextLine(width: width * 2, height: height * 2)
        for y in 0..<height {
            for x in 0..<width {
                let (up, right, left, down) = (self[x, y - 1], self[x + 1, y], self[x - 1, y], self[x, y + 1])
                let corners = [
                    left == up && left != down && up != right ? up : self[x, y],
                    up == right && up != left && right != down ? right : self[x, y],
                    down == left && down != right && left != up ? left : self[x, y],
                    right == down && right != up && down != left ? right : self[x, y],
                ]
                for (index, isInk) in corners.enumerated() {
                    doubled.ink[(y * 2 + index / 2) * doubled.width + x * 2 + index % 2] = isInk
                }
            }
        }
        return doubled
    }

    /// Of `text`, as much as is at most `width` dots wide at its smallest, the middle left out.
    static func shortened(_ text: String, toWidth width: Int) -> String {
        let characters = Array(text)
        func widthOf(_ part: some Sequence<Character>) -> Int { part.reduce(0) { $0 + Glyph($1).width + 1 } }
        guard widthOf(characters) > width else { return text }
        for kept in stride(from: characters.count - 1, through: 0, by: -1) {
            // More of the end, where names differ and types stand.
            let head = characters.prefix(kept / 2)
            let short = head + ["…"] + characters.suffix(kept - kept / 2)
            if widthOf(short) <= width { return String(short) }
        }
        return ""
    }

    /// `text` cut into at most two lines of `width` dots at their smallest: between words, where that leaves neither
    /// line nearly empty.
    static func wrapped(_ text: String, toWidth width: Int) -> [String] {
        let characters = Array(text)
        var used = 0
        let fits = characters.prefix { character in
            used += Glyph(character).width + 1
            return used <= width
        }
        if fits.count == characters.count { return [text] }
        let words = fits[..<(fits.lastIndex { wordEnds.contains($0) }.map { $0 + 1 } ?? 0)]
        let first = words.count * 2 >= fits.count ? words : fits
        return [String(first), shortened(String(characters.dropFirst(first.count)), toWidth: width)]
    }
}

extension Pixels {
    /// Draws a line, its upper left corner at `x`, `y`, in a shade of grey. What lies outside is left out.
    func draw(_ line: TextLine, x: Int, y: Int, shade: UInt8) {
        precondition(channels == 4)
        for row in max(0, -y)..<max(min(line.height, size.height - y), max(0, -y)) {
            for column in max(0, -x)..<max(min(line.width, size.width - x), max(0, -x))
            where line[column, row] {
                let pixel = start + (y + row) * rowBytes + (x + column) * 4
                pixel.update(repeating: shade, count: 3)
            }
        }
    }

    /// Opaque white.
    func fillWithWhite() {
        start.update(repeating: 255, count: rowBytes * size.height)
    }

    /// Lays a picture of four channels on this one, its upper left corner at `x`, `y`. It must fit.
    func place(_ picture: borrowing Pixels, x: Int, y: Int) {
        precondition(channels == 4 && picture.channels == 4 && x >= 0 && y >= 0)
        precondition(x + picture.size.width <= size.width && y + picture.size.height <= size.height)
        for row in 0..<picture.size.height {
            (start + (y + row) * rowBytes + x * 4).update(
                from: picture.start + row * picture.rowBytes, count: picture.rowBytes)
        }
    }

    /// The same picture in four channels. Nil when there is no memory.
    consuming func inColor() -> Pixels? {
        if channels == 4 { return self }
        guard let color = Pixels(size: size, channels: 4) else { return nil }
        for index in 0..<size.width * size.height {
            (color.start + index * 4).update(repeating: start[index], count: 4)
        }
        return color
    }
}

/// A JPEG made before, to fit in `box`, in four channels. Nil when it cannot be decoded.
func decodePrint(_ jpeg: [UInt8], fitting box: PixelSize) -> Pixels? {
    var print: Pixels?
    jpeg.withUnsafeBytes { print = decodePrint($0, fitting: box) }
    return print
}

private func decodePrint(_ jpeg: UnsafeRawBufferPointer, fitting box: PixelSize) -> Pixels? {
    guard let decoder = JPEGDecoder(ArrivingPicture(whole: jpeg)), isWithinLimits(decoder.size) else {
        return nil
    }
    let size = PictureSize(width: box.width, height: box.height)
    let placement = Placement(of: decoder.size, turnedBy: .upright, in: size)
    guard let decoded = decoder.decode(for: placement) else { return nil }
    return decoded.resized(for: placement)?.inColor()
}
