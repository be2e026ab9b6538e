public import Glibc

/// A line of /proc/self/mountinfo, proc(5): one mount.
public struct MountEntry: Sendable, Equatable {
    /// IDs of this mount, and of the mount that it is mounted on.
    public var id: Int
    var parent: Int
    /// `major:minor`: the same wherever one filesystem is mounted, and different for every other at the same time.
    public var device: String
    /// The directory of the filesystem that is mounted: `/`, unless a part of it is bound.
    public var root: String
    /// The mount point, from this process's root.
    public var directory: String
    /// The type, with its subtype after a dot: `fuse.obscura`.
    public var type: String
    /// The source that mount(8) shows; may be empty.
    public var source: String
    /// The filesystem's own, separated by commas.
    var options: String
    /// The peer groups in which the mount shares what is mounted and unmounted below it, and from which it receives
    /// that; mount_namespaces(7).
    var sharedGroup: Int?
    var masterGroup: Int?

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
        root = Self.unescaped(fields[3])
        directory = Self.unescaped(fields[4])
        type = String(fields[dash + 1])
        source = Self.unescaped(fields[dash + 2])
        options = fields.count > dash + 3 ? String(fields[dash + 3]) : ""
        func group(_ name: String) -> Int? {
            fields[6..<dash].first { $0.hasPrefix(name) }.flatMap { Int($0.dropFirst(name.utf8.count)) }
        }
        (sharedGroup, masterGroup) = (group("shared:"), group("master:"))
    }

    /// Of a FUSE mount: the user who mounted it.
    public var mountingUser: UInt32? { numberOption("user_id") }

    /// Of a FUSE mount that only one user may enter, root not either: that user, and the group.
    public var onlyUser: (user: UInt32, group: UInt32)? {
        guard !options.split(separator: ",").contains("allow_other"), let user = mountingUser,
            let group = numberOption("group_id")
        else {
            return nil
        }
        return (user, group)
    }

    private func numberOption(_ name: String) -> UInt32? {
        options.split(separator: ",").first { $0.hasPrefix(name + "=") }
            .flatMap { UInt32($0.dropFirst(name.utf8.count + 1)) }
    }

    /// The `device` of a filesystem with this number in `st_dev` of stat(2). Files on btrfs have others.
    public static func device(_ number: dev_t) -> String {
        let major = number >> 8 & 0xFFF | number >> 32 & ~0xFFF
        let minor = number & 0xFF | number >> 12 & ~0xFF
        return "\(major):\(minor)"
    }

    /// Whether an open directory is on this mount; true if the kernel does not tell.
    public func holds(_ directory: OwnedDirectory) -> Bool { directory.mount.map { $0 == Int64(id) } ?? true }

    /// The kernel writes space, tab, newline, `#` and backslash as a backslash and three octal digits.
    private static func unescaped(_ field: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = pathBytes(String(field))[...]
        while let byte = rest.popFirst() {
            let digits = rest.prefix(3).map { $0 &- UInt8(ascii: "0") }
            if byte == UInt8(ascii: "\\"), digits.count == 3, digits[0] < 4, digits.allSatisfy({ $0 < 8 }) {
                bytes.append(digits[0] << 6 | digits[1] << 3 | digits[2])
                rest = rest.dropFirst(3)
            } else {
                bytes.append(byte)
            }
        }
        return pathText(bytes)
    }
}

/// Every mount that this process sees, in the order they were made. Empty if /proc is missing.
public func mountTable() -> [MountEntry] { mountTable(ofProcess: "self") }

/// Every mount that another process sees; empty if it has ended. Any user may read it.
public func mountTable(of process: pid_t) -> [MountEntry] { mountTable(ofProcess: "\(process)") }

/// The ID of the first mount that a process sees: processes of one mount namespace see the same mounts. Nil if it has
/// ended.
public func firstMountID(of process: pid_t) -> Int? {
    (contents(ofFile: "/proc/\(process)/mountinfo", bytesWanted: 16)?.prefix { $0 != UInt8(ascii: " ") })
        .flatMap { Int(String(decoding: $0, as: UTF8.self)) }
}

private func mountTable(ofProcess name: String) -> [MountEntry] {
    (contents(ofFile: "/proc/\(name)/mountinfo") ?? [])
        .split(separator: UInt8(ascii: "\n")).compactMap { MountEntry(line: pathText($0)[...]) }
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

extension MountEntry {
    /// Whether unmounting `original` also unmounts this mount of another place or namespace: the mounts on which they
    /// lie are then copies of each other that share such events.
    ///
    /// - Parameters:
    ///   - table: the mounts of the namespace of this mount.
    ///   - originals: those of the namespace of `original`.
    public func mayFollow(
        _ original: MountEntry, in table: [MountEntry], _ originals: [MountEntry]
    ) -> Bool {
        guard let below = table.first(where: { $0.id == parent }),
            let source = originals.first(where: { $0.id == original.parent }), below.id != source.id,
            let group = source.sharedGroup, below.device == source.device
        else { return false }
        // A master may itself receive from the group, in steps that no table shows.
        guard below.sharedGroup == group || below.masterGroup != nil else { return false }
        return path(within: below) == original.path(within: source)
    }

    /// The mount point as a path of the filesystem on which it lies.
    private func path(within below: MountEntry) -> String {
        let rest = directory.dropFirst(below.directory == "/" ? 0 : below.directory.utf8.count)
        return below.root == "/" ? String(rest) : below.root + rest
    }
}

/// Whether an automount waits at the directory, as systemd's does while it mounts there: statfs(2) and opendir(3) would
/// wait for the end of that.
package func isAutomountPoint(_ directory: String) -> Bool {
    mountEntry(at: realPath(directory))?.type == "autofs"
}
