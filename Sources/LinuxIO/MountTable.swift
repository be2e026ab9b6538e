/// A line of /proc/self/mountinfo, proc(5): one mount.
public struct MountEntry: Sendable, Equatable {
    /// `major:minor`, the same for every place where one filesystem is mounted, and no other's at the same time.
    public var device: String
    /// Where it is mounted, from this process's root.
    public var directory: String
    /// The type, with its subtype after a dot: `fuse.obscura`.
    public var type: String
    /// What mount(8) calls the source; may be empty.
    public var source: String

    /// Nil where the line is not of the documented form.
    init?(line: Substring) {
        // A source may be empty: then two spaces follow each other.
        let fields = line.split(separator: " ", omittingEmptySubsequences: false)
        // Six fields, any number of optional ones, a dash; then type, source and the filesystem's own options.
        guard let dash = fields.dropFirst(6).firstIndex(of: "-"), dash + 2 < fields.count else { return nil }
        device = String(fields[2])
        directory = Self.unescaped(fields[4])
        type = String(fields[dash + 1])
        source = Self.unescaped(fields[dash + 2])
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

/// Every mount this process sees, in the order they were made. Empty where /proc is not there.
public func mountTable() -> [MountEntry] {
    String(decoding: contents(ofFile: "/proc/self/mountinfo") ?? [], as: UTF8.self)
        .split(separator: "\n").compactMap { MountEntry(line: $0) }
}

/// What is on top at `directory`, a real path; nil where nothing is mounted there.
public func mountEntry(at directory: String) -> MountEntry? {
    mountTable().last { $0.directory == directory }
}
