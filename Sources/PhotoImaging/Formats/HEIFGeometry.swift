/// A rectangle of whole pixels.
package struct PixelPart: Hashable, Sendable {
    /// Pixels to the left of it and above it.
    package var left: Int
    package var top: Int
    package var size: PixelSize

    package init(left: Int, top: Int, size: PixelSize) {
        (self.left, self.top, self.size) = (left, top, size)
    }
}

/// The size and the transformations of a HEIF's items (ISO/IEC 23008-12, 6.5): turns, flips and crops in the order in
/// which the file associates them with an item, wherever the item's size stands among them.
package struct HEIFGeometry {
    /// One item.
    package struct Item {
        /// The item's size before all transformations (`ispe`). Nil if the file does not give it.
        package var size: PixelSize?
        /// Whether other items draw the item and may have transformations of their own: `iden` and `iovl`.
        package var isDrawnByOthers: Bool
        fileprivate var transformations: [Transformation]
    }

    fileprivate enum Transformation: Equatable {
        case turn(clockwise: Int)
        case flipVertically
        case flipHorizontally
        case crop(CleanAperture)
    }

    private let file: Region?
    private let meta: Region?
    private let types: [UInt32: UInt32]
    private var properties: [Property] = []

    /// Where in the file the matrices of all code points lie (`colr` of type `nclx`: two bytes, then one whose highest
    /// bit tells the full range).
    package private(set) var matrixOffsets: [UInt64] = []

    private enum Property {
        case size(PixelSize)
        case transformation(Transformation)
        case av1Configuration(Region)
        case hevcConfiguration(Region)
        case other
    }

    private static let propertiesMax = 1024
    private static let itemsMax = UInt32(HEIFItems.countMax)

    /// Reads the properties of a HEIC or AVIF. Items of other files are nil.
    package init(_ source: some ByteSource) {
        self.init(file: Region(BoundedReader(source)))
    }

    init(file: Region) {
        let meta = Box.first("meta", in: file)?.from(4)
        self.init(meta: meta, items: meta.map { HEIFItems(meta: $0) }, file: file)
    }

    /// - Parameters:
    ///   - meta: the boxes in the `meta` box.
    ///   - items: the items that `meta` lists.
    init(meta: Region?, items: HEIFItems?, file: Region? = nil) {
        (self.meta, self.file, types) = (meta, file, items?.types ?? [:])
        guard let meta, let container = Box.first("iprp", in: meta).flatMap({ Box.first("ipco", in: $0) })
        else { return }
        var found: [Property] = []
        var matrices: [UInt64] = []
        Box.forEach(in: container) { box in
            found.append(Self.property(box))
            if box.type == fourCC("colr"), box.body.matches("nclx"), box.body.count >= 11 {
                matrices.append(box.body.start + 8)
            }
            return found.count < Self.propertiesMax
        }
        (properties, matrixOffsets) = (found, matrices)
    }

    private static func property(_ box: Box) -> Property {
        switch box.type {
        case fourCC("ispe"):
            guard let width = box.body.u32(4), let height = box.body.u32(8), width > 0, height > 0 else {
                return .other
            }
            return .size(PixelSize(width: Int(width), height: Int(height)))
        case fourCC("irot"):
            return .transformation(.turn(clockwise: 4 - Int(box.body.u8(0) ?? 0) & 3))
        case fourCC("imir"):
            // Axis 0 swaps top and bottom, 1 left and right.
            return .transformation((box.body.u8(0) ?? 0) & 1 == 0 ? .flipVertically : .flipHorizontally)
        case fourCC("clap"):
            return CleanAperture(box.body).map { .transformation(.crop($0)) } ?? .other
        case fourCC("av1C"): return .av1Configuration(box.body)
        case fourCC("hvcC"): return .hevcConfiguration(box.body)
        default:
            return .other
        }
    }

    /// The size of the widest item, for a file that does not say which of them is the primary one.
    var widest: PixelSize? {
        properties.compactMap { if case .size(let size) = $0 { size } else { nil } }.max {
            $0.width < $1.width
        }
    }

    /// The primary item. Nil without one.
    var primary: Item? {
        guard let meta, let body = Box.first("pitm", in: meta),
            let id = body.u8(0) == 0 ? body.u16(4).map(UInt32.init) : body.u32(4)
        else { return nil }
        return item(id)
    }

    /// The item with that number; nil if nothing is known of it.
    package func item(_ id: UInt32) -> Item? {
        guard let meta else { return nil }
        let type = types[id]
        let indices = Self.associations(of: [id], in: meta)[id] ?? []
        guard type != nil || !indices.isEmpty else { return nil }
        return item(type, indices)
    }

    private func item(_ type: UInt32?, _ indices: [Int]) -> Item {
        var item = Item(
            size: nil, isDrawnByOthers: type == fourCC("iden") || type == fourCC("iovl"), transformations: [])
        for index in indices where properties.indices.contains(index - 1) {
            switch properties[index - 1] {
            case .size(let size): item.size = item.size ?? size
            case .transformation(let transformation): item.transformations.append(transformation)
            case .av1Configuration, .hevcConfiguration, .other: break
            }
        }
        return item
    }

    /// Whether an item is a grid of tiles that are turned, flipped or cropped one by one. Debian 12's avifenc says so
    /// of the tiles of every grid that it turns. The picture is whole only for programs that ignore it.
    package func hasTransformedTiles(_ id: UInt32) -> Bool {
        guard let meta, types[id] == fourCC("grid") else { return false }
        let tiles = Self.tiles(of: id, in: meta)
        let found = Self.associations(of: tiles, in: meta)
        // Without properties a tile cannot be decoded: the table was not read to its end.
        return found.count < tiles.count || found.values.contains { !item(nil, $0).isShownAsStored }
    }

    /// The colours that the bitstream of an item tells, or that of the first of the items that it is drawn from. Nil if
    /// it cannot be read.
    package func codedColors(_ id: UInt32) -> CodedColors? {
        guard let meta, let file else { return nil }
        let coded = Self.tiles(of: id, in: meta).min() ?? id
        for index in Self.associations(of: [coded], in: meta)[coded] ?? []
        where properties.indices.contains(index - 1) {
            switch properties[index - 1] {
            case .hevcConfiguration(let box): return CodedColors(hevc: box)
            // The sequence header may stand in both, or before the picture only.
            case .av1Configuration(let box):
                return CodedColors(av1: box.from(4))
                    ?? ItemLocations(file: file, meta: meta).regions(of: [coded])[coded].flatMap {
                        CodedColors(av1: $0)
                    }
            default: break
            }
        }
        return nil
    }

    /// The items that a grid consists of (`dimg` in `iref`).
    private static func tiles(of id: UInt32, in meta: Region) -> Set<UInt32> {
        guard let body = Box.first("iref", in: meta) else { return [] }
        let isWide = body.u8(0) != 0
        let idBytes: UInt64 = isWide ? 4 : 2
        func number(_ box: Region, _ offset: UInt64) -> UInt32? {
            isWide ? box.u32(offset) : box.u16(offset).map(UInt32.init)
        }
        var tiles: Set<UInt32> = []
        Box.forEach(in: body.from(4)) { box in
            guard box.type == fourCC("dimg"), number(box.body, 0) == id, let count = box.body.u16(idBytes)
            else {
                return true
            }
            for index in 0..<min(UInt64(count), UInt64(itemsMax)) {
                guard let tile = number(box.body, idBytes + 2 + index * idBytes) else { break }
                tiles.insert(tile)
            }
            return false
        }
        return tiles
    }

    /// The properties of items, counted from 1, in the order of the first `ipma` that names the item.
    private static func associations(of wanted: Set<UInt32>, in meta: Region) -> [UInt32: [Int]] {
        guard let body = Box.first("iprp", in: meta) else { return [:] }
        var found: [UInt32: [Int]] = [:]
        Box.forEach(in: body) { box in
            if box.type == fourCC("ipma") { readAssociations(of: wanted, box.body, into: &found) }
            return found.count < wanted.count
        }
        return found
    }

    private static func readAssociations(
        of wanted: Set<UInt32>, _ table: Region, into found: inout [UInt32: [Int]]
    ) {
        guard let version = table.u8(0), let flags = table.u8(3), let count = table.u32(4), count <= itemsMax
        else { return }
        let isWide = flags & 1 == 1
        var offset: UInt64 = 8
        for _ in 0..<count where found.count < wanted.count {
            guard let id = version == 0 ? table.u16(offset).map(UInt32.init) : table.u32(offset) else {
                return
            }
            offset += version == 0 ? 2 : 4
            guard let entries = table.u8(offset).map(UInt64.init) else { return }
            offset += 1
            if wanted.contains(id), found[id] == nil {
                found[id] = (0..<entries).map { index in
                    isWide
                        ? Int((table.u16(offset + 2 * index) ?? 0) & 0x7FFF)
                        : Int((table.u8(offset + index) ?? 0) & 0x7F)
                }
            }
            offset += entries * (isWide ? 2 : 1)
        }
    }
}

extension HEIFGeometry.Item {
    /// The part of the stored pixels that the item shows, and the EXIF orientation that turns that part upright.
    ///
    /// - Parameter stored: the size of the stored pixels, without the padding of the coding.
    package func shown(of stored: PixelSize) -> (part: PixelPart, orientation: Int) {
        var upright = Upright()
        var part = PixelPart(left: 0, top: 0, size: stored)
        for transformation in transformations {
            switch transformation {
            case .turn(let quarters): upright.turn(clockwise: quarters)
            case .flipVertically: upright.flipVertically()
            case .flipHorizontally: upright.flipHorizontally()
            case .crop(let aperture):
                let orientation = upright.orientation
                let view = orientation >= 5 ? part.size.transposed : part.size
                guard let crop = aperture.part(of: view) else { continue }
                part = part.cropped(to: crop, seenIn: orientation)
            }
        }
        return (part, upright.orientation)
    }

    /// Whether the stored pixels are shown as they are.
    fileprivate var isShownAsStored: Bool {
        guard let size else { return transformations.isEmpty }
        let shown = shown(of: size)
        return shown.orientation == 1 && shown.part.size == size
    }

    /// Whether there is any turn, flip or crop.
    package var isTransformed: Bool { !transformations.isEmpty }

    /// Whether a part of the stored pixels is not shown.
    package var isCropped: Bool {
        transformations.contains { if case .crop = $0 { true } else { false } }
    }

    /// Whether a smaller copy shows the same as this item: the same turns and flips, and no crop on either side.
    package func isShown(by copy: HEIFGeometry.Item) -> Bool {
        let whole = PixelSize(width: 1, height: 1)
        return !isCropped && !copy.isCropped
            && shown(of: whole).orientation == copy.shown(of: whole).orientation
    }
}

extension PixelPart {
    /// The stored part that `crop` selects, if `crop` counts pixels of the upright view of this part.
    fileprivate func cropped(to crop: PixelPart, seenIn orientation: Int) -> PixelPart {
        let right = (orientation >= 5 ? size.height : size.width) - crop.left - crop.size.width
        let below = (orientation >= 5 ? size.width : size.height) - crop.top - crop.size.height
        let (x, y) =
            switch orientation {
            case 2: (right, crop.top)
            case 3: (right, below)
            case 4: (crop.left, below)
            case 5: (crop.top, crop.left)
            case 6: (crop.top, right)
            case 7: (below, right)
            case 8: (below, crop.left)
            default: (crop.left, crop.top)
            }
        return PixelPart(
            left: left + x, top: top + y, size: orientation >= 5 ? crop.size.transposed : crop.size)
    }
}

/// The crop of a `clap` property (ISO/IEC 14496-12, 12.1.4): a size, and the distance of its middle from the middle of
/// the picture, in pixels.
private struct CleanAperture: Equatable {
    private var width: Double
    private var height: Double
    private var across: Double
    private var down: Double

    /// Nil if a fraction has no value or the size is less than a pixel.
    init?(_ body: Region) {
        func fraction(_ index: UInt64, isSigned: Bool) -> Double? {
            guard let numerator = body.u32(index * 8), let denominator = body.u32(index * 8 + 4),
                denominator > 0
            else { return nil }
            let value = isSigned ? Double(Int32(bitPattern: numerator)) : Double(numerator)
            return value / Double(denominator)
        }
        guard let width = fraction(0, isSigned: false), let height = fraction(1, isSigned: false),
            let across = fraction(2, isSigned: true), let down = fraction(3, isSigned: true),
            width >= 1, height >= 1
        else { return nil }
        (self.width, self.height, self.across, self.down) = (width, height, across, down)
    }

    /// The part of a picture of `size` inside of both. Nil if they do not meet.
    func part(of size: PixelSize) -> PixelPart? {
        func range(_ length: Int, _ wanted: Double, _ offset: Double) -> Range<Int> {
            let whole = Double(length)
            let first = ((whole - 1) / 2 + offset - (wanted - 1) / 2).rounded(.down)
            let lower = min(max(first, 0), whole)
            return Int(lower)..<Int(max(min(first + wanted.rounded(), whole), lower))
        }
        let columns = range(size.width, width, across)
        let rows = range(size.height, height, down)
        guard !columns.isEmpty, !rows.isEmpty else { return nil }
        return PixelPart(
            left: columns.lowerBound, top: rows.lowerBound,
            size: PixelSize(width: columns.count, height: rows.count))
    }
}
