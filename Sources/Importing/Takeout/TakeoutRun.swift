package import FileRequests
import Glibc
package import HostFiles
import LinuxIO
import PhotoImaging
import PhotoImport
package import PhotoLibrary
import PhotoRules
import TakeoutRules

/// The import of an export of Google Photos or iCloud Photos.
package final class TakeoutRun: ImportTask {
    private let library: Library
    private let listing: TakeoutListing
    private let plan: TakeoutPlan
    private let isDry: Bool
    private let isCancelled: () -> Bool
    package private(set) var state: TransferState { didSet { onProgress?(state) } }
    package var onProgress: ((TransferState) -> Void)?
    package private(set) var report = ImportReport()
    private var takeout = TakeoutReport()
    /// Albums that were found or made; nil: a file has the name.
    private var albums: [String: UInt64?] = [:]
    /// In a dry run, the photos seen so far by fingerprint, and the memberships.
    private var seen: [UInt64: [Int]] = [:]
    private var joined: Set<Membership> = []
    private let versions: VersionIndex
    /// Photos by the numbers of their items, with those bytes or with later ones.
    private var photos: [Int: (photo: Photo, isEdited: Bool)] = [:]
    /// The numbers of items that are not imported, because they are in the trash of the space.
    private var inTrash: Set<Int> = []
    /// Photos that the export says something about.
    private var described: Set<Photo> = []

    /// A photo: of the library, or in a dry run an item that would become one.
    private enum Photo: Hashable {
        case stored(UInt64)
        case item(Int)
    }

    private struct Membership: Hashable {
        var photo: Photo
        var album: String
    }

    static let favourites = "Favourites"

    /// Lists the export, and finds which of its files says something about which.
    ///
    /// - Parameters:
    ///   - paths: folders and zip files, none below another.
    ///   - vault: a directory to skip.
    package init(
        _ library: Library, _ paths: [HostPath], vault: FileIdentity?, _ settings: ImportSettings
    ) {
        self.library = library
        versions = VersionIndex(library)
        listing = TakeoutListing(paths, vault: vault, unless: settings.isCancelled)
        plan = TakeoutPlan(listing)
        (isDry, isCancelled) = (settings.isDry, settings.isCancelled)
        state = TransferState(
            photosMax: plan.items.count, bytesMax: plan.items.reduce(0) { sizeSum($0, $1.file.byteCount) })
        report.isDry = isDry
        report.others = plan.others
        takeout.unmatched = plan.unmatched
        for note in listing.unreadable + plan.unreadable { report.addUnreadable(note.path, note.reason) }
    }

    package func run() throws(FileError) {
        defer { report.takeout = takeout }
        for (index, item) in plan.items.enumerated() where !isCancelled() { try take(index, item) }
        if isCancelled() { try library.makeDurable() }
    }

    /// Removes from the totals a file that is not, or no longer, to be added.
    private func pass(_ item: TakeoutItem) {
        state.photosMax -= 1
        state.bytesMax -= min(item.file.byteCount, state.bytesMax)
    }

    private func fail(_ item: TakeoutItem, _ why: String) {
        report.addUnreadable(listing.path(of: item.file), why)
        pass(item)
    }

    private func open(_ file: TakeoutFile) -> TakeoutSource? {
        do throws(ArchiveError) { return try listing.open(file) } catch {
            report.addUnreadable(listing.path(of: file), error.reason)
            return nil
        }
    }

    private func take(_ index: Int, _ item: TakeoutItem) throws(FileError) {
        let path = listing.path(of: item.file)
        if item.isTrashed {
            takeout.trashed.append(path)
            return pass(item)
        }
        guard let source = open(item.file) else { return pass(item) }
        let facts = SourceFacts(source)
        if isCancelled() { return }
        if let failure = source.failure { return fail(item, failure) }
        guard let facts else {
            report.others.append(path)
            return pass(item)
        }
        let name =
            item.metadata.flatMap { uncutName(item.name, title: $0.title) }.map { Name($0) }
            ?? item.file.name
        let arrival = TakeoutArrival(
            name: name, source: source, sidecars: sidecars(of: item, named: name, facts.media, source),
            description: item.metadata?.description ?? "")
        let appraisal = try library.importer.classifyImport(
            source, facts, named: arrival.name, modified: source.modified, sidecar: arrival.dates,
            versions: versions, trash: true, unless: isCancelled)
        if isCancelled() { return }
        if let failure = source.failure { return fail(item, failure) }
        var photo: Photo?
        var isEdited = false
        switch appraisal {
        case .notPhoto:
            report.others.append(path)
            return pass(item)
        case .duplicate(let ino):
            report.duplicates += 1
            pass(item)
            try complete(ino, arrival)
            photo = .stored(ino)
        case .earlier(let ino):
            isEdited = true
            report.duplicates += 1
            pass(item)
            photo = .stored(ino)
        case .trashed: return leaveInTrash(item)
        case .photo(let candidate):
            // An edit of a photo that the user has removed is not wanted either.
            if let original = item.edits, inTrash.contains(original) { return leaveInTrash(item) }
            if let original = item.edits.flatMap({ photos[$0] }) {
                photo = try edit(original.photo, isEdited: original.isEdited, item, candidate, arrival)
            } else {
                photo = isDry ? preview(index, candidate, arrival) : try add(item, candidate, arrival)
            }
        }
        guard let photo else { return }
        photos[item.number] = (photo, isEdited)
        if item.metadata != nil || item.original != nil {
            described.insert(photo)
        } else if !described.contains(photo) {
            takeout.unmatched.append(PathNote(path: path, reason: "the export says nothing about it"))
        }
        for album in item.albums { try join(photo, album, arrival.name) }
        if item.metadata?.isFavourite ?? false, try join(photo, Self.favourites, arrival.name) {
            takeout.favourites += 1
        }
    }

    private func leaveInTrash(_ item: TakeoutItem) {
        inTrash.insert(item.number)
        takeout.inTrash.append(listing.path(of: item.file))
        pass(item)
    }

    // MARK: Sidecars

    /// A photo's sidecars in the export. Without an XMP file among them one is written if the export knows more than
    /// the photo. They are named after the photo, which may get a longer name than the export's.
    private func sidecars(
        of item: TakeoutItem, named photo: Name, _ facts: MediaFacts, _ source: TakeoutSource
    ) -> [TakeoutArrival.Beside] {
        var result = item.sidecars.compactMap { file in
            open(file).map { source in
                let name = Name(
                    companionName(file.name.bytes, of: item.file.name.bytes, for: photo.bytes))
                return TakeoutArrival.Beside(name: name, source: source, isWritten: false)
            }
        }
        guard !result.contains(where: { ImportRules.isSidecar($0.name) }),
            let metadata = item.metadata ?? item.original,
            let name = ImportRules.sidecars(of: photo).first
        else { return result }
        let dated = date(metadata, facts, item, source)
        let text = sidecarText(
            date: dated?.time, offset: dated?.offset ?? 0,
            place: facts.latitude == nil ? metadata.place : nil,
            description: metadata.description)
        if let text {
            let written = TakeoutSource(text, modified: source.modified)
            result.append(TakeoutArrival.Beside(name: name, source: written, isWritten: true))
        }
        return result
    }

    /// The date of the export on the wall clock, if it is plausible and differs from the photo's own.
    private func date(
        _ metadata: PhotoMetadata, _ facts: MediaFacts, _ item: TakeoutItem, _ source: TakeoutSource
    ) -> (time: CivilTime, offset: Int)? {
        guard let taken = metadata.taken else { return nil }
        func date(_ sidecar: Sidecar?) -> (time: CivilTime, source: DateSource) {
            captureDate(
                facts, fileName: item.file.name.bytes, modified: source.modified.seconds,
                modifiedNanoseconds: source.modified.nanoseconds, sidecar: sidecar,
                now: Timestamp.now().seconds, localOffset: localOffset)
        }
        let own = date(nil)
        // An edited photo's own date, if it has one, is better than that of its original.
        if item.metadata == nil, own.source != .mtime { return nil }
        if isSameMoment(own.time, own.source, taken: taken, precision: metadata.takenPrecision) { return nil }
        let time = CivilTime(secondsSince1970: taken)
        guard time.secondsSince1970 == taken else { return nil }
        let found = date(Sidecar(dates: [DateCandidate(source: .sidecar, time: time, isUTC: true)]))
        guard found.source == .sidecar else { return nil }
        return (found.time, Int(found.time.secondsSince1970 - taken))
    }

    // MARK: Photos

    private func add(
        _ item: TakeoutItem, _ candidate: Candidate, _ arrival: TakeoutArrival
    ) throws(FileError) -> Photo? {
        let added = try library.importer.add(
            candidate, arrival.file, sidecars: arrival.besides, to: ImportPlace(), proceed: noteBytes)
        guard let added else {
            failToAdd(item, arrival)
            return nil
        }
        note(item, candidate)
        for (sidecar, ino) in zip(arrival.sidecars, added.sidecars) {
            if ino == nil {
                report.addUnreadable(
                    listing.path(of: item.file).parent.appending(sidecar.name),
                    "its name would be too long after its photo was numbered")
            } else {
                count(sidecar)
            }
        }
        return .stored(added.photo)
    }

    /// Makes an edited photo the present bytes of its original. If that was edited in the space, it stays as it is.
    private func edit(
        _ original: Photo, isEdited: Bool, _ item: TakeoutItem, _ candidate: Candidate,
        _ arrival: TakeoutArrival
    ) throws(FileError) -> Photo? {
        if isEdited {
            report.duplicates += 1
            pass(item)
            return original
        }
        var photo = original
        if case .stored(let ino) = original, !isDry {
            let made = try library.importer.add(edit: candidate, arrival.file, of: ino, proceed: noteBytes)
            guard let made else {
                failToAdd(item, arrival)
                return nil
            }
            photo = .stored(made)
        } else {
            _ = noteBytes(arrival.source.byteCount)
        }
        takeout.edited.append(listing.path(of: item.file))
        state.photos += 1
        return photo
    }

    private func noteBytes(_ count: UInt64) -> Bool {
        state.bytes = sizeSum(state.bytes, count)
        return !isCancelled()
    }

    private func failToAdd(_ item: TakeoutItem, _ arrival: TakeoutArrival) {
        if isCancelled() { return }
        let failures = ([arrival.source] + arrival.sidecars.map(\.source)).compactMap { source in
            source.failure ?? (source.isUnchanged ? nil : "it changed while it was read: run this again")
        }
        report.addUnreadable(listing.path(of: item.file), failures.first ?? "it could not be read")
        state.photosMax -= 1
    }

    private func note(_ item: TakeoutItem, _ candidate: Candidate) {
        report.add(day: candidate.day, item.file.byteCount)
        if candidate.isDatedByMtime { report.undated.append(listing.path(of: item.file)) }
        state.photos += 1
    }

    private func count(_ sidecar: TakeoutArrival.Beside) {
        if sidecar.isWritten { takeout.written += 1 } else { report.sidecars += 1 }
    }

    /// Adds the export's metadata to a photo that the space has, unless it has its own.
    private func complete(_ ino: UInt64, _ arrival: TakeoutArrival) throws(FileError) {
        if isDry { return }
        for (sidecar, file) in zip(arrival.sidecars, arrival.besides) {
            let known = try library.importer.add(sidecar: file, of: ino, named: arrival.name, in: nil)
            if let known, known.isNew { count(sidecar) }
        }
        guard let comment = arrival.comment else { return }
        let names = try library.listExtendedAttributes(ino)
        if !names.contains(comment.name) {
            try library.setExtendedAttribute(ino, name: comment.name, value: comment.value, policy: .any)
        }
    }

    private func preview(_ index: Int, _ candidate: Candidate, _ arrival: TakeoutArrival) -> Photo {
        for other in seen[candidate.fingerprint] ?? [] {
            guard let earlier = try? listing.open(plan.items[other].file) else { continue }
            guard case .equal = compare(earlier, arrival.source, unless: { _ in isCancelled() }) else {
                continue
            }
            report.duplicates += 1
            pass(plan.items[index])
            return .item(other)
        }
        seen[candidate.fingerprint, default: []].append(index)
        for sidecar in arrival.sidecars { count(sidecar) }
        _ = noteBytes(arrival.source.byteCount)
        note(plan.items[index], candidate)
        return .item(index)
    }

    // MARK: Albums

    /// Adds a photo to an album. Returns false if it is in it, or if there cannot be such an album.
    @discardableResult
    private func join(_ photo: Photo, _ name: String, _ file: Name) throws(FileError) -> Bool {
        guard joined.insert(Membership(photo: photo, album: name)).inserted else { return false }
        if albums[name] == nil { try findAlbum(name) }
        guard let album = albums[name] else { return false }
        if case .stored(let ino) = photo, let album {
            let isNew =
                isDry
                ? try !library.importer.lies(ino, in: album)
                : try library.importer.addToAlbum(ino, album, named: file)
            guard isNew else { return false }
        } else if !isDry {
            return false
        }
        takeout.memberships += 1
        takeout.albums.insert(name)
        return true
    }

    private func findAlbum(_ name: String) throws(FileError) {
        do throws(FileError) {
            albums[name] = .some(try library.importer.album([Name(name)], makes: !isDry))
        } catch .notDirectory {
            takeout.unmatched.append(
                PathNote(
                    path: HostPath("albums").appending(name), reason: "a file has the name of this album"))
            albums[name] = .some(nil)
        }
    }
}

/// A photo with the files that go beside it.
private struct TakeoutArrival {
    struct Beside {
        var name: Name
        var source: TakeoutSource
        /// Written by the import, not found in the export.
        var isWritten: Bool
    }

    var name: Name
    var source: TakeoutSource
    var sidecars: [Beside]
    var description: String

    /// The attribute that desktops show as a file's comment.
    var comment: ExtendedAttribute? {
        let value = Array(description.utf8)
        guard !value.isEmpty, value.count <= 4096 else { return nil }
        return ExtendedAttribute(name: Array("user.xdg.comment".utf8), value: value)
    }

    var file: ImportFile<TakeoutSource> { source.importFile(name, comment.map { [$0] } ?? []) }

    var besides: [ImportFile<TakeoutSource>] { sidecars.map { $0.source.importFile($0.name) } }

    /// The dates of the XMP file.
    var dates: Sidecar? {
        let own = sidecars.filter { ImportRules.isSidecar($0.name) }
        return ImportRules.sidecar(of: name, among: own.map { ($0.name, $0.source) })
    }
}
