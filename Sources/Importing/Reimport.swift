import FileRequests
import Glibc
import HostFiles
import LinuxIO
import PhotoImaging
import PhotoImport
import PhotoLibrary

/// The import of a directory that `obscura export` wrote: days, albums and everything beside them are restored.
///
/// Photos come first, each into its former day. Then come albums, where the same files or bytes become names of those
/// photos. Pinning is decided last, when every sidecar is there; then directories get their times back.
final class Reimport {
    private let session: ImportRun
    private let root: HostPath
    private let caller = Caller(uid: geteuid(), gid: getegid())
    /// For files with several names: the inode that was restored.
    private var known: [FileIdentity: UInt64] = [:]
    /// Whether names of photos in albums are hard links.
    private var hasLinks = false
    /// Photos that this run restored, or an earlier one of the same export.
    private var restored: Set<UInt64> = []
    /// The inode of each file restored from the directory that is being restored, by its name there.
    private var inodes: [Name: UInt64] = [:]
    /// Photos whose day is checked again at the end.
    private var unsettled: [UInt64: ImportPlace] = [:]
    /// Directories and their former attributes.
    private var directories: [(ino: UInt64, details: FileDetails)] = []

    private var library: Library { session.library }
    private var isCancelled: Bool { session.isCancelled }

    init(_ session: ImportRun, _ root: HostPath) {
        self.session = session
        self.root = root
    }

    func run() throws(FileError) {
        let top = try library.lookup(1, "moments", caller).attributes.ino
        let days = names(in: root.appending("moments")).filter { ImportRules.isDay($0) }
        for day in days where !isCancelled { try restoreDay(day, in: top) }
        if session.settings.isDry { return }
        hasLinks = !known.isEmpty
        let albums = try library.lookup(1, "albums", caller).attributes.ino
        if (try? root.appending("albums").status())?.isDirectory == true {
            try restoreAlbum(root.appending("albums"), as: albums, isWorking: false)
        }
        // After an interruption the next run settles them.
        for (ino, place) in unsettled where !isCancelled {
            try library.importer.pinIfNeeded(ino, in: place)
        }
        if isCancelled { return }
        note(root.appending("moments"), top)
        for directory in directories { try setDetails(directory.ino, directory.details) }
        // The exporting user chose the mode of DIR itself, so only its time is set.
        guard let status = try? root.status() else { return }
        _ = try library.setAttributes(
            1, AttributeChanges(modified: .set(Timestamp(status.st_mtim))), caller)
    }

    // MARK: Moments

    private func restoreDay(_ day: Name, in moments: UInt64) throws(FileError) {
        let directory = root.appending("moments").appending(day)
        guard let place = ImportPlace(day: day) else { return }
        inodes = [:]
        let found = names(in: directory)
        let all = found.filter { $0 != Importer.versionsDirectory }
        var plain: [SourceFile] = []
        for name in all where !isCancelled {
            guard let source = open(directory.appending(name)) else { continue }
            let isPlain =
                if ImportRules.isWorkingFile(name) || isBackup(source, among: all) { true } else {
                    try !restorePhoto(source, among: Set(all), day, place)
                }
            if isPlain { plain.append(source) }
            try session.removals?.flushIfDue(&session.report, isDirectoryDone: false)
        }
        if session.settings.isDry { return }
        // A day of which nothing was restored gets no directory.
        let isThere = try find(nil, in: day) != nil
        if all.isEmpty || !plain.isEmpty || isThere {
            let ino = try makeDirectory(day, in: moments)
            for source in plain where !isCancelled { try restorePlain(source, in: ino) }
            note(directory, ino)
        }
        if all.count < found.count { try restoreVersions(in: directory) }
    }

    /// Whether a picture in a day is the backup of one beside it, which is no photo. A photo has such a name beside its
    /// own only if it has names in albums too.
    private func isBackup(_ source: SourceFile, among names: [Name]) -> Bool {
        guard source.status.st_nlink == 1, let name = ImportRules.nameBackedUp(as: source.path.name) else {
            return false
        }
        return names.contains(name)
    }

    /// Restores the versions of the files in `inodes`, also if the space had these files already.
    private func restoreVersions(in directory: HostPath) throws(FileError) {
        let all = directory.appending(Importer.versionsDirectory)
        for name in names(in: all) where !isCancelled {
            guard let ino = inodes[name] else { continue }
            for version in names(in: all.appending(name)).sorted(by: isEarlier) where !isCancelled {
                guard let source = open(all.appending(name).appending(version)) else { continue }
                let added = try library.importer.add(
                    version: source.importFile, of: ino, proceed: session.noteBytes)
                if let added { session.removals?.add(source, added) } else { session.failToAdd([source]) }
            }
        }
    }

    /// Whether `.versions` in an album holds the versions of files beside it, and is no album itself.
    private func hasVersions(_ album: HostPath, beside names: [Name]) -> Bool {
        let directory = album.appending(Importer.versionsDirectory)
        guard names.contains(Importer.versionsDirectory), let files = try? directory.list() else {
            return false
        }
        return !files.isEmpty
            && files.allSatisfy { name in
                names.contains(name) && (try? album.appending(name).status())?.isRegular == true
                    && (try? directory.appending(name).status())?.isDirectory == true
            }
    }

    /// The original comes first, then by time.
    private func isEarlier(_ one: Name, _ other: Name) -> Bool {
        (one == "original" ? 0 : 1, one.description) < (other == "original" ? 0 : 1, other.description)
    }

    /// Restores a photo. Returns false if the file is not a photo.
    private func restorePhoto(
        _ source: SourceFile, among names: Set<Name>, _ day: Name, _ place: ImportPlace
    ) throws(FileError) -> Bool {
        let sidecars = ImportRules.sidecars(of: source.path.name).filter { names.contains($0) }
            .compactMap { try? SourceFile(source.path.parent.appending($0)) }
        let sidecar = ImportRules.sidecar(
            of: source.path.name, among: sidecars.map { ($0.path.name, $0) })
        let facts = SourceFacts(source)
        var appraisal = try library.importer.classifyImport(
            source, facts, named: source.path.name, modified: source.modified, sidecar: sidecar,
            unless: session.settings.isCancelled)
        if isCancelled { return true }
        if case .duplicate(let ino) = appraisal {
            if try takeDuplicate(source, ino, day, place) { return true }
            appraisal = try library.importer.classifyImport(
                source, facts, named: source.path.name, modified: source.modified, sidecar: sidecar,
                asNew: true)
        }
        guard case .photo(let candidate) = appraisal else { return false }
        if session.settings.isDry {
            _ = session.noteBytes(source.byteCount)
            session.note(candidate, day: day.description, source)
            return true
        }
        guard
            let added = try library.importer.add(
                candidate, source.importFile, to: place, proceed: session.noteBytes)
        else {
            session.failToAdd([source])
            return true
        }
        session.note(candidate, day: day.description, source)
        remember(source, added.photo)
        restored.insert(added.photo)
        if candidate.day != day.description { unsettled[added.photo] = place }
        return true
    }

    /// Skips a photo whose bytes the space has. Returns false if the bytes are those of another photo of this export:
    /// then this one must be added as well.
    private func takeDuplicate(
        _ source: SourceFile, _ ino: UInt64, _ day: Name, _ place: ImportPlace
    ) throws(FileError) -> Bool {
        var ino = ino
        let own = try find(source.path.name, in: day)
        if let own, try library.search.holds(own, source, unless: session.settings.isCancelled) {
            ino = own
            restored.insert(own)
            unsettled[own] = place
        } else if restored.contains(ino) {
            return false
        } else if let moment = try library.importer.moment(of: ino) {
            let other = root.appending("moments").appending(moment.day).appending(moment.name)
            if (try? other.status())?.st_size == source.status.st_size { return false }
        }
        session.report.duplicates += 1
        session.pass(source.byteCount)
        remember(source, ino)
        return true
    }

    /// The entry of a day in the library under a name; nil as a name: the day itself. Returns nil if it does not exist.
    private func find(_ name: Name?, in day: Name) throws(FileError) -> UInt64? {
        do throws(FileError) {
            let moments = try library.lookup(1, "moments", caller).attributes.ino
            let directory = try library.lookup(moments, day, caller).attributes.ino
            guard let name else { return directory }
            return try library.lookup(directory, name, caller).attributes.ino
        } catch .noEntry {
            return nil
        }
    }

    // MARK: Albums

    private func restoreAlbum(_ path: HostPath, as album: UInt64, isWorking: Bool) throws(FileError) {
        let found = names(in: path)
        let hasVersions = hasVersions(path, beside: found)
        let all = found.filter { !hasVersions || $0 != Importer.versionsDirectory }
        inodes = [:]
        var photos: [Name: UInt64] = [:]
        for name in all where !isCancelled {
            let entry = path.appending(name)
            let status: stat
            do throws(Errno) { status = try entry.status() } catch {
                session.report.addUnreadable(entry, "\(error)")
                continue
            }
            if status.isDirectory {
                guard let ino = try directory(name, in: album, for: entry) else { continue }
                let here = inodes
                try restoreAlbum(
                    entry, as: ino, isWorking: isWorking || ImportRules.isWorkingDirectory(name))
                inodes = here
            } else if status.isRegular {
                let isWorking = isWorking || ImportRules.isWorkingFile(name)
                if let photo = try restoreFile(entry, status, in: album, isWorking: isWorking) {
                    photos[name] = photo
                }
            } else {
                try restoreSpecial(entry, status, in: album)
            }
            try session.removals?.flushIfDue(&session.report, isDirectoryDone: false)
        }
        if hasVersions { try restoreVersions(in: path) }
        note(path, album)
        try unsettle(photos, among: Set(all))
    }

    /// A sidecar may give another day than the photo itself.
    private func unsettle(_ photos: [Name: UInt64], among names: Set<Name>) throws(FileError) {
        for (name, ino) in photos where restored.contains(ino) && unsettled[ino] == nil {
            guard ImportRules.sidecars(of: name).contains(where: { names.contains($0) }),
                let moment = try library.importer.moment(of: ino)
            else { continue }
            unsettled[ino] = ImportPlace(day: moment.day)
        }
    }

    /// Restores a file. Returns the photo that now has this name, if it is one.
    private func restoreFile(
        _ path: HostPath, _ status: stat, in album: UInt64, isWorking: Bool
    ) throws(FileError) -> UInt64? {
        if let ino = known[status.identity] {
            try link(ino, path, in: album)
            inodes[path.name] = ino
            if let removals = session.removals, let source = open(path) { removals.add(source, ino) }
            return ino
        }
        guard let source = open(path) else { return nil }
        if !isWorking {
            let appraisal = try library.importer.classifyImport(
                source, SourceFacts(source), named: path.name, modified: Timestamp(status.st_mtim),
                unless: session.settings.isCancelled)
            if isCancelled { return nil }
            switch appraisal {
            case .duplicate(let ino), .earlier(let ino):
                try restoreEqual(ino, source, in: album)
                return ino
            // Moments had every photo: a backup that is in no day is a plain file.
            case .photo where ImportRules.nameBackedUp(as: path.name) != nil: break
            case .photo(let candidate):
                guard
                    let added = try library.importer.add(
                        candidate, source.importFile, to: ImportPlace(album: album),
                        proceed: session.noteBytes)
                else {
                    session.failToAdd([source])
                    return nil
                }
                session.note(candidate, day: candidate.day, source)
                remember(source, added.photo)
                return added.photo
            case .notPhoto, .trashed: break
            }
        }
        try restorePlain(source, in: album)
        return nil
    }

    /// Adds a name for an existing file, unless it has that name.
    private func link(_ ino: UInt64, _ path: HostPath, in album: UInt64) throws(FileError) {
        if try library.importer.addName(path.name, of: ino, in: album) { session.report.links += 1 }
    }

    /// Gives a photo of the space its name in an album, or adds a copy of it to the album.
    private func restoreEqual(_ ino: UInt64, _ source: SourceFile, in album: UInt64) throws(FileError) {
        session.pass(source.byteCount)
        let details = source.details
        let photo = try library.attributes(ino).0
        let isAlike = photo.modified == details.modified && photo.mode & 0o7777 == details.mode
        // If the names of photos are links, a file that is not linked is a copy; otherwise a file with other attributes
        // is.
        guard hasLinks || !isAlike else {
            try link(ino, source.path, in: album)
            return remember(source, ino)
        }
        if let found = try equal(source, in: album) { return remember(source, found) }
        remember(source, try library.importer.addCopy(of: ino, named: source.path.name, details, to: album))
        session.report.links += 1
    }

    /// The file of a directory that an earlier run made of this source.
    private func equal(_ source: SourceFile, in directory: UInt64) throws(FileError) -> UInt64? {
        try library.importer.equalFile(
            named: source.path.name, in: directory, source, unless: session.settings.isCancelled)
    }

    /// Adds a file that is not a photo, unless it is there already.
    private func restorePlain(_ source: SourceFile, in directory: UInt64) throws(FileError) {
        if let error = source.failure {
            session.report.addUnreadable(source.path, "\(error)")
            return
        }
        if let found = try equal(source, in: directory) {
            session.pass(source.byteCount)
            return remember(source, found)
        }
        guard
            let ino = try library.importer.add(
                plain: source.importFile, to: directory, proceed: session.noteBytes)
        else {
            session.failToAdd([source])
            return
        }
        session.report.plainFiles += 1
        session.state.photosMax -= 1
        remember(source, ino)
    }

    /// Recreates a symbolic link, a FIFO, a socket or a device node.
    private func restoreSpecial(_ path: HostPath, _ status: stat, in album: UInt64) throws(FileError) {
        let entry: Entry
        do throws(FileError) {
            if status.isSymbolicLink {
                guard let target = try? path.linkTarget() else { return }
                entry = try library.makeSymbolicLink(album, path.name, target: target, caller)
            } else {
                entry = try library.makeNode(
                    album, path.name, mode: UInt32(status.st_mode), rdev: UInt64(status.st_rdev), caller)
            }
        } catch .exists {
            try compareSpecial(path, status, in: album)
            return
        }
        try setDetails(entry.attributes.ino, FileDetails(status, attributes: []))
        session.removals?.add(special: path, status)
    }

    /// Names a special file that is not restored, because something else has its name.
    private func compareSpecial(_ path: HostPath, _ status: stat, in album: UInt64) throws(FileError) {
        let found = try library.lookup(album, path.name, caller).attributes
        var isSame = found.mode & UInt32(S_IFMT) == UInt32(status.st_mode) & UInt32(S_IFMT)
        if isSame, status.isSymbolicLink {
            isSame = try library.readLink(found.ino) == (try? path.linkTarget())
        }
        if isSame {
            session.removals?.add(special: path, status)
        } else {
            session.report.addUnreadable(path, Self.nameIsTaken)
        }
    }

    private static let nameIsTaken =
        "not restored: something else has its name in the space: rename that, then import again"

    // MARK: Shared helpers

    private func names(in directory: HostPath) -> [Name] {
        do throws(Errno) { return try directory.list() } catch {
            session.report.addUnreadable(directory, "\(error)")
            return []
        }
    }

    private func open(_ path: HostPath) -> SourceFile? {
        do throws(Errno) { return try SourceFile(path) } catch {
            session.report.addUnreadable(path, "\(error)")
            return nil
        }
    }

    /// Records the inode that a source became, so that the source's other names become names of that inode.
    private func remember(_ source: SourceFile, _ ino: UInt64) {
        inodes[source.path.name] = ino
        if source.status.st_nlink > 1 { known[source.status.identity] = ino }
        session.removals?.add(source, ino)
    }

    /// As `makeDirectory`; nil, which the report says, if a file has the name.
    private func directory(_ name: Name, in parent: UInt64, for path: HostPath) throws(FileError) -> UInt64? {
        do throws(FileError) { return try makeDirectory(name, in: parent) } catch .notDirectory {
            session.report.addUnreadable(path, Self.nameIsTaken)
            return nil
        }
    }

    /// The directory of that name, created if there is none.
    private func makeDirectory(_ name: Name, in parent: UInt64) throws(FileError) -> UInt64 {
        do throws(FileError) {
            let found = try library.lookup(parent, name, caller).attributes
            guard found.isDirectory else { throw .notDirectory }
            return found.ino
        } catch .noEntry {
            return try library.makeDirectory(parent, name, mode: 0o700, caller).attributes.ino
        }
    }

    private func note(_ path: HostPath, _ ino: UInt64) {
        guard let descriptor = try? path.open(O_RDONLY | O_DIRECTORY), let status = try? path.status() else {
            return
        }
        defer { close(descriptor) }
        directories.append((ino, FileDetails(status, attributes: userAttributes(of: descriptor))))
    }

    /// Sets mode, owner and times, as far as they are kept, and extended attributes.
    private func setDetails(_ ino: UInt64, _ details: FileDetails) throws(FileError) {
        for attribute in details.attributes {
            try library.setExtendedAttribute(ino, name: attribute.name, value: attribute.value, policy: .any)
        }
        var changes = AttributeChanges(
            mode: details.mode, accessed: .set(details.accessed), modified: .set(details.modified))
        if geteuid() == 0 { (changes.uid, changes.gid) = (details.owner.uid, details.owner.gid) }
        _ = try library.setAttributes(ino, changes, caller)
    }
}

/// Number and bytes of the regular files below a directory, for the progress display.
func exportSize(_ root: HostPath) -> (files: Int, bytes: UInt64) {
    var (files, bytes) = (0, 0 as UInt64)
    var seen: Set<FileIdentity> = []
    var waiting = [root]
    while let directory = waiting.popLast() {
        for name in (try? directory.list()) ?? [] {
            let path = directory.appending(name)
            guard let status = try? path.status() else { continue }
            if status.isDirectory { waiting.append(path) }
            guard status.isRegular, status.st_nlink < 2 || seen.insert(status.identity).inserted else {
                continue
            }
            files += 1
            bytes = sizeSum(bytes, status.byteCount)
        }
    }
    return (files, bytes)
}
