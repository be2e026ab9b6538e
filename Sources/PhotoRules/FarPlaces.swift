import Glibc

/// Directories for photos that are far from every town, as on the sea: `Elsewhere/40°N 30°W` has those whose latitude
/// and longitude are nearest to these tens of degrees.
struct FarPlaces: Sendable {
    /// The directory beside those of countries.
    static let country = Array("Elsewhere".utf8)

    /// The square of the least distance, through a sphere of radius 1.
    let distance: Double
    /// By row and column; see `index`.
    private let directories: [Int]

    private static let step = 10
    private static let rows = -9...9
    private static let columns = -18...17

    /// All places, in no order.
    static var all: [Town] {
        var all: [Town] = []
        for row in rows {
            for column in columns where row.magnitude < 9 || column == 0 {
                all.append(
                    Town(
                        country: country, state: [], name: name(row, column), latitude: Double(row * step),
                        longitude: Double(column * step)))
            }
        }
        return all
    }

    /// - Parameters:
    ///   - directories: in the order of their names; `all` are among them.
    ///   - countries: the numbers of the countries.
    init(kilometers: Double, among directories: [Towns.Directory], in countries: [[UInt8]: Int]) {
        // The chord of an arc.
        let chord = 2 * sin(min(kilometers / earthKilometers / 2, .pi / 2))
        distance = chord * chord
        var found: [[UInt8]: Int] = [:]
        for (index, directory) in directories.enumerated()
        where directory.country == countries[Self.country] { found[directory.name] = index }
        self.directories = Self.rows.flatMap { row in
            Self.columns.map { found[Self.name(row, $0)] ?? 0 }
        }
    }

    /// The index of the directory around a point, in degrees.
    func directory(_ latitude: Double, _ longitude: Double) -> Int {
        let row = Int((latitude / Double(Self.step)).rounded())
        let column = Int((longitude / Double(Self.step)).rounded())
        return directories[
            (row - Self.rows.lowerBound) * Self.columns.count + (column == 18 ? 0 : column + 18)]
    }

    private static func name(_ row: Int, _ column: Int) -> [UInt8] {
        func text(_ tens: Int, _ positive: String, _ negative: String, most: Int) -> String {
            let letter = tens == 0 || tens.magnitude == most ? "" : tens > 0 ? positive : negative
            return "\(tens.magnitude * step.magnitude)°" + letter
        }
        if row.magnitude == 9 { return Array("90°\(row > 0 ? "N" : "S")".utf8) }
        return Array((text(row, "N", "S", most: 9) + " " + text(column, "E", "W", most: 18)).utf8)
    }
}

/// Of a sphere with the Earth's surface.
private let earthKilometers = 6371.0
