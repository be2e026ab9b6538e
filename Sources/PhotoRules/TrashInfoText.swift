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
        path = percentDecoded(lines[found].dropFirst(Self.key.count))
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
        changed[pathLine] = Self.key + percentEncoded(path)
        return Array(changed.joined(separator: [UInt8(ascii: "\n")]))
    }
}

/// `%2F` becomes a slash (RFC 3986); a percent sign without two digits stays one.
public func percentDecoded(_ text: some Sequence<UInt8>) -> [UInt8] {
    var rest = Array(text)[...]
    var decoded: [UInt8] = []
    decoded.reserveCapacity(rest.count)
    while let byte = rest.popFirst() {
        if byte == UInt8(ascii: "%"), let high = hexadecimal(rest.first),
            let low = hexadecimal(rest.dropFirst().first)
        {
            decoded.append(high << 4 | low)
            rest = rest.dropFirst(2)
        } else {
            decoded.append(byte)
        }
    }
    return decoded
}

private func hexadecimal(_ byte: UInt8?) -> UInt8? {
    switch byte {
    case let byte? where (0x30...0x39).contains(byte): byte - 0x30
    case let byte? where (0x41...0x46).contains(byte & 0xDF): (byte & 0xDF) - 0x37
    default: nil
    }
}

/// Percent-encodes as in a URI, but keeps slashes.
func percentEncoded(_ path: [UInt8]) -> [UInt8] {
    let digits = Array("0123456789ABCDEF".utf8)
    var encoded: [UInt8] = []
    for byte in path {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
            UInt8(ascii: "~"), UInt8(ascii: "/"):
            encoded.append(byte)
        default: encoded += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
    }
    return encoded
}

/// A `.trashinfo` file of the freedesktop trash specification.
///
/// - Parameters:
///   - path: from the root of the mount.
///   - deleted: seconds since 1970; shown as local time.
package func trashInfoText(path: [UInt8], deleted: Int64) -> [UInt8] {
    let time = civilTime(deleted)
    return Array("[Trash Info]\nPath=".utf8) + percentEncoded(path)
        + Array("\nDeletionDate=\(time)\n".utf8)
}

/// `YYYY-MM-DDThh:mm:ss` in the mount's time zone.
func civilTime(_ seconds: Int64, clockSeparator: String = ":") -> String {
    var seconds = time_t(seconds)
    var parts = tm()
    localtime_r(&seconds, &parts)
    func digits(_ number: Int32, _ count: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, count - text.count)) + text
    }
    let day = [digits(parts.tm_year + 1900, 4), digits(parts.tm_mon + 1, 2), digits(parts.tm_mday, 2)]
    let clock = [parts.tm_hour, parts.tm_min, parts.tm_sec].map { digits($0, 2) }
    return day.joined(separator: "-") + "T" + clock.joined(separator: clockSeparator)
}
