import FileRequests
import Glibc
import HostFiles
import LinuxIO
import PhotoImport
import PhotoLibrary

/// A file that may be a photo, with the sidecars beside it.
struct SourceItem: Equatable {
    /// Index in `SourceList.directories`.
    var directory: Int
    var name: Name
    var byteCount: UInt64
    /// The date of the first one counts.
    var sidecars: [Name] = []
}

/// The files below the paths of a command line that may be photos, in the order of names.
///
/// Working files and directories are left out, symbolic links are not followed.
struct SourceList {
    private(set) var directories: [HostPath] = []
    private(set) var items: [SourceItem] = []
    /// Directories that an export wrote.
    private(set) var exports: [HostPath] = []
    private(set) var unreadable: [(path: HostPath, error: Errno)] = []
    /// Sidecars that belong to no file.
    private(set) var others: [HostPath] = []
    private(set) var byteCount: UInt64 = 0

    /// - Parameters:
    ///   - vault: a directory to skip.
    ///   - restores: whether directories that an export wrote are recognised.
    init(_ paths: [HostPath], vault: FileIdentity?, restores: Bool) {
        for path in paths {
            do throws(Errno) { try add(path, vault, restores) } catch { unreadable.append((path, error)) }
        }
    }

    func path(of item: SourceItem) -> HostPath { directories[item.directory].appending(item.name) }

    func path(of sidecar: Name, of item: SourceItem) -> HostPath {
        directories[item.directory].appending(sidecar)
    }

    /// Adds a path that the user named; symbolic links in it are followed.
    private mutating func add(_ path: HostPath, _ vault: FileIdentity?, _ restores: Bool) throws(Errno) {
        guard let real = unsafe path.withCString({ unsafe realpath($0, nil) }) else { throw .last }
        defer { unsafe free(real) }
        let path = unsafe HostPath(Name(real).bytes)
        let status = try path.status()
        if status.isDirectory {
            if restores, isExport(path) {
                exports.append(path)
                // Entries that the export did not write are imported as ordinary files.
                addDirectory(path, vault) { $0 == "moments" || $0 == "albums" }
                addDirectory(path.appending("moments"), vault) { ImportRules.isDay($0) }
            } else {
                addDirectory(path, vault)
            }
        } else if status.isRegular {
            directories.append(path.parent)
            let names = Set((try? path.parent.list()) ?? [])
            append(path.name, status.byteCount, sidecarsAmong: names)
        } else {
            throw Errno(EINVAL)
        }
    }

    /// - Parameter isLeftOut: whether an entry of the directory itself is left out.
    private mutating func addDirectory(
        _ path: HostPath, _ vault: FileIdentity?, unless isLeftOut: (Name) -> Bool = { _ in false }
    ) {
        let names: [Name]
        do throws(Errno) {
            if try path.status().identity == vault { return }
            names = try path.list().filter { !isLeftOut($0) }
        } catch {
            unreadable.append((path, error))
            return
        }
        directories.append(path)
        let index = directories.count - 1
        let all = Set(names)
        var claimed: Set<Name> = []
        var below: [Name] = []
        for name in names {
            guard let status = try? path.appending(name).status() else { continue }
            if status.isDirectory, !ImportRules.isWorkingDirectory(name) { below.append(name) }
            guard status.isRegular, !ImportRules.isWorkingFile(name), !ImportRules.isSidecar(name) else {
                continue
            }
            append(name, status.byteCount, sidecarsAmong: all, in: index)
            claimed.formUnion(items.last?.sidecars ?? [])
        }
        others +=
            names.filter {
                ImportRules.isSidecar($0) && !ImportRules.isWorkingFile($0) && !claimed.contains($0)
            }.map { path.appending($0) }
        for name in below { addDirectory(path.appending(name), vault) }
    }

    private mutating func append(
        _ name: Name, _ byteCount: UInt64, sidecarsAmong names: Set<Name>, in directory: Int? = nil
    ) {
        let sidecars = ImportRules.sidecars(of: name).filter { names.contains($0) }
        items.append(
            SourceItem(
                directory: directory ?? directories.count - 1, name: name, byteCount: byteCount,
                sidecars: sidecars))
        self.byteCount = sizeSum(self.byteCount, byteCount)
    }
}

/// Whether `obscura export` wrote a directory: it has `moments` with days in it, or with nothing and nothing else than
/// `albums`. Other programs and file systems may have added to it.
private func isExport(_ path: HostPath) -> Bool {
    guard let names = try? path.list(), names.contains("moments"),
        let days = try? path.appending("moments").list()
    else { return false }
    if days.contains(where: { ImportRules.isDay($0) }) { return true }
    return (names + days).allSatisfy { $0 == "moments" || $0 == "albums" || ImportRules.isWorkingFile($0) }
}
