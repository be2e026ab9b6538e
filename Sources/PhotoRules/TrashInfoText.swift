import Encodings
import FileRequests
import Glibc

/// The bytes of a `.trashinfo` file (freedesktop trash specification 1.0).
public struct TrashInfoText: Sendable, Equatable {
    private var lines: [[UInt8]]
    /// Index of the line with the path.
    private let pathLine: Int
    /// The value of `Path=`, percent-decoded. From the root of the machine, or of the trash's filesystem.
    public let path: [UInt8]

    public static let suffix = Array(".trashinfo".utf8)
    /// Longer files hold more than a path and a date.
    public static let bytesMax: UInt64 = 65_536
    private static let group = Array("[Trash Info]".utf8)
    private static let key = Array("Path=".utf8)
    private static let dateKey = Array("DeletionDate=".utf8)

    /// Nil if the text names no path.
    public init?(_ bytes: [UInt8]) {
        lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { Array($0) }
        guard lines.contains(Self.group), let found = lines.firstIndex(where: { $0.starts(with: Self.key) })
        else { return nil }
        pathLine = found
        path = percentDecodedLeniently(lines[found].dropFirst(Self.key.count))
        guard !path.isEmpty, !path.contains(0) else { return nil }
    }

    /// `YYYY-MM-DDThh:mm:ss`, local time; empty if the file has no date.
    public var date: String {
        let line = lines.first { $0.starts(with: Self.dateKey) } ?? []
        return String(decoding: line.dropFirst(Self.dateKey.count), as: UTF8.self)
    }

    /// The same file with another path; every other line stays.
    public func bytes(path: [UInt8]) -> [UInt8] {
        var changed = lines
        changed[pathLine] = Self.key + percentEncoded(path, unescaped: unreservedMarks + [UInt8(ascii: "/")])
        return Array(changed.joined(separator: [UInt8(ascii: "\n")]))
    }
}

/// A `.trashinfo` file of the freedesktop trash specification.
///
/// - Parameters:
///   - path: from the root of the mount.
///   - deleted: seconds since 1970; shown as local time.
package func trashInfoText(path: [UInt8], deleted: Int64) -> [UInt8] {
    let time = civilTime(deleted)
    return Array("[Trash Info]\nPath=".utf8)
        + percentEncoded(path, unescaped: unreservedMarks + [UInt8(ascii: "/")])
        + Array("\nDeletionDate=\(time)\n".utf8)
}

/// `YYYY-MM-DDThh:mm:ss` in the mount's time zone.
func civilTime(_ seconds: Int64, clockSeparator: String = ":") -> String {
    var seconds = time_t(seconds)
    var parts = unsafe tm()
    unsafe localtime_r(&seconds, &parts)
    func digits(_ number: Int32, _ count: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, count - text.count)) + text
    }
    let day = unsafe [digits(parts.tm_year + 1900, 4), digits(parts.tm_mon + 1, 2), digits(parts.tm_mday, 2)]
    let clock = unsafe [parts.tm_hour, parts.tm_min, parts.tm_sec].map { digits($0, 2) }
    return day.joined(separator: "-") + "T" + clock.joined(separator: clockSeparator)
}
