/// A town of a list.
package struct Town: Sendable, Equatable {
    package var country: [UInt8]
    /// The part of the country that it is in; empty if the list has none.
    package var state: [UInt8]
    package var name: [UInt8]
    /// Degrees north and east.
    package var latitude: Double
    package var longitude: Double
}

/// The towns in `Locations.xml` of libgweather (locations.dtd there): countries, in some of them states, in either of
/// them cities with a name and coordinates. Of a damaged file what can be read counts.
package struct TownFile {
    /// The largest file that is read; that of libgweather 4.2 has 1.7 MB.
    package static let bytesMax = 16 << 20
    /// Further towns are left out; libgweather 4.2 has 4,233. With the places that are far from all they have numbers
    /// of 16 bits.
    package static let townsMax = 64_000
    /// Elements within elements; deeper ones are passed over.
    private static let depthMax = 16
    /// Bytes of a text that count.
    private static let textBytesMax = 200

    package private(set) var towns: [Town] = []

    private enum Element { case country, state, city, name, translation, coordinates, other }

    private let bytes: [UInt8]
    private var index = 0
    private var open: [Element] = []
    /// Open elements beyond `depthMax`.
    private var deeper = 0
    /// The text of the innermost element that has one of use.
    private var text: [UInt8] = []
    private var country: [UInt8] = []
    private var state: [UInt8] = []
    private var city: [UInt8] = []
    private var coordinates: [UInt8] = []

    package init(_ bytes: [UInt8]) {
        self.bytes = bytes.count <= Self.bytesMax ? bytes : []
        while index < self.bytes.count, towns.count < Self.townsMax { readNext() }
    }

    private mutating func readNext() {
        guard bytes[index] == UInt8(ascii: "<") else { return readText() }
        for (start, end) in Self.passages where isNext(start) { return skip(past: end) }
        readTag()
    }

    /// Comments, processing instructions and declarations: how they begin, and end.
    private static let passages: [(start: [UInt8], end: [UInt8])] = [
        ("<!--", "-->"), ("<?", "?>"), ("<!", ">"),
    ]
    .map { (Array($0.0.utf8), Array($0.1.utf8)) }

    private func isNext(_ word: [UInt8]) -> Bool {
        index + word.count <= bytes.count && bytes[index..<index + word.count].elementsEqual(word)
    }

    /// Continues behind the next `word`, or at the end.
    private mutating func skip(past word: [UInt8]) {
        while let next = bytes[index...].firstIndex(of: word[0]) {
            index = next
            if isNext(word) {
                index += word.count
                return
            }
            index += 1
        }
        index = bytes.count
    }

    // MARK: Elements

    private mutating func readTag() {
        let start = index + 1
        guard let end = bytes[start...].firstIndex(of: UInt8(ascii: ">")) else {
            index = bytes.count
            return
        }
        index = end + 1
        var tag = bytes[start..<end]
        if tag.first == UInt8(ascii: "/") { return close(Self.element(tag.dropFirst())) }
        let isEmpty = tag.last == UInt8(ascii: "/")
        if isEmpty { tag = tag.dropLast() }
        var element = Self.element(tag)
        // Translations stand beside the name.
        if element == .name, tag.contains(UInt8(ascii: "=")), Self.has(tag, "xml:lang") {
            element = .translation
        }
        if !isEmpty { open(element) }
    }

    private static func element(_ tag: ArraySlice<UInt8>) -> Element {
        let word = tag.prefix { $0 > UInt8(ascii: " ") }
        return switch String(decoding: word.prefix(16), as: UTF8.self) {
        case "country": .country
        case "state": .state
        case "city": .city
        case "name", "_name": .name
        case "coordinates": .coordinates
        default: .other
        }
    }

    private static func has(_ tag: ArraySlice<UInt8>, _ attribute: String) -> Bool {
        String(decoding: tag.prefix(textBytesMax), as: UTF8.self).contains(attribute)
    }

    private mutating func open(_ element: Element) {
        text = []
        guard open.count < Self.depthMax else {
            deeper += 1
            return
        }
        open.append(element)
        switch element {
        case .country: (country, state, city, coordinates) = ([], [], [], [])
        case .state: (state, city, coordinates) = ([], [], [])
        case .city: (city, coordinates) = ([], [])
        case .name, .translation, .coordinates, .other: break
        }
    }

    /// Closes an element. One that another was not closed in closes that too; one that is not open is passed over.
    private mutating func close(_ element: Element) {
        if deeper > 0 {
            deeper -= 1
            return
        }
        let found = open.lastIndex { $0 == element || $0 == .translation && element == .name }
        guard let last = found else { return }
        let (element, outer) = (open[last], last > 0 ? open[last - 1] : .other)
        open.removeSubrange(last...)
        switch element {
        case .name: takeName(of: outer)
        case .coordinates: if outer == .city { coordinates = text }
        case .city: addTown()
        case .state: state = []
        case .country, .translation, .other: break
        }
        text = []
    }

    private mutating func takeName(of outer: Element) {
        switch outer {
        case .country: country = text
        case .state: state = text
        case .city: city = text
        case .name, .translation, .coordinates, .other: break
        }
    }

    private mutating func addTown() {
        let numbers = coordinates.split { $0 <= 0x20 }
        guard numbers.count == 2, let latitude = Self.degrees(numbers[0]), abs(latitude) <= 90,
            let longitude = Self.degrees(numbers[1]), abs(longitude) <= 180, !country.isEmpty, !city.isEmpty
        else { return }
        towns.append(
            Town(country: country, state: state, name: city, latitude: latitude, longitude: longitude))
    }

    private static func degrees(_ text: ArraySlice<UInt8>) -> Double? {
        text.count <= 32 ? Double(String(decoding: text, as: UTF8.self)) : nil
    }

    // MARK: Text

    /// Reads up to the next tag. What is no text of use is passed over at once.
    private mutating func readText() {
        let end = bytes[index...].firstIndex(of: UInt8(ascii: "<")) ?? bytes.count
        defer { index = end }
        guard deeper == 0, open.last == .name || open.last == .coordinates else { return }
        var place = index
        while place < end, text.count < Self.textBytesMax {
            if bytes[place] == UInt8(ascii: "&"), let entity = entity(at: place, end) {
                text += entity.value
                place = entity.end
            } else {
                text.append(bytes[place])
                place += 1
            }
        }
    }

    /// The character that an entity stands for (XML 1.0, 4.1 and 4.6), and the index behind it; nil for any other.
    private func entity(at start: Int, _ end: Int) -> (value: [UInt8], end: Int)? {
        let limit = min(end, start + 12)
        guard let semicolon = bytes[start..<limit].firstIndex(of: UInt8(ascii: ";")) else { return nil }
        let name = String(decoding: bytes[start + 1..<semicolon], as: UTF8.self)
        let value: String?
        switch name {
        case "amp": value = "&"
        case "lt": value = "<"
        case "gt": value = ">"
        case "quot": value = "\""
        case "apos": value = "'"
        case _ where name.hasPrefix("#x"): value = Self.character(UInt32(name.dropFirst(2), radix: 16))
        case _ where name.hasPrefix("#"): value = Self.character(UInt32(name.dropFirst()))
        default: value = nil
        }
        return value.map { (Array($0.utf8), semicolon + 1) }
    }

    private static func character(_ number: UInt32?) -> String? {
        number.flatMap(Unicode.Scalar.init).map { String($0) }
    }
}
