/// JPEG: ITU-T T.81, with EXIF and XMP in APP1 segments and Photoshop's resources in APP13, wherever these stand
/// before the first scan.
enum JPEGReader: FormatReader {
    static func identify(_ region: Region) -> MediaType? {
        region.u16(0) == 0xFFD8 && region.u8(2) == 0xFF ? .jpeg : nil
    }

    /// Maximum garbage between segments that is skipped, in bytes.
    private static let garbageBytesMax: UInt64 = 4096
    private static let segmentsMax = 512

    static func read(_ region: Region, into facts: inout MediaFacts) {
        var offset: UInt64 = 2
        var hasEXIF = false
        for _ in 0..<segmentsMax {
            guard let marker = marker(region, from: &offset) else { return }
            switch marker {
            case 0x01, 0xD0...0xD8: continue
            case 0xD9, 0xDA: return
            default: break
            }
            guard let length = region.u16(offset), length >= 2 else { return }
            let body = region.clipped(offset + 2, UInt64(length) - 2)
            switch marker {
            case 0xC0...0xC3, 0xC5...0xC7, 0xC9...0xCB, 0xCD...0xCF:
                facts.setSize(body.u16(3).map(UInt32.init), body.u16(1).map(UInt32.init))
            case 0xE1:
                readAPP1(body, &hasEXIF, &facts)
            case 0xED where body.matches("Photoshop 3.0\0"):
                IPTCScanner.scanPhotoshop(body.from(14), into: &facts)
            default: break
            }
            offset += UInt64(length)
        }
    }

    /// The next marker's second byte. Moves `offset` behind it.
    private static func marker(_ region: Region, from offset: inout UInt64) -> UInt8? {
        let end = offset + garbageBytesMax
        while offset < end {
            guard let first = region.u8(offset) else { return nil }
            offset += 1
            guard first == 0xFF else { continue }
            guard var second = region.u8(offset) else { return nil }
            while second == 0xFF, offset < end {
                offset += 1
                guard let next = region.u8(offset) else { return nil }
                second = next
            }
            offset += 1
            if second != 0 { return second }
        }
        return nil
    }

    private static func readAPP1(_ body: Region, _ hasEXIF: inout Bool, _ facts: inout MediaFacts) {
        if body.matches("Exif\0") {
            // The first block is the camera's; a second one was added by some program.
            guard !hasEXIF else { return }
            hasEXIF = EXIFScanner.scan(body.from(6), into: &facts) != nil
        } else if body.matches("http://ns.adobe.com/xap/1.0/\0") {
            XMPScanner.scan(body.from(29), into: &facts)
        }
    }
}
