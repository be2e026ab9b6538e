internal import PhotoImaging

/// The turn that makes a stored picture upright: the values of the EXIF tag 0x0112 (CIPA DC-008,
/// Orientation).
enum Orientation: UInt16 {
    case upright = 1
    case mirrored, halfTurn, flipped, transposed, quarterTurnRight, transverse, quarterTurnLeft

    /// Whether width and height change places.
    var isTransposed: Bool { rawValue >= 5 }

    /// The orientation in a picture's metadata; upright without one.
    init(_ facts: MediaFacts?) {
        self = facts.flatMap { Orientation(rawValue: UInt16(truncatingIfNeeded: $0.orientation)) } ?? .upright
    }

    /// Reads the tag in the first image directory of a TIFF structure, such as an EXIF segment's. Nil if there is none
    /// with a value from 1 to 8. Reads nothing outside `tiff`.
    init?(tiff: Slice<UnsafeRawBufferPointer>) {
        let bytes = UnsafeRawBufferPointer(rebasing: tiff)
        guard bytes.count >= 8 else { return nil }
        let isBigEndian: Bool
        switch (bytes[0], bytes[1]) {
        case (0x4D, 0x4D): isBigEndian = true
        case (0x49, 0x49): isBigEndian = false
        default: return nil
        }
        func word(_ offset: Int) -> UInt16 {
            let value = bytes.loadUnaligned(fromByteOffset: offset, as: UInt16.self)
            return isBigEndian ? UInt16(bigEndian: value) : UInt16(littleEndian: value)
        }
        func long(_ offset: Int) -> UInt32 {
            let value = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
            return isBigEndian ? UInt32(bigEndian: value) : UInt32(littleEndian: value)
        }
        let directory = Int(long(4))
        guard directory <= bytes.count - 2 else { return nil }
        let entryBytes = 12
        for index in 0..<Int(word(directory)) {
            let entry = directory + 2 + index * entryBytes
            guard entry <= bytes.count - entryBytes else { return nil }
            guard word(entry) == 0x0112 else { continue }
            switch word(entry + 2) {
            case 3: self.init(rawValue: word(entry + 8))  // SHORT, as in the standard
            case 4: self.init(rawValue: UInt16(clamping: long(entry + 8)))  // LONG, as some writers do
            default: return nil
            }
            return
        }
        return nil
    }
}
