import CatalogueRows
import Foundation
import Testing

@testable import PhotoRules

/// The list of towns, and which of them is the nearest.
@Suite("The tree: towns") struct TownTests {
    static let list = """
        <?xml version="1.0" encoding="utf-8"?>
        <!DOCTYPE gweather SYSTEM "locations.dtd">
        <gweather format="1.0">
          <named-timezone><_name>UTC</_name><code>@UTC</code></named-timezone>
          <region><_name>Europe</_name>
            <country>
              <!-- DE > - Germany <city> -->
              <_name>Germany</_name><name xml:lang="de">Deutschland</name>
              <iso-code>DE</iso-code>
              <timezones><timezone id="Europe/Berlin"/></timezones>
              <state><_name>Bavaria</_name>
                <city><_name>M&#252;nchen</_name><name xml:lang="en">Munich</name>
                  <coordinates>48.133333 11.566667</coordinates>
                  <location><name>Flughafen</name><code>EDDM</code><coordinates>48.35 11.78</coordinates></location>
                </city>
                <city><_name>Neustadt</_name><coordinates>49.58 10.6</coordinates></city>
              </state>
              <state><_name>Saxony</_name>
                <city><name msgctxt="City in Saxony">Neustadt</name><coordinates>51.03 14.21</coordinates></city>
              </state>
              <city><_name>Berlin</_name><coordinates>52.516667 13.4</coordinates></city>
            </country>
          </region>
          <region><_name>Pacific</_name>
            <country><_name>Fiji</_name>
              <city><_name>Suva / &amp; Nausori</_name><coordinates>-18.133333 178.416667</coordinates></city>
              <city><_name>...</_name><coordinates>-16.8 179.99</coordinates></city>
            </country>
            <country><_name>Samoa</_name>
              <city><_name>Apia</_name><coordinates>-13.833333 -171.766667</coordinates></city>
              <city><_name>Nowhere</_name><coordinates>91 10</coordinates></city>
              <city><_name>No number</_name><coordinates>nan inf</coordinates></city>
              <city><_name>Without</_name></city>
            </country>
          </region>
        </gweather>
        """

    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    private func place(_ towns: Towns, _ latitude: Double, _ longitude: Double) -> String? {
        guard
            case .point(let north, let east) = PhotoPosition(latitude: latitude, longitude: longitude)
        else { return nil }
        let directory = towns.directories[towns.directory(latitude: north, longitude: east)]
        return text(towns.countries[directory.country]) + "/" + text(directory.name)
    }

    @Test func `countries, states and towns are read, and nothing else`() throws {
        let towns = TownFile(Array(Self.list.utf8)).towns
        #expect(
            towns.map { "\(text($0.country))/\(text($0.state))/\(text($0.name))" } == [
                "Germany/Bavaria/München", "Germany/Bavaria/Neustadt", "Germany/Saxony/Neustadt",
                "Germany//Berlin", "Fiji//Suva / & Nausori", "Fiji//...", "Samoa//Apia",
            ])
        #expect(towns[0].latitude == 48.133333 && towns[6].longitude == -171.766667)
    }

    @Test func `directories have valid names, one for each town`() throws {
        let towns = try #require(Towns(TownFile(Array(Self.list.utf8)).towns))
        #expect(towns.countries.map(text) == ["Fiji", "Germany", "Samoa"])
        #expect(
            towns.directories.map { text($0.name) } == [
                "Suva _ & Nausori", "_..", "Berlin", "München", "Neustadt (Bavaria)", "Neustadt (Saxony)",
                "Apia",
            ])
        for (index, directory) in towns.directories.enumerated() {
            #expect(towns.directory(named: directory.name, of: directory.country) == index)
        }
        for (index, country) in towns.countries.enumerated() {
            #expect(towns.country(named: country) == index)
        }
        #expect(towns.country(named: Array("Germanz".utf8)) == nil)
        #expect(towns.directory(named: Array("Apia".utf8), of: 1) == nil)
        #expect(Towns([]) == nil)
    }

    @Test func `the nearest is found over the date line and the pole`() throws {
        let towns = try #require(Towns(TownFile(Array(Self.list.utf8)).towns))
        #expect(place(towns, 48.2, 11.4) == "Germany/München")
        #expect(place(towns, 51.1, 14.2) == "Germany/Neustadt (Saxony)")
        #expect(place(towns, -16.8, -179.9) == "Fiji/_..")
        #expect(place(towns, -14, -179) == "Fiji/_..")
        #expect(place(towns, 90, -170) == "Germany/Berlin")
        #expect(place(towns, -13.8, -171) == "Samoa/Apia")
    }

    /// The last metres count: a town at 0° 0°, on the equator and along a meridian.
    @Test func `what is farther from any town than the limit is elsewhere`() throws {
        let origin = Town(
            country: Array("C".utf8), state: [], name: Array("T".utf8), latitude: 0, longitude: 0)
        let towns = try #require(Towns([origin], kilometersMax: 500))
        let limit = 500 / 6371.0 * 180 / .pi
        for (latitude, longitude) in [(0, 1), (0, -1), (1, 0), (-1, 0)] as [(Double, Double)] {
            let near = limit - 1e-5
            #expect(place(towns, latitude * near, longitude * near) == "C/T")
            let far = limit + 1e-5
            #expect(place(towns, latitude * far, longitude * far) == "Elsewhere/0° 0°")
        }
        for (latitude, longitude, name) in [
            (40.0, -30.0, "40°N 30°W"), (44.9, -34.9, "40°N 30°W"), (45.1, -35.1, "50°N 40°W"),
            (-12, 179, "10°S 180°"), (-12, -179, "10°S 180°"), (3, 96, "0° 100°E"), (84.9, 10, "80°N 10°E"),
            (85.1, 10, "90°N"), (-90, 0, "90°S"), (90, 180, "90°N"), (61, -4, "60°N 0°"),
            (0, -180, "0° 180°"),
        ] { #expect(place(towns, latitude, longitude) == "Elsewhere/" + name) }
        #expect(towns.countries.map(text) == ["C", "Elsewhere"])
        // 17 rows of 36, and the poles.
        #expect(towns.directories.count == 1 + 17 * 36 + 2)
        for (index, directory) in towns.directories.enumerated() {
            #expect(towns.directory(named: directory.name, of: directory.country) == index)
            #expect(townDirectoryName(directory.name) == directory.name)
        }
        // Over the date line.
        let apia = try #require(Towns(TownFile(Array(Self.list.utf8)).towns, kilometersMax: 500))
        #expect(place(apia, -14, -179) == "Fiji/_.." && place(apia, -13.8, -171) == "Samoa/Apia")
        #expect(place(apia, 90, -170) == "Elsewhere/90°N" && place(apia, 48.2, 11.4) == "Germany/München")
        #expect(Towns([], kilometersMax: 500) == nil)
    }

    @Test func `impossible positions are none`() {
        for (latitude, longitude) in [(0, 0), (90.1, 0), (0, -180.5), (.nan, 5), (5, .infinity)]
            as [(Double, Double)]
        {
            #expect(PhotoPosition(latitude: latitude, longitude: longitude) == .absent)
        }
        #expect(PhotoPosition(latitude: nil, longitude: 5) == .absent)
        #expect(
            PhotoPosition(latitude: -90, longitude: -180)
                == .point(latitude: -900_000_000, longitude: -1_800_000_000))
        #expect(PhotoPosition(latitude: 1e-9, longitude: -1e-9) == .absent)
    }

    /// Against a search of all, by the haversine formula.
    @Test(arguments: 1...3 as ClosedRange<UInt64>) func `as near as any other`(seed: UInt64) throws {
        var random = SmallRandom(seed)
        let some = (0..<700).map { number in
            Town(
                country: Array("C\(number % 7)".utf8), state: [], name: Array("T\(number)".utf8),
                latitude: Double.random(in: -90...90, using: &random),
                longitude: Double.random(in: -180...180, using: &random))
        }
        let towns = try #require(Towns(some))
        func distance(_ town: Town, _ latitude: Double, _ longitude: Double) -> Double {
            let degree = Double.pi / 180
            let (up, right) = (
                sin((town.latitude - latitude) * degree / 2), sin((town.longitude - longitude) * degree / 2)
            )
            let square = up * up + cos(town.latitude * degree) * cos(latitude * degree) * right * right
            return 2 * asin(min(1, square.squareRoot()))
        }
        for _ in 0..<300 {
            let latitude = Double.random(in: -90...90, using: &random)
            let longitude = Double.random(in: -180...180, using: &random)
            let found = towns.directories[
                towns.directory(latitude: Int32(latitude * 1e7), longitude: Int32(longitude * 1e7))]
            let town = try #require(some.first { $0.name == found.name })
            let least = some.map { distance($0, latitude, longitude) }.min() ?? 0
            #expect(distance(town, latitude, longitude) <= least + 1e-6)
        }
    }

    /// Cut, with bytes changed, or of anything: never more towns than there are, and no endless work.
    @Test func `damaged lists are read as far as they go`() {
        let whole = Array(Self.list.utf8)
        let count = TownFile(whole).towns.count
        for end in stride(from: 0, to: whole.count, by: 7) {
            #expect(TownFile(Array(whole[..<end])).towns.count <= count)
        }
        var random = SmallRandom(9)
        for _ in 0..<300 {
            var bytes = whole
            for _ in 0..<5 {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(
                    in: 0...255, using: &random)
            }
            for town in TownFile(bytes).towns {
                #expect(abs(town.latitude) <= 90 && abs(town.longitude) <= 180)
            }
            _ = Towns(TownFile(bytes).towns)
        }
        let deep = [UInt8](repeating: UInt8(ascii: "<"), count: 100_000)
        #expect(TownFile(deep).towns.isEmpty)
        let nested = Array(String(repeating: "<country>", count: 20_000).utf8)
        #expect(TownFile(nested).towns.isEmpty)
        #expect(TownFile([UInt8](repeating: 0x20, count: TownFile.bytesMax + 1)).towns.isEmpty)
    }

    @Test(arguments: [
        ("", nil), (" \n ", nil), (".hidden", "_hidden"), ("..", "_."), ("a/b", "a_b"),
        ("a\u{1}b\tc", "a b c"),
        (String(repeating: "ü", count: 100), String(repeating: "ü", count: 60)),
    ]) func `names are valid`(name: String, expected: String?) {
        #expect(townDirectoryName(Array(name.utf8)).map(text) == expected)
    }
}
