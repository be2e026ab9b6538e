import CatalogueRows
import Glibc

/// Towns as directories: of countries, and in them of towns.
package struct Towns: Sendable {
    /// A directory of a country.
    package struct Directory: Sendable {
        /// The country's place in `countries`.
        package var country: Int
        package var name: [UInt8]
    }

    /// The names of countries, in order.
    package let countries: [[UInt8]]
    /// The directories of towns, by country and name.
    package let directories: [Directory]
    private let nearest: NearestPoints
    private let far: FarPlaces?

    /// Nil if there is no town with a name.
    ///
    /// - Parameter kilometersMax: what lies farther from any town has directories of its own; see `FarPlaces`. Nil: it
    ///   is near the nearest all the same.
    package init?(_ towns: [Town], kilometersMax: Double? = nil) {
        var named = Self.named(towns).map { (town: $0, isFar: false) }
        guard !named.isEmpty else { return nil }
        if kilometersMax != nil {
            named += FarPlaces.all.map { ($0, true) }
            named.sort { Self.isBefore($0.town, $1.town) }
        }
        let countries = Set(named.map(\.town.country)).sorted { $0.lexicographicallyPrecedes($1) }
        let numbers = Dictionary(uniqueKeysWithValues: countries.enumerated().map { ($1, $0) })
        var directories: [Directory] = []
        var points: [(point: SIMD3<Double>, number: Int32)] = []
        var last: (country: [UInt8], name: [UInt8])?
        for (town, isFar) in named {
            if last?.country != town.country || last?.name != town.name {
                directories.append(Directory(country: numbers[town.country] ?? 0, name: town.name))
                last = (town.country, town.name)
            }
            if isFar { continue }
            points.append((Self.point(town.latitude, town.longitude), Int32(directories.count - 1)))
        }
        (self.countries, self.directories) = (countries, directories)
        nearest = NearestPoints(points)
        far = kilometersMax.map { FarPlaces(kilometers: $0, among: directories, in: numbers) }
    }

    /// The directory, in `directories`, of the town nearest to a point, or of the part of the Earth around a point that
    /// is far from all towns.
    package func directory(latitude: Int32, longitude: Int32) -> Int {
        let degree = PhotoPosition.unitsPerDegree
        let (north, east) = (Double(latitude) / degree, Double(longitude) / degree)
        let found = nearest.nearest(to: Self.point(north, east))
        if let far, found.distance > far.distance { return far.directory(north, east) }
        return Int(found.number)
    }

    /// The country of that name; nil if there is none.
    package func country(named name: [UInt8]) -> Int? {
        let index = firstIndex(in: countries.indices) { countries[$0].lexicographicallyPrecedes(name) }
        return index < countries.count && countries[index] == name ? index : nil
    }

    /// The directory of that name in a country; nil if there is none.
    package func directory(named name: [UInt8], of country: Int) -> Int? {
        let index = firstIndex(in: directories.indices) { index in
            let own = directories[index]
            return own.country == country ? own.name.lexicographicallyPrecedes(name) : own.country < country
        }
        guard index < directories.count else { return nil }
        return directories[index].country == country && directories[index].name == name ? index : nil
    }

    /// The first index that does not precede what is searched for.
    private func firstIndex(in range: Range<Int>, where precedes: (Int) -> Bool) -> Int {
        var (low, high) = (range.lowerBound, range.upperBound)
        while low < high {
            let middle = (low + high) / 2
            if precedes(middle) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// On a sphere of radius 1: of two points the nearer on it is the nearer through it.
    private static func point(_ latitude: Double, _ longitude: Double) -> SIMD3<Double> {
        let (north, east) = (latitude * .pi / 180, longitude * .pi / 180)
        return SIMD3(cos(north) * cos(east), cos(north) * sin(east), sin(north))
    }

    /// The towns under the names of their directories, by country and name. Towns of one name in several states of a
    /// country are told apart by these: `Springfield (Illinois)`.
    private static func named(_ towns: [Town]) -> [Town] {
        struct Key: Hashable {
            var country: [UInt8]
            var name: [UInt8]
        }
        var states: [Key: Set<[UInt8]>] = [:]
        var named: [Town] = []
        for town in towns {
            guard let country = townDirectoryName(town.country), let name = townDirectoryName(town.name)
            else {
                continue
            }
            var own = town
            (own.country, own.name) = (country, name)
            named.append(own)
            states[Key(country: country, name: name), default: []].insert(town.state)
        }
        for index in named.indices {
            let town = named[index]
            guard (states[Key(country: town.country, name: town.name)]?.count ?? 0) > 1,
                let state = townDirectoryName(town.state)
            else { continue }
            named[index].name += Array(" (".utf8) + state + Array(")".utf8)
        }
        return named.sorted(by: isBefore)
    }

    private static func isBefore(_ one: Town, _ other: Town) -> Bool {
        one.country == other.country
            ? one.name.lexicographicallyPrecedes(other.name)
            : one.country.lexicographicallyPrecedes(other.country)
    }
}

/// A name of a list as that of a directory; nil if nothing is left of it. A leading dot would hide it.
package func townDirectoryName(_ name: [UInt8]) -> [UInt8]? {
    let words = name.split { $0 <= 0x20 || $0 == 0x7F }
    var text = Array(words.joined(separator: [UInt8(ascii: " ")])).map {
        $0 == UInt8(ascii: "/") ? UInt8(ascii: "_") : $0
    }
    if text.first == UInt8(ascii: ".") { text[0] = UInt8(ascii: "_") }
    if text.count > townNameBytesMax {
        var end = townNameBytesMax
        // Not within a UTF-8 sequence: continuation bytes are 10xxxxxx.
        while end > 0 && text[end] & 0xC0 == 0x80 { end -= 1 }
        text = Array(text[..<end])
    }
    return text.isEmpty ? nil : text
}

/// Two of them, and a few characters more, are a valid name.
private let townNameBytesMax = 120

/// Points, of which the nearest to another is found in about as many steps as their number has digits in base 2: a
/// k-d tree of three dimensions (Bentley 1975) in one array, each part's middle point before both halves of it.
private struct NearestPoints: Sendable {
    private struct Entry: Sendable {
        var point: SIMD3<Double>
        var number: Int32
    }

    private var entries: [Entry]

    init(_ points: [(point: SIMD3<Double>, number: Int32)]) {
        entries = points.map { Entry(point: $0.point, number: $0.number) }
        arrange(0..<entries.count, by: 0)
    }

    private mutating func arrange(_ range: Range<Int>, by axis: Int) {
        guard range.count > 1 else { return }
        entries[range].sort { $0.point[axis] < $1.point[axis] }
        let middle = range.lowerBound + range.count / 2
        arrange(range.lowerBound..<middle, by: (axis + 1) % 3)
        arrange(middle + 1..<range.upperBound, by: (axis + 1) % 3)
    }

    /// The number of the point nearest to `wanted`, the least of several, and the square of its distance. There must be
    /// one.
    func nearest(to wanted: SIMD3<Double>) -> (distance: Double, number: Int32) {
        var best: (distance: Double, number: Int32) = (.infinity, .max)
        search(0..<entries.count, by: 0, wanted, &best)
        return best
    }

    private func search(
        _ range: Range<Int>, by axis: Int, _ wanted: SIMD3<Double>,
        _ best: inout (distance: Double, number: Int32)
    ) {
        guard !range.isEmpty else { return }
        let middle = range.lowerBound + range.count / 2
        let entry = entries[middle]
        let between = wanted - entry.point
        let distance = (between * between).sum()
        if (distance, entry.number) < (best.distance, best.number) { best = (distance, entry.number) }
        let side = wanted[axis] - entry.point[axis]
        let (lower, upper) = (range.lowerBound..<middle, middle + 1..<range.upperBound)
        search(side < 0 ? lower : upper, by: (axis + 1) % 3, wanted, &best)
        if side * side <= best.distance {
            search(side < 0 ? upper : lower, by: (axis + 1) % 3, wanted, &best)
        }
    }
}
