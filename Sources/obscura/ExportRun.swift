import CShims
import FileRequests
import Glibc
import LinuxIO
import PhotoLibrary

/// The results of an export.
struct ExportReport {
    var photos = 0
    var otherFiles = 0
    var links = 0
    var byteCount: UInt64 = 0
    /// Files whose extended attributes the target does not take.
    var withoutAttributes = 0
    private(set) var damaged = 0
    private(set) var failures: [Failure] = []
    /// Lines about things that were left out or changed because a vault of unknown origin could harm the machine with
    /// them.
    private var withheld: [String] = []

    mutating func addDamaged(_ path: String) {
        damaged += 1
        failures.append(Failure(.damaged, path, "damaged: its bytes cannot be read"))
    }

    mutating func add(_ failure: Failure) { failures.append(failure) }

    mutating func addWithheld(_ path: String, _ fact: String) {
        withheld.append("\(printable(path)): \(fact)")
    }

    /// The report at the end, a line for each fact.
    var lines: [String] {
        var lines = ["\(counted(photos, "photo")) exported, \(sizeText(byteCount))"]
        func line(_ count: Int, _ text: String) { if count > 0 { lines.append("\(count) \(text)") } }
        line(links, "\(links == 1 ? "name" : "names") in albums linked")
        line(otherFiles, "other \(otherFiles == 1 ? "file" : "files") exported")
        line(withoutAttributes, "without their extended attributes, which the target does not take")
        line(damaged, "could not be read")
        return lines + withheld
    }
}

/// One export: walks the tree, moments first, and writes it file by file.
final class ExportRun {
    /// The name of the file being written, until it is complete. Nothing at the top of a library can have this name.
    private static let unfinishedName = ".obscura-export"

    private let library: Library
    private let root: HostPath
    private let form: AlbumForm
    /// Whether device nodes are made and set-id bits kept.
    private let keepsSpecial: Bool
    private let caller = Caller(uid: geteuid(), gid: getegid())
    let progress: TransferProgress
    private(set) var report = ExportReport()
    /// For files with several names: the first path that was written.
    private var written: [UInt64: HostPath] = [:]
    /// Directories already entered: each is exported once, even if one was put into itself.
    private var entered: Set<UInt64> = []
    private var unreadable: Set<UInt64> = []

    init(_ library: Library, to root: HostPath, _ form: AlbumForm, special: Bool = false, quiet: Bool) {
        self.library = library
        keepsSpecial = special
        self.root = root
        self.form = form
        progress = TransferProgress(
            "Exporting", TransferState(photosMax: 0, bytesMax: 0), quiet: quiet)
    }

    func run() throws(Failure) {
        let top = entries(of: 1, "")
        let chosen = ["moments", "albums"].compactMap { name in
            name == "albums" && form == .none ? nil : top.first { $0.name.description == name }
        }
        measure(chosen)
        for entry in chosen { try export(entry, to: root.appending(entry.name), entry.name.description) }
        if wasInterrupted { return }
        if let attributes = try? library.attributes(1).0 { setTimes(root, attributes) }
        let descriptor = try onHost(root.shown, "opening it") { () throws(Errno) in try root.open(O_RDONLY) }
        defer { close(descriptor) }
        guard obscura_sync_filesystem(descriptor) == 0 else {
            throw Failure(root.shown, "writing it to the disk", .last)
        }
    }

    /// Counts the files and bytes to export.
    private func measure(_ chosen: [DirectoryEntry]) {
        var state = TransferState(photosMax: 0, bytesMax: 0)
        var seen: Set<UInt64> = []
        var waiting = chosen.map(\.ino)
        while let directory = waiting.popLast() {
            guard seen.insert(directory).inserted else { continue }
            for entry in (try? library.entries(of: directory)) ?? [] {
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

    private func entries(of ino: UInt64, _ path: String) -> [DirectoryEntry] {
        do throws(FileError) { return try library.entries(of: ino) } catch {
            report.addDamaged(path)
            return []
        }
    }

    /// - Parameter shown: the path in the library, for messages.
    private func export(_ entry: DirectoryEntry, to path: HostPath, _ shown: String) throws(Failure) {
        guard !wasInterrupted, let attributes = entry.entry?.attributes else { return }
        do throws(Errno) {
            if attributes.isDirectory {
                try exportDirectory(attributes, to: path, shown)
            } else if attributes.isRegular {
                try exportFile(attributes, to: path, shown)
            } else {
                try exportSpecial(attributes, to: path, shown)
            }
        } catch {
            if error.meansNoRoom {
                throw Failure(
                    .noRoom, root.shown, "the disk is full: free some room, or export somewhere else")
            }
            report.add(Failure(printable(shown), "writing it", error))
        }
    }

    private func exportDirectory(
        _ attributes: Attributes, to path: HostPath, _ shown: String
    ) throws(Errno) {
        guard entered.insert(attributes.ino).inserted else { throw Errno(ELOOP) }
        guard path.withCString({ mkdir($0, 0o700) }) == 0 else { throw .last }
        let descriptor = try path.open(O_RDONLY | O_DIRECTORY)
        defer { close(descriptor) }
        for entry in entries(of: attributes.ino, shown) {
            do throws(Failure) {
                try export(entry, to: path.appending(entry.name), "\(shown)/\(entry.name)")
            } catch {
                throw .noSpace
            }
        }
        try setDetails(descriptor, attributes, shown)
    }

    private func exportFile(_ attributes: Attributes, to path: HostPath, _ shown: String) throws(Errno) {
        if unreadable.contains(attributes.ino) { return }
        if form != .copy, let first = written[attributes.ino], link(first, path) {
            report.links += 1
            return
        }
        // If names that differ in case are the same on the target, one must not replace the other.
        if (try? path.status()) != nil { throw .exists }
        let unfinished = root.appending(Self.unfinishedName)
        let descriptor = try unfinished.open(O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
        var isDone = false
        defer {
            close(descriptor)
            if !isDone { _ = unfinished.withCString { unlink($0) } }
        }
        guard try writeBytes(of: attributes, to: descriptor, shown), !wasInterrupted else { return }
        try setDetails(descriptor, attributes, shown)
        let isRenamed = unfinished.withCString { old in path.withCString { rename(old, $0) } } == 0
        guard isRenamed else { throw .last }
        isDone = true
        count(attributes, path)
    }

    private func count(_ attributes: Attributes, _ path: HostPath) {
        if attributes.nlink > 1, written[attributes.ino] == nil { written[attributes.ino] = path }
        progress.state.photos += 1
        if (try? library.isPhoto(attributes.ino)) == true {
            report.photos += 1
        } else {
            report.otherFiles += 1
        }
        report.byteCount = sizeSum(report.byteCount, attributes.size)
    }

    private func link(_ first: HostPath, _ path: HostPath) -> Bool {
        first.withCString { old in path.withCString { Glibc.link(old, $0) } } == 0
    }

    /// Writes the stored ranges; the rest becomes holes. Returns false if the file cannot be read: it is reported, and
    /// skipped.
    private func writeBytes(
        of attributes: Attributes, to descriptor: Int32, _ shown: String
    ) throws(Errno) -> Bool {
        var failure: Errno?
        var end: UInt64 = 0
        func note(upTo offset: UInt64) {
            progress.state.bytes = sizeSum(progress.state.bytes, offset - end)
            end = offset
        }
        do throws(FileError) {
            try library.readStored(attributes.ino, caller) { offset, bytes in
                do throws(Errno) {
                    try LinuxCalls.shared.writeFully(descriptor, bytes, at: offset)
                } catch {
                    failure = error
                    return false
                }
                note(upTo: offset + UInt64(bytes.count))
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

    private func exportSpecial(
        _ attributes: Attributes, to path: HostPath, _ shown: String
    ) throws(Errno) {
        let isMade: Bool
        let type = mode_t(attributes.mode) & mode_t(S_IFMT)
        if type == mode_t(S_IFLNK) {
            guard let target = try? library.readLink(attributes.ino) else { throw .inputOutput }
            isMade = HostPath(target).withCString { to in path.withCString { symlink(to, $0) } } == 0
        } else if !keepsSpecial, type == mode_t(S_IFCHR) || type == mode_t(S_IFBLK) {
            return report.addWithheld(shown, "a device node, left out: --special makes it")
        } else {
            isMade = path.withCString { mknod($0, type | 0o600, dev_t(attributes.rdev)) } == 0
        }
        guard isMade else { throw .last }
        // Before the mode: chown(2) clears set-id bits.
        if geteuid() == 0 { _ = path.withCString { lchown($0, attributes.uid, attributes.gid) } }
        if type != mode_t(S_IFLNK) {
            let permissions = permissions(attributes, shown)
            guard path.withCString({ chmod($0, permissions) }) == 0 else { throw .last }
        }
        setTimes(path, attributes)
    }

    /// Sets the attributes, owner, mode and times of an open file or directory, times last.
    private func setDetails(
        _ descriptor: Int32, _ attributes: Attributes, _ shown: String
    ) throws(Errno) {
        let extended = (try? library.extendedAttributes(of: attributes.ino)) ?? []
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
    private func permissions(_ attributes: Attributes, _ shown: String) -> mode_t {
        let all = mode_t(attributes.mode & 0o7777)
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

/// Runs a call on the host and turns its error into a `Failure`.
private func onHost<R>(_ what: String, _ doing: String, _ body: () throws(Errno) -> R) throws(Failure) -> R {
    do throws(Errno) { return try body() } catch { throw Failure(what, doing, error) }
}
