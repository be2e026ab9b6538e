import FileRequests
package import PhotoImaging

/// Whether the name is that of a program's working file, which is never taken for a photo.
package func isWorkingName(_ name: [UInt8]) -> Bool {
    name.first == UInt8(ascii: ".") || name.last == UInt8(ascii: "~")
        || workingSuffixes.contains { hasSuffix(name, $0) }
}

/// The name that NAME~, NAME~~ and so on, NAME.~1~, NAME_original, NAME.bak, NAME.orig and NAME.t are backups of, or
/// nil.
package func backupOriginal(_ name: [UInt8]) -> [UInt8]? {
    if name.last == tilde {
        // ImageMagick appends another tilde where that backup exists.
        guard let end = name.lastIndex(where: { $0 != tilde }) else { return nil }
        return numberedBackupOriginal(name[...end]) ?? Array(name[...end])
    }
    for suffix in backupSuffixes where hasSuffix(name, suffix) && name.count > suffix.count {
        return Array(name.dropLast(suffix.count))
    }
    return nil
}

/// Whether a program names a backup of NAME so; see `backupOriginal` and `isVimBackup`.
package func isBackupName(_ backup: [UInt8], of name: [UInt8]) -> Bool {
    backupOriginal(backup) == name || isVimBackup(backup, of: name)
}

/// Whether Vim names a backup of NAME so where NAME~ exists: with another last letter, IMG_1.jpz~ for IMG_1.jpg, then
/// IMG_1.jpy~ and so on. NAME has an extension.
package func isVimBackup(_ backup: [UInt8], of name: [UInt8]) -> Bool {
    guard backup.count == name.count + 1, backup.last == tilde,
        name.dropFirst().dropLast().contains(UInt8(ascii: "."))
    else { return false }
    return (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(backup[name.count - 1])
        && backup.dropLast(2) == name.dropLast()
}

/// The beginnings of all backup names of NAME, longer than NAME itself.
package func backupBeginnings(_ name: [UInt8]) -> [[UInt8]] {
    ["~", "_original", "."].map { name + $0.utf8 }.filter { $0.count <= nameBytesMax }
}

/// NAME of NAME.~NUMBER~, as the GNU programs and Emacs number their backups.
///
/// - Parameter name: without the tildes at its end.
private func numberedBackupOriginal(_ name: ArraySlice<UInt8>) -> [UInt8]? {
    guard let mark = name.lastIndex(of: tilde), mark > 1, name[mark - 1] == UInt8(ascii: "."),
        name[(mark + 1)...].allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
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
private let tilde = UInt8(ascii: "~")
// The last is jhead's.
private let backupSuffixes: [[UInt8]] = ["_original", ".bak", ".orig", ".t"].map { Array($0.utf8) }
