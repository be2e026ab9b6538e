import PhotoImaging
import VaultCatalogue

/// Whether the name is that of a program's working file, which is never taken for a photo.
func isWorkingName(_ name: [UInt8]) -> Bool {
    name.first == UInt8(ascii: ".") || name.last == UInt8(ascii: "~")
        || workingSuffixes.contains { hasSuffix(name, $0) }
}

/// Whether the name is that of a program's own directory, whose files are never taken for photos.
func isWorkingDirectoryName(_ name: [UInt8]) -> Bool {
    name.first == UInt8(ascii: ".") || name == synologyDirectory
}

/// The name that NAME~, NAME_original and NAME.bak are backups of, or nil.
func backupOriginal(_ name: [UInt8]) -> [UInt8]? {
    for suffix in backupSuffixes where hasSuffix(name, suffix) && name.count > suffix.count {
        return Array(name.dropLast(suffix.count))
    }
    return nil
}

/// The backup names to which an editor may have renamed NAME before it wrote NAME anew.
func backupNames(_ name: [UInt8]) -> [[UInt8]] {
    backupSuffixes.map { name + $0 }.filter { $0.count <= nameBytesMax }
}

/// `NAME (2).jpg`: the name with a number before its extension, the stem cut to fit `bytesMax`.
func numberedName(_ name: [UInt8], _ number: Int, bytesMax: Int = nameBytesMax) -> [UInt8] {
    suffixedName(name, Array(" (\(number))".utf8), bytesMax: bytesMax)
}

/// The name with a suffix before its extension, the stem cut to fit `bytesMax`.
private func suffixedName(_ name: [UInt8], _ suffix: [UInt8], bytesMax: Int) -> [UInt8] {
    var dot = name.lastIndex(of: UInt8(ascii: ".")) ?? name.count
    // A name that begins with its only dot, or whose extension exceeds `extensionBytesMax`, has no extension.
    if dot == 0 || name.count - dot > extensionBytesMax { dot = name.count }
    let tail = suffix + name[dot...]
    var stem = Array(name[..<dot])
    if stem.count + tail.count > bytesMax {
        var end = bytesMax - tail.count
        // Not within a UTF-8 sequence: continuation bytes are 10xxxxxx.
        while end > 0 && stem[end] & 0xC0 == 0x80 { end -= 1 }
        stem = Array(stem[..<end])
    }
    return stem + tail
}

/// The name, or a free numbered form of it: the lowest, if few are taken. It must fit `bytesMax` too.
func firstFreeName<E: Error>(
    _ name: [UInt8], bytesMax: Int = nameBytesMax, isFree: ([UInt8]) throws(E) -> Bool
) throws(E) -> [UInt8] {
    if name.count <= bytesMax, try isFree(name) { return name }
    func candidate(_ number: Int) -> [UInt8] { numberedName(name, number, bytesMax: bytesMax) }
    // One by one, then in doubling steps, then by bisection: fast even for a large camera roll.
    var (taken, free) = (1, 2)
    while try !isFree(candidate(free)) { (taken, free) = (free, free < 32 ? free + 1 : free * 2) }
    while free - taken > 1 {
        let middle = (taken + free) / 2
        if try isFree(candidate(middle)) { free = middle } else { taken = middle }
    }
    return candidate(free)
}

/// A valid directory entry name, as similar as possible to `name`, which may be invalid.
func possibleName(_ name: [UInt8]) -> [UInt8] {
    if isEntryName(name) { return name }
    let underscore = UInt8(ascii: "_")
    var bytes = name.map { $0 == 0 || $0 == UInt8(ascii: "/") ? underscore : $0 }
    if bytes.allSatisfy({ $0 == UInt8(ascii: ".") }) {
        bytes = [UInt8](repeating: underscore, count: max(bytes.count, 1))
    }
    return suffixedName(bytes, [], bytesMax: nameBytesMax)
}

/// Whether `shown` is `name` or a numbered form of it.
func isNumberedForm(_ shown: [UInt8], of name: [UInt8]) -> Bool {
    if shown == name { return true }
    guard let open = shown.lastIndex(of: UInt8(ascii: "(")),
        let close = shown.lastIndex(of: UInt8(ascii: ")")),
        open + 1 < close, let number = Int(String(decoding: shown[open + 1..<close], as: UTF8.self))
    else { return false }
    return numberedName(name, number) == shown
}

/// The day as YYYYMMDD, as in the tables.
func dayNumber(_ day: CivilDay) -> Int64 { Int64(day.year * 10_000 + day.month * 100 + day.day) }

/// The name of a day's directory.
func dayName(_ number: Int64) -> [UInt8] {
    var digits = String(number)
    digits = String(repeating: "0", count: max(0, 8 - digits.count)) + digits
    var bytes = Array(digits.utf8)
    bytes.insert(UInt8(ascii: "-"), at: 4)
    bytes.insert(UInt8(ascii: "-"), at: 7)
    return bytes
}

/// The day of a directory's name, YYYYMMDD; nil if it is not a real date.
func dayNumber(named name: [UInt8]) -> Int64? { CivilDay(parsing: name).map(dayNumber) }

func hasSuffix(_ name: [UInt8], _ suffix: [UInt8]) -> Bool {
    name.count >= suffix.count && name.suffix(suffix.count).elementsEqual(suffix)
}

// The last is a whole picture, which exiftool removes again when it overwrites the original in place.
private let workingSuffixes: [[UInt8]] =
    [".part", ".tmp", ".crdownload", "_exiftool_tmp"].map { Array($0.utf8) }
private let backupSuffixes: [[UInt8]] = ["~", "_original", ".bak"].map { Array($0.utf8) }
private let synologyDirectory = Array("@eaDir".utf8)
private let extensionBytesMax = 16
