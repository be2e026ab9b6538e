import FileRequests
import Glibc
import LinuxIO
import PhotoLibrary
import PhotoRules

/// A trash of the user outside the vault (freedesktop trash specification 1.0). All access must be with the user's
/// rights.
struct OutsideTrash {
    /// Contains `files` and `info`.
    let directory: HostPath
    /// The mount point of its filesystem, where relative paths begin; nil for the home trash, which has none.
    let top: HostPath?
    let user: DesktopUser

    /// The `.trashinfo` file of an entry.
    func infoFile(of name: Name) -> HostPath { infos.appending(Name(name.bytes + TrashInfoText.suffix)) }

    /// `directorysizes` may have a line for each directory.
    private static let textBytesMax = 1 << 20

    var files: HostPath { directory.appending("files") }
    private var infos: HostPath { directory.appending("info") }

    /// The home trash, and those on every local filesystem of this machine.
    ///
    /// - Parameter place: where the vault is, or was, mounted: a resolved path.
    static func all(
        of user: DesktopUser, except place: String, mounts: [MountEntry] = mountTable()
    ) -> [OutsideTrash] {
        var found: [OutsideTrash] = []
        if let data = user.dataDirectory {
            found.append(OutsideTrash(directory: HostPath(data + "/Trash"), top: nil, user: user))
        }
        for mount in mounts where mount.isLocal && !isInside(mount.directory, place) {
            let top = HostPath(mount.directory)
            // A trash for all users must conform to the specification: others may write there.
            let shared = top.appending(".Trash")
            if let status = try? shared.status(), status.isDirectory, status.st_mode & S_ISVTX != 0 {
                found.append(
                    OutsideTrash(directory: shared.appending("\(user.id)"), top: top, user: user))
            }
            found.append(
                OutsideTrash(directory: top.appending(".Trash-\(user.id)"), top: top, user: user))
        }
        return found.filter { $0.isThere }
    }

    private var isThere: Bool {
        // The home trash may be a link to another disk.
        guard top != nil else { return access(infos) }
        guard let status = try? directory.status() else { return false }
        return status.isDirectory && status.st_uid == user.id
    }

    private func access(_ path: HostPath) -> Bool { path.withCString { Glibc.access($0, R_OK | X_OK) } == 0 }

    /// Its entries.
    ///
    /// - Parameter changed: when they arrived, in seconds since 1970.
    func entries(changed: Range<Int>) -> [TrashEntry] {
        let names = (try? infos.list()) ?? []
        return names.compactMap { name in
            guard name.bytes.count > TrashInfoText.suffix.count,
                name.bytes.suffix(TrashInfoText.suffix.count) == TrashInfoText.suffix[...],
                let (bytes, status) = read(infos.appending(name)), changed.contains(status.st_ctim.tv_sec),
                let info = TrashInfoText(bytes), let path = absolute(info.path)
            else { return nil }
            return TrashEntry(
                trash: self, name: Name(Array(name.bytes.dropLast(TrashInfoText.suffix.count))), info: info,
                path: path)
        }
    }

    private func absolute(_ path: [UInt8]) -> [UInt8]? {
        if path.first == UInt8(ascii: "/") { return path }
        return top.map { $0.appending(Name(path)).bytes }
    }

    private func read(_ path: HostPath) -> (bytes: [UInt8], status: stat)? {
        guard let file = try? path.open(O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY) else { return nil }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.isRegular, user.owns(status),
            status.st_size <= Self.textBytesMax
        else { return nil }
        return (readAll(file, countMax: Self.textBytesMax), status)
    }

    /// Removes entries, and their lines in `directorysizes`.
    func remove(_ names: [Name]) {
        for name in names {
            // Without its information file, the rest would stay for ever.
            guard removeAll(files.appending(name)) else { continue }
            _ = infoFile(of: name).withCString { unlink($0) }
        }
        forgetSizes(of: Set(names))
    }

    /// `directorysizes` has a line for each deleted directory: size, time, name.
    private func forgetSizes(of names: Set<Name>) {
        let path = directory.appending("directorysizes")
        guard let (bytes, status) = read(path) else { return }
        let newline = UInt8(ascii: "\n")
        let lines = bytes.split(separator: newline)
        let kept = lines.filter { line in
            let name = line.split(separator: UInt8(ascii: " "), maxSplits: 2).last ?? []
            return !names.contains(Name(percentDecoded(name)))
        }
        guard kept.count < lines.count else { return }
        let text = kept.flatMap { Array($0) + [newline] }
        replace(path, with: text, mode: status.st_mode)
    }
}

/// An entry of a trash outside the vault.
struct TrashEntry {
    let trash: OutsideTrash
    /// In `files`.
    let name: Name
    let info: TrashInfoText
    /// Its path before it was deleted, from the root of the machine.
    let path: [UInt8]

    var file: HostPath { trash.files.appending(name) }
}

extension MountEntry {
    /// Whether this machine's kernel alone serves the filesystem, at once: no server, and no program.
    var isLocal: Bool {
        if !device.hasPrefix("0:") { return type != "fuse" && !type.hasPrefix("fuse.") }
        return ["btrfs", "bcachefs", "overlay", "tmpfs", "ubifs", "zfs"].contains(type)
    }
}
