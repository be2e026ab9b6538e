import PhotoImaging
import TestFixtures

/// Files that are too large, or too exact, for bytes at random: the metadata lies where only some readers look for it.
/// The input says which file, how it is laid out, and has the metadata themselves.
func fuzzBoxes(_ bytes: UnsafeRawBufferPointer) {
    var input = Input(bytes)
    switch input.number(UInt8.self) % 4 {
    case 0: checkTransformations(&input)
    case 1: checkMetadata(packedBox(&input))
    case 2: checkMetadata(picture(&input))
    default: checkMetadata(pages(&input))
    }
}

// MARK: HEIF and AVIF

/// Properties in any order: sizes, turns, flips, crops and others, which two items share.
private func checkTransformations(_ input: inout Input) {
    let side = { (input: inout Input) in 1 + Int(input.number(UInt16.self)) }
    let stored = PixelSize(width: side(&input), height: side(&input))
    let count = Int(input.number(UInt8.self) % 12)
    var properties: [[UInt8]] = []
    for _ in 0..<count {
        switch input.number(UInt8.self) % 5 {
        case 0: properties.append(Picture.box("ispe", [0, 0, 0, 0] + input.take(8)))
        case 1: properties.append(Picture.box("irot", input.take(1)))
        case 2: properties.append(Picture.box("imir", input.take(1)))
        case 3: properties.append(Picture.box("clap", input.take(32)))
        default: properties.append(Picture.box("pixi", input.take(4)))
        }
    }
    var table: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 2]
    for id in 1...2 as ClosedRange<UInt8> {
        let own = input.take(Int(input.number(UInt8.self) % 12))
        table += [0, id, UInt8(own.count)] + own
    }
    let item = { (id: UInt8) in Picture.box("infe", [2, 0, 0, 0, 0, id, 0, 0] + Array("av01\0".utf8)) }
    let rest = input.takeAll()
    func file(_ properties: [[UInt8]], _ table: [UInt8]) -> [UInt8] {
        let meta =
            Picture.box("pitm", [0, 0, 0, 0, 0, 1])
            + Picture.box("iinf", [0, 0, 0, 0, 0, 2] + item(1) + item(2))
            + Picture.box("iprp", Picture.box("ipco", properties.flatMap { $0 }) + Picture.box("ipma", table))
        return Picture.ftyp("avif") + Picture.box("meta", [0, 0, 0, 0] + meta) + rest
    }
    checkCodedColors(rest) { file($0, [0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1, 1]) }
    let file = file(properties, table)
    checkMetadata(file)
    let geometry = HEIFGeometry(MemoryByteSource(file))
    guard let primary = geometry.item(1), let copy = geometry.item(2) else {
        preconditionFailure("an item is missing")
    }
    for item in [primary, copy] {
        let (part, orientation) = item.shown(of: stored)
        precondition((1...8).contains(orientation), "no orientation")
        precondition(part.left >= 0 && part.top >= 0, "a part before the picture")
        precondition(part.size.width >= 1 && part.size.height >= 1, "nothing is shown")
        precondition(part.left + part.size.width <= stored.width, "a part beside the picture")
        precondition(part.top + part.size.height <= stored.height, "a part below the picture")
    }
    precondition(primary.isShown(by: copy) == copy.isShown(by: primary), "a copy of one item only")
}

/// Headers of a bitstream, whole and behind what a real one begins with.
private func checkCodedColors(_ bytes: [UInt8], in file: ([[UInt8]]) -> [UInt8]) {
    let parameterSet: [UInt8] = [1, 0x21, 0, 1, 0xFF, 0xFF, 0x42, 1]
    let boxes = [
        Picture.box("av1C", [0x81, 0, 0, 0] + bytes), Picture.box("av1C", [0x81, 0, 0, 0, 0x08] + bytes),
        Picture.box("hvcC", [UInt8](repeating: 1, count: 22) + bytes),
        Picture.box("hvcC", [UInt8](repeating: 1, count: 22) + parameterSet + bytes),
    ]
    for box in boxes {
        guard let colors = HEIFGeometry(MemoryByteSource(file([box]))).codedColors(1) else { continue }
        precondition((0...3).contains(colors.chroma), "no chroma")
        for code in [colors.primaries, colors.transfer, colors.matrix] {
            precondition((0...255).contains(code), "no code point")
        }
    }
}

// MARK: JPEG XL

/// Compressed boxes: their streams are bytes of the input, or hold them unchanged.
private func packedBox(_ input: inout Input) -> [UInt8] {
    var boxes: [UInt8] = []
    for _ in 0..<1 + input.number(UInt8.self) % 8 {
        let how = input.number(UInt8.self)
        let type = ["Exif", "xml ", "jumb", "brob"][Int(how % 4)]
        let body = input.take(Int(input.number(UInt16.self) % 1024))
        boxes += Picture.box("brob", Array(type.utf8) + (how & 4 == 0 ? Picture.storedBrotli(body) : body))
    }
    return Picture.box("JXL ", [0x0D, 0x0A, 0x87, 0x0A]) + Picture.ftyp("jxl ") + boxes
        + Picture.box("brob", Array("Exif".utf8) + Picture.storedBrotli(input.takeAll()))
}

// MARK: PNG and TIFF

/// A PNG with metadata behind many image chunks and before a long tail.
private func picture(_ input: inout Input) -> [UInt8] {
    let images = Int(input.number(UInt8.self) % 24)
    let tailBytes = Int(input.number(UInt32.self) % 300_000)
    let types = ["eXIf", "iTXt", "tEXt", "zTXt", "tIME", "IDAT"]
    let type = types[Int(input.number(UInt8.self)) % types.count]
    let body = input.takeAll()
    return Picture.png([], images: images, last: [(type, body)]) + [UInt8](repeating: 0x49, count: tailBytes)
}

/// A TIFF whose later pages say what its first does not.
private func pages(_ input: inout Input) -> [UInt8] {
    func tags(_ input: inout Input) -> [TIFFTag] {
        (0..<input.number(UInt8.self) % 6).map { _ in
            let (tag, type) = (Int(input.number(UInt16.self)), 1 + Int(input.number(UInt8.self) % 12))
            return .raw(tag, type: type, input.take(Int(input.number(UInt8.self))))
        }
    }
    var builder = TIFFBuilder(isBig: input.number(UInt8.self) & 1 == 1)
    builder.main = tags(&input)
    builder.next = tags(&input)
    builder.exif = tags(&input)
    builder.subs = [tags(&input), tags(&input)]
    var bytes = builder.bytes
    input.patch(&bytes)
    return bytes
}
