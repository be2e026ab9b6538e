/// Windows Media video: "Advanced Systems Format (ASF) Specification" 1.20.5, with the creation date (UTC) in the
/// file properties. Sound in the same container is not claimed.
enum ASFReader: FormatReader {
    static func identify(_ region: Region) -> MediaType? {
        guard region.u64(0) == 0x3026_B275_8E66_CF11, region.u64(8) == 0xA6D9_00AA_0062_CE6C else {
            return nil
        }
        var isVideo = false
        forEachObject(region) { if videoSize($0) != nil { isVideo = true } }
        return isVideo ? .asf : nil
    }

    private static let objectsMax = 64

    /// Seconds from 1601 to 1970.
    private static let epochSeconds: UInt64 = 11_644_473_600

    static func read(_ region: Region, into facts: inout MediaFacts) {
        forEachObject(region) { object in
            if let size = videoSize(object) { facts.setSize(size.width, size.height) }
            guard object.u64(0) == 0xA1DC_AB8C_47A9_CF11, let created = object.u64(48, .little) else {
                return
            }
            let seconds = created / 10_000_000
            guard seconds > epochSeconds else { return }
            facts.add(
                DateCandidate(
                    source: .quickTimeMovieHeader,
                    time: CivilTime(secondsSince1970: Int64(seconds - epochSeconds)), isUTC: true))
        }
    }

    /// The header's objects: identifier, length, contents.
    private static func forEachObject(_ region: Region, _ body: (Region) -> Void) {
        var offset: UInt64 = 30
        for _ in 0..<objectsMax {
            guard let length = region.u64(offset + 16, .little), length >= 24, length < 1 << 32 else {
                return
            }
            body(region.clipped(offset, length))
            offset += length
        }
    }

    /// The size that a video stream's properties give.
    private static func videoSize(_ object: Region) -> (width: UInt32, height: UInt32)? {
        guard object.u64(0) == 0x9107_DCB7_B7A9_CF11, object.u64(24) == 0xC0EF_19BC_4D5B_CF11,
            let width = object.u32(78, .little), let height = object.u32(82, .little)
        else { return nil }
        return (width, height)
    }
}
