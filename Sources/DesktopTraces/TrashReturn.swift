import FileRequests
import Glibc
import HostFiles
import LinuxIO
import PhotoImport
import PhotoLibrary

/// Number of files that were deleted in a mount and remain, in clear, in trashes outside it.
///
/// - Parameters:
///   - directory: where the vault is, or was, mounted, as the user named it.
///   - vault: the path of the vault.
package func filesLeftOutside(by user: DesktopUser, directory: String, vault: String) -> Int {
    TrashReturn(user: user, directory: directory, vault: deviceNumber(of: vault)).count()
}

/// Moves files that were deleted in a mount, but put in clear into a trash outside it, into the vault's own trash.
///
/// Dolphin does so, because for it a mount point in the home directory has no trash of its own. The copy outside is
/// removed when the one inside is on disk; after any failure it stays.
struct TrashReturn {
    let user: DesktopUser
    /// Where the vault is, or was, mounted, as the user named it.
    let directory: String
    /// `st_dev` of the vault; nil if it is not on this machine.
    let vault: dev_t?

    /// Deeper trees stay outside: each level is an open file.
    private static let depthMax = 100
    /// Maximum number of files of an entry that are compared with photos of the space.
    private static let classificationsMax = 16

    /// An entry that was deleted below the mount.
    private struct Deleted {
        var entry: TrashEntry
        /// Relative to the root of the mount.
        var path: [UInt8]
    }

    private func deleted(changed: Range<Int>) -> [Deleted] {
        guard let data = user.dataDirectory else { return [] }
        let found = user.acting { () -> [Deleted] in
            var below = PathsBelow(directory, near: data)
            return OutsideTrash.all(of: user, except: realPath(directory), vault: vault)
                .flatMap { $0.entries(changed: changed) }
                .compactMap { entry in
                    guard let path = below.remainder(of: entry.path), !path.isEmpty else { return nil }
                    return Deleted(entry: entry, path: path)
                }
        }
        return found ?? []
    }

    /// Number of entries outside that were deleted below the mount.
    func count() -> Int { deleted(changed: Int.min..<Int.max).count }

    /// Moves the files that were deleted in this session.
    ///
    /// - Parameter since: start of the session, in seconds since 1970.
    func returnNew(to library: Library, since: Int, unless isStopped: () -> Bool) {
        move(deleted(changed: since..<Int.max), to: library, unless: isStopped) { _, _ in true }
    }

    /// Moves files that an earlier session left, because it was killed or there was no room. That session may have been
    /// of another space, or the directory an ordinary one: only files that this space knows are taken.
    ///
    /// - Parameter before: start of this session, in seconds since 1970.
    func returnOld(to library: Library, before: Int, unless isStopped: () -> Bool) {
        move(deleted(changed: Int.min..<before), to: library, unless: isStopped) {
            isKnown($0, $1, to: library)
        }
    }

    private func move(
        _ deleted: [Deleted], to library: Library, unless isStopped: () -> Bool,
        where isOurs: (Deleted, TrashIntake) -> Bool
    ) {
        guard !deleted.isEmpty, !library.isReadOnly else { return }
        var moved: [(entry: TrashEntry, copied: CopiedFile?)] = []
        do throws(FileError) {
            let intake = try TrashIntake(library, for: user.caller)
            for one in deleted where !isStopped() && isOurs(one, intake) {
                switch take(one, intake, isStopped) {
                case .missing: moved.append((one.entry, nil))
                case .inside(let copied): moved.append((one.entry, copied))
                case .refused: intake.giveUp()
                }
            }
            try intake.finish()
        } catch {
            return
        }
        for entries in Dictionary(grouping: moved, by: { ObjectIdentifier($0.entry.trash) }).values {
            _ = user.acting { entries[0].entry.trash.remove(entries) }
        }
    }

    private enum Outcome {
        /// All of it is inside.
        case inside(CopiedFile)
        /// The information names a path even if its file is missing, so it is removed.
        case missing
        case refused
    }

    /// Moves one entry.
    private func take(_ deleted: Deleted, _ intake: TrashIntake, _ isStopped: () -> Bool) -> Outcome {
        let name = deleted.entry.name
        guard let files = deleted.entry.trash.files else { return .refused }
        let found = user.acting { () -> Result<stat, Errno> in
            do throws(Errno) { return .success(try files.status(name.bytes)) } catch {
                return .failure(error)
            }
        }
        guard case .success(let status) = found else {
            if case .failure(.noEntry) = found { return .missing }
            return .refused
        }
        do throws(FileError) {
            if status.isRegular, let source = open(name, in: files),
                try intake.holds(source, deletedFrom: deleted.path)
            {
                return .inside(CopiedFile(name: name.bytes, status: source.status))
            }
            let copied = try copy(name, status, from: files, to: intake.place(), intake, isStopped)
            guard let copied else { return .refused }
            try intake.enter(name, deleted.entry.info, deletedFrom: deleted.path)
            return .inside(copied)
        } catch {
            return .refused
        }
    }

    /// Copies a tree. Returns nil if it cannot be read, is too deep, or of a kind that a vault does not keep.
    private func copy(
        _ name: Name, _ status: stat, from directory: OwnedDirectory, to place: UInt64, _ intake: TrashIntake,
        _ isStopped: () -> Bool, depth: Int = 0
    ) throws(FileError) -> CopiedFile? {
        guard !isStopped(), status.st_uid == user.id else { return nil }
        if status.isRegular {
            guard let source = open(name, in: directory) else { return nil }
            let file = ImportFile(name: name, details: source.details, source: source)
            let isAdded = try intake.addFile(file, to: place, unless: isStopped)
            return isAdded ? CopiedFile(name: name.bytes, status: source.status) : nil
        }
        if status.isSymbolicLink {
            let target = onHost { () throws(Errno) in try directory.linkTarget(name.bytes) }
            guard let target else { return nil }
            try intake.addSymbolicLink(name, target: target, to: place)
            return CopiedFile(name: name.bytes, status: status)
        }
        guard status.isDirectory, depth < Self.depthMax,
            let own = onHost({ () throws(Errno) in try directory.directory(name.bytes) }),
            let names = onHost({ () throws(Errno) in try own.names() }), let details = details(own)
        else { return nil }
        let ino = try intake.addDirectory(name, mode: details.mode, to: place)
        var copied = CopiedFile(name: name.bytes, status: own.status)
        for name in names {
            guard let status = onHost({ () throws(Errno) in try own.status(name) }),
                let inner = try copy(
                    Name(name), status, from: own, to: ino, intake, isStopped, depth: depth + 1)
            else { return nil }
            copied.inner.append(inner)
        }
        try intake.finishDirectory(ino, details)
        return copied
    }

    private func details(_ directory: OwnedDirectory) -> FileDetails? {
        onHost { () throws(Errno) in
            let descriptor = try directory.readable()
            defer { close(descriptor) }
            return FileDetails(directory.status, attributes: userAttributes(of: descriptor))
        }
    }

    private func open(_ name: Name, in directory: OwnedDirectory) -> SourceFile? {
        onHost { () throws(Errno) in try SourceFile(directory.file(name.bytes), name: name) }
    }

    /// Nil on failure.
    private func onHost<R>(_ body: () throws(Errno) -> R) -> R? {
        user.acting { try? body() }.flatMap { $0 }
    }

    // MARK: Entries of an earlier session

    private func isKnown(_ deleted: Deleted, _ intake: TrashIntake, to library: Library) -> Bool {
        let names = deleted.path.split(separator: UInt8(ascii: "/")).map { Name(Array($0)) }
        // A folder that this space has, other than those that every space has.
        if names.count > 2, names[0] == "albums", isAlbum(names[1..<names.count - 1].map { $0 }, of: library)
        {
            return true
        }
        guard let files = deleted.entry.trash.files else { return false }
        let name = deleted.entry.name
        var looks = Self.classificationsMax
        if holdsPhoto(name, in: files, library, &looks) { return true }
        // Removing a photo from moments put it into the vault's own trash.
        guard let source = open(name, in: files) else { return false }
        return (try? intake.holds(source, deletedFrom: deleted.path)) ?? false
    }

    private func isAlbum(_ path: [Name], of library: Library) -> Bool {
        ((try? library.importer.album(path, makes: false)) ?? nil) != nil
    }

    /// Whether a file, or one of the first in a directory, has the bytes of a photo of this space.
    private func holdsPhoto(
        _ name: Name, in directory: OwnedDirectory, _ library: Library, _ looks: inout Int, depth: Int = 0
    ) -> Bool {
        guard looks > 0, let status = onHost({ () throws(Errno) in try directory.status(name.bytes) }) else {
            return false
        }
        if status.isDirectory {
            guard depth < Self.depthMax,
                let own = onHost({ () throws(Errno) in try directory.directory(name.bytes) })
            else { return false }
            for name in onHost({ () throws(Errno) in try own.names() }) ?? [] {
                if holdsPhoto(Name(name), in: own, library, &looks, depth: depth + 1) { return true }
            }
            return false
        }
        looks -= 1
        guard status.isRegular, status.st_size > 0, let source = open(name, in: directory) else {
            return false
        }
        return ((try? library.search.photo(equalTo: source)) ?? nil) != nil
    }
}
