package import HostFiles
import LinuxIO

/// The results of an import, or those that a dry run predicts.
package struct ImportReport {
    /// Nothing was changed.
    package internal(set) var isDry = false
    /// Number of photos that were added.
    package private(set) var added = 0
    /// The bytes of these photos.
    package private(set) var addedBytes: UInt64 = 0
    /// The days of these photos, `YYYY-MM-DD`.
    package private(set) var days: Set<String> = []
    /// Sources of photos without a date of their own.
    package internal(set) var undated: [HostPath] = []
    /// Photos that the space has already.
    package internal(set) var duplicates = 0
    /// Duplicates that the album did not contain yet.
    package internal(set) var joined = 0
    /// Sidecars that were added with their photos.
    package internal(set) var sidecars = 0
    /// Sidecars that were left out, because the photo has one of that name with other bytes.
    package internal(set) var differingSidecars: [HostPath] = []
    /// Files of an exported library that are not photos.
    package internal(set) var plainFiles = 0
    /// Names in albums of an exported library.
    package internal(set) var links = 0
    /// Sources that are no photos.
    package internal(set) var others: [HostPath] = []
    /// Sources that were removed once their bytes were safe.
    package internal(set) var removed = 0
    /// Of an export of Google Photos or iCloud Photos; else nil.
    package internal(set) var takeout: TakeoutReport?
    /// Sources that could not be imported.
    package private(set) var unreadable: [PathNote] = []
    /// Sources that were imported, and could not be removed.
    package private(set) var unremoved: [PathNote] = []

    mutating func add(day: String, _ byteCount: UInt64) {
        added += 1
        addedBytes = sizeSum(addedBytes, byteCount)
        days.insert(day)
    }

    mutating func addUnreadable(_ path: HostPath, _ why: String) {
        unreadable.append(PathNote(path: path, reason: why))
    }

    mutating func addUnremoved(_ path: HostPath, _ why: String) {
        unremoved.append(PathNote(path: path, reason: "imported, but not removed: \(why)"))
    }
}
