import FileRequests
import Glibc
package import LinuxIO

/// Versions: the bytes that a photo had before it was edited. The directory `.versions/NAME` beside a photo has one
/// file for each, named by when it was replaced; the first is `original`.

/// How long versions are kept. The original is kept as long as its photo.
public enum VersionPolicy: Sendable, Equatable {
    /// No versions are made. Those that exist are kept for the usual time.
    case off
    case days(Int)
    case forever

    public static let standard = VersionPolicy.days(standardDays)
    private static let standardDays = 30

    /// After how many days a version is given up; nil: never.
    package var daysMax: Int? {
        switch self {
        case .off: Self.standardDays
        case .days(let days): days
        case .forever: nil
        }
    }
}

/// Seconds in which a photo gets at most one version: some programs save every second.
package let versionSeconds: Int64 = 60

/// Whether a photo that is edited gets another version: not within a minute of the last.
///
/// - Parameters:
///   - last: when the bytes of its newest version were replaced, in seconds since 1970; nil if it has none.
package func needsVersion(lastReplaced last: Int64?, now: Int64) -> Bool {
    // After a clock was set back, the newest version seems to be from the future.
    last.map { now < $0 || now - $0 >= versionSeconds } ?? true
}

package let versionsName = Array(".versions".utf8)
/// The name of the oldest version.
package let originalName = Array("original".utf8)

/// The name of a version whose bytes were replaced at that time: `YYYY-MM-DDThh-mm-ss` in the mount's time zone.
package func versionName(replaced: Int64) -> [UInt8] {
    Array(civilTime(replaced, clockSeparator: "-").utf8)
}

/// The name under which a version is shown: with the extension of the photo's name, by which viewers know it.
package func shownVersionName(_ name: [UInt8], of photo: [UInt8]) -> [UInt8] {
    if name == originalName { return name }
    let dot = photo.lastIndex(of: UInt8(ascii: ".")) ?? photo.count
    return dot == 0 ? name : Array((name + photo[dot...]).prefix(nameBytesMax))
}

/// The name of the directory of a file's versions: the inode number in hexadecimal digits.
package func versionsDirectoryName(of ino: UInt64) -> [UInt8] {
    let digits = String(ino, radix: 16)
    return Array((String(repeating: "0", count: 16 - digits.count) + digits).utf8)
}

/// The file whose versions are in a directory of that name; nil if it is no such name.
package func versionedFile(named name: [UInt8]) -> UInt64? {
    guard let ino = UInt64(String(decoding: name, as: UTF8.self), radix: 16) else { return nil }
    return versionsDirectoryName(of: ino) == name ? ino : nil
}

/// The name of a version in its directory, and when its bytes were replaced, from the name of an exported file. A name
/// that is no time is kept, and the version counts from the file's own time.
package func storedVersion(_ shown: [UInt8], modified: Timestamp) -> (name: [UInt8], replaced: Int64) {
    if shown == originalName { return (shown, modified.seconds) }
    let dot = shown.lastIndex(of: UInt8(ascii: ".")) ?? shown.count
    let name = Array(shown[..<(dot == 0 ? shown.count : dot)])
    let digits = name.prefix(19).split { !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    let numbers = digits.compactMap { Int32(String(decoding: $0, as: UTF8.self)) }
    guard numbers.count == 6 else { return (name, modified.seconds) }
    var parts = unsafe tm()
    unsafe (parts.tm_year, parts.tm_mon, parts.tm_mday) = (numbers[0] &- 1900, numbers[1] &- 1, numbers[2])
    unsafe (parts.tm_hour, parts.tm_min, parts.tm_sec) = (numbers[3], numbers[4], numbers[5])
    unsafe parts.tm_isdst = -1
    let replaced = unsafe Int64(mktime(&parts))
    return (name, replaced == -1 ? modified.seconds : replaced)
}
