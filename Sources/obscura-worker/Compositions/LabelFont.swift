internal import CFreeType

/// A drawn character of a font. Lengths are in pixels.
struct Glyph {
    /// From the pen to the left edge.
    var left = 0
    /// From the baseline up to the top edge.
    var top = 0
    /// The size of the drawn part.
    var width = 0
    var height = 0
    /// The share of each pixel that is ink, 0 to 255, row by row.
    var coverage: [UInt8] = []
    /// From the pen to the next character's pen.
    var advance = 0
}

/// The fonts that draw labels (FreeType). The first font that has a character draws it.
///
/// The fonts are system files and trusted like its libraries; the texts are not trusted.
final class LabelFont {
    private let library: FT_Library
    private let faces: [FT_Face]
    private var drawn: [Key: Glyph] = [:]

    private struct Key: Hashable {
        var scalar: Unicode.Scalar
        var pixels: Int
    }

    /// Reads the fonts in `files`, which must outlive this object. Nil when none of them is a scalable font.
    init?(_ files: [UnsafeRawBufferPointer]) {
        var opened: FT_Library?
        guard !files.isEmpty, FT_Init_FreeType(&opened) == 0, let library = opened else { return nil }
        faces = files.compactMap { file in
            var face: FT_Face?
            let start = file.bindMemory(to: FT_Byte.self).baseAddress
            // The first font of a collection is used.
            guard FT_New_Memory_Face(library, start, file.count, 0, &face) == 0, let face,
                face.pointee.face_flags & FT_Long(FT_FACE_FLAG_SCALABLE) != 0
            else { return nil }
            return face
        }
        self.library = library
        if faces.isEmpty { return nil }
    }

    deinit {
        FT_Done_FreeType(library)
    }

    /// A character, `pixels` high from one line to the next; the first font's "missing" glyph if no font has it.
    func glyph(for scalar: Unicode.Scalar, pixels: Int) -> Glyph {
        let key = Key(scalar: scalar, pixels: pixels)
        if let glyph = drawn[key] { return glyph }
        let owner = faces.first { FT_Get_Char_Index($0, FT_ULong(scalar.value)) != 0 }
        let glyph = draw(scalar, with: owner ?? faces[0], pixels: pixels)
        drawn[key] = glyph
        return glyph
    }

    private func draw(_ scalar: Unicode.Scalar, with face: FT_Face, pixels: Int) -> Glyph {
        // FT_LOAD_TARGET_LIGHT, which Swift cannot import: sharp rows, and widths as designed.
        let lightTarget = FT_Int32(FT_RENDER_MODE_LIGHT.rawValue & 15) << 16
        let flags = lightTarget | FT_Int32(FT_LOAD_RENDER | FT_LOAD_NO_BITMAP)
        guard FT_Set_Pixel_Sizes(face, 0, FT_UInt(pixels)) == 0,
            FT_Load_Char(face, FT_ULong(scalar.value), flags) == 0, let slot = face.pointee.glyph
        else { return Glyph() }
        var glyph = Glyph(advance: max((slot.pointee.advance.x + 32) >> 6, 0))
        let bitmap = slot.pointee.bitmap
        guard bitmap.pixel_mode == FT_PIXEL_MODE_GRAY.rawValue, let first = bitmap.buffer else {
            return glyph
        }
        (glyph.left, glyph.top) = (Int(slot.pointee.bitmap_left), Int(slot.pointee.bitmap_top))
        (glyph.width, glyph.height) = (Int(bitmap.width), Int(bitmap.rows))
        for row in 0..<glyph.height {
            let start = first + row * Int(bitmap.pitch)
            glyph.coverage += UnsafeBufferPointer(start: start, count: glyph.width)
        }
        return glyph
    }
}
