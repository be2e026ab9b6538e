/// The type of a photo's bytes. Names and extensions do not matter.
public enum MediaType: UInt8, Sendable, CaseIterable {
    case jpeg = 1
    case heic = 2
    case avif = 3
    case png = 4
    case webp = 5
    case tiff = 6
    case gif = 7
    case jxl = 8
    case bmp = 9
    case psd = 10
    case jp2 = 11
    case dng = 20
    case cr2 = 21
    case nef = 22
    case arw = 23
    case orf = 24
    case rw2 = 25
    case pef = 26
    case srw = 27
    case raf = 28
    case cr3 = 29
    case crw = 30
    case x3f = 31
    case mrw = 32
    case mp4 = 50
    case mov = 51
    case m4v = 52
    case threeGP = 53
    case avi = 54
    case matroska = 55
    case mpegTS = 56
    case mpegPS = 57
    case asf = 58
    case ogg = 59
    case flv = 60
    case dv = 61

    /// Whether it is a video.
    public var isVideo: Bool { rawValue >= 50 }

    /// Whether it is a camera's raw format, whose viewable picture is ``MediaFacts/largestPreview``.
    public var isRaw: Bool { rawValue >= 20 && rawValue < 50 }

    /// The media type in IANA's list, or the customary name if it is not there.
    public var mimeType: String {
        switch self {
        case .jpeg: "image/jpeg"
        case .heic: "image/heic"
        case .avif: "image/avif"
        case .png: "image/png"
        case .webp: "image/webp"
        case .tiff: "image/tiff"
        case .gif: "image/gif"
        case .jxl: "image/jxl"
        case .bmp: "image/bmp"
        case .psd: "image/vnd.adobe.photoshop"
        case .jp2: "image/jp2"
        case .dng: "image/x-adobe-dng"
        case .cr2: "image/x-canon-cr2"
        case .nef: "image/x-nikon-nef"
        case .arw: "image/x-sony-arw"
        case .orf: "image/x-olympus-orf"
        case .rw2: "image/x-panasonic-rw2"
        case .pef: "image/x-pentax-pef"
        case .srw: "image/x-samsung-srw"
        case .raf: "image/x-fujifilm-raf"
        case .cr3: "image/x-canon-cr3"
        case .crw: "image/x-canon-crw"
        case .x3f: "image/x-sigma-x3f"
        case .mrw: "image/x-minolta-mrw"
        case .mp4: "video/mp4"
        case .mov: "video/quicktime"
        case .m4v: "video/x-m4v"
        case .threeGP: "video/3gpp"
        case .avi: "video/x-msvideo"
        case .matroska: "video/x-matroska"
        case .mpegTS: "video/mp2t"
        case .mpegPS: "video/mpeg"
        case .asf: "video/x-ms-wmv"
        case .ogg: "video/ogg"
        case .flv: "video/x-flv"
        case .dv: "video/dv"
        }
    }
}
