import Encodings
package import FileRequests
import Glibc
package import HostFiles
package import LinuxIO
import PhotoLibrary
package import PhotoRules

/// A trash of one user (freedesktop trash specification 1.0). All access must be with the user's rights.
///
/// Directories that are links, on another filesystem or another user's count as missing, and so do such entries.
package final class OutsideTrash {
    /// The deleted files.
    package let files: OwnedDirectory?
    /// A `.trashinfo` file for each of them.
    package let infos: OwnedDirectory?
    private let directory: OwnedDirectory
    /// The mount point of its filesystem, where relative paths begin; nil for the home trash, which has none.
    private let top: HostPath?

    /// `directorysizes` may have a line for each directory.
    private static let sizesBytesMax = 1 << 20

    /// - Parameters:
    ///   - directory: contains `files` and `info`.
    ///   - top: where relative paths begin; nil for the home trash.
    package init(_ directory: OwnedDirectory, top: HostPath?) {
        self.directory = directory
        self.top = top
        files = try? directory.directory("files")
        infos = try? directory.directory("info")
    }

    /// The home trash, and those at the top of the filesystems of the home directory and of the vault. No other disk is
    /// looked at.
    ///
    /// - Parameters:
    ///   - place: where the vault is, or was, mounted: a resolved path.
    ///   - vault: `st_dev` of the vault's directory; nil if it is not on this machine.
    static func all(
        of user: DesktopUser, except place: String, vault: dev_t?, mounts: [MountEntry] = mountTable()
    ) -> [OutsideTrash] {
        let places = DesktopPlaces(of: user)
        var found: [OutsideTrash] = []
        if let home = try? places.open(.data)?.directory("Trash") {
            found.append(OutsideTrash(home, top: nil))
        }
        let devices = Set([places.openHome()?.status.st_dev, vault].compactMap { $0 })
        for mount in mounts where mount.isLocal && !isInside(mount.directory, place) {
            guard devices.contains(where: { mount.mayHave($0) }), let top = open(mount, for: user),
                devices.contains(top.status.st_dev)
            else { continue }
            let path = HostPath(mount.directory)
            // A trash for all users must conform to the specification: others may write there.
            if let shared = try? top.directory(Array(".Trash".utf8), isOwned: false),
                shared.status.st_mode & S_ISVTX != 0, let own = try? shared.directory("\(user.id)")
            {
                found.append(OutsideTrash(own, top: path))
            }
            if let own = try? top.directory(".Trash-\(user.id)") {
                found.append(OutsideTrash(own, top: path))
            }
        }
        // One filesystem may be mounted at several places.
        var known: Set<FileIdentity> = []
        return found.filter { known.insert($0.directory.status.identity).inserted }
    }

    private static func open(_ mount: MountEntry, for user: DesktopUser) -> OwnedDirectory? {
        let path = pathBytes(mount.directory)
        guard let top = try? OwnedDirectory(path, of: user.id, isOwned: false) else { return nil }
        return mount.holds(top) ? top : nil
    }

    /// Its entries.
    ///
    /// - Parameter changed: when they arrived, in seconds since 1970.
    package func entries(changed: Range<Int>) -> [TrashEntry] {
        let names = (try? infos?.names()) ?? []
        return names.compactMap { name in
            let own = Array(name.dropLast(TrashInfoText.suffix.count))
            guard hasSuffix(name, TrashInfoText.suffix), isPlainName(own),
                let (bytes, status) = infos?.contents(name, countMax: Int(TrashInfoText.bytesMax)),
                changed.contains(status.st_ctim.tv_sec), let info = TrashInfoText(bytes),
                let path = absolute(info.path)
            else { return nil }
            return TrashEntry(trash: self, name: Name(own), info: info, infoStatus: status, path: path)
        }
    }

    private func absolute(_ path: [UInt8]) -> [UInt8]? {
        if path.first == UInt8(ascii: "/") { return path }
        return top.map { $0.appending(Name(path)).bytes }
    }

    // MARK: Removing

    /// Removes entries that were copied, and their lines in `directorysizes`. What came or changed since stays.
    func remove(_ entries: [(entry: TrashEntry, copied: CopiedFile?)]) {
        var gone: Set<[UInt8]> = []
        for (entry, copied) in entries {
            // Without its information file, the rest would stay for ever.
            if let copied, files.map({ copied.remove(from: $0) }) != true { continue }
            infos?.remove(entry.infoName, ifUnchangedSince: entry.infoStatus)
            gone.insert(entry.name.bytes)
        }
        forgetSizes(of: gone)
    }

    /// `directorysizes` has a line for each deleted directory: size, time, name.
    package func forgetSizes(of names: Set<[UInt8]>) {
        let sizes = Array("directorysizes".utf8)
        guard let (bytes, status) = directory.contents(sizes, countMax: Self.sizesBytesMax) else { return }
        let newline = UInt8(ascii: "\n")
        let lines = bytes.split(separator: newline)
        let kept = lines.filter { line in
            let name = line.split(separator: UInt8(ascii: " "), maxSplits: 2).last ?? []
            return !names.contains(percentDecodedLeniently(name))
        }
        guard kept.count < lines.count else { return }
        directory.replace(sizes, ifUnchangedSince: status, with: kept.flatMap { Array($0) + [newline] })
    }
}

/// An entry of a trash.
package struct TrashEntry {
    let trash: OutsideTrash
    /// In `files`.
    package let name: Name
    /// Where and when it was deleted.
    package let info: TrashInfoText
    /// Of the information file.
    let infoStatus: stat
    /// Its path before it was deleted, from the root of the machine.
    let path: [UInt8]

    var infoName: [UInt8] { name.bytes + TrashInfoText.suffix }
}

/// A file that was copied, or a directory with the files in it that were.
struct CopiedFile {
    let name: [UInt8]
    let status: stat
    var inner: [CopiedFile] = []

    /// Removes it, unless it is another file now or has changed. Returns true if it is gone.
    func remove(from directory: OwnedDirectory) -> Bool {
        guard status.isDirectory else { return directory.remove(name, ifUnchangedSince: status) }
        guard let own = try? directory.directory(name), own.status.identity == status.identity else {
            return false
        }
        let wasReadOnly = own.makeWritable()
        // All are tried, whatever stays of the others.
        let areGone = inner.map { $0.remove(from: own) }.allSatisfy { $0 }
        if areGone && directory.removeDirectory(name, ifSameAs: status) { return true }
        if wasReadOnly { own.restoreMode() }
        return false
    }
}

extension MountEntry {
    /// Whether this machine's kernel alone serves the filesystem, at once: no server, and no program.
    var isLocal: Bool {
        if !device.hasPrefix("0:") { return type != "fuse" && !type.hasPrefix("fuse.") }
        return ["btrfs", "bcachefs", "overlay", "tmpfs", "ubifs", "zfs"].contains(type)
    }

    /// Whether files of this mount may have that `st_dev`: subvolumes have numbers of their own.
    func mayHave(_ number: dev_t) -> Bool {
        device == MountEntry.device(number) || ["btrfs", "bcachefs", "overlay"].contains(type)
    }
}

/// `st_dev` of a path; nil if it is missing.
func deviceNumber(of path: String) -> dev_t? { (try? HostPath(realPath(path)).status())?.st_dev }
