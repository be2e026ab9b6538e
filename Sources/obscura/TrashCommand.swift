import CShims
import FileRequests
import Glibc
import LinuxIO
import PhotoRules

/// `trash DIR list|restore|empty`: the trash of a mounted space, by the paths that any program would use.
func runTrash(_ arguments: Arguments) throws(Failure) {
    let directory = arguments.operands[0]
    let names = Array(arguments.operands.dropFirst(2))
    let actions = TrashAction.allCases.map(\.rawValue)
    let word = arguments.operands[1]
    guard let action = TrashAction(rawValue: word) else {
        let near = nearestWord(to: word, among: actions) ?? TrashAction.list.rawValue
        throw Failure(.usage, word, "trash does not know that: did you mean \(near)?")
    }
    if action != .restore, let name = names.first {
        throw Failure(.usage, name, "trash DIR \(action.rawValue) takes no names")
    }
    guard let entry = mountEntry(at: realPath(directory)), entry.isObscura else {
        throw Failure(.failed, directory, "no space is mounted here: findmnt -t fuse.obscura lists mounts")
    }
    entry.becomeOwner()
    try requireAnswer(directory)
    let trash = SpaceTrash(mountedAt: directory)
    switch action {
    case .list: try trash.list()
    case .restore:
        guard !names.isEmpty else {
            throw Failure(.usage, "trash DIR restore", "give the names, as trash DIR list shows them")
        }
        try trash.restore(names)
    case .empty: try trash.empty()
    }
}

private enum TrashAction: String, CaseIterable { case list, restore, empty }

/// The trash of the user in a mounted space.
struct SpaceTrash {
    private let directory: String
    private let trash: OutsideTrash

    /// Attempts at a free name that other programs take first.
    private static let attemptsMax = 16

    init(mountedAt directory: String) {
        self.directory = directory
        let user = DesktopUser(geteuid())
        let top = HostPath(directory)
        trash = OutsideTrash(directory: top.appending(".Trash-\(user.id)"), top: top, user: user)
    }

    /// An entry of the trash.
    private struct Removed {
        /// In `files`.
        var name: Name
        /// Where it was, relative to the root of the mount; nil if no program noted it.
        var path: [UInt8]?
        /// When it was removed, as noted: local time.
        var date: String
    }

    /// Oldest first; entries without a date before all others.
    private func entries() throws(Failure) -> [Removed] {
        let names: [Name]
        do throws(Errno) { names = try trash.files.list() } catch {
            if error == .noEntry { return [] }
            throw Failure(directory, "reading the trash", error)
        }
        var known: [Name: TrashInfoText] = [:]
        for entry in trash.entries(changed: Int.min..<Int.max) { known[entry.name] = entry.info }
        let entries = names.map { name in
            let info = known[name]
            return Removed(name: name, path: info.flatMap { relative($0.path) }, date: info?.date ?? "")
        }
        return entries.sorted {
            $0.date == $1.date
                ? $0.name.bytes.lexicographicallyPrecedes($1.name.bytes) : $0.date < $1.date
        }
    }

    /// A path in the mount; nil if it leads elsewhere.
    private func relative(_ path: [UInt8]) -> [UInt8]? {
        var path = path[...]
        if path.first == UInt8(ascii: "/") {
            let top = Array((realPath(directory) + "/").utf8)
            guard path.starts(with: top) else { return nil }
            path = path.dropFirst(top.count)
        }
        let parts = path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        let isPlain = parts.allSatisfy { part in
            !part.isEmpty && part != Array(".".utf8)[...] && part != Array("..".utf8)[...]
        }
        return isPlain && parts.count > 1 ? Array(path) : nil
    }

    func list() throws(Failure) {
        let entries = try entries()
        if entries.isEmpty { return say("the trash is empty") }
        let width = entries.map { shown($0.name.bytes).count }.max() ?? 0
        for entry in entries {
            let name = shown(entry.name.bytes)
            let date =
                entry.date.isEmpty ? "at an unknown time" : String(entry.date.map { $0 == "T" ? " " : $0 })
            let path = entry.path.map { "from \(shown($0))" } ?? "from an unknown place"
            say("\(padded(date, 19))  \(padded(name, width))  \(path)")
        }
    }

    private func shown(_ bytes: [UInt8]) -> String { printable(String(decoding: bytes, as: UTF8.self)) }

    private func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }

    // MARK: Restoring

    /// Brings entries back to where they were. `names` are names in the trash, or paths from the root of the mount: of
    /// several entries from one place the newest is meant. Each that fails is named; the first failure is thrown last.
    func restore(_ names: [String]) throws(Failure) {
        let entries = try entries()
        var failed: Failure?
        for name in names {
            let bytes = Array(name.utf8)
            // A name that is not UTF-8 can only be given as it is shown.
            let found =
                entries.first { $0.name.bytes == bytes } ?? entries.last { $0.path == bytes }
                ?? entries.last { shown($0.name.bytes) == name }
                ?? entries.last { $0.path.map(shown) == name }
            do throws(Failure) {
                guard let found else {
                    throw Failure(
                        .failed, name, "not in the trash: obscura trash \(directory) list shows its entries")
                }
                say("\(printable(name)): restored to \(shown(try restore(found)))")
            } catch {
                if let failed { note(failed.line) }
                failed = error
            }
        }
        if let failed { throw failed }
    }

    /// Returns the path where the entry is now, relative to the root of the mount.
    private func restore(_ entry: Removed) throws(Failure) -> [UInt8] {
        guard let path = entry.path else {
            throw Failure(
                .failed, shown(entry.name.bytes),
                "no program noted where it was: move it from \(trash.files.shown) with mv")
        }
        let target = HostPath(directory).appending(Name(path))
        try makeDirectories(above: path)
        let place = try put(trash.files.appending(entry.name), at: target)
        _ = trash.infoFile(of: entry.name).withCString { unlink($0) }
        return Array(place.bytes.dropFirst(HostPath(directory).appending("").bytes.count))
    }

    private func makeDirectories(above path: [UInt8]) throws(Failure) {
        var made = HostPath(directory)
        for part in path.split(separator: UInt8(ascii: "/")).dropLast() {
            made = made.appending(Name(Array(part)))
            guard made.withCString({ mkdir($0, 0o777) }) != 0, Errno.last != .exists else { continue }
            throw Failure(made.shown, "making the directory it was in", .last)
        }
    }

    /// Moves a file to that path; of a day that is there again, the files in it. Returns where they are.
    private func put(_ file: HostPath, at target: HostPath) throws(Failure) -> HostPath {
        let isDay = target.parent.bytes == HostPath(directory).appending("moments").bytes
        guard isDay, (try? target.status())?.isDirectory == true, (try? file.status())?.isDirectory == true
        else {
            return try move(file, to: target)
        }
        let names: [Name]
        do throws(Errno) { names = try file.list() } catch {
            throw Failure(file.shown, "reading it", error)
        }
        for name in names { _ = try move(file.appending(name), to: target.appending(name)) }
        if file.withCString({ rmdir($0) }) != 0 { throw Failure(file.shown, "removing it", .last) }
        return target
    }

    /// Moves a file to that path, or to a numbered form of it that is free. Returns where it is.
    private func move(_ file: HostPath, to target: HostPath) throws(Failure) -> HostPath {
        for _ in 0..<Self.attemptsMax {
            let name = try firstFreeName(target.name.bytes) { candidate throws(Failure) in
                do throws(Errno) { _ = try target.parent.appending(Name(candidate)).status() } catch {
                    if error == .noEntry { return true }
                    throw Failure(target.shown, "looking for a free name", error)
                }
                return false
            }
            let place = target.parent.appending(Name(name))
            let status = file.withCString { from in
                place.withCString { obscura_rename(AT_FDCWD, from, $0, 0) }
            }
            if status == 0 { return place }
            let error = Errno.last
            // Another program has just taken the name.
            guard error == .exists else {
                throw Failure(file.shown, "restoring it to \(place.shown)", error)
            }
        }
        throw Failure(.failed, target.shown, "its directory changes all the time: try again")
    }

    // MARK: Emptying

    /// Destroys all entries. Asks first if standard input is a terminal.
    func empty() throws(Failure) {
        let entries = try entries()
        if entries.isEmpty { return say("the trash is empty") }
        if isatty(STDIN_FILENO) == 1, let terminal = Terminal() {
            try terminal.confirm(
                "The trash holds \(countedEntries(entries.count)). Emptying it destroys them for good.",
                directory,
                word: "empty")
        }
        trash.remove(entries.map(\.name))
        let left = try self.entries().count
        guard left == 0 else {
            throw Failure(.failed, directory, "\(countedEntries(left)) could not be removed from the trash")
        }
        say("\(directory): the trash is empty; \(countedEntries(entries.count)) destroyed")
    }

    private func countedEntries(_ count: Int) -> String { count == 1 ? "1 entry" : "\(count) entries" }
}
