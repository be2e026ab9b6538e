import FileRequests
package import PhotoImaging

/// Whether the name is that of a program's working file, which is never taken for a photo.
package func isWorkingName(_ name: [UInt8]) -> Bool {
    name.first == UInt8(ascii: ".") || name.last == UInt8(ascii: "~")
        || workingSuffixes.contains { hasSuffix(name, $0) }
}

/// The name that NAME~, NAME.~1~, NAME_original, NAME.bak, NAME.orig and NAME.t are backups of, or nil.
package func backupOriginal(_ name: [UInt8]) -> [UInt8]? {
    if let original = numberedBackupOriginal(name) { return original }
    for suffix in backupSuffixes where hasSuffix(name, suffix) && name.count > suffix.count {
        return Array(name.dropLast(suffix.count))
    }
    return nil
}

/// The backup names to which an editor may have renamed NAME before it wrote NAME anew, except those that begin with
/// `NAME.`.
package func plainBackupNames(_ name: [UInt8]) -> [[UInt8]] {
    backupSuffixes.filter { $0.first != UInt8(ascii: ".") }.map { name + $0 }
        .filter { $0.count <= nameBytesMax }
}

/// NAME of NAME.~NUMBER~, as the GNU programs and Emacs number their backups.
private func numberedBackupOriginal(_ name: [UInt8]) -> [UInt8]? {
    guard name.last == UInt8(ascii: "~"), let mark = name.dropLast().lastIndex(of: UInt8(ascii: "~")),
        mark > 1, name[mark - 1] == UInt8(ascii: "."), mark + 1 < name.count - 1,
        name[(mark + 1)...].dropLast().allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
    else { return nil }
    return Array(name[..<(mark - 1)])
}

/// Whether `shown` is `name` or a numbered form of it.
package func isNumberedForm(_ shown: [UInt8], of name: [UInt8]) -> Bool {
    if shown == name { return true }
    guard let open = shown.lastIndex(of: UInt8(ascii: "(")),
        let close = shown.lastIndex(of: UInt8(ascii: ")")),
        open + 1 < close, let number = Int(String(decoding: shown[open + 1..<close], as: UTF8.self))
    else { return false }
    return numberedName(name, number) == shown
}

/// The day as YYYYMMDD, as in the tables.
package func dayNumber(_ day: CivilDay) -> Int64 { Int64(day.year * 10_000 + day.month * 100 + day.day) }

/// The day of a directory's name, YYYYMMDD; nil if it is not a real date.
package func dayNumber(named name: [UInt8]) -> Int64? { CivilDay(parsing: name).map(dayNumber) }

// The last is a whole picture, which exiftool removes again when it overwrites the original in place.
private let workingSuffixes: [[UInt8]] =
    [".part", ".tmp", ".crdownload", "_exiftool_tmp"].map { Array($0.utf8) }
// The last is jhead's.
private let backupSuffixes: [[UInt8]] = ["~", "_original", ".bak", ".orig", ".t"].map { Array($0.utf8) }
