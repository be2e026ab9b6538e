/// Collects facts from the directories of an EXIF block or a TIFF-based file: EXIF 3.0, TIFF/EP, DNG 1.7.
struct EXIFScanner {
    /// The subject of a directory.
    enum Directory {
        /// The first, of the picture itself.
        case main
        /// The one after it: in EXIF the thumbnail's.
        case next
        /// One of the main directory's children: in raw formats previews and the raw picture.
        case sub
        case exif
        case gps
    }

    private let tiff: TIFFStructure
    private var visited: [UInt64] = []
    /// Directories still to be read, found while reading others.
    private var pending: [(offset: UInt64, directory: Directory)] = []

    private var dates = DateFields()
    private var gps = GPSFields()
    private var frame = FrameFields()
    private var pictures: [Picture] = []
    private var orientation: UInt64?
    private var makerNote: TIFFStructure.Entry?
    private var customRendered: UInt64?
    /// Whether the user comment, behind its 8 bytes of encoding, is the one of Apple's pictures of screens.
    private var isScreenshot = false
    /// Apple's value of CustomRendered for a panorama.
    private static let panorama: UInt64 = 6
    /// The XMP packet, IPTC records and Photoshop's resources to which the directories point.
    private(set) var packets: [(kind: PacketKind, region: Region)] = []
    /// The Panasonic raw's embedded JPEG, which carries EXIF of its own.
    private(set) var embeddedJPEG: Region?

    /// Metadata of other kinds that a TIFF directory can hold.
    enum PacketKind {
        case xmp, iptc, photoshop
    }

    /// A directory's description of its picture.
    private struct Picture {
        var directory: Directory
        var subfileType: UInt64?
        var width: UInt64?
        var height: UInt64?
        var compression: UInt64?
        var jpegOffset: UInt64?
        var jpegLength: UInt64?
        var stripOffset: UInt64?
        var stripLength: UInt64?
    }

    private struct DateFields {
        var original: ParsedDate?
        var digitized: ParsedDate?
        var modified: ParsedDate?
        var originalFraction: Int?
        var digitizedFraction: Int?
        var modifiedFraction: Int?
        var originalOffset: Int?
        var digitizedOffset: Int?
        var modifiedOffset: Int?
    }

    /// The size of the full picture in raw formats, as given outside its directory.
    private struct FrameFields {
        /// PixelXDimension and PixelYDimension.
        var width: UInt64?
        var height: UInt64?
        /// Panasonic's sensor borders: top, left, bottom, right.
        var borders: [UInt64?] = [nil, nil, nil, nil]
    }

    private struct GPSFields {
        var latitudeRef: UInt8 = 0
        var longitudeRef: UInt8 = 0
        var latitude: Double?
        var longitude: Double?
        var date: ParsedDate?
        var secondOfDay: Double?
    }

    /// Maximum number of directories in one block; a real one has fewer than ten, a raw file a few more.
    private static let directoriesMax = 24
    private static let packetsMax = 6

    /// Reads the block at the beginning of `region` into `facts`. Returns nil, and does nothing, if there is no TIFF
    /// header.
    ///
    /// - Parameter page: the offset of the directory to begin with; nil for the first.
    static func scan(
        _ region: Region, root: Directory = .main, page: UInt64? = nil, into facts: inout MediaFacts
    ) -> EXIFScanner? {
        guard let tiff = TIFFStructure(region) else { return nil }
        var scanner = EXIFScanner(tiff)
        scanner.pending = [(page ?? tiff.firstDirectory, root)]
        scanner.readDirectories(&facts)
        scanner.finish(&facts)
        return scanner
    }

    private init(_ tiff: TIFFStructure) {
        self.tiff = tiff
    }

    private mutating func readDirectories(_ facts: inout MediaFacts) {
        while let (offset, directory) = pending.popLast() {
            guard visited.count < EXIFScanner.directoriesMax, !visited.contains(offset) else { continue }
            visited.append(offset)
            var picture = Picture(directory: directory)
            let tiff = tiff
            let next = tiff.forEachEntry(at: offset) { entry in
                switch directory {
                case .gps: readPlace(entry)
                case .exif: readCamera(entry)
                case .main, .next, .sub: readPicture(entry, &picture, &facts)
                }
            }
            if directory == .main || directory == .next || directory == .sub { pictures.append(picture) }
            if directory == .main, let next, next != 0 { addPending(next, .next) }
        }
    }

    private mutating func readPicture(
        _ entry: TIFFStructure.Entry, _ picture: inout Picture, _ facts: inout MediaFacts
    ) {
        switch entry.tag {
        case 0x00FE: picture.subfileType = tiff.integer(entry)
        case 0x0100: picture.width = tiff.integer(entry)
        case 0x0101: picture.height = tiff.integer(entry)
        case 0x0103: picture.compression = tiff.integer(entry)
        case 0x0111: if entry.count == 1 { picture.stripOffset = tiff.integer(entry) }
        case 0x0117: if entry.count == 1 { picture.stripLength = tiff.integer(entry) }
        case 0x0201: picture.jpegOffset = tiff.integer(entry)
        case 0x0202: picture.jpegLength = tiff.integer(entry)
        case 0x014A: readChildren(entry)
        case _ where picture.directory == .main: readMain(entry, &facts)
        default: break
        }
    }

    private mutating func readChildren(_ entry: TIFFStructure.Entry) {
        for index in 0..<min(entry.count, 8) {
            if let offset = tiff.integer(entry, at: index) { addPending(offset, .sub) }
        }
    }

    private mutating func addUrgent(_ offset: UInt64, _ directory: Directory) {
        if pending.count < 2 * EXIFScanner.directoriesMax { pending.append((offset, directory)) }
    }

    /// Adds a preview, which waits until the directories with dates are read. Hostile files name more than are ever
    /// read.
    private mutating func addPending(_ offset: UInt64, _ directory: Directory) {
        if pending.count < EXIFScanner.directoriesMax { pending.insert((offset, directory), at: 0) }
    }

    private mutating func readMain(_ entry: TIFFStructure.Entry, _ facts: inout MediaFacts) {
        switch entry.tag {
        case 0x0004...0x0007 where facts.type == .rw2:
            frame.borders[Int(entry.tag) - 4] = tiff.integer(entry)
        case 0x002E: embeddedJPEG = embeddedJPEG ?? tiff.region.inside(entry.offset, entry.byteCount)
        case 0x010F: if facts.make == nil { facts.make = tiff.text(entry) }
        case 0x0110: if facts.model == nil { facts.model = tiff.text(entry) }
        case 0x0112: orientation = orientation ?? tiff.integer(entry)
        case 0x0132: dates.modified = dates.modified ?? tiff.date(entry)
        case 0x02BC: addPacket(.xmp, entry)
        case 0x83BB: addPacket(.iptc, entry)
        case 0x8649: addPacket(.photoshop, entry)
        case 0x8769: if let offset = tiff.integer(entry) { addUrgent(offset, .exif) }
        case 0x8825: if let offset = tiff.integer(entry) { addUrgent(offset, .gps) }
        default: readCamera(entry)
        }
    }

    private mutating func addPacket(_ kind: PacketKind, _ entry: TIFFStructure.Entry) {
        guard packets.count < EXIFScanner.packetsMax,
            let region = tiff.region.inside(entry.offset, entry.byteCount)
        else { return }
        packets.append((kind, region))
    }

    /// The EXIF directory's entries, which TIFF/EP allows in the main one too.
    private mutating func readCamera(_ entry: TIFFStructure.Entry) {
        switch entry.tag {
        case 0x9003: dates.original = dates.original ?? tiff.date(entry)
        case 0x9004: dates.digitized = dates.digitized ?? tiff.date(entry)
        case 0x9010: dates.modifiedOffset = tiff.withText(entry, max: 16) { DateText.offset($0) }
        case 0x9011: dates.originalOffset = tiff.withText(entry, max: 16) { DateText.offset($0) }
        case 0x9012: dates.digitizedOffset = tiff.withText(entry, max: 16) { DateText.offset($0) }
        case 0x9290: dates.modifiedFraction = fractionOfSecond(entry)
        case 0x9291: dates.originalFraction = fractionOfSecond(entry)
        case 0x9292: dates.digitizedFraction = fractionOfSecond(entry)
        case 0xA002: frame.width = tiff.integer(entry)
        case 0xA003: frame.height = tiff.integer(entry)
        case 0x927C: makerNote = makerNote ?? entry
        case 0x9286: isScreenshot = isScreenshot || tiff.region.matches("Screenshot", at: entry.offset + 8)
        case 0xA401: customRendered = customRendered ?? tiff.integer(entry)
        default: break
        }
    }

    private func fractionOfSecond(_ entry: TIFFStructure.Entry) -> Int? {
        tiff.withText(entry, max: 32) { DateText.nanoseconds(fraction: $0) }
    }

    private mutating func readPlace(_ entry: TIFFStructure.Entry) {
        switch entry.tag {
        case 1: gps.latitudeRef = tiff.region.u8(entry.offset) ?? 0
        case 2: gps.latitude = degrees(entry)
        case 3: gps.longitudeRef = tiff.region.u8(entry.offset) ?? 0
        case 4: gps.longitude = degrees(entry)
        case 7: gps.secondOfDay = degrees(entry).map { $0 * 3600 }
        case 29: gps.date = tiff.date(entry)
        default: break
        }
    }

    /// Degrees of three fractions, degrees, minutes and seconds; or hours in the same way.
    private func degrees(_ entry: TIFFStructure.Entry) -> Double? {
        guard let whole = tiff.fraction(entry, at: 0) else { return nil }
        let minutes = tiff.fraction(entry, at: 1) ?? 0
        let seconds = tiff.fraction(entry, at: 2) ?? 0
        return whole + minutes / 60 + seconds / 3600
    }

    private func finish(_ facts: inout MediaFacts) {
        if let orientation, (1...8).contains(orientation), facts.orientation == 1 {
            facts.orientation = Int(orientation)
        }
        addDates(&facts)
        addPlace(&facts)
        addSize(&facts)
        addPreviews(&facts)
        if customRendered == EXIFScanner.panorama { facts.isPanorama = true }
        if isScreenshot { facts.isScreenshot = true }
        if let makerNote {
            AppleMakerNote.scan(tiff.region, makerNote, into: &facts)
            ReconyxMakerNote.scan(tiff.region, makerNote, into: &facts)
        }
    }

    private func addDates(_ facts: inout MediaFacts) {
        func add(_ source: DateSource, _ date: ParsedDate?, _ fraction: Int?, _ offset: Int?) {
            guard var date else { return }
            if date.time.nanosecond == 0, let fraction {
                date.time =
                    CivilTime(
                        date.time.day, hour: date.time.hour, minute: date.time.minute,
                        second: date.time.second, nanosecond: fraction) ?? date.time
            }
            date.offsetSeconds = offset ?? date.offsetSeconds
            facts.add(source, date)
        }
        add(.dateTimeOriginal, dates.original, dates.originalFraction, dates.originalOffset)
        add(.dateTimeDigitized, dates.digitized, dates.digitizedFraction, dates.digitizedOffset)
        add(.dateTime, dates.modified, dates.modifiedFraction, dates.modifiedOffset)
    }

    private func addPlace(_ facts: inout MediaFacts) {
        if let latitude = gps.latitude, let longitude = gps.longitude {
            let south = gps.latitudeRef | 0x20 == UInt8(ascii: "s")
            let west = gps.longitudeRef | 0x20 == UInt8(ascii: "w")
            facts.setPlace(latitude: south ? -latitude : latitude, longitude: west ? -longitude : longitude)
        }
        guard let date = gps.date else { return }
        // A date without a time of day is not a moment that could be moved into another zone.
        let second = gps.secondOfDay.flatMap { $0 >= 0 && $0 < Double(secondsPerDay) ? Int($0) : nil }
        let time = second.flatMap {
            CivilTime(date.time.day, hour: $0 / 3600, minute: $0 % 3600 / 60, second: $0 % 60)
        }
        let offset = dates.originalOffset ?? dates.digitizedOffset ?? dates.modifiedOffset
        facts.add(
            DateCandidate(source: .gps, time: time ?? date.time, isUTC: time != nil, offsetSeconds: offset))
    }

    /// Sets the size of the full picture, which in raw formats is one of the main directory's children.
    private func addSize(_ facts: inout MediaFacts) {
        guard facts.type == .tiff || facts.type.isRaw else { return }
        if let size = fullSize(facts.type) {
            facts.setSize(UInt32(clamping: size.width), UInt32(clamping: size.height))
            return
        }
        let full = pictures.filter { $0.subfileType == 0 && $0.width != nil && $0.height != nil }
            .max { ($0.width ?? 0) < ($1.width ?? 0) }
        let main = pictures.first { $0.directory == .main }
        if let picture = full ?? main, let width = picture.width, let height = picture.height {
            facts.setSize(UInt32(clamping: width), UInt32(clamping: height))
        }
    }

    /// The size of raw formats whose directories give only the sizes of previews.
    private func fullSize(_ type: MediaType) -> (width: UInt64, height: UInt64)? {
        switch type {
        case .cr2:
            guard let width = frame.width, let height = frame.height, width > 0, height > 0 else {
                return nil
            }
            return (width, height)
        case .rw2:
            guard let top = frame.borders[0], let left = frame.borders[1], let bottom = frame.borders[2],
                let right = frame.borders[3], bottom > top, right > left
            else { return nil }
            return (right - left, bottom - top)
        default: return nil
        }
    }

    private func addPreviews(_ facts: inout MediaFacts) {
        for picture in pictures where facts.type == .jpeg || facts.type.isRaw || picture.directory == .next {
            if let offset = picture.jpegOffset, let length = picture.jpegLength {
                facts.addPreview(tiff.region, offset, length)
            }
            let isReduced = picture.subfileType.map { $0 & 1 == 1 } ?? (picture.directory == .main)
            if isReduced, picture.compression == 6 || picture.compression == 7,
                let offset = picture.stripOffset, let length = picture.stripLength
            {
                facts.addPreview(tiff.region, offset, length)
            }
        }
        if let embeddedJPEG {
            facts.addPreview(embeddedJPEG, 0, embeddedJPEG.count)
        }
    }
}

extension Region {
    /// The block of EXIF without the mark that JPEG puts before it, and some writers of other formats too.
    var withoutEXIFMark: Region { matches("Exif\0\0") ? from(6) : self }
}

/// Apple's maker note: the content identifier, which joins a Live Photo's halves, and the identifier of a burst.
///
/// Source: exiftool's `Apple.pm`: "Apple iOS\0", version, byte order, a directory whose offsets count from the note's
/// beginning; tags 0x0011 and 0x000B.
enum AppleMakerNote {
    static func scan(_ block: Region, _ entry: TIFFStructure.Entry, into facts: inout MediaFacts) {
        guard let note = block.inside(entry.offset, entry.byteCount),
            note.matches("Apple iOS\0"), let mark = note.u16(12)
        else { return }
        let directory = TIFFStructure(
            headless: note, order: mark == 0x4949 ? .little : .big, firstDirectory: 14)
        _ = directory.forEachEntry(at: 14) { entry in
            switch entry.tag {
            case 0x000B: facts.burstIdentifier = facts.burstIdentifier ?? directory.text(entry)
            case 0x0011: facts.contentIdentifier = facts.contentIdentifier ?? directory.text(entry)
            default: break
            }
        }
    }
}

/// The maker note of Reconyx's trail cameras (HyperFire), which has their only date.
///
/// Source: exiftool's `Reconyx.pm`: numbers of 16 bits, the lowest byte first; the first is 0xF101; from the twelfth on
/// second, minute, hour, month, day and year.
enum ReconyxMakerNote {
    static func scan(_ block: Region, _ entry: TIFFStructure.Entry, into facts: inout MediaFacts) {
        guard let note = block.inside(entry.offset, entry.byteCount), note.u16(0, .little) == 0xF101
        else { return }
        let fields = (0..<6).compactMap { note.u16(22 + 2 * UInt64($0), .little).map(Int.init) }
        guard fields.count == 6 else { return }
        let time = CivilTime(
            year: fields[5], month: fields[3], day: fields[4], hour: fields[2], minute: fields[1],
            second: fields[0])
        facts.add(.dateTimeOriginal, time.map { ParsedDate(time: $0) })
    }
}
