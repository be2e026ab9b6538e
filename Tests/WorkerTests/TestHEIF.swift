import CHEIF
import Foundation
import PhotoImaging

/// HEIC or AVIF, with an embedded thumbnail where `thumbnailSide` says how large: it is grey, to tell it apart.
func testHEIF(
    _ format: heif_compression_format, _ width: Int = 400, _ height: Int = 300, hasHole: Bool = false,
    thumbnailSide: Int? = nil, profile: [UInt8] = []
) -> [UInt8]? {
    func image(_ width: Int, _ height: Int, _ pixels: [UInt8]) -> OpaquePointer? {
        var image: OpaquePointer?
        heif_image_create(
            Int32(width), Int32(height), heif_colorspace_RGB, heif_chroma_interleaved_RGBA, &image)
        heif_image_add_plane(image, heif_channel_interleaved, Int32(width), Int32(height), 8)
        var stride: Int32 = 0
        let plane = heif_image_get_plane(image, heif_channel_interleaved, &stride)!
        for y in 0..<height {
            for byte in 0..<width * 4 { plane[y * Int(stride) + byte] = pixels[y * width * 4 + byte] }
        }
        return image
    }
    let main = image(width, height, quarters(width, height, hasHole: hasHole))
    defer { heif_image_release(main) }
    if !profile.isEmpty { heif_image_set_raw_color_profile(main, "prof", profile, profile.count) }
    let options = heif_encoding_options_alloc()!
    defer { heif_encoding_options_free(options) }
    options.pointee.save_alpha_channel = hasHole ? 1 : 0
    return encodeHEIF(format) { context, encoder in
        var handle: OpaquePointer?
        guard heif_context_encode_image(context, main, encoder, options, &handle).code == heif_error_Ok else {
            return false
        }
        defer { heif_image_handle_release(handle) }
        if let side = thumbnailSide {
            let gray = image(width, height, [UInt8](repeating: 128, count: width * height * 4))
            defer { heif_image_release(gray) }
            var thumbnail: OpaquePointer?
            heif_context_encode_thumbnail(context, gray, handle, encoder, options, Int32(side), &thumbnail)
            heif_image_handle_release(thumbnail)
        }
        return true
    }
}

/// The file that `body` encodes into a context. Nil without an encoder, or if `body` fails.
private func encodeHEIF(
    _ format: heif_compression_format, _ body: (_ context: OpaquePointer?, _ encoder: OpaquePointer?) -> Bool
) -> [UInt8]? {
    let context = heif_context_alloc()
    defer { heif_context_free(context) }
    var encoder: OpaquePointer?
    guard heif_context_get_encoder_for_format(context, format, &encoder).code == heif_error_Ok else {
        return nil
    }
    defer { heif_encoder_release(encoder) }
    heif_encoder_set_lossy_quality(encoder, 80)
    guard body(context, encoder) else { return nil }
    let sink = NSMutableData()
    var writer = heif_writer()
    writer.writer_api_version = 1
    writer.write = { _, bytes, count, sink in
        Unmanaged<NSMutableData>.fromOpaque(sink!).takeUnretainedValue().append(bytes!, length: count)
        return heif_error(code: heif_error_Ok, subcode: heif_suberror_Unspecified, message: nil)
    }
    heif_context_write(context, &writer, Unmanaged.passUnretained(sink).toOpaque())
    return Array(sink as Data)
}

/// A HEIC or AVIF of items with chosen properties, whose pictures libheif has encoded.
struct TestHEIF {
    /// A coded picture: the four colours, or levels of grey from left to right.
    struct Picture {
        var configuration: [UInt8]
        var data: [UInt8]

        /// A picture that another encoder has coded.
        init?(configuration: String, data: String) {
            guard let box = Data(base64Encoded: configuration), let units = Data(base64Encoded: data) else {
                return nil
            }
            (self.configuration, self.data) = (Array(box), Array(units))
        }

        /// Nil without an encoder.
        init?(_ format: heif_compression_format, _ width: Int, _ height: Int, levels: [UInt8] = []) {
            let file =
                levels.isEmpty ? testHEIF(format, width, height) : testGray(format, width, height, levels)
            guard let file else { return nil }
            let name = format == heif_compression_AV1 ? "av1C" : "hvcC"
            guard let configuration = Self.box(name, in: file), let data = Self.box("mdat", in: file) else {
                return nil
            }
            self.configuration = configuration
            self.data = Array(data.dropFirst(8))
        }

        /// Columns of luma and the two differences, 4:2:0 (or grey, without differences), whose colours the bitstream
        /// tells by code points. Nil without an encoder.
        init?(
            _ format: heif_compression_format, _ width: Int, _ height: Int, columns: [[UInt8]],
            primaries: UInt32, transfer: UInt32, matrix: UInt32, isFullRange: Bool
        ) {
            let colors = heif_nclx_color_profile_alloc()!
            defer { heif_nclx_color_profile_free(colors) }
            colors.pointee.color_primaries = heif_color_primaries(primaries)
            colors.pointee.transfer_characteristics = heif_transfer_characteristics(transfer)
            colors.pointee.matrix_coefficients = heif_matrix_coefficients(matrix)
            colors.pointee.full_range_flag = isFullRange ? 1 : 0
            guard let file = testPlanes(format, width, height, columns, colors),
                let configuration = Self.box(format == heif_compression_AV1 ? "av1C" : "hvcC", in: file),
                let data = Self.box("mdat", in: file)
            else { return nil }
            self.configuration = configuration
            self.data = Array(data.dropFirst(8))
        }

        /// The whole box. These names do not occur elsewhere in such small files.
        private static func box(_ name: String, in file: [UInt8]) -> [UInt8]? {
            guard let place = Data(file).range(of: Data(name.utf8)), place.lowerBound >= 4 else { return nil }
            let start = place.lowerBound - 4
            let length = file[start..<start + 4].reduce(0) { $0 << 8 | Int($1) }
            return start + length <= file.count ? Array(file[start..<start + length]) : nil
        }
    }

    var format = heif_compression_HEVC
    var type: MediaType { format == heif_compression_AV1 ? .avif : .heic }
    var picture: Picture
    /// In the order in which they are associated with the picture; its configuration comes last.
    var properties: [[UInt8]]
    /// If the picture consists of two of the coded ones side by side: its size, and the properties of each.
    var grid: (size: PixelSize, tileProperties: [[UInt8]])?
    var thumbnail: Picture?
    var thumbnailProperties: [[UInt8]] = []
    /// Auxiliary pictures of the first, and their kinds (`auxC`).
    var auxiliaries: [(picture: Picture, kind: String)] = []
    /// Whether an item `tmap` derives an HDR picture from the first and the first auxiliary picture.
    var hasToneMap = false
    var exif: [UInt8] = []
    /// The major brand; nil: that of the format.
    var brand: String?

    static func box(_ name: String, _ body: [UInt8]) -> [UInt8] {
        number(8 + body.count, 4) + Array(name.utf8) + body
    }

    static func number(_ value: Int, _ byteCount: Int) -> [UInt8] {
        (0..<byteCount).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }

    static func extents(_ width: Int, _ height: Int) -> [UInt8] {
        box("ispe", number(0, 4) + number(width, 4) + number(height, 4))
    }

    /// A turn by so many quarters, against the clock.
    static func turn(_ quarters: UInt8) -> [UInt8] { box("irot", [quarters]) }

    /// Axis 0 swaps top and bottom, 1 left and right.
    static func mirror(_ axis: UInt8) -> [UInt8] { box("imir", [axis]) }

    /// A crop to that size, its middle so many half pixels to the right of the picture's and below it.
    static func crop(_ width: Int, _ height: Int, halfRight: Int = 0, halfDown: Int = 0) -> [UInt8] {
        let numbers = [width, 1, height, 1, halfRight, 2, halfDown, 2]
        return box("clap", numbers.flatMap { number($0, 4) })
    }

    /// Code points of ITU-T H.273.
    static func colors(_ primaries: Int, _ transfer: Int, _ matrix: Int, isFullRange: Bool) -> [UInt8] {
        let points = number(primaries, 2) + number(transfer, 2) + number(matrix, 2)
        return box("colr", Array("nclx".utf8) + points + [isFullRange ? 0x80 : 0])
    }

    private struct Item {
        var type: String
        var data: [UInt8]
        var properties: [[UInt8]]
        /// The box of `iref` that refers to `others`.
        var reference = ""
        var others: [Int] = []
    }

    /// The first is the primary one; they are numbered from 1 on.
    private var items: [Item] {
        let coded = format == heif_compression_AV1 ? "av01" : "hvc1"
        var items = [Item(type: coded, data: picture.data, properties: properties + [picture.configuration])]
        if let grid {
            let shape = [0, 0, 0, 1] + Self.number(grid.size.width, 2) + Self.number(grid.size.height, 2)
            let tile = Item(
                type: coded, data: picture.data, properties: grid.tileProperties + [picture.configuration])
            items = [
                Item(type: "grid", data: shape, properties: properties, reference: "dimg", others: [2, 3]),
                tile, tile,
            ]
        }
        if let thumbnail {
            items.append(
                Item(
                    type: coded, data: thumbnail.data,
                    properties: thumbnailProperties + [thumbnail.configuration], reference: "thmb",
                    others: [1]))
        }
        let firstAuxiliary = items.count + 1
        for (auxiliary, kind) in auxiliaries {
            let type = Self.box("auxC", Self.number(0, 4) + Array(kind.utf8) + [0])
            items.append(
                Item(
                    type: coded, data: auxiliary.data,
                    properties: properties + [type, auxiliary.configuration], reference: "auxl", others: [1]))
        }
        if hasToneMap {
            // ISO 21496-1: version, flags and fractions, here all of the value 1.
            let ones = (0..<14).map { _ in Self.number(1, 4) }
            let metadata: [UInt8] = [0, 0, 0, 0, 0, 0] + ones.flatMap(\.self)
            items.append(
                Item(
                    type: "tmap", data: metadata, properties: properties, reference: "dimg",
                    others: [1, firstAuxiliary]))
        }
        if !exif.isEmpty {
            items.append(
                Item(
                    type: "Exif", data: Self.number(0, 4) + exif, properties: [], reference: "cdsc",
                    others: [1]))
        }
        return items
    }

    var bytes: [UInt8] {
        let items = items
        var boxes: [[UInt8]] = []
        var associations = Self.number(0, 4) + Self.number(items.count, 4)
        for (index, item) in items.enumerated() {
            associations += Self.number(index + 1, 2) + [UInt8(item.properties.count)]
            for property in item.properties {
                boxes.append(property)
                associations.append(UInt8(boxes.count))
            }
        }
        let entries = items.enumerated().map { index, item in
            Self.box(
                "infe", [2, 0, 0, 0] + Self.number(index + 1, 2) + [0, 0] + Array(item.type.utf8) + [0])
        }
        let references = items.enumerated().filter { !$1.others.isEmpty }.flatMap { index, item in
            Self.box(
                item.reference,
                Self.number(index + 1, 2) + Self.number(item.others.count, 2)
                    + item.others.flatMap { Self.number($0, 2) })
        }
        let reference = references.isEmpty ? [] : Self.box("iref", Self.number(0, 4) + references)
        func meta(dataAt start: Int) -> [UInt8] {
            var locations = Self.number(0, 4) + [0x44, 0] + Self.number(items.count, 2)
            var offset = start
            for (index, item) in items.enumerated() {
                locations += Self.number(index + 1, 2) + [0, 0, 0, 1] + Self.number(offset, 4)
                locations += Self.number(item.data.count, 4)
                offset += item.data.count
            }
            let handler = Self.number(0, 8) + Array("pict".utf8) + Self.number(0, 13)
            let properties = Self.box("ipco", boxes.flatMap(\.self)) + Self.box("ipma", associations)
            return Self.box(
                "meta",
                Self.number(0, 4) + Self.box("hdlr", handler) + Self.box("pitm", [0, 0, 0, 0, 0, 1])
                    + Self.box("iloc", locations)
                    + Self.box(
                        "iinf", Self.number(0, 4) + Self.number(items.count, 2) + entries.flatMap(\.self))
                    + reference + Self.box("iprp", properties))
        }
        let usual = format == heif_compression_AV1 ? "avif" : "heic"
        let type = Self.box(
            "ftyp", Array(((brand ?? usual) + "\0\0\0\0mif1" + usual + (hasToneMap ? "tmap" : "")).utf8))
        let start = type.count + meta(dataAt: 0).count + 8
        return type + meta(dataAt: start) + Self.box("mdat", items.flatMap(\.data))
    }
}

/// A picture of one channel, with those levels in columns of one width.
private func testGray(
    _ format: heif_compression_format, _ width: Int, _ height: Int, _ levels: [UInt8]
) -> [UInt8]? {
    testPlanes(format, width, height, levels.map { [$0] }, nil)
}

/// A picture of one channel, or of three as 4:2:0, with those values in columns of one width.
private func testPlanes(
    _ format: heif_compression_format, _ width: Int, _ height: Int, _ columns: [[UInt8]],
    _ colors: UnsafePointer<heif_color_profile_nclx>?
) -> [UInt8]? {
    let isGray = columns.allSatisfy { $0.count == 1 }
    var image: OpaquePointer?
    heif_image_create(
        Int32(width), Int32(height), isGray ? heif_colorspace_monochrome : heif_colorspace_YCbCr,
        isGray ? heif_chroma_monochrome : heif_chroma_420, &image)
    defer { heif_image_release(image) }
    let channels = [heif_channel_Y, heif_channel_Cb, heif_channel_Cr].prefix(isGray ? 1 : 3)
    for (index, channel) in channels.enumerated() {
        let (columnCount, rowCount) = index == 0 ? (width, height) : (width / 2, height / 2)
        heif_image_add_plane(image, channel, Int32(columnCount), Int32(rowCount), 8)
        var stride: Int32 = 0
        guard let plane = heif_image_get_plane(image, channel, &stride) else { return nil }
        for y in 0..<rowCount {
            for x in 0..<columnCount {
                plane[y * Int(stride) + x] = columns[x * columns.count / columnCount][index]
            }
        }
    }
    if let colors { heif_image_set_nclx_color_profile(image, colors) }
    return encodeHEIF(format) { context, encoder in
        heif_context_encode_image(context, image, encoder, nil, nil).code == heif_error_Ok
    }
}
