internal import CTIFF
internal import Glibc
internal import PhotoImaging

/// The first full picture of a TIFF, read by libtiff's converter to RGBA, a band at a time; samples that it does not
/// take are converted here (``TIFFSamples``). A strip or tile that cannot be decoded refuses the picture: libtiff would
/// leave it black.
final class TIFFDecoder: PictureDecoder {
    private let file: MappedFile
    private let tiff: OpaquePointer
    /// Unused, and empty, where there is a `form`.
    private var image = TIFFRGBAImage()
    /// Of samples that libtiff's converter does not take.
    private let form: TIFFSampleForm?
    let size: PixelSize
    let orientation: Orientation
    let colorProfile: [UInt8]
    /// Samples from -2^(n-1), which libtiff's converter takes for the numbers from 2^(n-1) on.
    private let hasSignedSamples: Bool

    /// Rows in a band, at least, where the picture has as many.
    private static let bandRowsMin = 64
    /// The converter gives up at the first strip or tile that fails.
    private static let stopsAtErrors: Int32 = 1
    /// Directories that are searched for the first full picture.
    private static let directoriesMax = 16

    /// Reads the header. Nil when libtiff cannot read or convert the picture.
    init?(_ bytes: UnsafeRawBufferPointer) {
        TIFFSetErrorHandler(nil)
        TIFFSetErrorHandlerExt { file, _, _, _ in
            if let file { MappedFile.of(file).hasFailed = true }
        }
        TIFFSetWarningHandler(nil)
        // A row that ends too early is but a warning, and the last one: what follows cannot be decoded.
        TIFFSetWarningHandlerExt { file, module, _, _ in
            if let file, let module, strncmp(module, "Fax", 3) == 0 { MappedFile.of(file).hasFailed = true }
        }
        file = MappedFile(bytes)
        let handle = Unmanaged.passUnretained(file).toOpaque()
        // The header is read; the rest is mapped.
        let opened = TIFFClientOpen(
            "picture", "r", handle, { tmsize_t(MappedFile.of($0).read(into: $1, Int($2))) },
            { _, _, _ in -1 },
            { MappedFile.of($0).seek($1, $2) }, { _ in 0 },
            { UInt64(MappedFile.of($0).bytes.count) },
            { handle, base, size in
                let bytes = MappedFile.of(handle).bytes
                base?.pointee = UnsafeMutableRawPointer(mutating: bytes.baseAddress)
                size?.pointee = UInt64(bytes.count)
                return 1
            }, { _, _, _ in })
        guard let opened else { return nil }
        tiff = opened
        Self.findPicture(opened)
        // Without the codec every strip fails, which libtiff notices only while it decodes.
        let compression = shim_tiff_compression(opened)
        let form = TIFFSampleForm(opened)
        var why = [CChar](repeating: 0, count: 1024)
        let isConverted =
            form?.isMisconverted != true && TIFFRGBAImageBegin(&image, opened, Self.stopsAtErrors, &why) == 1
        guard TIFFIsCODECConfigured(compression) == 1, isConverted || form != nil else {
            TIFFRGBAImageEnd(&image)
            TIFFClose(opened)
            return nil
        }
        self.form = isConverted ? nil : form
        hasSignedSamples = shim_tiff_sample_format(opened) == SAMPLEFORMAT_INT
        size = PixelSize(
            width: Int(shim_tiff_number(opened, UInt32(TIFFTAG_IMAGEWIDTH))),
            height: Int(shim_tiff_number(opened, UInt32(TIFFTAG_IMAGELENGTH))))
        let turn = shim_tiff_short(opened, UInt32(TIFFTAG_ORIENTATION), 1)
        orientation = Orientation(rawValue: turn) ?? .upright
        colorProfile = Self.profile(opened)
        // Rows stay as they are stored: the reduced picture is turned upright.
        if isConverted { image.req_orientation = image.orientation }
    }

    deinit {
        TIFFRGBAImageEnd(&image)
        TIFFClose(tiff)
    }

    /// Goes to the first directory that is neither a smaller copy nor a mask, else to the very first.
    private static func findPicture(_ tiff: OpaquePointer) {
        for _ in 0..<directoriesMax {
            if shim_tiff_number(tiff, UInt32(TIFFTAG_SUBFILETYPE))
                & UInt32(FILETYPE_REDUCEDIMAGE | FILETYPE_MASK)
                == 0
            {
                return
            }
            guard TIFFReadDirectory(tiff) == 1 else { break }
        }
        TIFFSetDirectory(tiff, 0)
    }

    private static func profile(_ tiff: OpaquePointer) -> [UInt8] {
        var count: UInt32 = 0
        guard let profile = shim_tiff_profile(tiff, &count) else { return [] }
        return Array(UnsafeRawBufferPointer(start: profile, count: Int(count)))
    }

    func decode(for placement: Placement) -> Pixels? {
        if let form { return decodeSamples(form, for: placement) }
        let hasAlpha = image.alpha != 0
        // Colours of signed samples would be multiplied by an opacity that is one, too.
        if hasSignedSamples && hasAlpha { return nil }
        guard
            var rows = RowReducer(
                size, channels: 4, hasAlpha: hasAlpha, factor: placement.reduction(of: size))
        else { return nil }
        let bandRows = self.bandRows
        guard let band = calloc(bandRows, size.width * 4) else { return nil }
        defer { free(band) }
        let raster = band.assumingMemoryBound(to: UInt32.self)
        file.hasFailed = false
        for top in stride(from: 0, to: size.height, by: bandRows) {
            let count = min(bandRows, size.height - top)
            image.row_offset = Int32(top)
            // Faults of faxes are reported, and not returned.
            guard TIFFRGBAImageGet(&image, raster, image.width, UInt32(count)) == 1, !file.hasFailed else {
                return nil
            }
            for row in 0..<count {
                // ABGR words, on a machine that stores the lowest byte first: RGBA.
                if hasSignedSamples { flipSigns(raster + row * size.width) }
                (raster + row * size.width).withMemoryRebound(to: UInt8.self, capacity: size.width * 4) {
                    rows.add($0)
                }
            }
        }
        return rows.finish()
    }

    private func decodeSamples(_ form: TIFFSampleForm, for placement: Placement) -> Pixels? {
        let factor = placement.reduction(of: size)
        guard let samples = TIFFSamples(tiff, form, size),
            var rows = RowReducer(size, channels: 4, hasAlpha: form.hasAlpha, factor: factor)
        else { return nil }
        file.hasFailed = false
        guard samples.decode(into: &rows), !file.hasFailed else { return nil }
        return rows.finish()
    }

    /// Moves the colours of a row by half of their range: the sign of the highest bit is the difference between both
    /// readings.
    private func flipSigns(_ row: UnsafeMutablePointer<UInt32>) {
        for x in 0..<size.width { row[x] ^= 0x0080_8080 }
    }

    /// A multiple of the file's own strips or tiles, so that none is decoded twice.
    private var bandRows: Int {
        let tag = TIFFIsTiled(tiff) != 0 ? TIFFTAG_TILELENGTH : TIFFTAG_ROWSPERSTRIP
        let unit = Int(shim_tiff_number(tiff, UInt32(tag)))
        guard unit > 0, unit < size.height else { return size.height }
        return min((Self.bandRowsMin + unit - 1) / unit * unit, size.height)
    }
}
