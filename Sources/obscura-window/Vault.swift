import CAdwaita
import Glibc
import LinuxIO

/// The public properties of a vault, and the directory of its mount.
struct Vault: Equatable {
    /// Absolute.
    var path: String
    /// 0: not known yet.
    var spaces = 0
    var bytesPerSpace: UInt64 = 0
    /// Where its photos are; nil: it is locked.
    var directory: String?
    var isReadOnly = false
    /// Its mount is gone from its directory, and something still holds it.
    var isLost = false

    init(_ path: String) { self.path = path }

    var name: String { shown(String(path.split(separator: "/").last ?? "/")) }
    var isOpen: Bool { directory != nil || isLost }
    /// Of a vault of one space it is the same size all the time.
    var grows: Bool { spaces == 1 }

    /// The answer of `obscura info --json`.
    mutating func apply(info line: String) {
        spaces = jsonMember("spaces", of: line[...]).flatMap { Int($0) } ?? 0
        bytesPerSpace = jsonMember("bytes_per_space", of: line[...]).flatMap { UInt64($0) } ?? 0
    }

    /// The answer of `obscura status --json`: a line for each mount.
    mutating func apply(status: String) {
        (directory, isReadOnly, isLost) = (nil, false, false)
        for line in status.split(separator: "\n") where jsonPath("vault", of: line) == path {
            if let place = jsonPath("mounted_at", of: line) {
                (directory, isReadOnly) = (place, jsonMember("read_only", of: line) == "true")
            } else {
                isLost = true
            }
        }
    }

    /// The vaults of the mounts in that answer.
    static func paths(inStatus status: String) -> [String] {
        status.split(separator: "\n").compactMap { jsonPath("vault", of: $0) }
    }
}

/// Vaults that the user asked to remember, a path a line: a file for this user alone, and the only one that the window
/// writes.
enum RememberedVaults {
    private static let directory = String(cString: g_get_user_config_dir()) + "/obscura-window"

    static func load() -> [String] {
        String(decoding: contents(ofFile: directory + "/vaults") ?? [], as: UTF8.self)
            .split(separator: "\n").map(String.init)
    }

    static func save(_ paths: [String]) {
        g_mkdir_with_parents(directory, 0o700)
        g_file_set_contents_full(
            directory + "/vaults", paths.map { $0 + "\n" }.joined(), -1, G_FILE_SET_CONTENTS_CONSISTENT,
            0o600, nil)
    }
}

/// A text of a disk for a label: control characters would break its line.
func shown(_ text: String) -> String {
    let scalars = text.unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : $0 }
    return String(String.UnicodeScalarView(scalars))
}

/// A path for a label, with `~` for the home directory.
func shownPath(_ path: String) -> String {
    let home = String(cString: g_get_home_dir())
    return shown(path.hasPrefix(home + "/") ? "~" + path.dropFirst(home.count) : path)
}

/// "4 GiB", "4G", "4 gb", "500M": powers of 1024, in any digits. Nil for anything else, and below a megabyte.
func parseSize(_ text: String) -> UInt64? {
    let text = text.lowercased().filter { $0 != " " && $0 != "\u{A0}" }
    let digits = text.prefix { $0.isWholeNumber }
    let letters = text.dropFirst(digits.count)
    let units: [Substring: UInt64] = ["m": 1 << 20, "g": 1 << 30, "t": 1 << 40]
    // Bounded, so that the size of eight spaces can be computed.
    let number = digits.reduce(UInt64(0)) { min($0 * 10 + UInt64($1.wholeNumberValue ?? 0), 1 << 20) }
    guard number > 0, ["", "b", "ib"].contains(letters.dropFirst()) else { return nil }
    return units[letters.prefix(1)].map { number * $0 }
}

/// A size for obscura(1).
func sizeWord(_ bytes: UInt64) -> String { "\(bytes >> 20)M" }

/// Bytes that this user can still write to the disk of a path; nil if the disk does not tell.
func freeBytes(_ path: String) -> UInt64? {
    var usage = statvfs()
    guard statvfs(path, &usage) == 0 else { return nil }
    return UInt64(usage.f_bavail) * UInt64(usage.f_frsize)
}
