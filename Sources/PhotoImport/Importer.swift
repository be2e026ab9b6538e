import CatalogueRows
public import FileRequests
import Glibc
public import LinuxIO
public import PhotoImaging
public import PhotoLibrary
import PhotoRules
import VaultCatalogue
import VaultStore

/// A file outside the vault that is to be imported.
public protocol ImportSource: ByteSource {
    /// Whether the file is unchanged since reading began.
    var isUnchanged: Bool { get }
}

/// A file to add.
public struct ImportFile<Source: ImportSource> {
    public var name: Name
    public var details: FileDetails
    public var source: Source

    public init(name: Name, details: FileDetails, source: Source) {
        self.name = name
        self.details = details
        self.source = source
    }
}

/// Category that an external file would have in the library.
public enum ImportCategory: Sendable {
    /// Neither picture nor video by its bytes, or it could not be read.
    case notPhoto
    /// Has exactly the bytes of that photo.
    case duplicate(UInt64)
    /// Has exactly the bytes that that photo had before it was edited.
    case earlier(UInt64)
    /// Has the bytes that a photo in the trash has, or had before it was edited.
    case trashed
    case photo(Candidate)
}

/// Facts about an external file, from its bytes alone. Any thread may read them.
public struct SourceFacts: Sendable {
    public let media: MediaFacts
    /// As that of a photo: see `fingerprint(of:)`.
    let fingerprint: UInt64

    /// Nil if it is neither picture nor video by its bytes, or could not be read.
    public init?(_ source: some ByteSource) {
        guard source.byteCount > 0, let media = readFacts(source),
            let print = PhotoLibrary.fingerprint(of: source)
        else { return nil }
        self.media = media
        fingerprint = print
    }
}

/// A photo that is not in the library yet.
public struct Candidate: Sendable {
    /// The row that the library will store; its inode is not known yet.
    let row: PhotoRow

    /// The day it was taken, `YYYY-MM-DD`.
    public var day: String { String(decoding: dayName(row.day), as: UTF8.self) }
    /// The same for equal bytes, most likely different for others.
    public var fingerprint: UInt64 { row.fingerprint }
    /// Dated by its mtime, because no better date is known.
    public var isDatedByMtime: Bool { row.isDatedByMtime }
}

/// The place of a photo besides, or instead of, its own day.
public struct ImportPlace: Sendable {
    /// An album to add it to as well.
    public var album: UInt64?
    /// The day that it had when it was exported, YYYYMMDD: kept, and pinned if it is not the photo's own.
    var day: Int64?

    public init(album: UInt64? = nil) { self.album = album }

    /// Nil if the name is not that of a day.
    public init?(day: Name) {
        guard let number = dayNumber(named: day.bytes) else { return nil }
        self.day = number
    }
}

/// Result of adding a photo. `sidecars` is in the order given; nil for one that cannot be next to its photo.
public struct Added: Sendable, Equatable {
    public var photo: UInt64
    public var sidecars: [UInt64?]
}

extension Library {
    /// Adds files without a mount.
    public var importer: Importer { Importer(self) }
}

/// Adding files without a mount. Each is added by one transaction: after a crash it is complete, or not there.
public struct Importer {
    let library: Library
    var session: TreeSession { library.session }
    private var classifier: Classifier { library.classifier }

    init(_ library: Library) { self.library = library }

    /// Classifies a file and searches for a photo with the same bytes. Changes nothing.
    ///
    /// - Parameters:
    ///   - facts: those of `source`.
    ///   - sidecar: the result of `readSidecar` for the sidecar next to it.
    ///   - asNew: do not search the space for these bytes.
    ///   - versions: where to search for photos that were edited since; nil: do not.
    ///   - trash: whether to search the trash of the space too.
    ///   - isCancelled: called repeatedly; once it returns true, photos not compared yet count as different.
    public func classifyImport(
        _ source: some ByteSource, _ facts: SourceFacts?, named name: Name, modified: Timestamp,
        sidecar: Sidecar? = nil, asNew: Bool = false, versions: VersionIndex? = nil, trash: Bool = false,
        unless isCancelled: () -> Bool = { false }
    ) throws(FileError) -> ImportCategory {
        guard let facts else { return .notPhoto }
        if !asNew {
            let known = try library.search.equalPhotos(to: source, facts.fingerprint, except: 0) { _ in
                isCancelled()
            }
            if let first = known.photos.first { return .duplicate(first.ino) }
            let edited = try versions?.photo(withVersion: source, facts.media, unless: isCancelled)
            if let edited, !edited.isTrashed { return .earlier(edited.ino) }
            if trash {
                if edited != nil { return .trashed }
                if try isTrashed(source, facts.fingerprint, unless: isCancelled) { return .trashed }
            }
        }
        let probe = MediaProbe(facts: facts.media, sidecar: sidecar, fingerprint: facts.fingerprint)
        return .photo(
            Candidate(row: PhotoRow(ino: 0, modified: modified, probe, named: name.bytes, now: .now())))
    }

    /// Whether a photo in the trash has exactly these bytes.
    private func isTrashed(
        _ source: some ByteSource, _ fingerprint: UInt64, unless isCancelled: () -> Bool
    ) throws(FileError) -> Bool {
        for ino in try library.search.trashedPhotos(fingerprint, byteCount: source.byteCount)
        where try library.search.holds(ino, source, unless: isCancelled) { return true }
        return false
    }

    /// Adds a photo and its sidecars: next to it in the album, else in its day.
    ///
    /// `proceed` is called with the size of each piece of the photo's bytes. Returns nil, and adds nothing, if it
    /// returned false, or if a file could not be read or changed meanwhile.
    public func add<Source>(
        _ candidate: Candidate, _ photo: ImportFile<Source>, sidecars: [ImportFile<Source>] = [],
        to place: ImportPlace, proceed: (UInt64) -> Bool = { _ in true }
    ) throws(FileError) -> Added? {
        try library.checkNew(photo.name)
        guard let sealed = try seal(photo.source, proceed) else { return nil }
        let arrival = Arrival(name: photo.name.bytes, details: photo.details, sealed: sealed)
        var beside: [SidecarArrival] = []
        defer { for file in [arrival] + beside.map(\.file) { file.sealed.abandon(session.space) } }
        let day = place.day ?? candidate.row.day
        for sidecar in sidecars {
            guard let bytes = try seal(sidecar.source, { _ in true }) else { return nil }
            beside.append(
                SidecarArrival(
                    file: Arrival(name: sidecar.name.bytes, details: sidecar.details, sealed: bytes),
                    equal: try equalFile(to: sidecar, album: place.album, day: day)))
        }
        return try session.change { change throws(FileError) in
            let made = try change.tree.imports.enter(
                arrival, beside, candidate.row, album: place.album, day: day,
                isNameGivenInMoments: place.album == nil && place.day == nil, session.space, change)
            return Added(photo: made.photo, sidecars: made.sidecars)
        }
    }

    /// Adds a sidecar to a photo of the library: next to it in the album, else in its day. Adds none if there already
    /// is one next to it: in that album, or without an album anywhere. The photo is then dated by the sidecar. Returns
    /// the file with exactly the sidecar's bytes; nil if there is a different one, or none could be added.
    ///
    /// - Parameter name: the photo's name where the sidecar comes from.
    public func add(
        sidecar: ImportFile<some ImportSource>, of ino: UInt64, named name: Name, in album: UInt64?
    ) throws(FileError) -> (ino: UInt64, isNew: Bool)? {
        let known = try session.locked { tree throws(FileError) in
            try tree.imports.places(of: ino, beside: sidecar.name.bytes, named: name.bytes)
                .filter { album == nil || $0.directory.ino == album }.compactMap(\.found)
        }
        for file in known where try library.search.holds(file, sidecar.source) { return (file, false) }
        guard known.isEmpty else { return nil }
        guard let sealed = try seal(sidecar.source, { _ in true }) else { return nil }
        defer { sealed.abandon(session.space) }
        let arrival = Arrival(name: sidecar.name.bytes, details: sidecar.details, sealed: sealed)
        let made = try session.change { change throws(FileError) -> Inode? in
            let places = try change.tree.imports.places(of: ino, beside: arrival.name, named: name.bytes)
            let chosen = places.first { album == nil ? $0.directory.isDay : $0.directory.ino == album }
            guard let chosen, chosen.found == nil, chosen.name.count <= nameBytesMax else { return nil }
            let ino = try change.tree.imports.enter(
                arrival, as: chosen.name, in: chosen.directory, session.space, now: .now())
            return try change.tree.inode(ino)
        }
        guard let made else { return nil }
        try classifier.classifyBesideSidecar(made)
        // Moves the sidecar with its photo to the photo's new day.
        try session.applyCompanionMoves()
        return (made.ino, true)
    }

    /// The existing file with the sidecar's own name, if it has exactly its bytes.
    private func equalFile(
        to sidecar: ImportFile<some ImportSource>, album: UInt64?, day: Int64
    ) throws(FileError) -> UInt64? {
        let found = try session.locked { tree throws(FileError) -> UInt64? in
            var parent = album
            if parent == nil {
                parent = try tree.tables.dentries.entry(WellKnownInode.moments, dayName(day))?.ino
            }
            guard let parent else { return nil }
            return try tree.tables.dentries.entry(parent, sidecar.name.bytes)?.ino
        }
        guard let found, try library.search.holds(found, sidecar.source) else { return nil }
        return found
    }

    /// Adds a file that is not a photo, or must not become one, to a directory. Nil as for a photo.
    public func add(
        plain file: ImportFile<some ImportSource>, to directory: UInt64,
        proceed: (UInt64) -> Bool = { _ in true }
    ) throws(FileError) -> UInt64? {
        try library.checkNew(file.name)
        guard let sealed = try seal(file.source, proceed) else { return nil }
        defer { sealed.abandon(session.space) }
        let arrival = Arrival(name: file.name.bytes, details: file.details, sealed: sealed)
        return try session.change { change throws(FileError) in
            let parent = try change.tree.directory(directory)
            guard parent.area == .album || parent.area == .day else { throw .notPermitted }
            let name = try change.tree.freeName(parent, arrival.name)
            return try change.tree.imports.enter(arrival, as: name, in: parent, session.space, now: .now())
        }
    }

    /// Adds a photo of the library to an album, unless it is already there. Returns true if it was added.
    public func addToAlbum(_ ino: UInt64, _ album: UInt64, named name: Name) throws(FileError) -> Bool {
        try library.checkNew(name)
        return try session.change { change throws(FileError) in
            let photo = try change.tree.inode(ino)
            let directory = try change.tree.directory(album)
            guard photo.row.nlink > 0, directory.area == .album else { throw .noEntry }
            if try change.tree.imports.lies(photo, in: album) { return false }
            let now = Timestamp.now()
            let free = try change.tree.freeName(directory, name.bytes)
            try change.tree.addEntry(directory, free, photo, isMember: photo.isPhoto, now: now)
            change.tree.addLink(to: photo, now: now)
            return true
        }
    }

    /// Whether a photo, or a copy of it, has a name in that directory.
    public func lies(_ ino: UInt64, in directory: UInt64) throws(FileError) -> Bool {
        try session.locked { tree throws(FileError) in
            try tree.imports.lies(try tree.inode(ino), in: directory)
        }
    }

    /// At most this many numbered names are looked through for what an earlier run added.
    private static let numbersMax = 1000

    /// Adds another name of a file to an album, numbered if another file has that name. A photo's name is a membership.
    /// Returns false if the file already has the name.
    public func addName(_ name: Name, of ino: UInt64, in album: UInt64) throws(FileError) -> Bool {
        try library.checkNew(name)
        return try session.change { change throws(FileError) in
            let file = try change.tree.inode(ino)
            let directory = try change.tree.directory(album)
            guard file.row.nlink > 0, directory.area == .album else { throw .noEntry }
            // An earlier run may have numbered it.
            if try takenNames(name.bytes, in: album, change.tree).contains(ino) { return false }
            let now = Timestamp.now()
            let free = try change.tree.freeName(directory, name.bytes)
            try change.tree.addEntry(directory, free, file, isMember: file.isPhoto, now: now)
            change.tree.addLink(to: file, now: now)
            return true
        }
    }

    /// The file of a directory with that name, or that numbered as an earlier run had to, and the bytes of `source`;
    /// nil if there is none.
    public func equalFile(
        named name: Name, in directory: UInt64, _ source: some ByteSource, unless isCancelled: () -> Bool
    ) throws(FileError) -> UInt64? {
        let files = try session.locked { tree throws(FileError) in
            var files: [UInt64] = []
            for ino in try takenNames(name.bytes, in: directory, tree) where try tree.inode(ino).isRegular {
                files.append(ino)
            }
            return files
        }
        for ino in files where try library.search.holds(ino, source, unless: isCancelled) { return ino }
        return nil
    }

    /// The inodes in a directory under a name and its numbered forms, up to the first free one.
    private func takenNames(
        _ name: [UInt8], in directory: UInt64, _ tree: Tree
    ) throws(FileError) -> [UInt64] {
        var taken: [UInt64] = []
        var candidate = name
        while taken.count < Self.numbersMax, let row = try tree.tables.dentries.entry(directory, candidate) {
            taken.append(row.ino)
            candidate = numberedName(name, taken.count + 1)
        }
        return taken
    }

    /// Adds a copy of a photo to an album: a file of its own that shares the photo's content.
    public func addCopy(
        of ino: UInt64, named name: Name, _ details: FileDetails, to album: UInt64
    ) throws(FileError) -> UInt64 {
        try library.checkNew(name)
        return try session.change { change throws(FileError) in
            let photo = try change.tree.inode(ino)
            let directory = try change.tree.directory(album)
            guard try change.tree.copies.canHaveCopies(photo), directory.area == .album,
                photo.state?.share() ?? true
            else {
                throw .noEntry
            }
            return try change.tree.imports.enterCopy(
                of: photo, name.bytes, details, in: directory, session.space, change)
        }
    }

    /// Finds an album by its path, and makes it if `makes`; nil if it is missing. Throws `.notDirectory` if a file has
    /// its name.
    public func album(_ path: [Name], makes: Bool) throws(FileError) -> UInt64? {
        let caller = Caller(uid: library.options.owner.uid, gid: library.options.owner.gid)
        var album = WellKnownInode.albums
        for name in path {
            do throws(FileError) {
                let found = try library.lookup(album, name, caller).attributes
                guard found.isDirectory else { throw .notDirectory }
                album = found.ino
            } catch .noEntry {
                guard makes else { return nil }
                album = try library.makeDirectory(album, name, mode: 0o755, caller).attributes.ino
            }
        }
        return album
    }

    /// The place of a photo in moments: the name of its day, and its own.
    public func moment(of ino: UInt64) throws(FileError) -> (day: Name, name: Name)? {
        try session.locked { tree throws(FileError) in
            guard let moment = try tree.moments.moment(of: try tree.inode(ino)) else { return nil }
            return (Name(dayName(moment.directory.row.day)), Name(moment.row.name))
        }
    }

    /// Completes the reimport of a photo, once all of its names and sidecars are back: moves it to `place`'s day, and
    /// pins it there only if it would otherwise have another.
    public func pinIfNeeded(_ ino: UInt64, in place: ImportPlace) throws(FileError) {
        guard let day = place.day else { return }
        try session.withState(of: ino) { file throws(FileError) in
            file.writer.lock()
            defer { file.writer.unlock() }
            let classification = classifier.classify(file, equals: .none)
            try session.change { change throws(FileError) in
                try change.tree.imports.pinIfNeeded(file.inode, classification, in: day, change)
            }
        }
    }
}

/// Names of files to leave out of an import.
public enum ImportRules {
    /// Whether the name is that of a program's working file, which is never taken for a photo.
    public static func isWorkingFile(_ name: Name) -> Bool { isWorkingName(name.bytes) }

    /// The name of the file that programs keep as a backup under that name; nil for any other name.
    public static func nameBackedUp(as name: Name) -> Name? { backupOriginal(name.bytes).map { Name($0) } }

    /// Whether the name is that of a program's own directory, whose files are never taken for photos.
    public static func isWorkingDirectory(_ name: Name) -> Bool { isWorkingDirectoryName(name.bytes) }

    /// Whether the name is that of a sidecar.
    public static func isSidecar(_ name: Name) -> Bool { isSidecarName(name.bytes) }

    /// The possible names of a photo's sidecar, in order of precedence.
    public static func sidecars(of name: Name) -> [Name] { sidecarNames(name.bytes).map { Name($0) } }

    /// The contents of a photo's sidecars: the date, and the rating, of the first that has one and describes the photo.
    ///
    /// - Parameter sidecars: the files beside the photo that are sidecars by their names, in order of precedence.
    public static func sidecar(of photo: Name, among sidecars: [(name: Name, source: some ByteSource)])
        -> Sidecar?
    {
        describing(
            sidecars.compactMap { name, source in
                readSidecar(source).map { (photo.bytes, name.bytes, $0) }
            })
    }

    /// The names of the photos that a sidecar describes in place of the photo beside it; none if it describes that.
    public static func photosDescribed(
        by source: some ByteSource, named name: Name, besides photo: Name
    ) -> [Name] {
        guard let sidecar = readSidecar(source) else { return [] }
        return PhotoRules.photosDescribed(by: sidecar, named: name.bytes, besides: photo.bytes).map {
            Name($0)
        }
    }

    /// Whether the name is that of a day with a real date.
    public static func isDay(_ name: Name) -> Bool { dayNumber(named: name.bytes) != nil }
}
