/// Windows Media video: "Advanced Systems Format (ASF) Specification" 1.20.5, with the creation date (UTC) in the file
/// properties. Audio in the same container is not identified.
enum ASFReader: FormatReader {
    static func identify(_ region: Region) -> MediaType? {
        guard region.u64(0) == 0x3026_B275_8E66_CF11, region.u64(8) == 0xA6D9_00AA_0062_CE6C else {
            return nil
        }
        var isVideo = false
        forEachObject(region) { object in
            isVideo = videoSize(object) != nil
            return !isVideo
        }
        return isVideo ? .asf : nil
    }

    /// A real header has about ten.
    private static let objectsMax = 16

    /// Seconds from 1601 to 1970.
    private static let epochSeconds: UInt64 = 11_644_473_600

    static func read(_ region: Region, into facts: inout MediaFacts) {
        forEachObject(region) { object in
            if let size = videoSize(object) { facts.setSize(size.width, size.height) }
            guard object.u64(0) == 0xA1DC_AB8C_47A9_CF11, let created = object.u64(48, .little) else {
                return true
            }
            let seconds = created / 10_000_000
            guard seconds > epochSeconds else { return true }
            facts.add(
                DateCandidate(
                    source: .quickTimeMovieHeader,
                    time: CivilTime(secondsSince1970: Int64(seconds - epochSeconds)), isUTC: true))
            return true
        }
    }

    /// Calls `body` with the header's objects (identifier, length, contents), until it returns false or they end.
    private static func forEachObject(_ region: Region, _ body: (Region) -> Bool) {
        var offset: UInt64 = 30
        for _ in 0..<objectsMax {
            // In the order of the file, because a window is read forwards.
            guard region.u64(offset) != nil, let length = region.u64(offset + 16, .little), length >= 24,
                length < 1 << 32
            else { return }
            guard body(region.clipped(offset, length)) else { return }
            offset += length
        }
    }

    /// The size in a video stream's properties.
    private static func videoSize(_ object: Region) -> (width: UInt32, height: UInt32)? {
        guard object.u64(0) == 0x9107_DCB7_B7A9_CF11, object.u64(24) == 0xC0EF_19BC_4D5B_CF11,
            let width = object.u32(78, .little), let height = object.u32(82, .little)
        else { return nil }
        return (width, height)
    }
}
