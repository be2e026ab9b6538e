internal import PhotoImaging

/// The size and shade of text. Lengths are in pixels.
struct TextStyle {
    /// The font's size (em).
    let pixels: Int
    /// From the top of one line to the top of the next.
    let lineHeight: Int
    /// From the top of a line to the baseline.
    let baseline: Int
    /// Grey: 0 is black.
    let shade: UInt8
}

/// A line of text: letters with their marks, in the order of reading.
struct TextLine {
    /// A letter with its marks.
    private struct Character {
        var glyphs: [Glyph]
        var width: Int
        /// Whether a word of a file name ends here.
        var endsWord: Bool
        var direction: Direction
    }

    private enum Direction {
        case leftToRight, rightToLeft, neutral
    }

    private var characters: [Character]
    private let ellipsis: [Character]
    let style: TextStyle

    /// Pixels from the first pen position to the last.
    var width: Int { Self.width(of: characters) }

    private static let wordEnds: Set<Swift.Character> = [" ", "_", "-", "."]

    /// All of `text` in one line. Invisible characters, such as those that change the writing direction, are left out.
    init(_ text: String, font: LabelFont, style: TextStyle) {
        func character(_ source: Swift.Character) -> Character? {
            let scalars = source.unicodeScalars.filter { !$0.properties.isDefaultIgnorableCodePoint }
            guard let base = scalars.first else { return nil }
            let glyphs = scalars.map { font.glyph(for: $0, pixels: style.pixels) }
            return Character(
                glyphs: glyphs, width: glyphs.reduce(0) { $0 + $1.advance },
                endsWord: Self.wordEnds.contains(source), direction: Self.direction(of: base))
        }
        characters = text.compactMap(character)
        ellipsis = character("…").map { [$0] } ?? []
        self.style = style
    }

    private init(_ characters: some Sequence<Character>, like line: TextLine) {
        self.characters = Array(characters)
        (ellipsis, style) = (line.ellipsis, line.style)
    }

    /// This line, at most `room` pixels wide. If it is too long, an ellipsis replaces its middle.
    func shortened(to room: Int) -> TextLine {
        if width <= room { return self }
        var left = room - Self.width(of: ellipsis)
        if left < 0 { return TextLine([], like: self) }
        var (head, tail) = (0, 0)
        while head + tail < characters.count {
            // The end gets more room: names differ there, and extensions are there.
            let takesTail = tail <= head
            left -= characters[takesTail ? characters.count - 1 - tail : head].width
            if left < 0 { break }
            if takesTail { tail += 1 } else { head += 1 }
        }
        return TextLine(characters.prefix(head) + ellipsis + characters.suffix(tail), like: self)
    }

    /// This line, wrapped into at most two lines of `room` pixels. Breaks after a word, unless the first line would
    /// then have less than half of the characters that fit.
    func wrapped(to room: Int) -> [TextLine] {
        var used = 0
        let fits = characters.prefix { character in
            used += character.width
            return used <= room
        }
        if fits.count == characters.count { return [self] }
        let words = fits.prefix((fits.lastIndex { $0.endsWord } ?? -1) + 1)
        let first = words.count * 2 >= fits.count ? words : fits
        let rest = TextLine(characters.dropFirst(first.count), like: self)
        return [TextLine(first, like: self), rest.shortened(to: room)]
    }

    /// The glyphs with their pen positions, from left to right.
    var placed: [(glyph: Glyph, pen: Int)] {
        var (result, pen) = ([(glyph: Glyph, pen: Int)](), 0)
        for glyph in inDisplayOrder.flatMap(\.glyphs) {
            result.append((glyph, pen))
            pen += glyph.advance
        }
        return result
    }

    /// The characters in display order: the line runs from left to right, words in right-to-left scripts are reversed.
    /// This is the part of the Unicode algorithm (UAX #9) that file names need: no numbers inside such words, no
    /// mirrored brackets.
    private var inDisplayOrder: [Character] {
        var result = characters
        var position = 0
        while let start = result[position...].firstIndex(where: { $0.direction == .rightToLeft }) {
            let end = result[start...].firstIndex { $0.direction == .leftToRight } ?? result.count
            let last = result[start..<end].lastIndex { $0.direction == .rightToLeft } ?? start
            result[start...last].reverse()
            position = last + 1
        }
        return result
    }

    private static func width(of characters: some Sequence<Character>) -> Int {
        characters.reduce(0) { $0 + $1.width }
    }

    /// The direction by the blocks that are reserved for right-to-left scripts (DerivedBidiClass.txt).
    private static func direction(of scalar: Unicode.Scalar) -> Direction {
        switch scalar.properties.generalCategory {
        case .decimalNumber: return .leftToRight
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter: break
        default: return .neutral
        }
        switch scalar.value {
        case 0x0590...0x08FF, 0xFB1D...0xFDFF, 0xFE70...0xFEFF, 0x10800...0x10FFF, 0x1E800...0x1EFFF:
            return .rightToLeft
        default: return .leftToRight
        }
    }
}

extension Pixels {
    /// Draws a line, its upper left corner at `x`, `y`. Ink outside the line's own box or this picture is left out.
    func draw(_ line: TextLine, x: Int, y: Int) {
        precondition(channels == 4)
        let columns = max(x, 0)..<max(min(x + line.width, size.width), max(x, 0))
        let rows = max(y, 0)..<max(min(y + line.style.lineHeight, size.height), max(y, 0))
        for (glyph, pen) in line.placed {
            let (left, top) = (x + pen + glyph.left, y + line.style.baseline - glyph.top)
            for row in rows.clamped(to: top..<top + glyph.height) {
                for column in columns.clamped(to: left..<left + glyph.width) {
                    let ink = Int(glyph.coverage[(row - top) * glyph.width + column - left])
                    let pixel = start + row * rowBytes + column * 4
                    for channel in 0..<3 {
                        let blend = Int(pixel[channel]) * (255 - ink) + Int(line.style.shade) * ink
                        pixel[channel] = UInt8((blend + 127) / 255)
                    }
                }
            }
        }
    }
}
