internal import CGIF
internal import Glibc
internal import PhotoImaging

/// The first frame of a GIF on its screen, read by giflib. Damage ends the decoding; the rows before it stay.
final class GIFDecoder: PictureDecoder {
    private let source: MappedFile
    private let file: UnsafeMutablePointer<GifFileType>
    private var transparent: Int?
    let size: PixelSize
    let orientation = Orientation.upright
    let colorProfile: [UInt8] = []

    /// Reads as far as the first frame begins. Nil when there is none.
    init?(_ bytes: UnsafeRawBufferPointer) {
        source = MappedFile(bytes)
        let opened = DGifOpen(
            Unmanaged.passUnretained(source).toOpaque(),
            { file, target, count in
                Int32(MappedFile.of(file!.pointee.UserData).read(into: target, Int(count)))
            }, nil)
        guard let opened else { return nil }
        file = opened
        guard let transparent = Self.findFrame(opened) else {
            DGifCloseFile(opened, nil)
            return nil
        }
        self.transparent = transparent >= 0 ? transparent : nil
        let frame = opened.pointee.Image
        // Some programs write a screen smaller than the frame; the size then includes the frame.
        size = PixelSize(
            width: max(Int(opened.pointee.SWidth), Int(frame.Left) + Int(frame.Width)),
            height: max(Int(opened.pointee.SHeight), Int(frame.Top) + Int(frame.Height)))
    }

    deinit {
        DGifCloseFile(file, nil)
    }

    /// Skips extensions up to the first frame. Returns the index of its transparent colour, -1 without one; nil without
    /// a frame.
    private static func findFrame(_ file: UnsafeMutablePointer<GifFileType>) -> Int? {
        var transparent = -1
        var type = UNDEFINED_RECORD_TYPE
        while DGifGetRecordType(file, &type) == GIF_OK {
            switch type {
            case IMAGE_DESC_RECORD_TYPE:
                return DGifGetImageDesc(file) == GIF_OK ? transparent : nil
            case EXTENSION_RECORD_TYPE:
                var code: Int32 = 0
                var block: UnsafeMutablePointer<UInt8>?
                guard DGifGetExtension(file, &code, &block) == GIF_OK else { return nil }
                while let bytes = block {
                    var control = GraphicsControlBlock()
                    if code == GRAPHICS_EXT_FUNC_CODE,
                        DGifExtensionToGCB(Int(bytes[0]), bytes + 1, &control) == GIF_OK
                    {
                        transparent = Int(control.TransparentColor)
                    }
                    guard DGifGetExtensionNext(file, &block) == GIF_OK else { return nil }
                }
            default:
                return nil
            }
        }
        return nil
    }

    func decode(for placement: Placement) -> Pixels? {
        let frame = file.pointee.Image
        let width = Int(frame.Width)
        let height = Int(frame.Height)
        guard width > 0, height > 0, let colors = frame.ColorMap ?? file.pointee.SColorMap,
            let memory = calloc(height, width)
        else { return nil }
        defer { free(memory) }
        let indices = memory.assumingMemoryBound(to: UInt8.self)
        var rowCount = 0
        for row in frame.Interlace ? Self.interlacedRows(height) : Array(0..<height) {
            guard DGifGetLine(file, indices + row * width, frame.Width) == GIF_OK else { break }
            rowCount += 1
        }
        guard rowCount > 0 else { return nil }
        return draw(
            indices, frame, rowCount: frame.Interlace ? height : rowCount, palette(colors.pointee),
            factor: placement.reduction(of: size))
    }

    /// The order of the rows in an interlaced frame (GIF89a, appendix E).
    private static func interlacedRows(_ height: Int) -> [Int] {
        [(0, 8), (4, 8), (2, 4), (1, 2)].flatMap { Array(stride(from: $0.0, to: height, by: $0.1)) }
    }

    /// The colour (RGBA) of each index; black for an index outside the map.
    private func palette(_ colors: ColorMapObject) -> [SIMD4<UInt8>] {
        var palette = [SIMD4<UInt8>](repeating: SIMD4(0, 0, 0, 255), count: 256)
        for index in 0..<min(Int(colors.ColorCount), 256) {
            let color = colors.Colors[index]
            palette[index] = SIMD4(color.Red, color.Green, color.Blue, 255)
        }
        if let transparent, transparent < 256 { palette[transparent] = SIMD4(repeating: 0) }
        return palette
    }

    private func draw(
        _ indices: UnsafePointer<UInt8>, _ frame: GifImageDesc, rowCount: Int, _ palette: [SIMD4<UInt8>],
        factor: Int
    ) -> Pixels? {
        guard var rows = RowReducer(size, channels: 4, hasAlpha: true, factor: factor) else { return nil }
        let row = UnsafeMutablePointer<SIMD4<UInt8>>.allocate(capacity: size.width)
        defer { row.deallocate() }
        let left = Int(frame.Left)
        let top = Int(frame.Top)
        let width = Int(frame.Width)
        for y in 0..<size.height {
            row.initialize(repeating: SIMD4(repeating: 0), count: size.width)
            if y >= top, y < top + rowCount {
                let source = indices + (y - top) * width
                for x in 0..<width { row[left + x] = palette[Int(source[x])] }
            }
            row.withMemoryRebound(to: UInt8.self, capacity: size.width * 4) { rows.add($0) }
        }
        return rows.finish()
    }
}
