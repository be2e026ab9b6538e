import CatalogueRows
package import FileRequests
import KernelNames
import LinuxIO
import PhotoRules
package import VaultCatalogue

/// Views: virtual directories that list the photos of moments by other orders. Their entries are the photos' inodes.
package final class ViewDirectories: Sendable {
    private unowned let session: TreeSession
    private let cameras = CameraNumbers()
    private let similar: SimilarGroups
    private let places: PhotoPlaces

    init(_ session: TreeSession) {
        (self.session, similar, places) = (session, SimilarGroups(session), PhotoPlaces(session))
    }

    /// Why there is no view by place, in words for the user; nil if there is one.
    package var whyNoPlaces: String? { places.towns == nil ? places.whyNone : nil }

    /// Runs `body` once the rows by which photos are in views are up to date.
    package func viewing<R>(_ body: (Tree) throws(FileError) -> R) throws(FileError) -> R {
        try session.applyCompanionMoves()
        return try withStoredRows(body)
    }

    /// As `viewing`, without the moves that wait for programs to be done.
    package func withStoredRows<R>(_ body: (Tree) throws(FileError) -> R) throws(FileError) -> R {
        if session.isReadOnly { return try session.locked(body) }
        // Sends notices as well; changes only rows that the next commit would have changed.
        return try session.changeNow { change throws(FileError) in
            if change.tree.hasChanges || !change.tree.marks.new.isEmpty {
                try change.tree.storeChanges()
            }
            return try body(change.tree)
        }
    }

    // MARK: Names

    /// `views` in the root.
    func viewsEntry() throws(FileError) -> Entry { virtual(try attributes(of: .root)) }

    /// Looks up a name in a view.
    package func lookup(
        _ name: [UInt8], in node: ViewNode, _ caller: Caller
    ) throws(FileError) -> Entry {
        if node == .similar { return virtual(try attributes(of: try group(named: name))) }
        if let place = try place(named: name, in: node) { return virtual(try attributes(of: place)) }
        return try viewing { tree throws(FileError) in
            if let child = try child(of: node, name, tree) {
                return virtual(try attributes(of: child, tree))
            }
            guard let inode = try photo(named: name, in: node, tree) else { throw .noEntry }
            session.noteLookedUp(inode, tree, by: caller)
            // A link made from here puts the photo into an album, as one from its day does.
            tree.kernelNames.noteLookup(of: inode.ino, isInDayOrView: true, by: caller.pid)
            tree.kernelNames.noteVirtualName(name, in: node.number, of: inode.ino)
            return Entry(
                attributes: tree.attributes(inode), entryTimeout: KernelTimeout.none,
                attributeTimeout: Tree.attributeTimeout(of: inode.row))
        }
    }

    /// The group of similar photos of that name.
    private func group(named name: [UInt8]) throws(FileError) -> ViewNode {
        guard SimilarGroups.withoutPlace(name) != nil else { throw .noEntry }
        if similar.group(named: name) == nil { _ = try entries(of: .similar) }
        guard let number = similar.group(named: name) else { throw .noEntry }
        return .group(number)
    }

    /// Whether a photo of the trash may be moved back into a view: one in which photos can be removed.
    func mayRestore(into node: ViewNode) throws(FileError) -> Bool {
        _ = try attributes(of: node)
        return node.allowsRemoval
    }

    /// mkdir(2) of a group of similar photos: a file manager makes the directory anew from which a photo was trashed,
    /// to move it back there. It stays empty, and is not listed: the photo is back where it was, and in the groups that
    /// are found next.
    func makeGroup(named name: [UInt8]) throws(FileError) -> Entry {
        guard let label = SimilarGroups.withoutPlace(name) else { throw .readOnly }
        if similar.group(named: name) != nil { throw .exists }
        return virtual(try attributes(of: .group(similar.makeGroup(labelled: label))))
    }

    /// rmdir(2) of a group or a place: nothing is left to do when its photos are gone.
    func removeDirectory(named name: [UInt8], in parent: ViewNode) throws(FileError) {
        let node = parent == .similar ? try group(named: name) : try place(named: name, in: parent)
        guard let node else { throw .readOnly }
        if try hasPhotos(node) { throw .notEmpty }
    }

    /// The directory of a country or town of that name, also if there are no photos of it: a file manager moves one
    /// back into it that it has trashed there. Nil in all other views.
    private func place(named name: [UInt8], in node: ViewNode) throws(FileError) -> ViewNode? {
        switch node {
        case .root:
            if name == Array(ViewNode.placesName.utf8), places.towns == nil { throw .noEntry }
            return nil
        case .places:
            guard let country = places.towns?.country(named: name) else { throw .noEntry }
            return .country(country)
        case .country(let country):
            guard let directory = places.towns?.directory(named: name, of: country) else { throw .noEntry }
            return .town(directory, in: country)
        default: return nil
        }
    }

    /// The photo of that name in a view; nil if there is none.
    package func photo(
        named name: [UInt8], in node: ViewNode, _ tree: Tree
    ) throws(FileError) -> Inode? {
        guard let row = try tree.tables.views.photo(inViewsAs: name), try contains(node, row, tree) else {
            return nil
        }
        return try tree.inode(row.ino)
    }

    /// The directory of that name in a directory; nil if it has photos instead.
    private func child(of node: ViewNode, _ name: [UInt8], _ tree: Tree) throws(FileError) -> ViewNode? {
        var found: ViewNode?
        switch node {
        case .root:
            found = ViewNode.groups.first { Array($0.name.utf8) == name }?.node
        case .cameras:
            guard try hasPhotos(.camera(name), tree) else { throw .noEntry }
            found = cameras.number(of: name).map { .camera($0) }
        case .years:
            guard let days = daysOfYear(named: name), try hasPhotos(.days(days), tree) else { throw .noEntry }
            found = .year(UInt64(days.lowerBound / 10_000))
        case .months:
            guard let days = daysOfMonth(named: name), try hasPhotos(.days(days), tree) else {
                throw .noEntry
            }
            found = .month(UInt64(days.lowerBound / 100))
        case .kinds:
            found = PhotoKind.allCases.first { Array($0.name.utf8) == name }.map { .kind($0) }
        case .ratings:
            found = Self.ratings.first { Array(String($0).utf8) == name }.map { .rating($0) }
        case .similar, .group, .recent, .camera, .year, .month, .kind, .rating: return nil
        case .places, .country, .town: return nil
        }
        guard let found else { throw .noEntry }
        return found
    }

    private static let ratings: ClosedRange<UInt64> = 1...UInt64(PhotoRow.ratings.upperBound)

    /// Whether a view lists photos, and has some.
    package func hasPhotos(_ node: ViewNode) throws(FileError) -> Bool {
        if node.isOfPlaces { return try hasPhotosOfPlace(node) }
        return try viewing { tree throws(FileError) in
            if node == .recent { return try tree.tables.views.dayWithPhotos(after: 0) != nil }
            if case .group(let number) = node { return try !similar.photos(ofGroup: number, tree).isEmpty }
            guard let key = try key(of: node) else { return false }
            return try hasPhotos(key, tree)
        }
    }

    private func hasPhotosOfPlace(_ node: ViewNode) throws(FileError) -> Bool {
        try updatePlaces()
        return switch node {
        case .country(let country): !places.directories(of: country).isEmpty
        case .town(let directory, _): !places.photos(in: directory, after: 0, limit: 1).isEmpty
        default: false
        }
    }

    private func updatePlaces() throws(FileError) {
        // Photos that left views, or came into them, are settled first.
        try viewing { _ throws(FileError) in }
        try places.update()
    }

    private func hasPhotos(_ key: ViewKey, _ tree: Tree) throws(FileError) -> Bool {
        var isFound = false
        try tree.tables.views.eachPhoto(in: key, after: (0, 0)) { _ in
            isFound = true
            return false
        }
        return isFound
    }

    /// The condition of a directory of photos; nil for all others.
    private func key(of node: ViewNode) throws(FileError) -> ViewKey? {
        switch node {
        case .root, .cameras, .years, .months, .kinds, .ratings, .recent, .similar: return nil
        case .group, .places, .country, .town: return nil
        case .camera(let number):
            guard let camera = cameras.camera(number) else { throw .stale }
            return .camera(camera)
        case .year(let year):
            let first = Int64(min(year, 9999)) * 10_000
            return .days(first...first + 1231)
        case .month(let month):
            let first = Int64(min(month, 999_912)) * 100
            return .days(first...first + 31)
        case .kind(let kind): return .kind(kind.rawValue)
        case .rating(let rating): return .rating(Int64(min(rating, 5)))
        }
    }

    private func contains(_ node: ViewNode, _ row: PhotoRow, _ tree: Tree) throws(FileError) -> Bool {
        if node == .recent {
            return try tree.tables.views.isAmongNewestArrivals(row, limit: recentPhotosMax)
        }
        if case .group(let number) = node { return similar.contains(row.ino, inGroup: number) }
        if case .town(let directory, _) = node { return try places.contains(row.ino, in: directory, tree) }
        return try key(of: node)?.contains(row) ?? false
    }

    // MARK: Attributes

    /// A program that asks about each photo of a view would else look all directories above it up each time. One that
    /// has lost its last photo may be there for a moment longer.
    private func virtual(_ shown: Attributes) -> Entry {
        Entry(attributes: shown, entryTimeout: KernelTimeout.brief, attributeTimeout: KernelTimeout.brief)
    }

    package func attributes(of node: ViewNode) throws(FileError) -> Attributes {
        try session.locked { tree throws(FileError) in try attributes(of: node, tree) }
    }

    /// Only the owner of the root may enter: views show photos of days that others perhaps may not enter.
    private func attributes(of node: ViewNode, _ tree: Tree) throws(FileError) -> Attributes {
        _ = try key(of: node)
        if case .group(let number) = node { _ = try similar.photos(ofGroup: number, tree) }
        guard places.exists(node) else { throw .stale }
        let moments = tree.attributes(try tree.directory(WellKnownInode.moments))
        var shown = tree.attributes(try tree.directory(WellKnownInode.root))
        shown.ino = node.number
        // Photos can be removed from groups and towns, and those without photos from their directories.
        let isWritable = node.allowsRemoval || node.isOfPlaces || node == .similar
        shown.mode = isWritable ? shown.mode | 0o200 : shown.mode & ~0o222
        shown.mode = directoryType | shown.mode & 0o700
        // As in filesystems that do not count subdirectories.
        (shown.nlink, shown.size, shown.blocks) = (1, 0, 0)
        shown.modified = max(
            moments.modified, tree.views.modified, tree.likenesses.modified, tree.positions.modified)
        (shown.changed, shown.accessed) = (shown.modified, shown.modified)
        return shown
    }

    // MARK: Listing

    /// The entries of a view that has few; nil for a view that `listPhotos` lists.
    package func entries(of node: ViewNode) throws(FileError) -> [(name: [UInt8], ino: UInt64, mode: UInt32)]?
    {
        func directories(_ found: [(name: [UInt8], node: ViewNode)]) -> [(
            name: [UInt8], ino: UInt64, mode: UInt32
        )] {
            found.map { ($0.name, $0.node.number, directoryType) }
        }
        if node == .similar { try similar.update() }
        // A list of towns may be read for this, with no lock held.
        let hasPlaces = node == .root && places.towns != nil
        if node.isOfPlaces { return try placeEntries(of: node).map(directories) }
        return try viewing { tree throws(FileError) in
            switch node {
            case .root:
                let shown = ViewNode.groups.filter { $0.node != .places || hasPlaces }
                return directories(shown.map { (Array($0.name.utf8), $0.node) })
            case .kinds: return directories(PhotoKind.allCases.map { (Array($0.name.utf8), .kind($0)) })
            case .ratings: return directories(Self.ratings.map { (Array(String($0).utf8), .rating($0)) })
            case .cameras: return directories(try listCameras(tree))
            case .years:
                return directories(
                    try firstDays(tree, untilNext: { $0 / 10_000 * 10_000 + 9999 })
                        .map { (yearName(ofDay: $0), .year(UInt64($0 / 10_000))) })
            case .months:
                return directories(
                    try firstDays(tree, untilNext: { $0 / 100 * 100 + 99 })
                        .map { (monthName(ofDay: $0), .month(UInt64($0 / 100))) })
            case .similar:
                return directories(try similar.list(tree).map { ($0.name, .group($0.number)) })
            case .recent, .group:
                return try listedPhotos(of: node, tree).map { ($0.name, $0.ino, regularType) }
            case .camera, .year, .month, .kind, .rating, .places, .country, .town: return nil
            }
        }
    }

    /// The countries or towns that have photos; nil for a town.
    private func placeEntries(of node: ViewNode) throws(FileError) -> [(name: [UInt8], node: ViewNode)]? {
        guard let towns = places.towns else { return [] }
        switch node {
        case .places:
            try updatePlaces()
            return places.countries().map { (towns.countries[$0], .country($0)) }
        case .country(let country):
            try updatePlaces()
            return places.directories(of: country).map {
                (towns.directories[$0].name, .town($0, in: country))
            }
        default: return nil
        }
    }

    private func listCameras(_ tree: Tree) throws(FileError) -> [(name: [UInt8], node: ViewNode)] {
        var found: [(name: [UInt8], node: ViewNode)] = []
        var last: [UInt8] = []
        while let camera = try tree.tables.views.camera(after: last), let number = cameras.number(of: camera)
        {
            found.append((camera, .camera(number)))
            last = camera
        }
        return found
    }

    /// The first day with photos of each year or month.
    private func firstDays(
        _ tree: Tree, untilNext end: (Int64) -> Int64
    ) throws(FileError) -> [Int64] {
        var days: [Int64] = []
        var last: Int64 = 0
        while let day = try tree.tables.views.dayWithPhotos(after: last) {
            days.append(day)
            last = end(day)
        }
        return days
    }

    /// The next inode number: photos with this one or higher ones come after a listing that begins now.
    package func nextInode() throws(FileError) -> UInt64 {
        try session.locked { tree throws(FileError) in tree.counters.ino }
    }

    /// Lists the photos of a view for which `entries` is nil, from after a cookie.
    ///
    /// - Parameter end: photos with this inode number and higher ones are left out.
    package func listPhotos(
        of node: ViewNode, after cookie: UInt64, before end: UInt64, _ visit: (DirectoryEntry) -> Bool
    ) throws(FileError) {
        if case .town = node {
            if cookie < DirectoryEntry.firstCookie { try updatePlaces() }
        } else if try key(of: node) == nil {
            throw .notDirectory
        }
        try viewing { tree throws(FileError) in
            guard
                DirectoryEntry.visitDots(node.number, node.parent?.number ?? 1, after: cookie, visit)
            else { return }
            try eachPhoto(of: node, after: cookie, tree) { photo, cookie in
                guard photo.ino < end else { return true }
                return visit(
                    DirectoryEntry(name: Name(photo.name), cookie: cookie, ino: photo.ino, mode: regularType))
            }
        }
    }

    /// Visits the photos of a town, whose cookies are their numbers.
    private func eachPhoto(
        ofTown directory: Int, after cookie: UInt64, _ tree: Tree, _ visit: (ViewedPhoto, UInt64) -> Bool
    ) throws(FileError) {
        var last = cookie < DirectoryEntry.firstCookie ? 0 : cookie
        while true {
            let some = places.photos(in: directory, after: last, limit: Self.townPhotosPerStep)
            guard let end = some.last else { return }
            last = end
            for ino in some {
                // It may have left since the places were brought up to date.
                guard let name = try tree.tables.views.name(of: ino),
                    try places.contains(ino, in: directory, tree)
                else { continue }
                if !visit(ViewedPhoto(ino: ino, name: name, day: 0), ino) { return }
            }
        }
    }

    private static let townPhotosPerStep = 256

    /// Visits the photos of a view from after a cookie, with the cookie of each; none in a view of directories. In
    /// `viewing`.
    package func eachPhoto(
        of node: ViewNode, after cookie: UInt64, _ tree: Tree, _ visit: (ViewedPhoto, UInt64) -> Bool
    ) throws(FileError) {
        if let key = try key(of: node) { return try eachPhoto(in: key, after: cookie, tree, visit) }
        if case .town(let directory, _) = node {
            return try eachPhoto(ofTown: directory, after: cookie, tree, visit)
        }
        for (index, photo) in try listedPhotos(of: node, tree).enumerated() {
            let its = DirectoryEntry.firstCookie + UInt64(index)
            if its > cookie, !visit(photo, its) { return }
        }
    }

    /// The photos of a view that has no key, in the order in which they are listed; none in a view of directories.
    private func listedPhotos(of node: ViewNode, _ tree: Tree) throws(FileError) -> [ViewedPhoto] {
        switch node {
        case .recent: return try tree.tables.views.newestArrivals(limit: recentPhotosMax)
        case .group(let number):
            var found: [ViewedPhoto] = []
            for ino in try similar.photos(ofGroup: number, tree) {
                guard let name = try tree.tables.views.name(of: ino) else { continue }
                found.append(ViewedPhoto(ino: ino, name: name, day: 0))
            }
            return found
        default: return []
        }
    }

    private func eachPhoto(
        in key: ViewKey, after cookie: UInt64, _ tree: Tree, _ visit: (ViewedPhoto, UInt64) -> Bool
    ) throws(FileError) {
        try tree.tables.views.eachPhoto(in: key, after: ViewCookie.last(cookie, in: key)) { photo in
            guard let cookie = ViewCookie.cookie(photo, in: key) else { return true }
            return visit(photo, cookie)
        }
    }
}

/// Cookies of photos in views. In those by days they are ordered by day, then by number.
enum ViewCookie {
    /// The bits of an inode number. Photos with higher ones, which no vault has, are not listed by days.
    private static let inodeBits: UInt64 = 48

    static func cookie(_ photo: ViewedPhoto, in key: ViewKey) -> UInt64? {
        guard case .days(let days) = key else { return photo.ino }
        guard photo.ino >> inodeBits == 0 else { return nil }
        return UInt64(photo.day - days.lowerBound + 1) << inodeBits | photo.ino
    }

    /// The day and number of the photo with that cookie; zeros before the first photo. The day is only in
    /// views by days.
    static func last(_ cookie: UInt64, in key: ViewKey) -> (day: Int64, ino: UInt64) {
        guard case .days(let days) = key, cookie >= DirectoryEntry.firstCookie else {
            return (0, cookie < DirectoryEntry.firstCookie ? 0 : cookie)
        }
        // No view of days spans more than the 1231 numbers of a year.
        let day = Int64(clamping: cookie >> inodeBits) - 1
        return (days.lowerBound + min(day, 9999), cookie & (1 << inodeBits - 1))
    }
}
