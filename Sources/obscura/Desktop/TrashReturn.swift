import FileRequests
import Glibc
import LinuxIO
import PhotoImport
import PhotoLibrary

/// Moves files that were deleted in a mount, but put in clear into a trash outside it, into the vault's own trash.
///
/// Dolphin does so, because for it a mount point in the home directory has no trash of its own. The copy outside is
/// removed when the one inside is on disk; after any failure it stays.
struct TrashReturn {
    let user: DesktopUser
    /// Where the vault is, or was, mounted, as the user named it.
    let directory: String

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
            return OutsideTrash.all(of: user, except: realPath(directory))
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

    /// The message about that many remaining files.
    static func leftLine(_ count: Int) -> String {
        count == 1
            ? "1 deleted file is unencrypted in the desktop's trash: the vault is full, or has no record of it: "
                + "restore or delete it there"
            : "\(count) deleted files are unencrypted in the desktop's trash: the vault is full, or has no record of "
                + "them: restore or delete them there"
    }

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
        var moved: [TrashEntry] = []
        do throws(FileError) {
            let intake = try TrashIntake(library, for: user.caller)
            for one in deleted where !isStopped() && isOurs(one, intake) {
                if take(one, intake, isStopped) { moved.append(one.entry) } else { intake.giveUp() }
            }
            try intake.finish()
        } catch {
            return
        }
        for entries in Dictionary(grouping: moved, by: \.trash.directory).values {
            _ = user.acting { entries[0].trash.remove(entries.map(\.name)) }
        }
    }

    /// Moves one entry. Returns true if all of it is inside.
    private func take(_ deleted: Deleted, _ intake: TrashIntake, _ isStopped: () -> Bool) -> Bool {
        let file = deleted.entry.file
        let found = user.acting { () -> Result<stat, Errno> in
            do throws(Errno) { return .success(try file.status()) } catch { return .failure(error) }
        }
        guard case .success(let status) = found else {
            // The information names a path even if its file is missing, so it is removed.
            if case .failure(.noEntry) = found { return true }
            return false
        }
        do throws(FileError) {
            if status.isRegular, let source = open(file), try intake.holds(source, deletedFrom: deleted.path)
            {
                return true
            }
            guard try copy(file, status, to: intake.place(), intake, isStopped) else { return false }
            try intake.enter(file.name, deleted.entry.info, deletedFrom: deleted.path)
            return true
        } catch {
            return false
        }
    }

    /// Copies a tree. Returns false if it cannot be read, or is of a kind that a vault does not keep.
    private func copy(
        _ path: HostPath, _ status: stat, to directory: UInt64, _ intake: TrashIntake, _ isStopped: () -> Bool
    ) throws(FileError) -> Bool {
        guard !isStopped(), user.owns(status) else { return false }
        if status.isRegular {
            guard let source = open(path) else { return false }
            return try intake.addFile(
                ImportFile(name: path.name, details: source.details, source: source), to: directory,
                unless: isStopped)
        }
        if status.isSymbolicLink {
            guard let target = onHost({ () throws(Errno) in try path.linkTarget() }) else { return false }
            try intake.addSymbolicLink(path.name, target: target, to: directory)
            return true
        }
        guard status.isDirectory, let names = onHost({ () throws(Errno) in try path.list() }),
            let details = details(path)
        else { return false }
        let ino = try intake.addDirectory(path.name, mode: details.mode, to: directory)
        for name in names {
            let inner = path.appending(name)
            guard let status = onHost({ () throws(Errno) in try inner.status() }),
                try copy(inner, status, to: ino, intake, isStopped)
            else { return false }
        }
        try intake.finishDirectory(ino, details)
        return true
    }

    private func details(_ directory: HostPath) -> FileDetails? {
        onHost { () throws(Errno) in
            let descriptor = try directory.open(O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
            defer { close(descriptor) }
            var status = stat()
            guard fstat(descriptor, &status) == 0 else { throw .last }
            return FileDetails(status, attributes: userAttributes(of: descriptor))
        }
    }

    private func open(_ path: HostPath) -> SourceFile? {
        guard let source = onHost({ () throws(Errno) in try SourceFile(path) }), user.owns(source.status)
        else { return nil }
        return source
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
        var looks = Self.classificationsMax
        if holdsPhoto(of: deleted.entry.file, library, &looks) { return true }
        // Removing a photo from moments put it into the vault's own trash.
        guard let source = open(deleted.entry.file) else { return false }
        return (try? intake.holds(source, deletedFrom: deleted.path)) ?? false
    }

    private func isAlbum(_ path: [Name], of library: Library) -> Bool {
        ((try? library.importer.album(path, makes: false)) ?? nil) != nil
    }

    /// Whether a file, or one of the first in a directory, has the bytes of a photo of this space.
    private func holdsPhoto(of path: HostPath, _ library: Library, _ looks: inout Int) -> Bool {
        guard looks > 0, let status = onHost({ () throws(Errno) in try path.status() }) else { return false }
        if status.isDirectory {
            for name in onHost({ () throws(Errno) in try path.list() }) ?? [] {
                if holdsPhoto(of: path.appending(name), library, &looks) { return true }
            }
            return false
        }
        looks -= 1
        guard status.isRegular, status.st_size > 0, let source = open(path) else { return false }
        return ((try? library.photo(equalTo: source)) ?? nil) != nil
    }
}
