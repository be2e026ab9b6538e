import CatalogueRows
public import FileRequests
import Glibc
import KernelNames
import LinuxIO
public import PhotoImaging
public import PhotoLibrary
public import PhotoRules
import VaultCatalogue

/// Copies files and directories that a program put into a trash outside the vault into the trash of a space.
///
/// Each entry is assembled in `.Trash-UID/arriving` and moved to its name in `files` once it is complete. After a crash
/// it remains in `arriving`, which the next `TrashIntake` empties. Used by one thread at a time.
public final class TrashIntake {
    private let library: Library
    private let caller: Caller
    private var places: Places?
    /// Names in `files`, by the deleted file's former path from the root of the mount.
    private var names: [[UInt8]: [Name]] = [:]

    /// Directories of the trash.
    private struct Places {
        var top: UInt64
        var files: UInt64
        var infos: UInt64
        var arriving: UInt64
    }

    private static let topPrefix = ".Trash-"
    private static let filesName: Name = "files"
    private static let infosName: Name = "info"
    private static let arrivingName: Name = "arriving"

    /// Changes nothing yet.
    ///
    /// - Parameter caller: the owner of the trash.
    public init(_ library: Library, for caller: Caller) throws(FileError) {
        (self.library, self.caller) = (library, caller)
        if let infos = try find([topName, Self.infosName]) { try readInfos(infos) }
    }

    private var topName: Name { Name(Self.topPrefix + String(caller.uid)) }

    /// The inode with this path from the root of the mount; nil if it is missing.
    private func find(_ path: [Name]) throws(FileError) -> UInt64? {
        var found = WellKnownInode.root
        for name in path {
            do throws(FileError) {
                found = try library.lookup(found, name, caller).attributes.ino
            } catch .noEntry {
                return nil
            }
        }
        return found
    }

    /// The directories of the trash, made if missing; `arriving` is emptied.
    private func prepared() throws(FileError) -> Places {
        if let places { return places }
        let top = try directory(topName, in: WellKnownInode.root)
        let made = Places(
            top: top, files: try directory(Self.filesName, in: top),
            infos: try directory(Self.infosName, in: top),
            arriving: try directory(Self.arrivingName, in: top))
        try empty(made.arriving)
        places = made
        return made
    }

    private func directory(_ name: Name, in parent: UInt64) throws(FileError) -> UInt64 {
        do throws(FileError) {
            return try library.makeDirectory(parent, name, mode: 0o700, caller).attributes.ino
        } catch .exists {
            let found = try library.lookup(parent, name, caller).attributes
            guard found.isDirectory else { throw .notDirectory }
            return found.ino
        }
    }

    private func readInfos(_ infos: UInt64) throws(FileError) {
        for entry in try library.walk.entries(of: infos)
        where hasSuffix(entry.name.bytes, TrashInfoText.suffix) {
            guard let info = try library.walk.trashInfo(entry.ino) else { continue }
            names[info.path, default: []].append(Name(entry.name.bytes.dropLast(TrashInfoText.suffix.count)))
        }
    }

    // MARK: Present entries

    /// Whether the trash holds a file with these bytes that was deleted from the same path.
    public func holds(_ source: some ByteSource, deletedFrom path: [UInt8]) throws(FileError) -> Bool {
        for name in names[path] ?? [] {
            guard let ino = try find([topName, Self.filesName, name]) else { continue }
            let found = try library.attributes(ino).0
            guard found.isRegular, found.size == source.byteCount else { continue }
            if try library.search.holds(ino, source) { return true }
        }
        return false
    }

    // MARK: Assembling entries

    /// The directory in which to assemble the next entry.
    public func place() throws(FileError) -> UInt64 { try prepared().arriving }

    /// Adds a file, as a copy of the photo of this space that has its bytes, if there is one. Returns false if the file
    /// cannot be read or changed meanwhile, or `isStopped` returned true.
    public func addFile(
        _ file: ImportFile<some ImportSource>, to directory: UInt64, unless isStopped: () -> Bool
    ) throws(FileError) -> Bool {
        if let photo = try library.search.photo(equalTo: file.source) {
            do throws(FileError) {
                _ = try library.importer.addCopy(of: photo, named: file.name, file.details, to: directory)
                return true
            } catch .noEntry {
                // The photo has just been removed, or is being changed.
            }
        }
        return try library.importer.add(plain: file, to: directory) { _ in !isStopped() } != nil
    }

    public func addDirectory(_ name: Name, mode: UInt32, to directory: UInt64) throws(FileError) -> UInt64 {
        try library.makeDirectory(directory, name, mode: mode, caller).attributes.ino
    }

    public func addSymbolicLink(_ name: Name, target: [UInt8], to directory: UInt64) throws(FileError) {
        _ = try library.makeSymbolicLink(directory, name, target: target, caller)
    }

    /// Sets a directory's metadata, once all of its entries are added.
    public func finishDirectory(_ ino: UInt64, _ details: FileDetails) throws(FileError) {
        for attribute in details.attributes {
            try library.setExtendedAttribute(
                ino, name: attribute.name, value: attribute.value, policy: .any, caller)
        }
        _ = try library.setAttributes(
            ino, AttributeChanges(accessed: .set(details.accessed), modified: .set(details.modified)), caller)
    }

    /// Moves the assembled entry with that name into the trash, numbered if the name is taken.
    public func enter(_ name: Name, _ info: TrashInfoText, deletedFrom path: [UInt8]) throws(FileError) {
        let places = try prepared()
        let free = try firstFreeName(name.bytes, bytesMax: nameBytesMax - TrashInfoText.suffix.count) {
            candidate throws(FileError) in
            guard try isFree(Name(candidate), in: places.files) else { return false }
            return try isFree(Name(candidate + TrashInfoText.suffix), in: places.infos)
        }
        let now = Timestamp.now()
        let text = ImportFile(
            name: Name(free + TrashInfoText.suffix),
            details: FileDetails(mode: 0o600, owner: caller, accessed: now, modified: now),
            source: TextSource(MemoryByteSource(info.bytes(path: path))))
        // Before the file, as in the specification: without it no program would find the file.
        guard try library.importer.add(plain: text, to: places.infos) != nil else { throw .damaged }
        do throws(FileError) {
            try library.rename(places.arriving, name, places.files, Name(free), .noReplace, caller)
        } catch {
            // Without its file an info file is only listed; the error that is thrown matters more.
            try? library.unlink(places.infos, text.name, caller)
            throw error
        }
        names[path, default: []].append(Name(free))
        try date(
            Name(free), in: places.files, changed: [WellKnownInode.root, places.top, places.infos])
    }

    /// Dates a name in the trash to now, and notifies the kernel of the directories that changed with it.
    private func date(_ name: Name, in directory: UInt64, changed: [UInt64]) throws(FileError) {
        let now = library.session.clock.wall
        try library.session.change { change throws(FileError) in
            guard let row = try change.tree.tables.dentries.entry(directory, name.bytes) else { return }
            try change.tree.tables.trash.store(TrashRow(ino: row.ino, id: row.id, since: now))
            for ino in [directory] + changed { change.tree.kernelNames.noteChange(of: ino) }
        }
    }

    private func isFree(_ name: Name, in directory: UInt64) throws(FileError) -> Bool {
        do throws(FileError) { _ = try library.lookup(directory, name, caller) } catch {
            if error == .noEntry { return true }
            throw error
        }
        return false
    }

    /// Discards the entry that is being assembled.
    public func giveUp() {
        if let places { try? empty(places.arriving) }
    }

    /// Returns once everything that was entered, or already found here, is on the disk. Nothing more can be added.
    public func finish() throws(FileError) {
        if let places {
            try empty(places.arriving)
            try remove(Self.arrivingName, places.arriving, from: places.top)
        }
        try library.flushAll()
    }

    private func empty(_ directory: UInt64) throws(FileError) {
        for entry in try library.walk.entries(of: directory) {
            if entry.mode & fileTypeMask == directoryType {
                try empty(entry.ino)
                try remove(entry.name, entry.ino, from: directory)
            } else {
                try library.unlink(directory, entry.name, caller)
                // The kernel may not know the inode, and then sends no FORGET.
                library.forget(entry.ino)
            }
        }
    }

    private func remove(_ name: Name, _ ino: UInt64, from parent: UInt64) throws(FileError) {
        try library.removeDirectory(parent, name, caller)
        library.forget(ino)
    }
}

/// Text that this program generated.
private struct TextSource: ImportSource {
    let text: MemoryByteSource
    let isUnchanged = true

    init(_ text: MemoryByteSource) { self.text = text }

    var byteCount: UInt64 { text.byteCount }

    func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        unsafe text.read(at: offset, into: buffer)
    }
}
