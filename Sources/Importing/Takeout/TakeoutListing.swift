import FileRequests
import Glibc
import HostFiles
import LinuxIO
import PhotoImport
import PhotoLibrary
import TakeoutRules

/// A file of an export.
struct TakeoutFile {
    enum Place {
        case directory(HostPath)
        /// Indices of the archive in the listing, and of the entry in it.
        case archive(Int, Int)
    }

    var name: Name
    var place: Place
    var byteCount: UInt64
    /// The number of the export, or part of one, that the file is from. Metadata of the same part come first.
    var part: Int
}

/// All files of an export, by folder: a folder whose parts lie in several archives or directories is one.
struct TakeoutListing {
    struct Folder {
        /// The names from the top of the export to the folder.
        var path: [[UInt8]]
        var files: [TakeoutFile] = []

        var name: String { path.last.map { String(decoding: $0, as: UTF8.self) } ?? "" }
    }

    /// Whether the user has called the import off.
    let isCancelled: () -> Bool
    private(set) var folders: [Folder] = []
    private(set) var archives: [ArchiveClient] = []
    private(set) var unreadable: [PathNote] = []
    /// Folders that are left out.
    private(set) var hidden: [PathNote] = []
    private var hiddenPaths: Set<HostPath> = []
    private(set) var byteCount: UInt64 = 0
    private var known: [[[UInt8]]: Int] = [:]
    /// The numbers of the parts of the export.
    private var parts: [Part: Int] = [:]
    private var namedCount = 0

    /// A folder `Takeout`, by the archive or named directory that it is in and the folders above it.
    private struct Part: Hashable {
        var named: Int
        var above: [[UInt8]]
    }
    private var entered: Set<FileIdentity> = []

    /// - Parameter vault: a directory to skip.
    init(_ paths: [HostPath], vault: FileIdentity?, unless isCancelled: @escaping () -> Bool) {
        self.isCancelled = isCancelled
        if let vault { entered.insert(vault) }
        for path in paths where !isCancelled() {
            do throws(Errno) {
                let status = try path.status()
                if status.isDirectory {
                    addDirectory(path, below: [path.name.bytes], part: newPart())
                } else if status.isRegular, Self.isArchive(path) {
                    addArchive(path)
                } else {
                    note(
                        path, Self.isCompressedTar(path) ? Self.tarReason : "neither a folder nor a zip file")
                }
            } catch {
                note(path, "\(error)")
            }
        }
        folders.sort { $0.path.lexicographicallyPrecedes($1.path) { $0.lexicographicallyPrecedes($1) } }
    }

    /// The path shown for a file: in an archive, that of the archive and the one in it.
    func path(of file: TakeoutFile) -> HostPath {
        switch file.place {
        case .directory(let path): path.appending(file.name)
        case .archive(let archive, let entry):
            archives[archive].path.appending(Name(archives[archive].entries[entry].name))
        }
    }

    /// The path of a folder as the export has it.
    func shown(_ folder: Folder) -> [UInt8] { Array(folder.path.joined(separator: Array("/".utf8))) }

    /// Opens a file. The error is for the user.
    func open(_ file: TakeoutFile) throws(ArchiveError) -> TakeoutSource {
        switch file.place {
        case .directory(let path):
            do throws(Errno) { return try TakeoutSource(path.appending(file.name)) } catch {
                throw ArchiveError("\(error)")
            }
        case .archive(let archive, let entry):
            let found = archives[archive].entries[entry]
            guard found.status == .ok else { throw ArchiveError(found.status) }
            guard found.byteCount <= Library.fileBytesMax else { throw ArchiveError("\(Errno(EFBIG))") }
            return TakeoutSource(archives[archive], entry)
        }
    }

    /// Notes a directory whose name says that it is a program's own.
    private mutating func leaveOut(_ path: HostPath) {
        guard hiddenPaths.insert(path).inserted else { return }
        hidden.append(PathNote(path: path, reason: "a hidden folder, left out: rename it to import it"))
    }

    private mutating func note(_ path: HostPath, _ reason: String) {
        unreadable.append(PathNote(path: path, reason: reason))
    }

    // MARK: Directories

    private mutating func newPart() -> Int {
        namedCount += 1
        return namedCount
    }

    private mutating func part(below above: ArraySlice<[UInt8]>, of named: Int) -> Int {
        let part = Part(named: named, above: Array(above))
        if parts[part] == nil { parts[part] = parts.count }
        return parts[part] ?? 0
    }

    private mutating func addDirectory(_ path: HostPath, below: [[UInt8]], part: Int) {
        let names: [Name]
        do throws(Errno) {
            guard entered.insert(try path.status().identity).inserted else { return }
            names = try path.list()
        } catch {
            return note(path, "\(error)")
        }
        for name in names where !isCancelled() {
            let file = path.appending(name)
            guard let status = try? file.status() else { continue }
            if status.isDirectory, ImportRules.isWorkingDirectory(name) {
                leaveOut(file)
            } else if status.isDirectory {
                addDirectory(file, below: below + [name.bytes], part: part)
            } else if status.isRegular, Self.isArchive(file) {
                addArchive(file)
            } else if status.isRegular, Self.isCompressedTar(file) {
                note(file, Self.tarReason)
            } else if status.isRegular {
                add(
                    TakeoutFile(
                        name: name, place: .directory(path), byteCount: status.byteCount, part: part), below)
            }
        }
    }

    // MARK: Archives

    private static let tarReason = "a compressed tar archive: unpack it, then import the folder"

    private static func isArchive(_ path: HostPath) -> Bool { hasSuffix(path, ".zip") }

    private static func isCompressedTar(_ path: HostPath) -> Bool {
        hasSuffix(path, ".tgz") || hasSuffix(path, ".tar.gz")
    }

    private static func hasSuffix(_ path: HostPath, _ suffix: String) -> Bool {
        String(decoding: path.bytes, as: UTF8.self).lowercased().hasSuffix(suffix)
    }

    private mutating func addArchive(_ path: HostPath) {
        do throws(ArchiveError) {
            let archive = try ArchiveClient(path)
            archives.append(archive)
            let part = newPart()
            for (index, entry) in archive.entries.enumerated() where !entry.isDirectory {
                guard let components = entry.path, let last = components.last else {
                    note(path.appending(Name(entry.name)), "its name leads out of the archive: left out")
                    continue
                }
                if let index = components.dropLast().firstIndex(where: {
                    ImportRules.isWorkingDirectory(Name($0))
                }) {
                    let name = Array(components[...index].joined(separator: Array("/".utf8)))
                    leaveOut(path.appending(Name(name)))
                    continue
                }
                guard last.count <= 255 else { continue }
                add(
                    TakeoutFile(
                        name: Name(last), place: .archive(archives.count - 1, index),
                        byteCount: entry.byteCount, part: part),
                    Array(components.dropLast()))
            }
        } catch {
            note(path, error.reason)
        }
    }

    // MARK: Folders

    private mutating func add(_ file: TakeoutFile, _ directory: [[UInt8]]) {
        guard !ImportRules.isWorkingFile(file.name) else { return }
        // The parts of an export each begin at a folder of this name.
        let top = directory.lastIndex(of: Array("Takeout".utf8)).map { $0 + 1 } ?? 0
        let path = Array(directory[top...])
        var file = file
        file.part = part(below: directory[..<top], of: file.part)
        if known[path] == nil {
            known[path] = folders.count
            folders.append(Folder(path: path))
        }
        folders[known[path] ?? 0].files.append(file)
        byteCount = sizeSum(byteCount, file.byteCount)
    }
}
