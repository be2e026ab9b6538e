/// QuickTime movies and MP4: Apple's "QuickTime File Format" and ISO/IEC 14496-12.
enum QuickTimeReader: FormatReader {
    /// Audio in the same container.
    private static let soundBrands: Set<UInt32> = [
        fourCC("M4A "), fourCC("M4B "), fourCC("M4P "), fourCC("F4A "), fourCC("F4B "), fourCC("aax "),
    ]
    /// Pictures that other readers identify, or none does.
    private static let otherBrands: Set<UInt32> = [
        fourCC("crx "), fourCC("jxl "), fourCC("jp2 "), fourCC("jpx "),
    ]

    static func identify(_ region: Region) -> MediaType? {
        guard let brands = FileType(region) else { return identifyWithoutBrands(region) }
        let major = brands.major
        if soundBrands.contains(major) || otherBrands.contains(major) || HEIFReader.identify(region) != nil {
            return nil
        }
        if major == fourCC("qt  ") { return .mov }
        if major >> 8 == fourCC("M4V ") >> 8 { return .m4v }
        if major >> 16 == fourCC("3gp4") >> 16 { return .threeGP }
        return .mp4
    }

    /// Movies older than the file type box begin with one of a few atoms.
    private static func identifyWithoutBrands(_ region: Region) -> MediaType? {
        guard let length = region.u32(0), let type = region.u32(4) else { return nil }
        switch type {
        case fourCC("moov"), fourCC("free"), fourCC("skip"), fourCC("wide"), fourCC("pnot"):
            return length >= 8 && length < 1 << 24 ? .mov : nil
        case fourCC("mdat"):
            let fits = length >= 8 && UInt64(length) <= region.count
            return fits || length <= 1 ? .mov : nil
        default:
            return nil
        }
    }

    static func read(_ region: Region, into facts: inout MediaFacts) {
        var clock = MovieClock()
        Box.forEach(in: region) { box in
            if box.type == fourCC("moov") {
                readMovie(box.body, &clock, &facts)
                return true
            }
            if let xmp = box.xmp { XMPScanner.scan(xmp, into: &facts) }
            return true
        }
        clock.apply(to: &facts)
    }

    private static func readMovie(_ movie: Region, _ clock: inout MovieClock, _ facts: inout MediaFacts) {
        Box.forEach(in: movie) { box in
            switch box.type {
            case fourCC("mvhd"):
                readDate(box.body, &facts)
                readDuration(box.body, &facts)
            case fourCC("trak"): readTrack(box.body, &facts)
            case fourCC("meta"): QuickTimeMetadata.read(box.body, into: &facts)
            case fourCC("udta"): readUserData(box.body, &clock, &facts)
            default: if let xmp = box.xmp { XMPScanner.scan(xmp, into: &facts) }
            }
            return true
        }
    }

    /// Seconds from 1904 to 1970.
    private static let epochSeconds: UInt64 = 2_082_844_800

    /// The time of creation in the movie's header.
    static func readDate(_ body: Region, _ facts: inout MediaFacts) {
        guard let created = body.u8(0) == 1 ? body.u64(4) : body.u32(4).map(UInt64.init), created != 0,
            created < 1 << 40
        else { return }
        // Some programs count from 1970; counted from 1904, their times would lie before any video.
        let seconds = created >= epochSeconds ? created - epochSeconds : created
        facts.add(
            DateCandidate(
                source: .quickTimeMovieHeader, time: CivilTime(secondsSince1970: Int64(seconds)), isUTC: true)
        )
    }

    /// The size of the largest track, and the rotation in its matrix.
    private static func readTrack(_ track: Region, _ facts: inout MediaFacts) {
        guard let header = Box.first("tkhd", in: track) else { return }
        readTransfer(track, &facts)
        let matrix: UInt64 = header.u8(0) == 1 ? 52 : 40
        guard let width = header.u32(matrix + 36).map({ Int($0 >> 16) }),
            let height = header.u32(matrix + 40).map({ Int($0 >> 16) }), width > facts.width
        else { return }
        facts.width = width
        facts.height = height
        switch (header.u32(matrix), header.u32(matrix + 4)) {
        case (0, 0x0001_0000): facts.orientation = 6
        case (0xFFFF_0000, 0): facts.orientation = 3
        case (0, 0xFFFF_0000): facts.orientation = 8
        default: facts.orientation = 1
        }
    }

    private static func readDuration(_ body: Region, _ facts: inout MediaFacts) {
        let isLong = body.u8(0) == 1
        if let unit = body.u32(isLong ? 20 : 12), unit > 0,
            let length = isLong ? body.u64(24) : body.u32(16).map(UInt64.init)
        {
            facts.durationSeconds = Double(length) / Double(unit)
        }
    }

    /// Bytes of a sample description before its boxes (ISO/IEC 14496-12, 12.1.3).
    private static let sampleHeadBytes: UInt64 = 78

    /// The transfer function in the first sample description: `colr` of type `nclx`, or QuickTime's `nclc`.
    private static func readTransfer(_ track: Region, _ facts: inout MediaFacts) {
        guard let media = Box.first("mdia", in: track), let information = Box.first("minf", in: media),
            Box.first("vmhd", in: information) != nil, let table = Box.first("stbl", in: information),
            let descriptions = Box.first("stsd", in: table)
        else { return }
        Box.forEach(in: descriptions.from(8)) { description in
            let colors = Box.first("colr", in: description.body.from(sampleHeadBytes))
            if let colors, colors.matches("nclx") || colors.matches("nclc"), let transfer = colors.u16(6) {
                facts.addTransfer(Int(transfer))
            }
            return false
        }
    }

    /// International text atoms: a length, a language, the text; and iTunes' `meta` box.
    private static func readUserData(_ body: Region, _ clock: inout MovieClock, _ facts: inout MediaFacts) {
        Box.forEach(in: body) { box in
            switch box.type {
            case fourCC("meta"): QuickTimeMetadata.read(box.body, into: &facts)
            case fourCC("loci"): readLocation(box.body, &facts)
            case fourCC("XMP_"): XMPScanner.scan(box.body, into: &facts)
            case fourCC("NCDT"), fourCC("TAGS"), fourCC("FIRM"): clock.note(box)
            case _ where box.type >> 24 == 0xA9:
                guard let length = box.body.u16(0) else { return true }
                let text = box.body.clipped(4, UInt64(length))
                QuickTimeMetadata.Field(atom: box.type)?.read(text, into: &facts)
            default: break
            }
            return true
        }
    }

    /// A longer string is not the name of a place.
    private static let placeNameBytesMax: UInt64 = 256

    /// 3GPP's location (TS 26.244, 8.3): language, name, role, then degrees east and north as 16.16 numbers.
    private static func readLocation(_ body: Region, _ facts: inout MediaFacts) {
        let nameEnd = body.withView(6, placeNameBytesMax) { view -> UInt64? in
            // UTF-16 begins with a mark and ends with two zeros, UTF-8 with one.
            guard view[0] == 0xFE, view[1] == 0xFF else {
                return view.firstIndex(of: 0, from: 0, end: view.count).map { UInt64($0) + 1 }
            }
            let end = stride(from: 2, to: view.count - 1, by: 2).first { view[$0] == 0 && view[$0 + 1] == 0 }
            return end.map { UInt64($0) + 2 }
        }
        guard let nameEnd, let east = body.u32(6 + nameEnd + 1), let north = body.u32(6 + nameEnd + 5) else {
            return
        }
        let degrees = { (number: UInt32) in Double(Int32(bitPattern: number)) / 65_536 }
        facts.setPlace(latitude: degrees(north), longitude: degrees(east))
    }
}

/// The clock that a movie header's time is read from. The specification says UTC, but some cameras know no time zone
/// and write local time. Cameras of these makers do:
///
/// | Maker | Sources |
/// |---|---|
/// | Nikon | exiftool's `Nikon.pm`, NCTG 0x11: the camera's own date is that of the header; pulsejet/memories#1256 |
/// | GoPro before HERO11 | blog.mono0x.net/2021/11/03/gopro-creation-time; pulsejet/memories#1256 |
///
/// A GoPro's firmware names its model: `HD9.01…` is a HERO9, `H21.01…` a HERO10. Cameras from HERO11 (`H22.01…`)
/// on know their zone.
private struct MovieClock {
    private var isLocal: Bool?

    /// Looks at a box of user data that only some makers write.
    mutating func note(_ box: Box) {
        switch box.type {
        case fourCC("FIRM"): isLocal = box.body.matches("HD") || box.body.matches("H21")
        case fourCC("TAGS"): isLocal = isLocal ?? (box.body.matches("NIKON") ? true : nil)
        default: isLocal = isLocal ?? true
        }
    }

    /// Makes the header's time a wall clock if the maker's cameras write it.
    func apply(to facts: inout MediaFacts) {
        let make = facts.make?.lowercased() ?? ""
        guard isLocal ?? (make.hasPrefix("nikon") || make.hasPrefix("gopro")),
            let index = facts.dates.firstIndex(where: { $0.source == .quickTimeMovieHeader })
        else { return }
        facts.dates[index].isUTC = false
    }
}

/// The `meta` box of QuickTime (keys by name) and of iTunes (keys by four letters).
enum QuickTimeMetadata {
    /// The fields that are read.
    enum Field {
        case creationDate, utcOffset, place, make, model, contentIdentifier

        init?(atom: UInt32) {
            switch atom & 0x00FF_FFFF {
            case fourCC("\0day"): self = .creationDate
            case fourCC("\0xyz"): self = .place
            case fourCC("\0mak"): self = .make
            case fourCC("\0mod"): self = .model
            default: return nil
            }
        }

        init?(key: Region) {
            func isNamed(_ name: StaticString) -> Bool {
                key.matches(name) && (key.u8(UInt64(name.utf8CodeUnitCount)) ?? 0) == 0
            }
            if isNamed("com.apple.quicktime.creationdate") {
                self = .creationDate
            } else if isNamed("com.apple.quicktime.location.ISO6709") {
                self = .place
            } else if isNamed("com.apple.quicktime.make") || isNamed("com.android.manufacturer") {
                self = .make
            } else if isNamed("com.apple.quicktime.model") || isNamed("com.android.model") {
                self = .model
            } else if isNamed("com.apple.quicktime.content.identifier") {
                self = .contentIdentifier
            } else if isNamed("com.samsung.android.utc_offset") {
                self = .utcOffset
            } else {
                return nil
            }
        }

        func read(_ text: Region, into facts: inout MediaFacts) {
            text.lend(0, 128) { view in
                let string = view.trimmedText
                guard !string.isEmpty else { return }
                switch self {
                case .utcOffset: facts.utcOffset = facts.utcOffset ?? DateText.offset(whole: string)
                case .creationDate: facts.add(.quickTimeCreationDate, DateText.parse(view))
                case .place: ISO6709.read(view, into: &facts)
                case .make: facts.make = facts.make ?? string
                case .model: facts.model = facts.model ?? string
                case .contentIdentifier: facts.contentIdentifier = facts.contentIdentifier ?? string
                }
            }
        }
    }

    private static let keysMax: UInt32 = 256

    static func read(_ meta: Region, into facts: inout MediaFacts) {
        // QuickTime's box has no version and flags, MPEG's has.
        let children = meta.matches("hdlr", at: 4) ? meta : meta.from(4)
        var fields: [UInt32: Field] = [:]
        if let keys = Box.first("keys", in: children) { fields = readKeys(keys) }
        guard let list = Box.first("ilst", in: children) else { return }
        Box.forEach(in: list) { item in
            let field = item.type >> 24 == 0xA9 ? Field(atom: item.type) : fields[item.type]
            if let field, let value = Box.first("data", in: item.body) {
                field.read(value.from(8), into: &facts)
            }
            return true
        }
    }

    private static func readKeys(_ keys: Region) -> [UInt32: Field] {
        guard let count = keys.u32(4), count <= keysMax else { return [:] }
        var fields: [UInt32: Field] = [:]
        var offset: UInt64 = 8
        for index in 0..<count {
            guard let length = keys.u32(offset).map(UInt64.init), length >= 8 else { break }
            if let field = Field(key: keys.clipped(offset + 8, length - 8)) { fields[index + 1] = field }
            offset += length
        }
        return fields
    }
}

/// A place as text: `+37.3319-122.0312+010.0/`, in degrees, or degrees and minutes run together.
enum ISO6709 {
    static func read(_ text: ByteView, into facts: inout MediaFacts) {
        var index = 0
        guard let latitude = number(text, &index, degreeDigits: 2),
            let longitude = number(text, &index, degreeDigits: 3)
        else { return }
        facts.setPlace(latitude: latitude, longitude: longitude)
    }

    private static func number(_ text: ByteView, _ index: inout Int, degreeDigits: Int) -> Double? {
        let sign = text[index]
        guard sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") else { return nil }
        index += 1
        var value = 0.0
        var wholeDigits = 0
        var scale = 1.0
        var isFraction = false
        while ASCII.isDigit(text[index]) || (text[index] == UInt8(ascii: ".") && !isFraction) {
            if text[index] == UInt8(ascii: ".") {
                isFraction = true
            } else {
                value = value * 10 + Double(text[index] - 0x30)
                if isFraction { scale *= 10 } else { wholeDigits += 1 }
            }
            index += 1
        }
        value /= scale
        guard wholeDigits > 0, value.isFinite else { return nil }
        if wholeDigits == degreeDigits + 2 {
            let degrees = (value / 100).rounded(.down)
            value = degrees + (value - degrees * 100) / 60
        }
        return sign == UInt8(ascii: "-") ? -value : value
    }
}
