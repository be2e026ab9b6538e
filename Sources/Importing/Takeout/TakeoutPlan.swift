import FileRequests
import HostFiles
import LinuxIO
import PhotoImaging
import PhotoImport
import PhotoLibrary
import TakeoutRules

/// A file of an export that may be a photo, with the export's metadata.
struct TakeoutItem {
    var file: TakeoutFile
    var metadata: PhotoMetadata?
    /// Names of the albums it is in.
    var albums: [String] = []
    /// XMP files, and Apple's adjustments, beside it.
    var sidecars: [TakeoutFile] = []
    /// Its place in the order in which items were found.
    var number: Int
    /// The number of the item that it is an edited version of.
    var edits: Int?
    /// The metadata of the original of an edited photo: Apple's tables have none of the edited one.
    var original: PhotoMetadata?

    var isTrashed: Bool { metadata?.isTrashed ?? false }
    var name: String { "\(file.name)" }
}

/// Which file of an export is about which, found before anything is imported.
struct TakeoutPlan {
    private(set) var items: [TakeoutItem] = []
    /// Files and rows without a counterpart.
    private(set) var unmatched: [PathNote] = []
    private(set) var unreadable: [PathNote] = []
    /// Files that are nothing of a photo: pages, comments.
    private(set) var others: [HostPath] = []
    private let listing: TakeoutListing
    /// Albums' sidecars whose photos lie only in the folder of their year.
    private var elsewhere: [(album: String, metadata: PhotoMetadata, path: HostPath)] = []
    /// Rows of Apple's lists of albums.
    private var rows: [(album: String, name: String, path: HostPath)] = []

    init(_ listing: TakeoutListing) {
        self.listing = listing
        for folder in listing.folders where !listing.isCancelled() { add(folder) }
        joinElsewhere()
        joinRows()
        unmatched += listing.hidden
        // Photos with metadata come first: of two equal photos the first gives the date. Edited photos come after all
        // originals.
        let (edited, others) = (items.filter { $0.edits != nil }, items.filter { $0.edits == nil })
        items = others.filter { $0.metadata != nil } + others.filter { $0.metadata == nil } + edited
    }

    private mutating func read(_ file: TakeoutFile, countMax: Int) -> [UInt8]? {
        let path = listing.path(of: file)
        do throws(ArchiveError) {
            let source = try listing.open(file)
            if let bytes = source.allBytes(countMax: countMax) { return bytes }
            let why =
                source.failure ?? "larger than \(sizeText(UInt64(countMax))): not what an export contains"
            unreadable.append(PathNote(path: path, reason: why))
        } catch {
            unreadable.append(PathNote(path: path, reason: error.reason))
        }
        return nil
    }

    // MARK: Folders

    private mutating func add(_ folder: TakeoutListing.Folder) {
        let sorted = Sorted(folder.files)
        var sidecars: [GoogleSidecar] = []
        var title: String?
        var broken: [TakeoutFile] = []
        for file in sorted.json {
            guard let bytes = read(file, countMax: JSONValue.bytesMax) else { continue }
            let path = listing.path(of: file)
            switch GoogleFile(bytes) {
            case .photo(let metadata):
                sidecars.append(
                    GoogleSidecar(name: "\(file.name)", metadata: metadata, path: path, part: file.part))
            case .album(let found): if title?.isEmpty ?? true { title = found }
            case .other: others.append(path)
            case nil: broken.append(file)
            }
        }
        note(broken, among: sorted.media)
        others += sorted.pages.map { listing.path(of: $0) }
        let details = appleDetails(sorted.tables, folder)
        var album: String?
        if case .album(let name) = FolderKind(folder.name, title: title) { album = name }

        let index = PartIndex(sidecars)
        let stems = Dictionary(sorted.media.map { (MediaName.split("\($0.name)").stem, $0) }) { first, _ in
            first
        }
        var used = Set<Int>()
        var originals = EditedPhotos()
        let first = items.count
        for file in sorted.media {
            var item = TakeoutItem(file: file, number: items.count)
            if let album { item.albums = [album] }
            if let found = index.match(file, among: sorted) {
                item.metadata = sidecars[found.index].metadata
                if found.match == .edited, EditedName.isVersion(item.name) {
                    originals.note(edited: item, of: .sidecar(found.index))
                } else if found.match != .edited {
                    originals.note(item, as: .sidecar(found.index))
                }
                used.insert(found.index)
            } else {
                item.metadata = metadata(details, item.name, for: file, among: sorted)
            }
            if let stem = EditedName.appleOriginal(item.name), let original = stems[stem] {
                originals.note(edited: item, of: .stem(stem))
                item.original = metadata(details, "\(original.name)", for: original, among: sorted)
            }
            if AppleFolder(folder.name) == .deleted {
                item.metadata = item.metadata ?? PhotoMetadata()
                item.metadata?.isTrashed = true
            }
            // Without its sidecar, which another part may have.
            if EditedName.isVersion(item.name),
                let original = EditedName.original(item.name, where: sorted.names.contains)
            {
                originals.note(edited: item, of: .name(original))
            }
            originals.note(item, as: .name(item.name))
            originals.note(item, as: .stem(MediaName.split(item.name).stem))
            items.append(item)
        }
        for (edited, original) in originals.pairs { items[edited].edits = original }
        // Two parts may have the same sidecar.
        let usedByName = Dictionary(grouping: used.map { sidecars[$0] }, by: \.name)
        for (number, sidecar) in sidecars.enumerated() where !used.contains(number) {
            if usedByName[sidecar.name]?.contains(where: { $0.metadata == sidecar.metadata }) == true {
                continue
            }
            if let album {
                elsewhere.append((album, sidecar.metadata, sidecar.path))
            } else {
                addMissing(sidecar.path)
            }
        }
        for name in details.names.sorted() where !sorted.names.contains(name) {
            addMissing(HostPath(listing.shown(folder)).appending(name))
        }
        attach(sorted.sidecars, toItemsFrom: first)
    }

    /// Notes files that are not JSON. With that of a photo the photo's date is lost; that of an album has its title.
    private mutating func note(_ broken: [TakeoutFile], among media: [TakeoutFile]) {
        guard !broken.isEmpty else { return }
        let index = SidecarIndex(broken.map { "\($0.name)" })
        let ofPhotos = Set(media.compactMap { index.match("\($0.name)")?.index })
        for (number, file) in broken.enumerated() {
            let path = listing.path(of: file)
            if ofPhotos.contains(number) || SidecarIndex.namesMedia("\(file.name)") {
                unreadable.append(PathNote(path: path, reason: "not JSON: download the export again"))
            } else {
                unmatched.append(
                    PathNote(
                        path: path,
                        reason: (file.byteCount == 0 ? "empty" : "not JSON") + ", and about no photo here"))
            }
        }
    }

    private mutating func addMissing(_ path: HostPath) {
        unmatched.append(
            PathNote(path: path, reason: "its photo is not here: import all parts of the export together"))
    }

    /// Gives each XMP file and each file of adjustments to its photo: the still rather than its video.
    private mutating func attach(_ files: [TakeoutFile], toItemsFrom first: Int) {
        var byStem = PartTable<Int>()
        var owners = PartTable<Int>()
        for index in items.indices[first...] {
            let part = items[index].file.part
            let (stem, suffix) = MediaName.split(items[index].name)
            if byStem[stem, part] == nil || MediaName.isStill(suffix) { byStem[stem, part] = index }
            for sidecar in ImportRules.sidecars(of: items[index].file.name) {
                owners["\(sidecar)", part] = index
            }
        }
        for file in files {
            let owner =
                owners.value("\(file.name)", for: file)
                ?? EditedName.adjusted("\(file.name)").flatMap { byStem.value($0, for: file) }
            if let owner {
                items[owner].sidecars.append(file)
            } else {
                addMissing(listing.path(of: file))
            }
        }
    }

    // MARK: Apple's tables

    /// The metadata of photos in the tables of a folder. Remembers the rows of albums.
    private mutating func appleDetails(
        _ tables: [TakeoutFile], _ folder: TakeoutListing.Folder
    ) -> PartTable<AppleDetails> {
        var details = PartTable<AppleDetails>()
        for file in tables {
            let path = listing.path(of: file)
            guard AppleFolder(folder.name).hasAlbums, let bytes = read(file, countMax: AppleTable.bytesMax)
            else {
                others.append(path)
                continue
            }
            switch AppleTable(bytes) {
            case .details(let rows):
                for row in rows {
                    details[row.name, file.part, default: AppleDetails()].add(row.metadata, path)
                }
            case .album(let names):
                let album = FolderKind.fileName(String("\(file.name)".dropLast(4)))
                rows += names.map { (album, $0, path) }
            case nil: others.append(path)
            }
        }
        for name in details.names.sorted() {
            for conflict in details.all(name).compactMap(\.conflict) { unmatched.append(conflict) }
        }
        return details
    }

    /// A photo's metadata from the tables of its part of the export, else from those of the other parts; without a date
    /// where these give different ones.
    private mutating func metadata(
        _ details: PartTable<AppleDetails>, _ name: String, for file: TakeoutFile, among files: Sorted
    ) -> PhotoMetadata? {
        let found = details.candidates(name, for: file, among: files)
        guard var merged = found.first else { return nil }
        for other in found.dropFirst() { for (row, path) in other.rows { merged.add(row, path) } }
        if found.count > 1, let conflict = merged.conflict { unmatched.append(conflict) }
        return merged.metadata
    }

    private mutating func joinRows() {
        guard !rows.isEmpty else { return }
        let byName = Dictionary(grouping: items.indices) { items[$0].name }
        for row in rows {
            let found = (byName[row.name] ?? []).filter { !items[$0].isTrashed }
            if let item = found.first, found.count == 1 {
                items[item].albums.append(row.album)
            } else {
                let why = found.isEmpty ? "is not here" : "is the name of \(found.count) photos"
                unmatched.append(PathNote(path: row.path, reason: "\(printable(row.name)) \(why)"))
            }
        }
    }

    private mutating func joinElsewhere() {
        guard !elsewhere.isEmpty else { return }
        func key(_ metadata: PhotoMetadata) -> String { "\(metadata.taken ?? 0) \(metadata.title)" }
        let known = Dictionary(grouping: items.indices.filter { items[$0].metadata != nil }) {
            items[$0].metadata.map(key) ?? ""
        }
        for sidecar in elsewhere {
            guard let found = known[key(sidecar.metadata)], !sidecar.metadata.title.isEmpty else {
                addMissing(sidecar.path)
                continue
            }
            for item in found where !items[item].albums.contains(sidecar.album) {
                items[item].albums.append(sidecar.album)
            }
        }
    }
}

/// Edited photos and their originals in a folder.
private struct EditedPhotos {
    /// A key that an edited photo shares with its original.
    enum Link: Hashable {
        /// The number of Google's sidecar.
        case sidecar(Int)
        /// The original's name, or that without its extension.
        case name(String)
        case stem(String)
    }

    private struct Key: Hashable {
        var link: Link
        /// A still is no version of a video.
        var isVideo: Bool

        init(_ link: Link, of item: TakeoutItem) {
            self.link = link
            isVideo = MediaName.isVideo(MediaName.split(item.name).suffix)
        }
    }

    private var originals: [Key: [TakeoutItem]] = [:]
    private var edited: [(item: TakeoutItem, key: Key)] = []

    mutating func note(_ item: TakeoutItem, as link: Link) {
        originals[Key(link, of: item), default: []].append(item)
    }

    mutating func note(edited item: TakeoutItem, of link: Link) {
        edited.append((item, Key(link, of: item)))
    }

    /// The numbers of edited items, and of their originals: each original has one.
    var pairs: [(edited: Int, original: Int)] {
        var taken: Set<Int> = []
        var paired: Set<Int> = []
        var pairs: [(edited: Int, original: Int)] = []
        for (item, key) in edited where !paired.contains(item.number) {
            let found = (originals[key] ?? []).filter {
                $0.number != item.number && !taken.contains($0.number)
            }
            guard let original = found.first(where: { $0.file.part == item.file.part }) ?? found.first else {
                continue
            }
            taken.insert(original.number)
            paired.insert(item.number)
            pairs.append((item.number, original.number))
        }
        return pairs
    }
}

/// A JSON file of Google about one photo.
private struct GoogleSidecar {
    var name: String
    var metadata: PhotoMetadata
    var path: HostPath
    var part: Int
}

/// The rows of a photo in Apple's tables of one part of an export.
private struct AppleDetails {
    /// With the paths of their tables.
    private(set) var rows: [(metadata: PhotoMetadata, path: HostPath)] = []

    mutating func add(_ row: PhotoMetadata, _ path: HostPath) {
        if !rows.contains(where: { $0.metadata == row }) { rows.append((row, path)) }
    }

    /// Rows that say different things may be of two photos of one name: then the photo keeps its own date, and is
    /// imported.
    var metadata: PhotoMetadata? {
        guard var merged = rows.first?.metadata else { return nil }
        merged.taken = dates.count == 1 ? dates[0] : nil
        merged.isFavourite = rows.contains { $0.metadata.isFavourite }
        merged.isTrashed = rows.allSatisfy { $0.metadata.isTrashed }
        return merged
    }

    var conflict: PathNote? {
        guard let last = rows.last, dates.count > 1 else { return nil }
        let shown = dates.prefix(3).map { "\(CivilTime(secondsSince1970: $0))" }.joined(separator: ", ")
        return PathNote(
            path: last.path,
            reason: "\(printable(last.metadata.title)) has several dates, of which none counts: \(shown)")
    }

    private var dates: [Int64] {
        var dates: [Int64] = []
        for row in rows { if let taken = row.metadata.taken, !dates.contains(taken) { dates.append(taken) } }
        return dates
    }
}

/// Values by name from the parts of an export. Parts may have different photos of one name: a file gets the value of
/// its own part, and that of another only if that part has no file of this name itself.
private struct PartTable<Value> {
    private var values: [String: [Int: Value]] = [:]

    var names: [String] { Array(values.keys) }

    /// The values of all parts, in their order.
    func all(_ name: String) -> [Value] {
        (values[name] ?? [:]).sorted { $0.key < $1.key }.map(\.value)
    }

    subscript(name: String, part: Int, default value: @autoclosure () -> Value) -> Value {
        get { self[name, part] ?? value() }
        set { self[name, part] = newValue }
    }

    subscript(name: String, part: Int) -> Value? {
        get { values[name]?[part] }
        set { values[name, default: [:]][part] = newValue }
    }

    func value(_ name: String, for file: TakeoutFile) -> Value? { candidates(name, for: file).first }

    /// That of the file's own part alone, else those of the others in their order.
    func candidates(_ name: String, for file: TakeoutFile, among files: Sorted? = nil) -> [Value] {
        guard let found = values[name] else { return [] }
        if let own = found[file.part] { return [own] }
        return found.filter { files?.hasMedia(file.name, in: $0.key) != true }.sorted { $0.key < $1.key }
            .map(\.value)
    }
}

/// Google's sidecars in a folder, by the names that its rules give them, with the same preference of a file's own part.
private struct PartIndex {
    private let sidecars: [GoogleSidecar]
    private let all: SidecarIndex
    private var parts: [Int: (index: SidecarIndex, numbers: [Int])] = [:]

    init(_ sidecars: [GoogleSidecar]) {
        self.sidecars = sidecars
        all = SidecarIndex(sidecars.map(\.name))
        for (part, numbers) in Dictionary(grouping: sidecars.indices, by: { sidecars[$0].part }) {
            parts[part] = (SidecarIndex(numbers.map { sidecars[$0].name }), numbers)
        }
    }

    func match(_ file: TakeoutFile, among files: Sorted) -> (index: Int, match: SidecarIndex.Match)? {
        let name = "\(file.name)"
        if let part = parts[file.part], let found = part.index.match(name) {
            return (part.numbers[found.index], found.match)
        }
        guard let found = all.match(name), !files.hasMedia(file.name, in: sidecars[found.index].part) else {
            return nil
        }
        return found
    }
}

/// The files of a folder by kind.
private struct Sorted {
    var json: [TakeoutFile] = []
    var tables: [TakeoutFile] = []
    var sidecars: [TakeoutFile] = []
    var pages: [TakeoutFile] = []
    var media: [TakeoutFile] = []
    var names: Set<String> = []
    private var mediaParts: [Name: Set<Int>] = [:]

    func hasMedia(_ name: Name, in part: Int) -> Bool { mediaParts[name]?.contains(part) ?? false }

    init(_ files: [TakeoutFile]) {
        for file in files.sorted(by: { $0.name.bytes.lexicographicallyPrecedes($1.name.bytes) }) {
            let name = "\(file.name)"
            let suffix = name.lastIndex(of: ".").map { name[$0...].lowercased() } ?? ""
            names.insert(name)
            switch suffix {
            case ".json": json.append(file)
            case ".csv": tables.append(file)
            case ".xmp", ".aae": sidecars.append(file)
            case ".html", ".htm": pages.append(file)
            default:
                media.append(file)
                mediaParts[file.name, default: []].insert(file.part)
            }
        }
    }
}
