import CShims
import FileRequests
import Glibc
import HostFiles
import Importing
import LinuxIO
import PhotoLibrary
import VaultFormat
import VaultStore

/// One export: walks the tree, moments first, and writes it file by file.
final class ExportRun {
    /// A file that is written and has not its own name yet.
    private struct PendingFile {
        var temporary: HostPath
        var path: HostPath
        var shown: HostPath
        var attributes: Attributes
        /// The file that had this path when the export came to it: it is replaced, moved aside, or absent.
        var predecessor: Predecessor
    }

    /// A file of an interrupted run, or of somebody else, in place of one that is exported.
    private enum Predecessor {
        /// The same file: nothing is to be written.
        case same
        /// The same bytes, but another name of a file where a file of its own is wanted, or the reverse.
        case equal
        /// It gets another name.
        case different
        /// None. One that turns up meanwhile differs in case only, and stays.
        case none
    }

    private let library: Library
    private let target: ExportTarget
    private var root: HostPath { target.root }
    private let form: AlbumForm
    /// Whether device nodes are made and set-id bits kept.
    private let keepsSpecial: Bool
    /// Whether versions of photos are exported.
    private let hasVersions: Bool
    private let limits: Limits
    private let caller = Caller(uid: geteuid(), gid: getegid())
    let progress: TransferProgress
    private(set) var report = ExportReport()
    private var pending: [PendingFile] = []
    private var pendingBytes: UInt64 = 0
    /// For files with several names: the first path that was written.
    private var written: [UInt64: HostPath] = [:]
    /// Directories already entered on the target, where names that differ in case may be the same.
    private var enteredOnTarget: Set<FileIdentity> = []
    /// Directories whose entries are all exported, children before parents. Their modes and times are set last, so that
    /// an interrupted export can still write into them.
    private var directories: [(path: HostPath, shown: HostPath, attributes: Attributes)] = []
    private var unreadable: Set<UInt64> = []
    private var walk: ExportWalk?

    init(
        _ library: Library, to target: ExportTarget, _ form: AlbumForm, special: Bool = false,
        versions: Bool = false, limits: Limits = .ofProcess, quiet: Bool
    ) {
        self.library = library
        (keepsSpecial, hasVersions) = (special, versions)
        self.target = target
        self.form = form
        self.limits = limits
        progress = TransferProgress("Exporting", TransferState(photosMax: 0, bytesMax: 0), quiet: quiet)
    }

    /// Returns at the end, or early if the user interrupts: then the marker stays, as after an error.
    func run() throws(Failure) {
        defer { for file in pending { remove(file.temporary) } }
        var top: [DirectoryEntry] = []
        do throws(FileError) { top = try library.walk.entries(of: 1, versions: hasVersions) } catch {
            report.addDamaged(HostPath(""))
        }
        let chosen = ["moments", "albums"].compactMap { name in
            name == "albums" && form == .none ? nil : top.first { $0.name.description == name }
        }
        measure(chosen)
        do throws(Failure) {
            try export(chosen)
        } catch {
            // Complete files get their names, so that the next run passes over them.
            try? finishPending()
            throw error
        }
        if wasInterrupted { return }
        for (path, shown, attributes) in directories {
            try reporting(shown) { () throws(Errno) in
                let descriptor = try path.open(O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
                defer { close(descriptor) }
                try setDetails(descriptor, attributes, shown)
            }
        }
        try sync()
        if report.failures.isEmpty { target.removeMarker() }
        if let attributes = try? library.attributes(1).0 { setTimes(root, attributes) }
        try sync()
    }

    private func export(_ top: [DirectoryEntry]) throws(Failure) {
        walk = ExportWalk(
            top, library.walk, caller, versions: hasVersions, readsEachName: form == .copy,
            isResumed: target.isResumed)
        defer { walk = nil }
        let present = target.isResumed ? Set((try? root.list()) ?? []) : []
        var around = [EnteredDirectory(path: root, shown: HostPath(""), present: present)]
        while !wasInterrupted, let step = walk?.next(), let above = around.last {
            switch step {
            case .entry(let entry): try export(entry, in: above)
            case .directory(let entry, let contents):
                if let entered = try enter(entry, contents, in: above) {
                    around.append(entered)
                } else {
                    walk?.skipDirectory()
                }
            case .end:
                around.removeLast()
                if let attributes = above.attributes {
                    directories.append((above.path, above.shown, attributes))
                }
            }
        }
        try finishPending()
    }

    private func sync() throws(Failure) {
        do throws(Errno) { try target.sync() } catch {
            throw error.meansNoRoom ? noRoom : Failure(root.shown, "writing it to the disk", error)
        }
    }

    private var noRoom: Failure {
        Failure(.noRoom, root.shown, "the disk is full: free some room, then run this again to go on")
    }

    /// Counts the files and bytes to export.
    private func measure(_ chosen: [DirectoryEntry]) {
        var state = TransferState(photosMax: 0, bytesMax: 0)
        var seen: Set<UInt64> = []
        var waiting = chosen.map(\.ino)
        while let directory = waiting.popLast() {
            guard seen.insert(directory).inserted else { continue }
            for entry in (try? library.walk.entries(of: directory, versions: hasVersions)) ?? [] {
                guard let attributes = entry.entry?.attributes else { continue }
                if attributes.isDirectory { waiting.append(entry.ino) }
                guard attributes.isRegular,
                    form == .copy || attributes.nlink < 2 || seen.insert(entry.ino).inserted
                else { continue }
                state.photosMax += 1
                state.bytesMax = sizeSum(state.bytesMax, attributes.size)
            }
        }
        progress.state = state
    }

    /// Runs `body`, and reports its error. Throws if the disk is full.
    @discardableResult
    private func reporting<R>(_ shown: HostPath, _ body: () throws(Errno) -> R) throws(Failure) -> R? {
        do throws(Errno) { return try body() } catch {
            if error.meansNoRoom { throw noRoom }
            report.addUnwritten(shown, error)
            return nil
        }
    }

    // MARK: Entries

    private func export(_ entry: DirectoryEntry, in above: EnteredDirectory) throws(Failure) {
        guard let attributes = entry.entry?.attributes else { return }
        let (path, shown) = above.paths(of: entry.name)
        let isThere = above.present.contains(entry.name)
        // A further name is made of the first.
        if form != .copy, attributes.nlink > 1,
            pending.contains(where: { $0.attributes.ino == attributes.ino })
        {
            try finishPending()
        }
        try reporting(shown) { () throws(Errno) in
            if attributes.isRegular {
                try exportFile(attributes, to: path, shown, isThere: isThere)
            } else {
                try exportSpecial(attributes, to: path, shown, isThere: isThere)
            }
        }
        if pending.count >= limits.exportedFiles || pendingBytes >= limits.exportedBytes {
            try finishPending()
        }
    }

    /// Nil if nothing in a directory can be exported, which is reported.
    private func enter(
        _ entry: DirectoryEntry, _ contents: ExportWalk.Contents, in above: EnteredDirectory
    ) throws(Failure) -> EnteredDirectory? {
        guard let attributes = entry.entry?.attributes else { return nil }
        let (path, shown) = above.paths(of: entry.name)
        let present = try reporting(shown) { () throws(Errno) in
            if contents == .repeated { throw Errno(ELOOP) }
            return try enter(attributes, path, shown, isThere: above.present.contains(entry.name))
        }
        guard let present else { return nil }
        if contents == .unreadable { report.addDamaged(shown) }
        return EnteredDirectory(path: path, shown: shown, present: present, attributes: attributes)
    }

    /// Makes a directory, or takes that of an interrupted run. Returns the names in it.
    private func enter(
        _ attributes: Attributes, _ path: HostPath, _ shown: HostPath, isThere: Bool
    ) throws(Errno) -> Set<Name> {
        var present: Set<Name> = []
        if target.isResumed, let found = try? path.status() {
            if found.isDirectory, isThere || !enteredOnTarget.contains(found.identity) {
                // The interrupted run may have given it its own mode.
                _ = path.withCString { chmod($0, 0o700) }
                present = Set(try path.list())
                enteredOnTarget.insert(found.identity)
                return present
            }
            guard isThere else { throw .exists }
            try moveAside(path, shown)
        }
        guard path.withCString({ mkdir($0, 0o700) }) == 0 else { throw .last }
        if target.isResumed { enteredOnTarget.insert(try path.status().identity) }
        return present
    }

    private func moveAside(_ path: HostPath, _ shown: HostPath) throws(Errno) {
        let other = try target.moveAside(path)
        report.addRenamed(shown, to: shown.parent.appending(other.name))
    }

    // MARK: Files

    private func exportFile(
        _ attributes: Attributes, to path: HostPath, _ shown: HostPath, isThere: Bool
    ) throws(Errno) {
        if unreadable.contains(attributes.ino) { return }
        if form != .copy, let first = written[attributes.ino],
            try exportLink(attributes, first, path, shown, isThere: isThere)
        {
            return
        }
        let predecessor = try predecessor(attributes, path, isThere: isThere)
        if wasInterrupted { return }
        if case .same = predecessor {
            walk?.passOver()
            return try passOver(attributes, path, shown)
        }
        let temporary = target.temporary(pending.count)
        let descriptor = try temporary.open(O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
        var isDone = false
        defer {
            close(descriptor)
            if !isDone { remove(temporary) }
        }
        guard try writeBytes(of: attributes, to: descriptor, shown), !wasInterrupted else { return }
        try setDetails(descriptor, attributes, shown)
        isDone = true
        pending.append(
            PendingFile(
                temporary: temporary, path: path, shown: shown, attributes: attributes,
                predecessor: predecessor))
        pendingBytes = sizeSum(pendingBytes, attributes.size)
        progress.state.photos += 1
    }

    /// Gives the pending files their names, once all their bytes are on the disk.
    private func finishPending() throws(Failure) {
        if pending.isEmpty { return }
        try sync()
        while let file = pending.first {
            try reporting(file.shown) { () throws(Errno) in
                var isDone = false
                defer { if !isDone { remove(file.temporary) } }
                try rename(file.temporary, to: file.path, file.shown, file.predecessor)
                isDone = true
                count(file.attributes, file.path)
            }
            pending.removeFirst()
        }
        pendingBytes = 0
    }

    private func rename(
        _ temporary: HostPath, to path: HostPath, _ shown: HostPath, _ predecessor: Predecessor
    ) throws(Errno) {
        if (try? path.status()) != nil {
            switch predecessor {
            case .equal: break
            case .different: try moveAside(path, shown)
            // If names that differ in case are the same on the target, one must not replace the other.
            case .none, .same: throw .exists
            }
        }
        guard temporary.withCString({ old in path.withCString { Glibc.rename(old, $0) } }) == 0 else {
            throw .last
        }
    }

    /// Compares the file at a path with the one to export there. Throws if the export may not touch it.
    private func predecessor(
        _ attributes: Attributes, _ path: HostPath, isThere: Bool
    ) throws(Errno) -> Predecessor {
        guard let found = try? path.status() else { return .none }
        guard target.isResumed else { throw .exists }
        if found.isRegular, found.byteCount == attributes.size {
            // Size and time prove that it is this file. On a disk that keeps other times, or other spellings of
            // names, only its bytes do.
            let isSame = isThere && isKept(attributes.modified, as: Timestamp(found.st_mtim))
            if isSame || holds(attributes.ino, path) {
                return form == .copy && found.st_nlink > 1 ? .equal : .same
            }
        }
        guard isThere else { throw .exists }
        return .different
    }

    /// Whether a file has the bytes of one of the library, all of them read.
    private func holds(_ ino: UInt64, _ path: HostPath) -> Bool {
        guard let source = try? SourceFile(path) else { return false }
        return (try? library.search.holds(ino, source) { wasInterrupted }) == true
    }

    /// Sets the attributes of a file that is there: those in the library may have changed.
    private func passOver(_ attributes: Attributes, _ path: HostPath, _ shown: HostPath) throws(Errno) {
        if let descriptor = try? path.open(O_RDONLY | O_NOFOLLOW | O_NONBLOCK) {
            defer { close(descriptor) }
            try setDetails(descriptor, attributes, shown)
        }
        if attributes.nlink > 1, written[attributes.ino] == nil { written[attributes.ino] = path }
        report.present += 1
        progress.state.photos += 1
        progress.state.bytes = sizeSum(progress.state.bytes, attributes.size)
    }

    private func count(_ attributes: Attributes, _ path: HostPath) {
        if attributes.nlink > 1, written[attributes.ino] == nil { written[attributes.ino] = path }
        if (try? library.walk.isPhoto(attributes.ino)) == true {
            report.photos += 1
        } else {
            report.otherFiles += 1
        }
        report.byteCount = sizeSum(report.byteCount, attributes.size)
    }

    /// Makes a further name of a file that is written. Returns false if the target cannot.
    private func exportLink(
        _ attributes: Attributes, _ first: HostPath, _ path: HostPath, _ shown: HostPath, isThere: Bool
    ) throws(Errno) -> Bool {
        guard let found = try? path.status() else {
            guard link(first, path) else { return false }
            report.links += 1
            return true
        }
        if target.isResumed, found.identity == (try? first.status())?.identity {
            report.present += 1
            return true
        }
        guard isThere else { return false }
        let temporary = target.temporary(pending.count)
        guard link(first, temporary) else { return false }
        var isDone = false
        defer { if !isDone { remove(temporary) } }
        let isEqual =
            found.isRegular && found.byteCount == attributes.size && holds(attributes.ino, path)
        try rename(temporary, to: path, shown, isEqual ? .equal : .different)
        isDone = true
        report.links += 1
        return true
    }

    private func link(_ first: HostPath, _ path: HostPath) -> Bool {
        first.withCString { old in path.withCString { Glibc.link(old, $0) } } == 0
    }

    private func remove(_ temporary: HostPath) { _ = temporary.withCString { unlink($0) } }

    /// Writes the stored ranges; the rest becomes holes. Returns false if the file cannot be read: it is reported, and
    /// skipped.
    private func writeBytes(
        of attributes: Attributes, to descriptor: Int32, _ shown: HostPath
    ) throws(Errno) -> Bool {
        var failure: Errno?
        var end: UInt64 = 0
        func note(upTo offset: UInt64) {
            progress.state.bytes = sizeSum(progress.state.bytes, offset - end)
            end = offset
        }
        do throws(FileError) {
            try library.walk.readStored(attributes.ino, caller) { offset, bytes in
                do throws(Errno) {
                    try LinuxCalls.shared.writeFully(descriptor, bytes, at: offset)
                } catch {
                    failure = error
                    return false
                }
                note(upTo: offset + UInt64(bytes.count))
                walk?.read(upTo: end)
                return !wasInterrupted
            }
        } catch {
            unreadable.insert(attributes.ino)
            report.addDamaged(shown)
            return false
        }
        if let failure { throw failure }
        if end < attributes.size, !wasInterrupted {
            try LinuxCalls.shared.truncate(descriptor, to: attributes.size)
            note(upTo: attributes.size)
        }
        return true
    }

    // MARK: Other entries

    private func exportSpecial(
        _ attributes: Attributes, to path: HostPath, _ shown: HostPath, isThere: Bool
    ) throws(Errno) {
        let type = mode_t(attributes.mode) & mode_t(S_IFMT)
        if !keepsSpecial, type == mode_t(S_IFCHR) || type == mode_t(S_IFBLK) {
            return report.addWithheld(shown, "a device node, left out: --special makes it")
        }
        var link: HostPath?
        if type == mode_t(S_IFLNK) {
            guard let bytes = try? library.readLink(attributes.ino) else { throw .inputOutput }
            link = HostPath(bytes)
        }
        if isThere, let found = try? path.status() {
            let isSame =
                found.type == type && found.st_rdev == dev_t(attributes.rdev)
                && (link == nil || (try? path.linkTarget()) == link?.bytes)
            if isSame {
                report.present += 1
                return try setSpecialDetails(path, attributes, shown)
            }
            try moveAside(path, shown)
        }
        let isMade =
            if let link {
                link.withCString { to in path.withCString { symlink(to, $0) } } == 0
            } else {
                path.withCString { mknod($0, type | 0o600, dev_t(attributes.rdev)) } == 0
            }
        guard isMade else { throw .last }
        try setSpecialDetails(path, attributes, shown)
    }

    private func setSpecialDetails(
        _ path: HostPath, _ attributes: Attributes, _ shown: HostPath
    ) throws(Errno) {
        // Before the mode: chown(2) clears set-id bits.
        if geteuid() == 0 { _ = path.withCString { lchown($0, attributes.uid, attributes.gid) } }
        if mode_t(attributes.mode) & mode_t(S_IFMT) != mode_t(S_IFLNK) {
            let permissions = permissions(attributes, shown)
            guard path.withCString({ chmod($0, permissions) }) == 0 else { throw .last }
        }
        setTimes(path, attributes)
    }

    /// Sets the attributes, owner, mode and times of an open file or directory, times last.
    private func setDetails(
        _ descriptor: Int32, _ attributes: Attributes, _ shown: HostPath
    ) throws(Errno) {
        let extended = (try? library.walk.extendedAttributes(of: attributes.ino)) ?? []
        var isKept = true
        for attribute in extended {
            let result = HostPath(attribute.name).withCString {
                obscura_set_attribute(descriptor, $0, attribute.value, UInt(attribute.value.count))
            }
            if result != 0 { isKept = false }
        }
        if !isKept { report.withoutAttributes += 1 }
        // On a target without owners the files are the user's: that is all it can do.
        if geteuid() == 0 { _ = fchown(descriptor, attributes.uid, attributes.gid) }
        guard fchmod(descriptor, permissions(attributes, shown)) == 0 else { throw .last }
        let times = [attributes.accessed.timespec, attributes.modified.timespec]
        guard futimens(descriptor, times) == 0 else { throw .last }
    }

    /// The permission bits that the target gets.
    private func permissions(_ attributes: Attributes, _ shown: HostPath) -> mode_t {
        // Directories of versions are read-only in the mount, but the owner of the export may remove them.
        let own: mode_t = SpaceWalk.isOfVersions(attributes.ino) ? S_IWUSR : 0
        let all = mode_t(attributes.mode & 0o7777) | own
        let dropped = all & (S_ISUID | S_ISGID)
        guard dropped != 0, !keepsSpecial else { return all }
        let names = [(S_ISUID, "set-user-ID"), (S_ISGID, "set-group-ID")].filter { dropped & $0.0 != 0 }.map(
            \.1)
        report.addWithheld(shown, "\(names.joined(separator: " and ")) dropped: --special keeps it")
        return all & ~dropped
    }

    /// Sets the times as far as the target can.
    private func setTimes(_ path: HostPath, _ attributes: Attributes) {
        let times = [attributes.accessed.timespec, attributes.modified.timespec]
        _ = path.withCString { utimensat(AT_FDCWD, $0, times, AT_SYMLINK_NOFOLLOW) }
    }
}
