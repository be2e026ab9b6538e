import Glibc

/// The trash by the contract.
extension ModelTree {
    /// The photo in the trash that a file there is, or stands for.
    func trashedPhoto(behind node: ModelNode) -> ModelNode? {
        let photo = node.isPhoto ? node : node.original
        return photo?.trashed == nil ? nil : photo
    }

    /// Removes a photo from its day, by a program that knows of no trash; where it has two names in moments, one of
    /// them.
    func removePhoto(_ node: ModelNode, named name: String, in directory: ModelNode) {
        if node.moments.count > 1, let one = node.names.first(where: { $0.isOf(directory, name) }) {
            return drop(one, of: node)
        }
        putIntoTrash(node, named: name, from: directory) { removeToTrash(node, named: name) }
    }

    /// Whether a file was a photo, whose versions it would take along with its only name: the trash keeps it.
    func isFormerPhoto(_ node: ModelNode, in directory: ModelNode) -> Bool {
        node.isFile && !node.isPhoto && node.hasVersions && node.names.count == 1 && !isInTrash(directory)
    }

    func removeFormerPhoto(_ node: ModelNode, _ row: ModelNode.Name) {
        putIntoTrash(node, named: row.name, from: row.directory) { drop(row, of: node) }
    }

    /// The trash that is there from the start, and its directories, which can be removed.
    func makeTrash() -> (files: ModelNode, infos: ModelNode) {
        let trash = privateDirectory(trashName, in: top)
        return (privateDirectory("files", in: trash), privateDirectory("info", in: trash))
    }

    private func putIntoTrash(
        _ node: ModelNode, named name: String, from directory: ModelNode, _ remove: () -> Void
    ) {
        let (files, infos) = makeTrash()
        var (kept, number) = (name, 2)
        while files.entries[kept] != nil || infos.entries[kept + ".trashinfo"] != nil {
            kept = modelNumbered(name, number)
            number += 1
        }
        add(files, kept, node)
        remove()
        let info = make(.file, mode: 0o600)
        let encoded = (path(of: directory) + "/" + name).utf8.map { byte in
            " ()@".utf8.contains(byte)
                ? "%" + String(byte, radix: 16, uppercase: true) : String(UnicodeScalar(byte))
        }.joined()
        info.bytes = Array("[Trash Info]\nPath=\(encoded)\n".utf8)
        add(infos, kept + ".trashinfo", info)
    }

    private func path(of directory: ModelNode) -> String {
        guard let name = directory.names.first else { return "" }
        let above = path(of: name.directory)
        return above.isEmpty ? name.name : above + "/" + name.name
    }

    /// Undoes `removePhoto`.
    func restoreRemoved(_ node: ModelNode) {
        guard let kept = node.names.last else { return }
        restore(node)
        drop(kept, of: node)
        guard let infos = kept.directory.parent?.entries["info"],
            let (row, info) = entry(infos, kept.name + ".trashinfo")
        else { return }
        remove(row, of: info)
    }

    private func privateDirectory(_ name: String, in parent: ModelNode) -> ModelNode {
        if let found = parent.entries[name] { return found }
        let made = make(.directory, mode: 0o700)
        add(parent, name, made)
        return made
    }

    /// Takes a photo out of moments and all albums; it has a name in the trash already.
    func removeToTrash(_ photo: ModelNode, named name: String) {
        var taken: [(node: ModelNode, name: ModelNode.Name)] = []
        for node in [photo] + photo.copies {
            for row in node.names where row.directory.day != nil || !isInTrash(row.directory) {
                if row.directory.day == nil { taken.append((node, row)) }
                row.directory.entries[row.name] = nil
                node.names.removeAll { $0.id == row.id }
            }
        }
        photo.trashed = ModelNode.Trashed(name: name, names: taken.sorted { $0.name.id < $1.name.id })
    }

    /// Gives a photo its day and its albums back.
    func restore(_ photo: ModelNode) {
        guard let kept = photo.trashed, let day = photo.photo?.day else { return }
        photo.trashed = nil
        if photo.moment == nil { addMoment(photo, day: day, name: kept.name) }
        for (node, row) in kept.names {
            let album = row.directory
            guard !node.isGone, !album.isGone, album.day == nil else { continue }
            // It may have been restored to this very place.
            if album.entries[row.name] === node { continue }
            add(album, freeName(album, row.name), node, isMember: row.isMember, isLink: row.isLink)
        }
        for (node, _) in kept.names where !node.isGone { endIfNameless(node) }
    }

    /// A photo of the trash is about to be none any more: a copy that has a name there is the photo from now on.
    func leaveTrash(_ photo: ModelNode) {
        guard let kept = photo.trashed else { return }
        photo.trashed = nil
        guard let successor = photo.copies.first(where: { !$0.names.isEmpty }) else {
            for copy in photo.copies { copy.isGone = true }
            photo.copies = []
            return
        }
        handOver(photo, to: successor)
        moveVersions(photo, to: successor)
        successor.photo = photo.photo
        successor.trashed = ModelNode.Trashed(name: kept.name, names: kept.names.filter { $0.node !== photo })
    }

    func trashFromDay(_ it: Renaming) -> Int32 {
        if let (row, node) = it.target { replace(row, of: node, with: it.source) }
        if it.source.isPhoto {
            add(it.to, it.newName, it.source)
            removeToTrash(it.source, named: it.row.name)
        } else {
            move(it)
        }
        return 0
    }

    func trashDay(_ it: Renaming) -> Int32 {
        if isBlocked(it) { return ENOTEMPTY }
        replaceDirectory(it)
        let rows = it.source.listed
        (it.source.day, it.source.isMadeByHand) = (nil, false)
        place(it)
        for (row, node) in ownNamesFirst(rows) where node.isPhoto && node.trashed == nil {
            removeToTrash(node, named: row.name)
        }
        return 0
    }

    func restoreIntoDay(_ it: Renaming) -> Int32 {
        guard let day = it.to.day else { return EPERM }
        guard it.source.isPhoto, it.source.trashed != nil else {
            guard it.source.isFile else { return EPERM }
            if let photo = trashedPhoto(behind: it.source) { restore(photo) }
            return moveIntoDay(it)
        }
        move(makeWay(it))
        restore(it.source)
        pin(it.source, to: day)
        return 0
    }

    func restoreDay(_ it: Renaming) -> Int32 {
        guard it.source.isDirectory, isModelDay(it.newName) else { return EPERM }
        let rows = it.source.listed
        guard rows.allSatisfy({ $0.node.isFile }) else { return EPERM }
        if isBlocked(it) { return ENOTEMPTY }
        replaceDirectory(it)
        place(it)
        it.source.day = it.newName
        it.source.isMadeByHand = rows.isEmpty
        var settled: Set<Int> = []
        for (row, node) in ownNamesFirst(rows) where settled.insert(node.number).inserted {
            settle(row, node, in: it.newName)
        }
        return 0
    }

    private func ownNamesFirst(
        _ rows: [(name: ModelNode.Name, node: ModelNode)]
    ) -> [(name: ModelNode.Name, node: ModelNode)] {
        rows.filter { !isModelBackup($0.name.name) } + rows.filter { isModelBackup($0.name.name) }
    }

    /// The name of a file is its place in the day that its directory has become, but for a backup beside it the only
    /// one in moments.
    private func settle(_ row: ModelNode.Name, _ node: ModelNode, in day: String) {
        guard node.names.contains(where: { $0.id == row.id }) else { return }
        if let photo = node.original {
            if photo.trashed != nil { restore(photo) }
            exchangeRoles(node, photo)
        }
        guard node.isPhoto else { return }
        if node.trashed != nil { restore(node) }
        for other in node.names where other.directory.day != nil && other.id != row.id {
            let isBeside = other.directory.day == day && isModelBackup(other.name)
            if isBeside && !isModelBackup(row.name) { continue }
            drop(other, of: node)
        }
        pin(node, to: day)
    }
}
