import DesktopTraces
import Encodings
import FileRequests
import Glibc
import HostFiles
import LinuxIO
import PhotoRules

/// `trash DIR list|restore|empty`: the trash of a mounted space, by the paths that any program would use.
func runTrash(_ arguments: Arguments) throws(Failure) {
    let directory = arguments.operands[0]
    let names = Array(arguments.operands.dropFirst(2))
    let word = arguments.operands[1]
    guard let action = TrashAction(rawValue: word) else {
        let near = wordNear(to: word, among: TrashAction.words) ?? "list, restore or empty"
        throw Failure(.usage, word, "trash does not know that: did you mean \(near)?")
    }
    if action != .restore, let name = names.first {
        throw Failure(.usage, name, "trash DIR \(action.rawValue) takes no names")
    }
    if action != .restore, arguments.has(.all) {
        throw Failure(.usage, "--all", "only trash DIR restore takes it")
    }
    if action != .list, arguments.has(.json) {
        throw Failure(.usage, "--json", "only trash DIR list takes it")
    }
    if action == .restore, names.isEmpty != arguments.has(.all) {
        throw Failure(
            .usage, "trash DIR restore", "give names, as trash DIR list shows them, days, or --all alone")
    }
    guard let entry = mountEntry(at: realPath(directory)), entry.isObscura else {
        throw Failure(.failed, directory, "no space is mounted here: findmnt -t fuse.obscura lists mounts")
    }
    entry.becomeOwner()
    try requireAnswer(directory)
    let trash = try SpaceTrash(mountedAt: directory)
    switch action {
    case .list: arguments.has(.json) ? try trash.listJSON() : try trash.list()
    case .restore: arguments.has(.all) ? try trash.restoreAll() : try trash.restore(names)
    case .empty: try trash.empty()
    }
}

enum TrashAction: String, CaseIterable {
    case list, restore, empty

    static var words: [String] { allCases.map(\.rawValue) }
}

/// The trash of the user in a mounted space.
struct SpaceTrash {
    private let directory: String
    private let top: OwnedDirectory
    /// Nil: nothing was ever removed.
    private let trash: OutsideTrash?
    /// The trash's name at the top.
    private let name: String

    /// Attempts at a free name that other programs take first.
    private static let attemptsMax = 16

    init(mountedAt directory: String) throws(Failure) {
        self.directory = directory
        name = ".Trash-\(geteuid())"
        do throws(Errno) {
            // Files of any owner may be in it.
            top = try OwnedDirectory(pathBytes(realPath(directory)), of: nil)
            do throws(Errno) {
                trash = OutsideTrash(try top.directory(Array(name.utf8)), top: HostPath(directory))
            } catch .noEntry {
                trash = nil
            }
        } catch {
            throw Failure(directory, "opening the trash", error)
        }
    }

    /// An entry of the trash.
    private struct Removed {
        /// In `files`.
        var name: Name
        /// Where it was, relative to the root of the mount; nil if no program noted it.
        var path: [UInt8]?
        /// When it was removed, as noted: local time.
        var date: String

        var isSidecar: Bool {
            isSidecarName(path?.split(separator: UInt8(ascii: "/")).last.map { Array($0) } ?? name.bytes)
        }
    }

    /// Oldest first; entries without a date before all others.
    private func entries() throws(Failure) -> [Removed] {
        guard let trash, let files = trash.files else { return [] }
        let names: [Name]
        do throws(Errno) { names = try files.names().map { Name($0) } } catch {
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
            let top = pathBytes(realPath(directory) + "/")
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
        let width = entries.map { shownBytes($0.name.bytes).count }.max() ?? 0
        for entry in entries {
            let name = shownBytes(entry.name.bytes)
            let date =
                entry.date.isEmpty ? "at an unknown time" : String(entry.date.map { $0 == "T" ? " " : $0 })
            let path = entry.path.map { "from \(shownBytes($0))" } ?? "from an unknown place"
            say("\(padded(date, 19))  \(padded(name, width))  \(path)")
        }
    }

    /// Times are as noted, local and without a zone; null where none was.
    func listJSON() throws(Failure) {
        let entries = try entries().map { entry in
            JSON.object([
                ("name", .path(entry.name.bytes)),
                ("removed", entry.date.isEmpty ? .null : .text(entry.date)),
                ("path", entry.path.map { .path($0) } ?? .null),
            ])
        }
        say(JSON.object([("mounted_at", .path(realPath(directory))), ("entries", .list(entries))]).line)
    }

    private func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }

    // MARK: Restoring

    /// Brings entries back to where they were. Each that fails is named; the first failure is thrown last.
    ///
    /// - Parameter words: each a name in the trash, a path from the root of the mount or a day, which stands for all
    ///   photos that were on it; as bytes, or as `list` shows them.
    func restore(_ words: [String]) throws(Failure) {
        let entries = try entries()
        var failures = Failures()
        var found: [(entry: Removed, shown: String?)] = []
        for word in words {
            failures.collect { () throws(Failure) in
                let some = try find(word, among: entries)
                // A day is not said again for each of its photos.
                let shown = some.count == 1 ? shownBytes(pathBytes(word)) : nil
                found += some.map { ($0, shown) }
            }
        }
        restore(found, &failures)
        try failures.end()
    }

    /// As above, all entries.
    func restoreAll() throws(Failure) {
        let entries = try entries()
        if entries.isEmpty { return say("the trash is empty") }
        var failures = Failures()
        restore(entries.map { ($0, nil) }, &failures)
        try failures.end()
    }

    /// Sidecars last: by then the photos that they describe are back.
    ///
    /// - Parameter found: entries, and what to print of each; nil: its name in the trash.
    private func restore(_ found: [(entry: Removed, shown: String?)], _ failures: inout Failures) {
        let photosFirst = found.filter { !$0.entry.isSidecar } + found.filter(\.entry.isSidecar)
        for (entry, shown) in photosFirst {
            failures.collect { () throws(Failure) in
                let place = shownBytes(try restore(entry))
                say("\(shown ?? shownBytes(entry.name.bytes)): restored to \(place)")
            }
        }
    }

    /// The first failure, while the others are printed.
    private struct Failures {
        private var first: Failure?

        mutating func collect(_ body: () throws(Failure) -> Void) {
            do throws(Failure) { try body() } catch {
                if let first { note(first.line) }
                first = error
            }
        }

        func end() throws(Failure) {
            if let first { throw first }
        }
    }

    /// Of several entries from one place the newest.
    private func find(_ word: String, among entries: [Removed]) throws(Failure) -> [Removed] {
        let typed = pathBytes(word)
        func find(_ bytes: [UInt8]) -> Removed? {
            entries.first { $0.name.bytes == bytes } ?? entries.last { $0.path == bytes }
        }
        let found = find(typed)
        // A name that really has a backslash is shown with two.
        let shown = bytes(shownAs: typed).flatMap(find)
        if let found, let shown, found.name != shown.name {
            throw Failure(
                .failed, word,
                "two entries have names like it: give \(shownBytes(found.name.bytes)), or the other's bytes "
                    + "as they are")
        }
        if let found = found ?? shown { return [found] }
        let day = Array("moments/\(word)/".utf8)
        let ofDay = isDay(typed) ? entries.filter { $0.path?.starts(with: day) ?? false } : []
        guard !ofDay.isEmpty else {
            throw Failure(
                .failed, word, "not in the trash: obscura trash \(directory) list shows its entries")
        }
        return ofDay
    }

    private func isDay(_ text: [UInt8]) -> Bool {
        text.count == 10
            && text.enumerated().allSatisfy { index, byte in
                index == 4 || index == 7 ? byte == UInt8(ascii: "-") : (0x30...0x39).contains(byte)
            }
    }

    /// Returns the path where the entry is now, relative to the root of the mount.
    private func restore(_ entry: Removed) throws(Failure) -> [UInt8] {
        guard let path = entry.path, let trash, let files = trash.files else {
            throw Failure(
                .failed, shownBytes(entry.name.bytes),
                "no program noted where it was: move it from \(directory)/\(name)/files with mv")
        }
        var parts = path.split(separator: UInt8(ascii: "/")).map { Array($0) }
        let name = parts.removeLast()
        let target = try makeDirectories(parts)
        let isDay = parts == [Array("moments".utf8)]
        let place: [UInt8]
        do throws(Failure) {
            place = try put(entry.name.bytes, from: files, to: target, as: name, isDay: isDay)
        } catch {
            // A photo brings its sidecars back, perhaps since the trash was listed.
            guard isGone(entry.name.bytes, from: files), (try? target.status(name)) != nil else {
                throw error
            }
            place = name
        }
        _ = trash.infos?.removeAll(entry.name.bytes + TrashInfoText.suffix)
        return Array((parts + [place]).joined(separator: [UInt8(ascii: "/")]))
    }

    private func isGone(_ name: [UInt8], from directory: OwnedDirectory) -> Bool {
        do throws(Errno) {
            _ = try directory.status(name)
            return false
        } catch { return error == .noEntry }
    }

    /// The directory that an entry was in.
    private func makeDirectories(_ parts: [[UInt8]]) throws(Failure) -> OwnedDirectory {
        var made = top
        for (index, part) in parts.enumerated() {
            do throws(Errno) { made = try made.makeDirectory(part, mode: 0o777) } catch {
                let path = parts[...index].joined(separator: [UInt8(ascii: "/")])
                throw Failure(shownBytes(Array(path)), "making the directory it was in", error)
            }
        }
        return made
    }

    /// Moves a file to that name; of a day that is there again, the files in it. Returns its name there.
    private func put(
        _ name: [UInt8], from files: OwnedDirectory, to target: OwnedDirectory, as wanted: [UInt8],
        isDay: Bool
    ) throws(Failure) -> [UInt8] {
        guard isDay, let there = try? target.directory(wanted), let own = try? files.directory(name) else {
            return try move(name, from: files, to: target, as: wanted)
        }
        let names: [[UInt8]]
        do throws(Errno) { names = try own.names() } catch {
            throw Failure(shownBytes(name), "reading it", error)
        }
        for name in names { _ = try move(name, from: own, to: there, as: name) }
        do throws(Errno) { try files.removeEmptyDirectory(name) } catch {
            throw Failure(shownBytes(name), "removing it", error)
        }
        return wanted
    }

    /// Moves a file to that name, or to a numbered form of it that is free. Returns its name there.
    private func move(
        _ name: [UInt8], from files: OwnedDirectory, to target: OwnedDirectory, as wanted: [UInt8]
    ) throws(Failure) -> [UInt8] {
        for _ in 0..<Self.attemptsMax {
            let free = try firstFreeName(wanted) { candidate throws(Failure) in
                do throws(Errno) { _ = try target.status(candidate) } catch {
                    if error == .noEntry { return true }
                    throw Failure(shownBytes(wanted), "looking for a free name", error)
                }
                return false
            }
            do throws(Errno) {
                try files.move(name, to: target, as: free)
                return free
            } catch {
                // Another program has just taken the name.
                guard error == .exists else {
                    throw Failure(shownBytes(name), "restoring it to \(shownBytes(free))", error)
                }
            }
        }
        throw Failure(.failed, shownBytes(wanted), "its directory changes all the time: try again")
    }

    // MARK: Emptying

    /// Destroys all entries. Asks first if standard input is a terminal.
    func empty() throws(Failure) {
        let entries = try entries()
        if entries.isEmpty { return say("the trash is empty") }
        if isatty(STDIN_FILENO) == 1, let terminal = Terminal() {
            try terminal.confirm(
                "The trash holds \(countedEntries(entries.count)). Emptying it destroys all of it for good.",
                directory,
                word: "empty")
        }
        for entry in entries where trash?.files?.removeAll(entry.name.bytes) == true {
            _ = trash?.infos?.removeAll(entry.name.bytes + TrashInfoText.suffix)
        }
        trash?.forgetSizes(of: Set(entries.map(\.name.bytes)))
        let left = try self.entries().count
        guard left == 0 else {
            throw Failure(.failed, directory, "\(countedEntries(left)) could not be removed from the trash")
        }
        say("\(directory): the trash is empty; \(countedEntries(entries.count)) destroyed")
    }

    private func countedEntries(_ count: Int) -> String { count == 1 ? "1 entry" : "\(count) entries" }
}
