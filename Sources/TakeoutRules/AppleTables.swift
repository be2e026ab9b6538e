import PhotoImaging

/// A table of Apple's export of iCloud Photos (privacy.apple.com): `Photo Details.csv`, or an album's list.
package enum AppleTable: Equatable {
    case details([Row])
    /// The names of an album's photos.
    case album([String])

    package struct Row: Equatable {
        package var name: String
        package var metadata: PhotoMetadata
    }

    /// Maximum bytes of a table.
    package static let bytesMax = 64 << 20

    /// Nil if it is another table.
    package init?(_ bytes: [UInt8]) {
        let rows = csvRows(inUTF8(bytes))
        guard let header = rows.first.map({ $0.map { trimmed($0).lowercased() } }) else { return nil }
        let names = ["imgname", "imagename", "images"]
        guard let name = header.firstIndex(where: { names.contains($0) }) else { return nil }
        let body = rows.dropFirst().filter { $0.count > name && !$0[name].isEmpty }
        guard let date = header.firstIndex(of: "originalcreationdate") else {
            guard header.count == 1 else { return nil }
            self = .album(body.map { $0[name] })
            return
        }
        func isYes(_ row: [String], _ column: String) -> Bool {
            header.firstIndex(of: column).map { $0 < row.count && row[$0].lowercased() == "yes" } ?? false
        }
        self = .details(
            body.map { row in
                var metadata = PhotoMetadata()
                metadata.title = row[name]
                metadata.taken = date < row.count ? appleSeconds(row[date]) : nil
                metadata.takenPrecision = 60
                metadata.isFavourite = isYes(row, "favorite")
                metadata.isTrashed = isYes(row, "deleted")
                return Row(name: row[name], metadata: metadata)
            })
    }
}

/// Seconds since 1970 UTC of `Saturday June 4,2022 12:11 PM GMT`.
func appleSeconds(_ text: String) -> Int64? {
    let words = text.split { $0 == " " || $0 == "," || $0 == "\u{202F}" }
    guard words.count == 7, words[6] == "GMT", let month = months.firstIndex(of: words[1].lowercased()),
        let day = Int(words[2]), let year = Int(words[3])
    else { return nil }
    let clock = words[4].split(separator: ":")
    guard clock.count == 2, let hour = Int(clock[0]), let minute = Int(clock[1]), (0...23).contains(hour)
    else {
        return nil
    }
    // Some exports count hours to 23 and say PM as well.
    let isAfternoon = words[5].uppercased() == "PM"
    let shown = hour > 12 ? hour : hour % 12 + (isAfternoon ? 12 : 0)
    return CivilTime(year: year, month: month + 1, day: day, hour: shown, minute: minute)?.secondsSince1970
}

private let months = [
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
    "november",
    "december",
]

private func trimmed(_ text: String) -> Substring {
    var text = text[...]
    while text.first == " " { text.removeFirst() }
    while text.last == " " { text.removeLast() }
    return text
}

/// A text of UTF-16, which begins with a mark of its byte order, as UTF-8; other texts without such a mark.
private func inUTF8(_ bytes: [UInt8]) -> ArraySlice<UInt8> {
    guard bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF]) else {
        return bytes.dropFirst(bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0)
    }
    let isBig = bytes[0] == 0xFE
    let units = stride(from: 2, to: bytes.count - 1, by: 2).map { index in
        UInt16(bytes[isBig ? index : index + 1]) << 8 | UInt16(bytes[isBig ? index + 1 : index])
    }
    return Array(String(decoding: units, as: UTF16.self).utf8)[...]
}

/// The separator of a table's fields: a comma, or a semicolon or a tab, which spreadsheet programs write in some
/// languages.
private func separator(_ text: ArraySlice<UInt8>) -> UInt8 {
    let header = text.prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
    let marks = [UInt8(ascii: ","), UInt8(ascii: ";"), UInt8(ascii: "\t")]
    return header.first { marks.contains($0) } ?? marks[0]
}

/// The rows of a CSV table (RFC 4180): quoted fields may contain separators, line ends and doubled quotes.
private func csvRows(_ text: ArraySlice<UInt8>) -> [[String]] {
    let separator = separator(text)
    let bytes = Array(text)
    var rows: [[String]] = []
    var (row, field): ([String], [UInt8]) = ([], [])
    var isQuoted = false
    var index = 0
    func end(_ field: inout [UInt8], _ row: inout [String]) {
        row.append(String(decoding: field, as: UTF8.self))
        field = []
    }
    while index < bytes.count {
        let byte = bytes[index]
        index += 1
        switch byte {
        case UInt8(ascii: "\"") where isQuoted && index < bytes.count && bytes[index] == byte:
            field.append(byte)
            index += 1
        case UInt8(ascii: "\""): isQuoted.toggle()
        case _ where isQuoted: field.append(byte)
        case separator: end(&field, &row)
        case UInt8(ascii: "\r") where index < bytes.count && bytes[index] == UInt8(ascii: "\n"): break
        case UInt8(ascii: "\n"), UInt8(ascii: "\r"):
            end(&field, &row)
            rows.append(row)
            row = []
        default: field.append(byte)
        }
    }
    if !field.isEmpty || !row.isEmpty {
        end(&field, &row)
        rows.append(row)
    }
    return rows.filter { $0 != [""] }
}
