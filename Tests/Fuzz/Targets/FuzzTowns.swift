import CatalogueRows

@testable import PhotoRules

/// A list of towns of the system, and which of them is nearest to points.
func fuzzTowns(_ bytes: UnsafeRawBufferPointer) {
    let towns = TownFile(Array(bytes)).towns
    for town in towns { precondition(abs(town.latitude) <= 90 && abs(town.longitude) <= 180) }
    guard let shown = Towns(towns) else { return }
    precondition(shown.directories.count <= towns.count)
    check(shown, towns)
    // It has 614 directories more: most inputs are to be quick.
    if bytes.count % 64 == 0, let limited = Towns(towns, kilometersMax: Double(bytes.count)) {
        check(limited, towns)
    }
}

private func check(_ shown: Towns, _ towns: [Town]) {
    for (index, directory) in shown.directories.enumerated() {
        precondition(shown.directory(named: directory.name, of: directory.country) == index)
        let isName =
            (1...255).contains(directory.name.count) && !directory.name.contains(UInt8(ascii: "/"))
            && directory.name.first != UInt8(ascii: ".") && directory.name.allSatisfy { $0 >= 0x20 }
        precondition(isName)
    }
    for (index, country) in shown.countries.enumerated() {
        precondition(shown.country(named: country) == index)
    }
    for town in towns {
        guard
            case .point(let latitude, let longitude) = PhotoPosition(
                latitude: town.latitude, longitude: town.longitude)
        else { continue }
        for (north, east) in [(latitude, longitude), (-latitude, longitude), (latitude / 2, -longitude)] {
            precondition(
                shown.directories.indices.contains(shown.directory(latitude: north, longitude: east)))
        }
    }
}
