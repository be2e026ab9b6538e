/// A line of /proc/self/mountinfo, proc(5): one mount.
public struct MountEntry: Sendable, Equatable {
    /// IDs of this mount, and of the mount that it is mounted on.
    var id: Int
    var parent: Int
    /// `major:minor`: the same wherever one filesystem is mounted, and different for every other at the same time.
    public var device: String
    /// The mount point, from this process's root.
    public var directory: String
    /// The type, with its subtype after a dot: `fuse.obscura`.
    public var type: String
    /// The source that mount(8) shows; may be empty.
    public var source: String
    /// The filesystem's own, separated by commas.
    var options: String

    /// Nil if the line does not have the documented form.
    init?(line: Substring) {
        // A source may be empty: then two spaces follow each other.
        let fields = line.split(separator: " ", omittingEmptySubsequences: false)
        // Six fields, any number of optional ones, a dash; then type, source and the filesystem's own options.
        guard let dash = fields.dropFirst(6).firstIndex(of: "-"), dash + 2 < fields.count,
            let id = Int(fields[0]), let parent = Int(fields[1])
        else { return nil }
        (self.id, self.parent) = (id, parent)
        device = String(fields[2])
        directory = Self.unescaped(fields[4])
        type = String(fields[dash + 1])
        source = Self.unescaped(fields[dash + 2])
        options = fields.count > dash + 3 ? String(fields[dash + 3]) : ""
    }

    /// Of a FUSE mount that only one user may enter, root not either: that user, and the group.
    public var onlyUser: (user: UInt32, group: UInt32)? {
        let words = options.split(separator: ",")
        func number(_ name: String) -> UInt32? {
            words.first { $0.hasPrefix(name + "=") }.flatMap { UInt32($0.dropFirst(name.utf8.count + 1)) }
        }
        guard !words.contains("allow_other"), let user = number("user_id"), let group = number("group_id")
        else {
            return nil
        }
        return (user, group)
    }

    /// The kernel writes space, tab, newline, `#` and backslash as a backslash and three octal digits.
    private static func unescaped(_ field: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = Array(field.utf8)[...]
        while let byte = rest.popFirst() {
            let digits = rest.prefix(3).map { $0 &- UInt8(ascii: "0") }
            if byte == UInt8(ascii: "\\"), digits.count == 3, digits[0] < 4, digits.allSatisfy({ $0 < 8 }) {
                bytes.append(digits[0] << 6 | digits[1] << 3 | digits[2])
                rest = rest.dropFirst(3)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// Every mount that this process sees, in the order they were made. Empty if /proc is missing.
public func mountTable() -> [MountEntry] {
    String(decoding: contents(ofFile: "/proc/self/mountinfo") ?? [], as: UTF8.self)
        .split(separator: "\n").compactMap { MountEntry(line: $0) }
}

/// The topmost mount at `directory`, a resolved path; nil if nothing is mounted there.
public func mountEntry(at directory: String) -> MountEntry? {
    let table = mountTable()
    return table.last { $0.directory == directory && isReached($0, in: table) }
}

/// Whether the path of a mount leads to it, and not into another mount that covers a directory above it.
func isReached(_ entry: MountEntry, in table: [MountEntry]) -> Bool {
    var entry = entry
    // Each step leads to the parent mount. A table that changed while it was read may have cycles.
    for _ in 0..<table.count {
        let isCovered = table.contains { other in
            other.parent == entry.parent && other.id != entry.id
                && entry.directory.hasPrefix(other.directory == "/" ? "/" : other.directory + "/")
                && entry.directory != other.directory
        }
        if isCovered { return false }
        guard let below = table.first(where: { $0.id == entry.parent }), below.id != entry.id else {
            return true
        }
        entry = below
    }
    return true
}
