/// Where a photo was taken, as its metadata say.
public enum PhotoPosition: Sendable, Equatable {
    /// They do not say.
    case absent
    /// Degrees north and east, in units of 10^-7: a centimetre.
    case point(latitude: Int32, longitude: Int32)

    /// Units of a degree.
    public static let unitsPerDegree = 1e7
    /// The largest latitude and longitude.
    public static let latitudeMax: Int32 = 900_000_000
    public static let longitudeMax: Int32 = 1_800_000_000

    /// From degrees. Impossible ones are absent, and so is 0, 0 in the Gulf of Guinea, which programs write when they
    /// know no place.
    public init(latitude: Double?, longitude: Double?) {
        self = .absent
        guard let latitude, let longitude, abs(latitude) <= 90, abs(longitude) <= 180 else { return }
        let north = Int32((latitude * Self.unitsPerDegree).rounded())
        let east = Int32((longitude * Self.unitsPerDegree).rounded())
        if north != 0 || east != 0 { self = .point(latitude: north, longitude: east) }
    }
}
