/// The metadata of a picture or video. Only its form is checked: the plausibility of a date is decided by
/// ``captureDate(_:fileName:modified:modifiedNanoseconds:sidecar:now:localOffset:)``.
public struct MediaFacts: Sendable, Equatable {
    /// The type of the data.
    public var type: MediaType
    /// Width in pixels as stored, before the orientation is applied; 0 if unknown.
    public var width = 0
    /// Height in pixels as stored, before the orientation is applied; 0 if unknown.
    public var height = 0
    /// How to turn the stored pixels upright, as EXIF numbers it (1–8). For HEIC and AVIF it comes from `irot` and
    /// `imir`, as their specification demands (ISO/IEC 23008-12, 6.5.10), for video from the track's matrix.
    public var orientation = 1
    /// The camera's maker, as written.
    public var make: String?
    /// The camera's model, as written.
    public var model: String?
    /// Seconds east of UTC where a video was taken, which it gives apart from its dates.
    public var utcOffset: Int?
    /// Degrees north.
    public var latitude: Double?
    /// Degrees east.
    public var longitude: Double?
    /// Every date found: at most one of each source except `xmp`, whose dates are in order, best first.
    public var dates: [DateCandidate] = []
    /// The identifier that the two halves of an Apple Live Photo share.
    public var contentIdentifier: String?
    /// The identifier that the pictures of a burst share: Apple's or Google's.
    public var burstIdentifier: String?
    /// XMP's rating: stars from 1 to 5, 0 for none, -1 for a rejected picture.
    public var rating: Int?
    /// Whether the metadata say that it is a panorama.
    public var isPanorama = false
    /// Whether the metadata say that it is a picture of a screen.
    public var isScreenshot = false
    /// The range in the file of the smallest embedded JPEG: the EXIF thumbnail. It begins like a JPEG.
    public var embeddedPreview: Range<UInt64>?
    /// The range in the file of the largest embedded JPEG: for raw formats, a picture to decode instead.
    public var largestPreview: Range<UInt64>?

    /// Whether a video's colours are coded for HDR: perceptual quantizer or hybrid log-gamma (ITU-T H.273, 8.2).
    public var isHDR = false
    /// The length of a video in seconds; 0 if unknown.
    public var durationSeconds = 0.0

    /// The camera: make and model, the make once. Nil if neither is known.
    ///
    /// Most models begin with a word of their maker's name ("NIKON CORPORATION", "NIKON D70"): those stand alone.
    public var camera: String? {
        guard let make, !make.isEmpty else { return model }
        guard let model, !model.isEmpty else { return make }
        let isReferenced = words(model).first.map { words(make).contains($0) } ?? false
        return isReferenced ? model : "\(make) \(model)"
    }

    /// The words of a maker's or a model's name, in lower case. Letters outside ASCII keep theirs.
    private func words(_ text: String) -> [[UInt8]] {
        text.utf8.split { $0 < 0x80 && !ASCII.isLetter($0) && !ASCII.isDigit($0) }
            .map { $0.map(ASCII.lowercase) }
    }

    /// Facts with nothing but the type.
    public init(type: MediaType) {
        self.type = type
    }

    /// Adds a date, unless there is one of its source: the first block is the camera's.
    mutating func add(_ candidate: DateCandidate) {
        guard !dates.contains(where: { $0.source == candidate.source }) else { return }
        dates.append(candidate)
    }

    mutating func add(_ source: DateSource, _ text: ParsedDate?, isUTC: Bool = false) {
        guard let text else { return }
        add(DateCandidate(source: source, time: text.time, isUTC: isUTC, offsetSeconds: text.offsetSeconds))
    }

    /// Records an embedded JPEG, if its first bytes are a JPEG's. Offsets count from `region`.
    mutating func addPreview(_ region: Region, _ offset: UInt64, _ length: UInt64) {
        guard region.reader.isWholeFile, length >= 64, region.contains(offset, length),
            region.u16(offset) == 0xFFD8
        else { return }
        let range = region.start + offset..<region.start + offset + length
        if embeddedPreview.map({ range.count < $0.count }) ?? true { embeddedPreview = range }
        if largestPreview.map({ range.count > $0.count }) ?? true { largestPreview = range }
    }

    /// Records a video's transfer function by its code point (ITU-T H.273, table 3).
    mutating func addTransfer(_ codePoint: Int) {
        isHDR = isHDR || TransferFunction.isHDR(codePoint)
    }

    /// Sets width and height, unless they are known.
    mutating func setSize(_ width: UInt32?, _ height: UInt32?) {
        guard let width, let height, self.width == 0, self.height == 0 else { return }
        self.width = Int(width)
        self.height = Int(height)
    }

    /// Sets the place on earth, unless it is known. Invalid places are dropped, and so is 0, 0 in the Gulf of Guinea,
    /// which programs write when they know no place.
    mutating func setPlace(latitude: Double?, longitude: Double?) {
        guard self.latitude == nil, let latitude, let longitude, abs(latitude) <= 90, abs(longitude) <= 180,
            latitude != 0 || longitude != 0
        else { return }
        self.latitude = latitude
        self.longitude = longitude
    }
}

/// The contents of an XMP file beside a photo.
public struct Sidecar: Sendable, Equatable {
    /// The dates it gives, best first. Empty only if it gives a rating, a place or an extension.
    public var dates: [DateCandidate]
    /// As ``MediaFacts/rating``.
    public var rating: Int?
    /// The place on earth that it gives.
    public var place: Place?
    /// The extension of the photo's name, without its dot: photoshop:SidecarForExtension. Adobe's programs write it,
    /// as `DSC.xmp` may lie between `DSC.NEF` and `DSC.JPG`. Nil: the sidecar does not tell.
    public var photoExtension: String?

    /// A sidecar with these dates.
    public init(
        dates: [DateCandidate], rating: Int? = nil, place: Place? = nil, photoExtension: String? = nil
    ) {
        self.dates = dates
        self.rating = rating
        self.place = place
        self.photoExtension = photoExtension
    }

    /// A place on earth.
    public struct Place: Sendable, Equatable {
        /// Degrees north.
        public var latitude: Double
        /// Degrees east.
        public var longitude: Double
    }
}

/// A date that a file gives for itself.
public struct DateCandidate: Sendable, Equatable {
    /// The place where it was found.
    public var source: DateSource
    /// The date as written there.
    public var time: CivilTime
    /// Whether `time` is in UTC; else it is the wall clock where the picture was taken.
    public var isUTC: Bool
    /// Seconds east of UTC that the file gives for its own zone. Never applied to a wall clock.
    public var offsetSeconds: Int?

    /// A date and its source.
    public init(source: DateSource, time: CivilTime, isUTC: Bool = false, offsetSeconds: Int? = nil) {
        self.source = source
        self.time = time
        self.isUTC = isUTC
        self.offsetSeconds = offsetSeconds
    }
}

/// The source of a photo's date: the value of `user.obscura.captured.source`. Sources are tried in this order.
public enum DateSource: String, Sendable, CaseIterable {
    /// An XMP file beside the photo.
    case sidecar = "sidecar"
    /// EXIF tag 0x9003, or a format's equivalent.
    case dateTimeOriginal = "DateTimeOriginal"
    /// In XMP: exif:DateTimeOriginal, xmp:CreateDate, photoshop:DateCreated, exif:DateTimeDigitized.
    case xmp = "XMP"
    /// IPTC IIM datasets 2:55 and 2:60.
    case iptc = "IPTC"
    /// EXIF tag 0x9004.
    case dateTimeDigitized = "DateTimeDigitized"
    /// com.apple.quicktime.creationdate or ©day: the wall clock.
    case quickTimeCreationDate = "QuickTimeCreationDate"
    /// The movie header of MP4 and QuickTime, or Matroska's DateUTC: UTC, or the wall clock of some cameras.
    case quickTimeMovieHeader = "QuickTimeMovieHeader"
    /// EXIF tags GPSDateStamp and GPSTimeStamp, in XMP exif:GPSTimeStamp: UTC.
    case gps = "GPS"
    /// A date in the file's name.
    case fileName = "FileName"
    /// EXIF tag 0x0132 of IFD0: when the file was last changed.
    case dateTime = "DateTime"
    /// The file's own time of modification.
    case mtime = "mtime"
    /// The user put the photo into that day.
    case moved = "moved"
    /// An earlier content of the photo: a program saved it without a date.
    case kept = "kept"
}

/// Code points of transfer functions (ITU-T H.273, table 3).
package enum TransferFunction {
    /// SMPTE ST 2084, which codes luminance up to 10,000 nits.
    package static let perceptualQuantizer = 16
    /// ARIB STD-B67.
    package static let hybridLogGamma = 18

    /// Whether a transfer function codes more than the white of a page.
    package static func isHDR(_ codePoint: Int) -> Bool {
        codePoint == perceptualQuantizer || codePoint == hybridLogGamma
    }
}
