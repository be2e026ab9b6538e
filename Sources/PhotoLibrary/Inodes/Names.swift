import FileRequests
import VaultCatalogue

/// Whether the name is that of a program's own directory, whose files are never taken for photos.
package func isWorkingDirectoryName(_ name: [UInt8]) -> Bool {
    name.first == UInt8(ascii: ".") || name == synologyDirectory
}

/// A valid directory entry name, as similar as possible to `name`, which may be invalid.
package func possibleName(_ name: [UInt8]) -> [UInt8] {
    if isEntryName(name) { return name }
    let underscore = UInt8(ascii: "_")
    var bytes = name.map { $0 == 0 || $0 == UInt8(ascii: "/") ? underscore : $0 }
    if bytes.allSatisfy({ $0 == UInt8(ascii: ".") }) {
        bytes = [UInt8](repeating: underscore, count: max(bytes.count, 1))
    }
    return suffixedName(bytes, [], bytesMax: nameBytesMax)
}

/// The name of a day's directory.
package func dayName(_ number: Int64) -> [UInt8] {
    var digits = String(number)
    digits = String(repeating: "0", count: max(0, 8 - digits.count)) + digits
    var bytes = Array(digits.utf8)
    bytes.insert(UInt8(ascii: "-"), at: 4)
    bytes.insert(UInt8(ascii: "-"), at: 7)
    return bytes
}

private let synologyDirectory = Array("@eaDir".utf8)
