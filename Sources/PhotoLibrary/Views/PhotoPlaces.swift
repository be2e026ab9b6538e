import CatalogueRows
import FileRequests
import LinuxIO
import PhotoRules
import VaultCatalogue
import VaultFormat

/// The photos near each town, which `views/place` shows.
///
/// They are brought up to date when one of its directories is read: the first time all positions are read, later those
/// that have changed since. Ten bytes a photo, and eight more for the order by towns.
final class PhotoPlaces: @unchecked Sendable {
    private unowned let session: TreeSession
    private let installed: InstalledTowns
    /// Held while places are brought up to date. Taken before the catalogue's.
    private let updating = Lock()
    /// Taken after the catalogue's.
    private let lock = Lock()
    // All under `lock`.
    /// The photos in the order of their numbers, and the directories that they are in.
    private var photos: [UInt64] = []
    private var places: [UInt16] = []
    /// The photos by directory, and the index of the first of each; behind the last, the number of all. Both are empty
    /// until the places are first brought up to date.
    private var ordered: [UInt64] = []
    private var starts: [Int] = []

    init(_ session: TreeSession) {
        (self.session, installed) = (session, InstalledTowns(session.options.townFiles))
    }

    /// Nil: there is no list of towns, and no view.
    var towns: Towns? { installed.towns }
    /// Why there is none, in words for the user.
    var whyNone: String { installed.whyNone }

    /// Whether the list has what a directory by place is of; true for all other directories.
    func exists(_ node: ViewNode) -> Bool {
        switch node {
        case .places: return towns != nil
        case .country(let country): return towns?.countries.indices.contains(country) ?? false
        case .town(let directory, let country):
            guard let towns, towns.directories.indices.contains(directory) else { return false }
            return towns.directories[directory].country == country
        default: return true
        }
    }

    /// Brings the places up to date. Call with the catalogue's lock not held.
    func update() throws(FileError) {
        guard let towns else { return }
        updating.lock()
        defer { updating.unlock() }
        let changed = try session.locked { tree throws(FileError) in tree.positions.takeChanged() }
        guard let changed else { return try readAll(towns) }
        if changed.isEmpty { return }
        var found: [UInt64: UInt16] = [:]
        do throws(FileError) {
            try session.locked { tree throws(FileError) in
                for ino in changed { found[ino] = try place(of: ino, towns, tree) }
            }
        } catch {
            // They are looked for anew the next time.
            try session.locked { tree throws(FileError) in tree.positions.noteAll() }
            throw error
        }
        merge(changed.sorted(), found)
    }

    private func readAll(_ towns: Towns) throws(FileError) {
        let limits = session.options.limits
        var (photos, places): ([UInt64], [UInt16]) = ([], [])
        var next: UInt64? = 0
        do throws(FileError) {
            while let first = next {
                var points: [(latitude: Int32, longitude: Int32)] = []
                next = try session.locked { tree throws(FileError) in
                    try tree.tables.positions.eachPoint(from: first, blocks: limits.likenessBlocks) {
                        photos.append($0)
                        points.append(($1, $2))
                    }
                }
                // Without the lock: it takes longer than reading them.
                for point in points {
                    places.append(
                        UInt16(towns.directory(latitude: point.latitude, longitude: point.longitude)))
                }
                // The newest are kept. Half as many again are read before any are dropped: moving costs time.
                if photos.count > limits.placedPhotos * 3 / 2 { keepNewest(&photos, &places) }
            }
        } catch {
            try session.locked { tree throws(FileError) in tree.positions.noteAll() }
            throw error
        }
        keepNewest(&photos, &places)
        set(photos, places)
    }

    private func keepNewest(_ photos: inout [UInt64], _ places: inout [UInt16]) {
        let surplus = photos.count - session.options.limits.placedPhotos
        guard surplus > 0 else { return }
        photos.removeFirst(surplus)
        places.removeFirst(surplus)
    }

    /// The directory of a photo in views; nil if its position is not known.
    private func place(of ino: UInt64, _ towns: Towns, _ tree: Tree) throws(FileError) -> UInt16? {
        guard let stored = try tree.tables.positions.position(of: ino), stored.isShown,
            case .point(let latitude, let longitude) = stored.position
        else { return nil }
        return UInt16(towns.directory(latitude: latitude, longitude: longitude))
    }

    /// Replaces the places of `changed`, in the order of their numbers, by those found.
    private func merge(_ changed: [UInt64], _ found: [UInt64: UInt16]) {
        let (oldPhotos, oldPlaces) = lock.withLock { (photos, places) }
        var (newPhotos, newPlaces): ([UInt64], [UInt16]) = ([], [])
        newPhotos.reserveCapacity(oldPhotos.count + found.count)
        newPlaces.reserveCapacity(oldPhotos.count + found.count)
        var index = 0
        for ino in changed {
            while index < oldPhotos.count, oldPhotos[index] < ino {
                newPhotos.append(oldPhotos[index])
                newPlaces.append(oldPlaces[index])
                index += 1
            }
            if index < oldPhotos.count, oldPhotos[index] == ino { index += 1 }
            if let place = found[ino] {
                newPhotos.append(ino)
                newPlaces.append(place)
            }
        }
        newPhotos += oldPhotos[index...]
        newPlaces += oldPlaces[index...]
        keepNewest(&newPhotos, &newPlaces)
        set(newPhotos, newPlaces)
    }

    /// Stores the photos, and orders them by directory: by counting.
    private func set(_ photos: [UInt64], _ places: [UInt16]) {
        var starts = [Int](repeating: 0, count: (towns?.directories.count ?? 0) + 1)
        for place in places { starts[Int(place) + 1] += 1 }
        for index in 1..<max(starts.count, 1) { starts[index] += starts[index - 1] }
        var next = starts
        var ordered = [UInt64](repeating: 0, count: photos.count)
        for (photo, place) in zip(photos, places) {
            ordered[next[Int(place)]] = photo
            next[Int(place)] += 1
        }
        lock.withLock {
            (self.photos, self.places, self.ordered, self.starts) = (photos, places, ordered, starts)
        }
    }

    // MARK: Directories

    /// The countries that have photos: their places in the list.
    func countries() -> [Int] {
        guard let towns else { return [] }
        var found: [Int] = []
        for directory in directories() where found.last != towns.directories[directory].country {
            found.append(towns.directories[directory].country)
        }
        return found
    }

    /// The directories of towns that have photos, of one country or of all.
    func directories(of country: Int? = nil) -> [Int] {
        guard let towns else { return [] }
        return lock.withLock {
            starts.indices.dropLast().filter {
                starts[$0] < starts[$0 + 1] && (country == nil || towns.directories[$0].country == country)
            }
        }
    }

    /// The photos of a directory behind one of them, in the order of their numbers; at most `limit`.
    func photos(in directory: Int, after last: UInt64, limit: Int) -> ArraySlice<UInt64> {
        lock.withLock {
            guard directory >= 0, directory + 1 < starts.count else { return [] }
            let range = starts[directory]..<starts[directory + 1]
            var (low, high) = (range.lowerBound, range.upperBound)
            while low < high {
                let middle = (low + high) / 2
                if ordered[middle] <= last { low = middle + 1 } else { high = middle }
            }
            return ordered[low..<min(low + limit, range.upperBound)]
        }
    }

    /// Whether a photo is in a directory now.
    func contains(_ ino: UInt64, in directory: Int, _ tree: Tree) throws(FileError) -> Bool {
        guard let towns else { return false }
        return try place(of: ino, towns, tree).map(Int.init) == directory
    }
}
