internal import PhotoImaging

/// The segments before a JPEG's pixels that the decoder ignores: orientation, colour profile, kind of inks
/// (ITU-T T.81 annex B; ICC.1:2010 annex B.4; Adobe TN 5116).
struct JPEGSegments {
    /// The orientation in the first EXIF segment that has one.
    var orientation = Orientation.upright
    /// The segments that carry the ICC profile, whole (marker and length too), in order. Empty unless all are
    /// there.
    var colorProfile: [Range<Int>] = []
    /// Whether Adobe's segment is present: inks are then stored inverted.
    var hasAdobeMarker = false

    /// Bytes before a part of the profile in its segment: marker, length, signature, number and count.
    static let profileHeadBytes = 18
    private static let segmentBytesMax = 65533

    /// Nil when `bytes` do not begin like a JPEG. Reads up to the first scan or the first
    /// invalid segment; the decoder decides whether this is a picture.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= 4, bytes[0] == 0xFF, bytes[1] == 0xD8 else { return nil }
        var hasOrientation = false
        var profile = ProfileParts()
        var position = 2
        while let segment = Self.nextSegment(bytes, after: &position) {
            let payload = bytes[segment.payload]
            switch segment.marker {
            case 0xE1 where !hasOrientation && payload.starts(with: "Exif\0\0".utf8):
                if let found = Orientation(tiff: payload.dropFirst(6)) {
                    orientation = found
                    hasOrientation = true
                }
            case 0xE2 where payload.starts(with: ProfileParts.signature) && payload.count >= 14:
                profile.add(
                    whole: segment.whole, number: payload[payload.startIndex + 12],
                    of: payload[payload.startIndex + 13])
            case 0xEE where payload.starts(with: "Adobe".utf8) && payload.count >= 12:
                hasAdobeMarker = true
            default:
                break
            }
        }
        colorProfile = profile.inOrder
    }

    /// Length of the start marker and the JFIF segment of a JPEG that this program encoded.
    static func lengthOfHead(_ bytes: UnsafeRawBufferPointer) -> Int? {
        var position = 2
        guard let segment = nextSegment(bytes, after: &position) else { return nil }
        return segment.marker == 0xE0 ? segment.whole.upperBound : 2
    }

    /// The segments that carry `profile`; none where it is empty.
    static func carrying(_ profile: [UInt8]) -> [UInt8] {
        let partMax = segmentBytesMax - (profileHeadBytes - 4)
        let count = (profile.count + partMax - 1) / partMax
        guard count <= 255 else { return [] }
        var segments: [UInt8] = []
        for number in 0..<count {
            let part = profile[number * partMax..<min((number + 1) * partMax, profile.count)]
            let length = part.count + profileHeadBytes - 2
            segments += [0xFF, 0xE2, UInt8(length >> 8), UInt8(length & 0xFF)]
            segments += ProfileParts.signature
            segments += [UInt8(number + 1), UInt8(count)]
            segments += part
        }
        return segments
    }

    private struct Segment {
        var marker: UInt8
        var whole: Range<Int>
        var payload: Range<Int>
    }

    /// The next segment with a length. Nil at the first scan, the end, or an invalid segment. Bytes between segments
    /// are skipped, as the decoder does.
    private static func nextSegment(_ bytes: UnsafeRawBufferPointer, after position: inout Int) -> Segment? {
        while position < bytes.count - 1 {
            let marker = bytes[position + 1]
            guard bytes[position] == 0xFF, marker != 0x00, marker != 0xFF else {
                position += 1
                continue
            }
            switch marker {
            case 0xD8, 0xD9, 0xDA:
                return nil
            case 0x01, 0xD0...0xD7:
                position += 2
                continue
            default:
                break
            }
            guard position + 4 <= bytes.count else { return nil }
            let length = Int(bytes[position + 2]) << 8 | Int(bytes[position + 3])
            let end = position + 2 + length
            guard length >= 2, end <= bytes.count else { return nil }
            defer { position = end }
            return Segment(marker: marker, whole: position..<end, payload: position + 4..<end)
        }
        return nil
    }

    /// The numbered parts of an ICC profile.
    private struct ProfileParts {
        static let signature = "ICC_PROFILE\0".utf8
        private var parts: [UInt8: Range<Int>] = [:]
        private var count: UInt8?
        private var isConsistent = true

        mutating func add(whole: Range<Int>, number: UInt8, of count: UInt8) {
            isConsistent = isConsistent && (self.count ?? count) == count && parts[number] == nil
            self.count = count
            parts[number] = whole
        }

        /// All parts, or none if some are missing, duplicate or too large.
        var inOrder: [Range<Int>] {
            guard let count, isConsistent, count > 0, parts.count == Int(count) else { return [] }
            let ordered = (1...count).compactMap { parts[$0] }
            let bytes = ordered.reduce(0) { $0 + $1.count }
            return ordered.count == Int(count) && bytes <= WorkerProtocol.colorProfileBytesMax ? ordered : []
        }
    }
}
