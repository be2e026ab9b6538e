import Foundation

/// A real JPEG of 8 by 8 gray pixels: taken at 12:30 on that day, or undated; `more` makes it another
/// picture. It has at least `size` bytes.
public func jpeg(_ day: String? = "2024-05-01", more: Int = 0, size: Int = 320) -> [UInt8] {
    var bytes: [UInt8] = [0xFF, 0xD8]
    if let day { bytes += exifSegment("\(day.replacingOccurrences(of: "-", with: ":")) 12:30:00") }
    let picture = grayPicture(level: 28 + more &* 53 % 200)
    var comment = Array("picture \(more) ".utf8)
    while bytes.count + 4 + comment.count + picture.count < size {
        comment.append(UInt8(truncatingIfNeeded: comment.count &* 7 &+ more))
    }
    return bytes + segment(0xFE, comment) + picture
}

/// A JPEG as `jpeg` makes it, followed by noise up to `size` bytes, which no run of another picture's is equal to.
public func largeJPEG(_ day: String? = "2024-05-01", more: Int = 0, size: Int) -> [UInt8] {
    let picture = jpeg(day, more: more)
    return picture + noise(size - picture.count, seed: more + 1)
}

/// A JPEG with Apple's maker note: the identifier of a Live Photo (tag 17), or of a burst (11).
public func appleJPEG(_ day: String, tag: UInt8, _ identifier: String, more: Int) -> [UInt8] {
    let text: [UInt8] = Array(identifier.utf8) + [0]
    var note: [UInt8] = Array("Apple iOS\0".utf8)
    note += [0, 1, 0x4D, 0x4D, 0, 1, 0, tag, 0, 2, 0, 0, 0, UInt8(text.count), 0, 0, 0, 32, 0, 0, 0, 0]
    note += text
    // One directory, of the EXIF one; in that the date and the note.
    var block: [UInt8] = Array("MM\0*".utf8)
    block += [0, 0, 0, 8, 0, 1, 0x87, 0x69, 0, 4, 0, 0, 0, 1, 0, 0, 0, 26, 0, 0, 0, 0]
    block += [0, 2, 0x90, 0x03, 0, 2, 0, 0, 0, 20, 0, 0, 0, 56]
    block += [0x92, 0x7C, 0, 7, 0, 0, 0, UInt8(note.count), 0, 0, 0, 76, 0, 0, 0, 0]
    block += Array("\(String(day.map { $0 == "-" ? ":" : $0 })) 12:30:00\0".utf8)
    block += note
    let body = Array("Exif\0\0".utf8) + block
    var bytes = jpeg(nil, more: more)
    bytes.insert(contentsOf: [0xFF, 0xE1, 0, UInt8(body.count + 2)] + body, at: 2)
    return bytes
}

/// A TIFF of no pixels, as raw files are: taken at 12:30, or at another time, on that day; `more` makes it another.
public func raw(_ day: String, _ time: String = "12:30:00", more: Int = 0) -> [UInt8] {
    exifBlock("\(day.replacingOccurrences(of: "-", with: ":")) \(time)") + Array("raw \(more)".utf8)
}

private func box(_ type: String, _ body: [UInt8]) -> [UInt8] {
    let count = UInt32(body.count + 8)
    return (0..<4).map { UInt8(truncatingIfNeeded: count >> (24 - 8 * $0)) } + Array(type.utf8) + body
}

/// A QuickTime movie with the metadata of a Live Photo's video: taken at 12:30:01 on that day, with its identifier.
public func movie(_ day: String?, _ identifier: String?, more: UInt8 = 0) -> [UInt8] {
    let values =
        (day.map { [("com.apple.quicktime.creationdate", "\($0)T12:30:01+0000")] } ?? [])
        + (identifier.map { [("com.apple.quicktime.content.identifier", $0)] } ?? [])
    let keys = values.flatMap { box("mdta", Array($0.0.utf8)) }
    var list: [UInt8] = []
    for (index, value) in values.enumerated() {
        let data = box("data", [0, 0, 0, 1, 0, 0, 0, 0] + Array(value.1.utf8))
        list += box("\0\0\0" + String(UnicodeScalar(UInt8(index + 1))), data)
    }
    let meta =
        box("hdlr", [UInt8](repeating: 0, count: 24))
        + box("keys", [0, 0, 0, 0, 0, 0, 0, UInt8(values.count)] + keys)
        + box("ilst", list)
    return box("ftyp", Array("qt  \0\0\0\0qt  ".utf8)) + box("moov", box("meta", meta)) + box("free", [more])
}

/// A movie whose only date is its header's, in UTC: seconds since 1970.
public func movie(created: Int64, more: UInt8 = 0) -> [UInt8] {
    let since1904 = UInt32(created + 2_082_844_800)
    let time = (0..<4).map { UInt8(truncatingIfNeeded: since1904 >> (24 - 8 * $0)) }
    let header = [0, 0, 0, 0] + time + time + [0, 0, 2, 88] + [UInt8](repeating: 0, count: 84)
    return box("ftyp", Array("isom\0\0\0\0isom".utf8)) + box("moov", box("mvhd", header))
        + box("free", [more])
}

/// A photo by its metadata whose picture breaks off before it begins.
public func undecodableJPEG(_ day: String) -> [UInt8] {
    let bytes = jpeg(day)
    // Start of the frame: 17 bytes further there are the tables it needs.
    let frame = zip(bytes, bytes.dropFirst()).enumerated().first { $0.element == (0xFF, 0xC0) }?.offset ?? 0
    return Array(bytes[..<(frame + 13)])
}

/// A sidecar as cameras' programs write it, of a picture taken at 8:00 on that day; `ending`: of the file with that
/// extension only, as Adobe's programs write.
public func xmp(_ day: String, of ending: String? = nil) -> [UInt8] {
    let only = ending.map { "photoshop:SidecarForExtension='\($0)' " } ?? ""
    return Array(
        """
        <?xpacket begin='' id='W5M0MpCehiHzreSzNTczkc9d'?><x:xmpmeta xmlns:x='adobe:ns:meta/'><rdf:RDF \
        xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'><rdf:Description rdf:about='' \
        xmlns:exif='http://ns.adobe.com/exif/1.0/' \
        xmlns:photoshop='http://ns.adobe.com/photoshop/1.0/' \(only)exif:DateTimeOriginal='\(day)T08:00:00'/></rdf:RDF>\
        </x:xmpmeta><?xpacket end='w'?>
        """.utf8)
}

/// A sidecar with a place: degrees north and east.
public func placedXMP(_ latitude: Double, _ longitude: Double) -> [UInt8] {
    Array(
        """
        <x:xmpmeta xmlns:x='adobe:ns:meta/'><rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>\
        <rdf:Description rdf:about='' xmlns:exif='http://ns.adobe.com/exif/1.0/' exif:GPSLatitude='\(latitude)' \
        exif:GPSLongitude='\(longitude)'/></rdf:RDF></x:xmpmeta>
        """.utf8)
}

/// A JPEG that was taken there on 2024-05-01.
public func placedJPEG(_ latitude: Double, _ longitude: Double, more: Int) -> [UInt8] {
    var bytes = jpeg("2024-05-01", more: more)
    bytes.insert(
        contentsOf: segment(
            0xE1, Array("http://ns.adobe.com/xap/1.0/\0".utf8) + placedXMP(latitude, longitude)), at: 2)
    return bytes
}

/// Bytes that nothing compresses, the same for the same seed.
public func noise(_ count: Int, seed: Int = 1) -> [UInt8] {
    var state = UInt64(truncatingIfNeeded: seed) &* 0x9E37_79B9_7F4A_7C15 | 1
    return [UInt8](unsafeUninitializedCapacity: count + 8) { bytes, filled in
        let raw = UnsafeMutableRawBufferPointer(bytes)
        var offset = 0
        while offset < count {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            raw.storeBytes(of: state, toByteOffset: offset, as: UInt64.self)
            offset += 8
        }
        filled = count
    }
}

/// The program that decodes pictures.
public let workerPath = builtProgram("obscura-worker")

private func segment(_ marker: UInt8, _ body: [UInt8]) -> [UInt8] {
    [0xFF, marker, UInt8((body.count + 2) >> 8), UInt8((body.count + 2) & 0xFF)] + body
}

/// The EXIF segment of a JPEG whose DateTimeOriginal is that text, `YYYY:MM:DD hh:mm:ss`.
public func exifSegment(_ dateTime: String) -> [UInt8] {
    segment(0xE1, Array("Exif\0\0".utf8) + exifBlock(dateTime))
}

/// EXIF with nothing in it but DateTimeOriginal: a TIFF header, IFD0 with the pointer to the Exif IFD, and
/// that.
private func exifBlock(_ dateTime: String) -> [UInt8] {
    let mainOffset: UInt8 = 8
    let exifOffset = mainOffset + 2 + 12 + 4
    let textOffset = exifOffset + 2 + 12 + 4
    var tiff: [UInt8] = [0x4D, 0x4D, 0, 42, 0, 0, 0, mainOffset]
    tiff += [0, 1, 0x87, 0x69, 0, 4, 0, 0, 0, 1, 0, 0, 0, exifOffset, 0, 0, 0, 0]
    tiff += [0, 1, 0x90, 0x03, 0, 2, 0, 0, 0, 20, 0, 0, 0, textOffset, 0, 0, 0, 0]
    return tiff + Array(dateTime.utf8) + [0]
}

/// Tables, frame and scan of one block that is all of one gray: its DC coefficient and no other.
private func grayPicture(level: Int) -> [UInt8] {
    var bytes = segment(0xDB, [0] + [UInt8](repeating: 1, count: 64))
    bytes += segment(0xC0, [8, 0, 8, 0, 8, 1, 1, 0x11, 0])
    // DC: categories 0 to 11, each with a code of four bits that is its number. AC: the end of block alone,
    // one bit.
    bytes += segment(0xC4, [0x00] + [0, 0, 0, 12] + [UInt8](repeating: 0, count: 12) + Array(0..<12))
    bytes += segment(0xC4, [0x10] + [1] + [UInt8](repeating: 0, count: 15) + [0])
    bytes += segment(0xDA, [1, 1, 0, 0, 63, 0])
    let coefficient = (level - 128) * 8
    let category = Int.bitWidth - abs(coefficient).leadingZeroBitCount
    let value = coefficient < 0 ? coefficient + (1 << category) - 1 : coefficient
    let bitCount = 4 + category + 1
    // The end of block is a 0; the last byte is filled with ones.
    let fill = (8 - bitCount % 8) % 8
    let bits = ((category << category | value) << 1) << fill | ((1 << fill) - 1)
    for shift in stride(from: bitCount + fill - 8, through: 0, by: -8) {
        let byte = UInt8(truncatingIfNeeded: bits >> shift)
        bytes += byte == 0xFF ? [0xFF, 0] : [byte]
    }
    return bytes + [0xFF, 0xD9]
}

/// A real JPEG, taken on 2024-05-01, with an EXIF thumbnail and an orientation.
public func jpegEmbedding(_ preview: [UInt8], orientation: UInt8) -> [UInt8] {
    let main: UInt8 = 8
    let exif = main + 2 + 24 + 4
    let second = exif + 2 + 12 + 4
    let text = second + 2 + 24 + 4
    let start = text + 20
    func long(_ value: Int) -> [UInt8] { [0, 0, UInt8(value >> 8), UInt8(value & 0xFF)] }
    var tiff: [UInt8] = [0x4D, 0x4D, 0, 42, 0, 0, 0, main]
    tiff += [0, 2, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0]
    tiff += [0x87, 0x69, 0, 4, 0, 0, 0, 1, 0, 0, 0, exif, 0, 0, 0, second]
    tiff += [0, 1, 0x90, 0x03, 0, 2, 0, 0, 0, 20, 0, 0, 0, text, 0, 0, 0, 0]
    tiff += [0, 2, 0x02, 0x01, 0, 4, 0, 0, 0, 1] + long(Int(start))
    tiff += [0x02, 0x02, 0, 4, 0, 0, 0, 1] + long(preview.count) + [0, 0, 0, 0]
    tiff += Array("2024:05:01 12:30:00\0".utf8) + preview
    return [0xFF, 0xD8] + segment(0xE1, Array("Exif\0\0".utf8) + tiff) + grayPicture(level: Int(orientation))
}
