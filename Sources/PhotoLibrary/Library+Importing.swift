import Glibc
public import LinuxIO
public import PhotoImaging
import VaultCatalogue
import VaultStore

/// A file outside the vault whose bytes are to come in.
public protocol ImportSource: ByteSource {
    /// Whether the file is still as it was when reading began.
    var isUnchanged: Bool { get }
}

/// A name and value of `user.*`.
public struct ExtendedAttribute: Sendable, Equatable {
    public var name: [UInt8]
    public var value: [UInt8]

    public init(name: [UInt8], value: [UInt8]) {
        self.name = name
        self.value = value
    }
}

/// What is kept of a file beside its bytes and its name.
public struct FileDetails: Sendable {
    /// Permission bits.
    public var mode: UInt32
    /// Kept where the library is root's.
    public var owner: Caller
    public var accessed: Timestamp
    public var modified: Timestamp
    public var attributes: [ExtendedAttribute]

    public init(
        mode: UInt32, owner: Caller, accessed: Timestamp, modified: Timestamp,
        attributes: [ExtendedAttribute] = []
    ) {
        self.mode = mode
        self.owner = owner
        self.accessed = accessed
        self.modified = modified
        self.attributes = attributes
    }
}

/// A file that is to be added.
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

/// What a file outside would be in the library.
public enum ImportCategory: Sendable {
    /// By its bytes neither picture nor video, or it could not be read.
    case notPhoto
    /// Exactly the bytes of that photo.
    case duplicate(UInt64)
    case photo(Candidate)
}

/// A photo that is not in the library yet.
public struct Candidate: Sendable {
    /// As the library will date it; its inode is not known yet.
    let row: PhotoRow

    /// The day it was taken, `YYYY-MM-DD`.
    public var day: String { String(decoding: dayName(row.day), as: UTF8.self) }
    /// Equal bytes have it in common, and others most likely not.
    public var fingerprint: UInt64 { row.fingerprint }
    /// Dated by its mtime, for want of anything better.
    public var isUndated: Bool { row.isUndated }
}

/// Where a photo is to lie besides, or instead of, under its own day.
public struct ImportPlace: Sendable {
    /// An album it is added to as well.
    public var album: UInt64?
    /// The day it lay under when it was exported, YYYYMMDD: kept, and pinned where it is not the photo's own.
    var day: Int64?

    public init(album: UInt64? = nil) { self.album = album }

    /// Nil where the name is not that of a day.
    public init?(day: Name) {
        guard let number = dayNumber(named: day.bytes) else { return nil }
        self.day = number
    }
}

/// What was added. `sidecars` is in the order given; nil for one that could not lie beside its photo.
public struct Added: Sendable, Equatable {
    public var photo: UInt64
    public var sidecars: [UInt64?]
}

/// Adding files without a mount. Each comes in by one transaction: after a crash it is there whole, or not at all.
extension Library {
    /// Looks at a file and for a photo of the same bytes. Changes nothing.
    ///
    /// - Parameters:
    ///   - sidecar: what `readSidecar` found beside it.
    ///   - asNew: do not ask whether the space has these bytes.
    ///   - isCalledOff: asked again and again; once it answers yes, photos that were not compared count as others.
    public func appraise(
        _ source: some ByteSource, named name: Name, modified: Timestamp, sidecar: Sidecar? = nil,
        asNew: Bool = false, unless isCalledOff: () -> Bool = { false }
    ) throws(FileError) -> ImportCategory {
        guard source.byteCount > 0, let facts = readFacts(source), let print = fingerprint(of: source) else {
            return .notPhoto
        }
        if !asNew {
            let known = try equalPhotos(to: source, print, besides: 0) { _ in isCalledOff() }
            if let first = known.photos.first { return .duplicate(first.ino) }
        }
        let probe = MediaProbe(facts: facts, sidecar: sidecar, fingerprint: print)
        return .photo(
            Candidate(row: PhotoRow(ino: 0, modified: modified, probe, named: name.bytes, now: .now())))
    }

    /// Adds a photo and its sidecars: beside it in the album, else in its day.
    ///
    /// `proceed` is told of each piece of the photo's bytes. Nil where it answered no, or a file could not be read
    /// or changed meanwhile: then nothing was added.
    public func add<Source>(
        _ candidate: Candidate, _ photo: ImportFile<Source>, sidecars: [ImportFile<Source>] = [],
        to place: ImportPlace, proceed: (UInt64) -> Bool = { _ in true }
    ) throws(FileError) -> Added? {
        try check(photo.name)
        guard let sealed = try seal(photo.source, proceed) else { return nil }
        let arrival = Arrival(name: photo.name.bytes, details: photo.details, sealed: sealed)
        var beside: [SidecarArrival] = []
        defer { for file in [arrival] + beside.map(\.file) { file.sealed.abandon(space) } }
        let day = place.day ?? candidate.row.day
        for sidecar in sidecars {
            guard let bytes = try seal(sidecar.source, { _ in true }) else { return nil }
            beside.append(
                SidecarArrival(
                    file: Arrival(name: sidecar.name.bytes, details: sidecar.details, sealed: bytes),
                    equal: try equalFile(to: sidecar, album: place.album, day: day)))
        }
        return try changing { tree throws(FileError) in
            try tree.enter(arrival, beside, candidate.row, album: place.album, day: day, space)
        }
    }

    /// Adds a sidecar to a photo that is there already, beside it in the album, else in its day: unless one lies beside
    /// it in that album, or else anywhere. The photo is dated by it then. Returns the file that has exactly the
    /// sidecar's bytes; nil where another lies there.
    ///
    /// - Parameter name: what the photo is called where the sidecar comes from.
    public func add(
        sidecar: ImportFile<some ImportSource>, of ino: UInt64, named name: Name, in album: UInt64?
    ) throws(FileError) -> (ino: UInt64, isNew: Bool)? {
        let known = try locked { tree throws(FileError) in
            try tree.places(of: ino, beside: sidecar.name.bytes, named: name.bytes)
                .filter { album == nil || $0.directory.ino == album }.compactMap(\.found)
        }
        for file in known where try holds(file, sidecar.source) { return (file, false) }
        guard known.isEmpty else { return nil }
        guard let sealed = try seal(sidecar.source, { _ in true }) else { return nil }
        defer { sealed.abandon(space) }
        let arrival = Arrival(name: sidecar.name.bytes, details: sidecar.details, sealed: sealed)
        let made = try changing { tree throws(FileError) -> Inode? in
            let places = try tree.places(of: ino, beside: arrival.name, named: name.bytes)
            let chosen = places.first { album == nil ? $0.directory.isDay : $0.directory.ino == album }
            guard let chosen, chosen.found == nil, chosen.name.count <= nameBytesMax else { return nil }
            let ino = try tree.enter(arrival, as: chosen.name, in: chosen.directory, space, now: .now())
            return try tree.inode(ino)
        }
        guard let made else { return nil }
        try fileBesideSidecar(made)
        // The sidecar goes with its photo to the day that it has just given it.
        try applyCompanionMoves()
        return (made.ino, true)
    }

    /// The file that already lies under the sidecar's own name, if it has exactly its bytes.
    private func equalFile(
        to sidecar: ImportFile<some ImportSource>, album: UInt64?, day: Int64
    ) throws(FileError) -> UInt64? {
        let found = try locked { tree throws(FileError) -> UInt64? in
            var parent = album
            if parent == nil {
                parent = try sql(tree.tables.dentry(WellKnownInode.moments, dayName(day)))?.ino
            }
            guard let parent else { return nil }
            return try sql(tree.tables.dentry(parent, sidecar.name.bytes))?.ino
        }
        guard let found, try holds(found, sidecar.source) else { return nil }
        return found
    }

    /// Adds a file that is no photo, or is not to be one, to a directory. Nil as for a photo.
    public func add(
        plain file: ImportFile<some ImportSource>, to directory: UInt64,
        proceed: (UInt64) -> Bool = { _ in true }
    ) throws(FileError) -> UInt64? {
        try check(file.name)
        guard let sealed = try seal(file.source, proceed) else { return nil }
        defer { sealed.abandon(space) }
        let arrival = Arrival(name: file.name.bytes, details: file.details, sealed: sealed)
        return try changing { tree throws(FileError) in
            let parent = try tree.directory(directory)
            guard parent.area == .album || parent.area == .day else { throw .notPermitted }
            let name = try tree.freeName(parent, arrival.name)
            return try tree.enter(arrival, as: name, in: parent, space, now: .now())
        }
    }

    /// Adds a photo of the library to an album, unless it lies there. True where it was added.
    public func addToAlbum(_ ino: UInt64, _ album: UInt64, named name: Name) throws(FileError) -> Bool {
        try check(name)
        return try changing { tree throws(FileError) in
            let photo = try tree.inode(ino)
            let directory = try tree.directory(album)
            guard photo.row.nlink > 0, directory.area == .album else { throw .noEntry }
            if try tree.lies(photo, in: album) { return false }
            let now = Timestamp.now()
            let free = try tree.freeName(directory, name.bytes)
            try tree.addEntry(directory, free, photo, isMember: photo.isPhoto, now: now)
            tree.linked(photo, now: now)
            return true
        }
    }

    /// Whether a photo, or a copy of it, has a name in that directory.
    public func lies(_ ino: UInt64, in directory: UInt64) throws(FileError) -> Bool {
        try locked { tree throws(FileError) in try tree.lies(try tree.inode(ino), in: directory) }
    }

    /// Adds another name of a file to an album, numbered where it is taken by another: a photo's is a membership. False
    /// where the file has that name.
    public func addName(_ name: Name, of ino: UInt64, in album: UInt64) throws(FileError) -> Bool {
        try check(name)
        return try changing { tree throws(FileError) in
            let file = try tree.inode(ino)
            let directory = try tree.directory(album)
            guard file.row.nlink > 0, directory.area == .album else { throw .noEntry }
            if try sql(tree.tables.dentry(album, name.bytes))?.ino == ino { return false }
            let now = Timestamp.now()
            let free = try tree.freeName(directory, name.bytes)
            try tree.addEntry(directory, free, file, isMember: file.isPhoto, now: now)
            tree.linked(file, now: now)
            return true
        }
    }

    /// Adds a copy of a photo to an album: a file of its own with the photo's very bytes, which stands for it.
    public func addCopy(
        of ino: UInt64, named name: Name, _ details: FileDetails, to album: UInt64
    ) throws(FileError) -> UInt64 {
        try check(name)
        return try changing { tree throws(FileError) in
            let photo = try tree.inode(ino)
            let directory = try tree.directory(album)
            guard try tree.canStandFor(photo), directory.area == .album, photo.state?.share() ?? true else {
                throw .noEntry
            }
            return try tree.enterCopy(of: photo, name.bytes, details, in: directory, space)
        }
    }

    /// Finds an album by its path, and makes it where `makes`; nil where it is missing. `notDirectory` where a file has
    /// its name.
    public func album(_ path: [Name], makes: Bool) throws(FileError) -> UInt64? {
        let caller = Caller(uid: options.owner.uid, gid: options.owner.gid)
        var album = WellKnownInode.albums
        for name in path {
            do throws(FileError) {
                let found = try lookup(album, name, caller).attributes
                guard found.isDirectory else { throw .notDirectory }
                album = found.ino
            } catch .noEntry {
                guard makes else { return nil }
                album = try makeDirectory(album, name, mode: 0o755, caller).attributes.ino
            }
        }
        return album
    }

    /// Returns once all that was added so far is on the disk.
    public func makeDurable() throws(FileError) { try committer.makeDurable() }

    /// Where a photo lies in moments: the name of its day, and its own.
    public func moment(of ino: UInt64) throws(FileError) -> (day: Name, name: Name)? {
        try locked { tree throws(FileError) in
            guard let moment = try tree.moment(of: try tree.inode(ino)) else { return nil }
            return (Name(dayName(moment.directory.row.day)), Name(moment.row.name))
        }
    }

    /// Ends the restoring of a photo, once all of its names and sidecars are back: it lies in `place`'s day, pinned
    /// to it only where it would not lie there by itself.
    public func settle(_ ino: UInt64, in place: ImportPlace) throws(FileError) {
        guard let day = place.day else { return }
        try withState(of: ino) { file throws(FileError) in
            file.writer.lock()
            defer { file.writer.unlock() }
            let classification = classify(file, equals: .none)
            try changing { tree throws(FileError) in
                try tree.settle(file.inode, classification, in: day, now: .now())
            }
        }
    }
}

extension Tree {
    /// Gives a photo that comes in its names and its row.
    fileprivate func enter(
        _ photo: Arrival, _ sidecars: [SidecarArrival], _ row: PhotoRow, album: UInt64?, day: Int64,
        _ space: Space
    ) throws(FileError) -> Added {
        let now = Timestamp.now()
        let directory = try album.map { ino throws(FileError) in try self.directory(ino) }
        if let directory, directory.area != .album || directory.row.nlink == 0 { throw .noEntry }
        let dayDirectory = try dayDirectory(day, now: now)
        let inode = try adopt(photo, in: directory ?? dayDirectory, space, now: now)
        var row = row
        row.ino = inode.ino
        if row.day != day { row.pin(to: day) }
        do throws(FileError) {
            try storePhoto(inode, row)
            let first = try place(inode, photo.name, sidecars, in: directory ?? dayDirectory, space, now: now)
            if directory != nil { _ = try place(inode, photo.name, [], in: dayDirectory, space, now: now) }
            return Added(photo: inode.ino, sidecars: first)
        } catch {
            withdraw(inode, now: now)
            throw error
        }
    }
}

/// How names tell what to leave out.
public enum ImportRules {
    /// Whether a file of this name is some program's working file, never taken for a photo.
    public static func isWorkingFile(_ name: Name) -> Bool { isWorkingName(name.bytes) }

    /// Whether what lies in a directory of this name is some program's.
    public static func isWorkingDirectory(_ name: Name) -> Bool { isWorkingDirectoryName(name.bytes) }

    /// Whether a name is that of a sidecar.
    public static func isSidecar(_ name: Name) -> Bool { isSidecarName(name.bytes) }

    /// The names that a photo's sidecar may have, the one whose date counts first.
    public static func sidecars(of name: Name) -> [Name] { sidecarNames(name.bytes).map { Name($0) } }

    /// Whether a name is that of a real date's day.
    public static func isDay(_ name: Name) -> Bool { dayNumber(named: name.bytes) != nil }
}
