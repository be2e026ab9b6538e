import CAdwaita
import Glibc

/// What anyone can see of a vault, and where it is mounted.
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
    mutating func apply(status: String, _ daemons: [MountDaemon]) {
        (directory, isReadOnly, isLost) = (nil, false, false)
        for line in status.split(separator: "\n") {
            if let place = jsonPath("mounted_at", of: line) {
                let isHere = daemons.contains { $0.vault == path && resolvedPath($0.directory) == place }
                if isHere { (directory, isReadOnly) = (place, jsonMember("read_only", of: line) == "true") }
            } else if jsonPath("vault", of: line) == path {
                isLost = true
            }
        }
    }
}

/// Vaults that the user asked to remember, a path a line: a file for this user alone, and the only one that the window
/// writes.
enum RememberedVaults {
    private static let directory = String(cString: g_get_user_config_dir()) + "/obscura-window"

    static func load() -> [String] {
        contents(ofFile: directory + "/vaults").split(separator: "\n").map(String.init)
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

// MARK: Sizes

/// "6.2 GiB": one decimal below 10 units.
func sizeText(_ bytes: UInt64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
    var (unit, whole, tenths) = (0, bytes, UInt64(0))
    while whole >= 1024, unit < units.count - 1 {
        (whole, tenths, unit) = (whole / 1024, whole % 1024 * 10 / 1024, unit + 1)
    }
    return whole < 10 && tenths > 0 ? "\(whole).\(tenths) \(units[unit])" : "\(whole) \(units[unit])"
}

/// "4 GiB", "4G", "4 gb", "500M": powers of 1024, in any digits. Nil for anything else, and below a megabyte.
func parseSize(_ text: String) -> UInt64? {
    let text = text.lowercased().filter { $0 != " " && $0 != "\u{A0}" }
    let digits = text.prefix { $0.isWholeNumber }
    let letters = text.dropFirst(digits.count)
    let units: [Substring: UInt64] = ["m": 1 << 20, "g": 1 << 30, "t": 1 << 40]
    // Bounded, so that the size of eight spaces can be computed.
    let number = digits.reduce(UInt64(0)) { min($0 * 10 + UInt64($1.wholeNumberValue ?? 0), 1 << 20) }
    guard let unit = units[letters.prefix(1)], ["", "b", "ib"].contains(letters.dropFirst()), number > 0
    else {
        return nil
    }
    return number * unit
}

/// A size for obscura(1).
func sizeWord(_ bytes: UInt64) -> String { "\(bytes >> 20)M" }

/// The photos of 4 MB that fit, with one or two digits that count: "about 1,000".
func photosText(_ bytes: UInt64) -> String {
    var (number, power) = (bytes / 4_000_000, UInt64(1))
    while number / power >= 100 { power *= 10 }
    number = number / power * power
    var groups: [String] = []
    while number >= 1000 {
        let last = "\(number % 1000)"
        groups.insert(String(repeating: "0", count: 3 - last.count) + last, at: 0)
        number /= 1000
    }
    return (["\(number)"] + groups).joined(separator: Language.current.digitSeparator)
}

/// What a disk has left for this user; nil if it does not say.
func freeBytes(_ path: String) -> UInt64? {
    var usage = statvfs()
    guard statvfs(path, &usage) == 0 else { return nil }
    return UInt64(usage.f_bavail) * UInt64(usage.f_frsize)
}
