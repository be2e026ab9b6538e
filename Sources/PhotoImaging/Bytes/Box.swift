/// A box of the ISO base media file format, or a QuickTime atom: ISO/IEC 14496-12, 4.2.
struct Box {
    let type: UInt32
    /// Its contents, clipped to its container.
    let body: Region

    /// Maximum number of boxes read at one level, where a table does not have one for each item.
    private static let boxesMax = 1024

    /// Calls `body` with the boxes of `region` in order, until it returns false or they end.
    static func forEach(in region: Region, max: Int = boxesMax, _ body: (Box) -> Bool) {
        var offset: UInt64 = 0
        for _ in 0..<max {
            guard let short = region.u32(offset), let type = region.u32(offset + 4) else { return }
            var headerBytes: UInt64 = 8
            var length = UInt64(short)
            if short == 1 {
                guard let long = region.u64(offset + 8) else { return }
                headerBytes = 16
                length = long
            } else if short == 0 {
                length = region.count - offset
            }
            guard length >= headerBytes else { return }
            let box = Box(type: type, body: region.clipped(offset + headerBytes, length - headerBytes))
            guard body(box), length < region.count - offset else { return }
            offset += length
        }
    }

    /// The first box of a type.
    static func first(_ type: StaticString, in region: Region) -> Region? {
        let wanted = fourCC(type)
        var found: Region?
        forEach(in: region) { box in
            guard box.type == wanted else { return true }
            found = box.body
            return false
        }
        return found
    }

    /// Whether a file begins with a signature box of that type: ISO/IEC 15444-1, I.5.1.
    static func isSignature(_ type: StaticString, at region: Region) -> Bool {
        region.u32(0) == 12 && region.u32(4) == fourCC(type) && region.u32(8) == 0x0D0A_870A
    }

    /// The contents after the identifier if this is a `uuid` box with that identifier; else nil.
    func contents(ofUUID high: UInt64, _ low: UInt64) -> Region? {
        type == fourCC("uuid") && body.u64(0) == high && body.u64(8) == low ? body.from(16) : nil
    }

    /// The XMP packet of a `uuid` box: XMP specification part 3, 1.2.7.
    var xmp: Region? { contents(ofUUID: 0xBE7A_CFCB_97A9_42E8, 0x9C71_9994_91E3_AFAC) }
}

/// The brands of a file type box: ISO/IEC 14496-12, 4.3.
struct FileType {
    let major: UInt32
    private let compatible: [UInt32]

    /// Nil if the file does not begin with one.
    init?(_ region: Region) {
        guard region.u32(4) == fourCC("ftyp"), let length = region.u32(0), length >= 12 || length == 0,
            length < 1 << 24, let major = region.u32(8)
        else { return nil }
        self.major = major
        var compatible: [UInt32] = []
        var offset: UInt64 = 16
        while offset + 4 <= UInt64(length), compatible.count < 64, let brand = region.u32(offset) {
            compatible.append(brand)
            offset += 4
        }
        self.compatible = compatible
    }

    /// Whether it has pictures in a row: ISO/IEC 23008-12, 7.2 and annex B; AVIF 1.1, 6.3.
    var isSequence: Bool { has("msf1") || has("hevc") || has("hevx") || has("avis") }

    func has(_ brand: StaticString) -> Bool {
        let wanted = fourCC(brand)
        return major == wanted || compatible.contains(wanted)
    }
}
