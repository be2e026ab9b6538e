import Glibc

/// The next operation of a player.
extension ModelPlayer {
    /// Does one thing that programs do.
    mutating func step() throws {
        switch roll(100) {
        case ..<14: try perform(.write(newPath(), picture()))
        case ..<16: try saveInTwoSteps()
        case ..<19: try perform(.write(anyPath(), text()))
        case ..<23: if let path = file() { try perform(.append(path, text())) }
        case ..<25: if let path = file() { try perform(.truncate(path, roll(2) == 0 ? 0 : 400 + roll(300))) }
        case ..<30: try perform(.makeDirectory(newDirectory()))
        case ..<32: if let path = directory() { try perform(.removeDirectory(path)) }
        case ..<39: if let path = file() { try perform(.remove(path)) }
        case ..<41: try node()
        case ..<48: if let path = file() { try perform(.link(path, newPath())) }
        case ..<66: if let path = file() { try perform(.rename(path, anyPath(), way())) }
        case ..<72: if let path = directory() { try perform(.rename(path, newDirectory(), way())) }
        case ..<77: try save()
        case ..<79: try saveByRemoval()
        case ..<82: try saveWithBackup()
        case ..<88: try putIntoTrash()
        case ..<93: try restoreFromTrash()
        case ..<97: try setSomething()
        case ..<99: if let path = directory() { try removeTree(path) }
        default: try emptyTrash()
        }
    }

    // MARK: Paths

    private mutating func pick<T>(_ choices: [T]) -> T? {
        choices.isEmpty ? nil : choices[roll(choices.count)]
    }

    private func paths(_ isWanted: (String, ModelNode) -> Bool) -> [String] {
        var found: [String] = []
        model.each { path, node in if isWanted(path, node) { found.append(path) } }
        return found
    }

    /// A name that is, or was, or may be some file's.
    private mutating func file() -> String? {
        if roll(20) == 0 { return anyPath() }
        let isInfo = trash + "/info/"
        return pick(paths { path, node in !node.isDirectory && !path.hasPrefix(isInfo) })
    }

    /// An album, a day or a directory in the trash, but none that all have in common.
    private mutating func directory() -> String? {
        pick(paths { path, node in node.isDirectory && !model.isShared(node) && path != base })
    }

    /// Where files can be put, and sometimes where they cannot.
    private mutating func place() -> String {
        let top = roll(60)
        if top < 2 { return top == 0 ? "" : "moments" }
        let isTrash = roll(4) == 0
        let places = paths { path, node in
            guard node.isDirectory, !model.isShared(node) || path == base || path == files else {
                return false
            }
            return path.hasPrefix(".") == isTrash
        }
        return pick(places) ?? base
    }

    private mutating func name() -> String {
        let stem = ["a", "b", "c"][roll(3)] + marker
        switch roll(16) {
        case 0: return ".\(stem).new"
        case 1: return stem + ".jpg~"
        case 2: return stem + ".part"
        case 3: return stem + " (2).jpg"
        case 4: return "n\(marker).txt"
        default: return stem + ".jpg"
        }
    }

    private func join(_ directory: String, _ name: String) -> String {
        directory.isEmpty ? name : directory + "/" + name
    }

    private mutating func newPath() -> String { join(place(), name()) }

    /// A place for a file, or one that has something already.
    private mutating func anyPath() -> String {
        let infos = trash + "/info/"
        guard roll(3) == 0, let path = pick(paths { !$1.isDirectory && !$0.hasPrefix(infos) }) else {
            return newPath()
        }
        return path
    }

    private mutating func newDirectory() -> String {
        switch roll(5) {
        case 0: return "moments/" + (pick(days + ["2011-02-29"].filter { _ in isAlone }) ?? "")
        case 1: return pick(paths { _, node in node.isDirectory && !model.isShared(node) }) ?? base
        case 2 where roll(4) == 0: return base + "/@eaDir"
        default: return join(place(), ["A", "B", "C", ".w"][roll(10) / 3] + marker)
        }
    }

    private mutating func way() -> ModelOperation.Way {
        switch roll(12) {
        case 0: .noReplace
        case 1, 2: .exchange
        default: .plain
        }
    }

    // MARK: Contents

    /// One of few pictures, so that many files have the same bytes.
    private mutating func picture() -> [UInt8] {
        let day = days[roll(3)]
        return jpeg(day, more: (Int(day.prefix(4)) ?? 0) * 8 + roll(4), size: 330 + roll(2))
    }

    private mutating func text() -> [UInt8] { Array("text \(anew())\n".utf8) }

    // MARK: Requests of programs

    private mutating func node() throws {
        let path = newPath()
        try perform(roll(2) == 0 ? .fifo(path) : .symbolicLink(path, target: name()))
    }

    /// As rsync, GLib and editors: a new file beside the old, renamed over it.
    private mutating func save() throws {
        guard let path = photo() else { return }
        let parts = split(path)
        let temporary = join(parts.directory, roll(2) == 0 ? ".s\(marker)" : "s\(marker).jpg")
        try perform(.write(temporary, picture()))
        try perform(.rename(temporary, path, .plain))
    }

    /// As digiKam; or of another photo, or by any file.
    private mutating func saveByRemoval() throws {
        guard let path = photo() else { return }
        let directory = split(path).directory
        let temporary = join(directory, roll(2) == 0 ? ".s\(marker)" : "s\(marker).jpg")
        if roll(4) > 0 { try perform(.write(temporary, picture())) }
        try perform(.replace(path, by: roll(4) > 0 ? temporary : file() ?? temporary))
    }

    /// As ImageMagick.
    private mutating func saveInTwoSteps() throws {
        guard let path = photo() else { return }
        try perform(.write(path, []))
        try perform(.write(path, roll(4) == 0 ? text() : picture()))
    }

    private mutating func saveWithBackup() throws {
        guard let path = photo() else { return }
        let backup = path + ["~", "_original", ".bak", ".orig", ".t", ".~1~"][roll(6)]
        try perform(roll(2) == 0 ? .rename(path, backup, .plain) : .link(path, backup))
        if roll(3) > 0 {
            try perform(.write(path, picture()))
        } else {
            let temporary = join(split(path).directory, ".s\(marker)")
            try perform(.write(temporary, picture()))
            try perform(.rename(temporary, path, .plain))
        }
    }

    private mutating func photo() -> String? {
        pick(paths { path, node in (node.isPhoto || node.original != nil) && !path.hasPrefix(".") })
    }

    private func split(_ path: String) -> (directory: String, name: String) {
        let parts = path.split(separator: "/").map(String.init)
        return (parts.dropLast().joined(separator: "/"), parts.last ?? "")
    }

    /// As file managers do.
    private mutating func putIntoTrash() throws {
        for path in [trash, files, trash + "/info"] where model.node(path) == nil {
            try perform(.makeDirectory(path))
        }
        guard let path = roll(4) == 0 ? directory() : file() else { return }
        let kept = "\(marker)-\(anew()).jpg"
        try perform(.write("\(trash)/info/\(kept).trashinfo", Array("[Trash Info]\nPath=\(path)\n".utf8)))
        try perform(.rename(path, "\(files)/\(kept)", .noReplace))
    }

    private mutating func restoreFromTrash() throws {
        guard let entries = model.node(files)?.listed, let one = pick(entries) else { return }
        let path = files + "/" + one.name.name
        try perform(.rename(path, one.node.isDirectory ? newDirectory() : anyPath(), .plain))
        try perform(.remove("\(trash)/info/\(one.name.name).trashinfo"))
    }

    private mutating func emptyTrash() throws {
        if isAlone && roll(2) == 0 { return try removeTree(trash) }
        for (row, node) in model.node(files)?.listed ?? [] {
            let path = files + "/" + row.name
            if node.isDirectory { try removeTree(path) } else { try perform(.remove(path)) }
            try perform(.remove("\(trash)/info/\(row.name).trashinfo"))
        }
    }

    /// As rm -r.
    private mutating func removeTree(_ path: String) throws {
        for (row, node) in model.node(path)?.listed ?? [] {
            let below = path + "/" + row.name
            if node.isDirectory { try removeTree(below) } else { try perform(.remove(below)) }
        }
        try perform(.removeDirectory(path))
    }

    private mutating func setSomething() throws {
        let paths = paths { path, node in
            (node.isFile || node.isDirectory && path.hasPrefix(base + "/")) && !model.isShared(node)
        }
        guard let path = pick(paths) else { return }
        let isFile = model.node(path)?.isFile ?? false
        switch roll(5) {
        case 0: try perform(.setMode(path, (isFile ? 0o600 : 0o700) + UInt32(roll(0o100))))
        case 1 where isFile: try perform(.touch(path, Int64(100_000_000 + roll(100_000))))
        case 2: try perform(.setAttribute(path, "user.obscura.captured", text()))
        case 3: try perform(.removeAttribute(path, "user.a"))
        default: try perform(.setAttribute(path, "user.\(["a", "b"][roll(2)])", text()))
        }
    }
}
