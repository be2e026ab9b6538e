/// The effect of files' bytes: photos in moments, copies, plain files.
extension ModelTree {
    func isFileable(_ name: String, in directory: ModelNode) -> Bool {
        !isModelWorkingName(name) && !isInWorkingDirectory(directory)
    }

    func isInWorkingDirectory(_ directory: ModelNode) -> Bool {
        var current: ModelNode? = directory
        while let node = current, let name = node.names.first?.name {
            if name.hasPrefix(".") || name == "@eaDir" { return true }
            current = node.parent
        }
        return false
    }

    func fileableName(of node: ModelNode) -> ModelNode.Name? {
        node.names.first { isFileable($0.name, in: $0.directory) }
    }

    /// The last writer of a file closes it.
    func close(_ node: ModelNode) {
        if fileableName(of: node) != nil || node.isPhoto { file(node) }
    }

    func classifyIfNeeded(_ node: ModelNode) {
        if let photo = trashedPhoto(behind: node) { return restore(photo) }
        guard node.isFile, !node.isPhoto, node.original == nil, fileableName(of: node) != nil else { return }
        file(node)
    }

    /// Classifies the files below a directory that is no working one any more.
    func classifyBelow(_ directory: ModelNode) {
        var waiting = [directory]
        while let next = waiting.popLast() {
            for (_, node) in next.listed {
                if node.isDirectory { waiting.append(node) } else { classifyIfNeeded(node) }
            }
        }
    }

    /// Classifies a file by its present bytes.
    func file(_ node: ModelNode) {
        guard node.isFile, !node.names.isEmpty, node.original == nil else { return }
        guard let taken = node.takenDay else {
            // An emptied photo is one still.
            if node.isPhoto, !node.bytes.isEmpty { unfile(node) }
            return
        }
        let place = fileableName(of: node)
        if node.isPhoto {
            if let place, becomeCopy(node, place.directory) { return }
            refile(node, taken)
        } else if let place {
            fileAnew(node, taken, place)
        }
    }

    private func unfile(_ node: ModelNode) {
        if let moment = node.moment, let photo = node.photo {
            node.former = ModelNode.Former(
                photo: photo, directory: moment.directory, name: moment.name, session: session)
        }
        if node.names.count > 1, let moment = node.moment { drop(moment, of: node) }
        forgetPhoto(node)
    }

    private func refile(_ node: ModelNode, _ taken: String) {
        guard let old = node.photo, !old.isPinned, old.day != taken else { return }
        node.photo?.day = taken
        moveMoment(node, to: taken)
    }

    /// What it was before it was no photo, if it does not lie on another day by now.
    private func takeFormer(of node: ModelNode) -> ModelNode.Former? {
        defer { node.former = nil }
        guard let former = node.former, former.session == session else { return nil }
        if let moment = node.moment, !moment.isOf(former.directory, former.name) { return nil }
        return former
    }

    private func fileAnew(_ node: ModelNode, _ taken: String, _ place: ModelNode.Name) {
        var photo = ModelNode.Photo(day: taken)
        if let backup = backup(of: place.name, in: place.directory, except: node) {
            let staying = staying(of: backup, savedAs: place.name, in: place.directory)
            replacePhoto(
                from: backup, to: node, photo, except: staying, in: place.directory, named: place.name,
                isLookedAt: true)
            return
        }
        let former = takeFormer(of: node)
        if former?.photo.isPinned != true, becomeCopy(node, place.directory) { return }
        if let former {
            node.photo = former.photo
            guard node.moment == nil else { return refile(node, taken) }
            if !former.photo.isPinned { node.photo?.day = taken }
            return addMoment(
                node, day: former.photo.isPinned ? former.photo.day : taken,
                name: former.photo.isNamed ? former.name : place.name)
        }
        // Moments has it once: where it lies in a day already, that is its place.
        if let moment = node.moment, let day = moment.directory.day {
            for other in node.names where other.directory.day != nil && other.id != moment.id {
                drop(other, of: node)
            }
            if day != taken { photo = ModelNode.Photo(day: day, isPinned: true) }
            photo.isNamed = true
        } else {
            addMoment(node, day: taken, name: place.name)
        }
        node.photo = photo
    }

    // MARK: Days

    func dayDirectory(_ day: String) -> ModelNode {
        if let found = moments.entries[day] { return found }
        let made = make(.directory, mode: moments.mode)
        made.day = day
        add(moments, day, made)
        return made
    }

    func freeName(_ directory: ModelNode, _ name: String) -> String {
        var (candidate, number) = (name, 2)
        while directory.entries[candidate] != nil {
            candidate = modelNumbered(name, number)
            number += 1
        }
        return candidate
    }

    func addMoment(_ node: ModelNode, day: String, name: String) {
        let directory = dayDirectory(day)
        add(directory, freeName(directory, name), node)
    }

    func moveMoment(_ node: ModelNode, to day: String) {
        guard let moment = node.moment, moment.directory.day != day else { return }
        let directory = dayDirectory(day)
        let name = freeName(directory, moment.name)
        drop(moment, of: node)
        add(directory, name, node)
    }

    /// A photo's name in an album was changed from `row`, and is `newName` in `directory` now: its name in moments
    /// follows where it is named after that one, and was not given in moments.
    func followName(_ node: ModelNode, from row: ModelNode.Name, to newName: String, in directory: ModelNode)
    {
        guard row.name != newName, let photo = node.photo, !photo.isNamed, let moment = node.moment,
            isFileable(newName, in: directory), !isModelBackup(newName)
        else { return }
        let others = node.names.filter { $0.directory.day == nil && !$0.isOf(directory, newName) }
        let namesake = (others + [row]).filter { isModelNumbered(moment.name, of: $0.name) }
            .min { ($0.isMember ? 1 : 0, $0.id) < ($1.isMember ? 1 : 0, $1.id) }
        let wasWorking = !isFileable(row.name, in: row.directory) || isModelBackup(row.name)
        guard namesake.map({ $0.id == row.id }) ?? wasWorking else { return }
        // Its own name counts as free; if that is chosen, it is no newer than before.
        moment.directory.entries[moment.name] = nil
        let free = freeName(moment.directory, newName)
        moment.directory.entries[moment.name] = node
        guard free != moment.name else { return }
        drop(moment, of: node)
        add(moment.directory, free, node)
    }

    func pin(_ node: ModelNode, to day: String) {
        guard let photo = node.photo, photo.day != day else { return }
        node.photo?.day = day
        node.photo?.isPinned = true
    }

    /// A photo is a plain file from now on, or none at all.
    func forgetPhoto(_ node: ModelNode) {
        leaveTrash(node)
        node.photo = nil
    }

    // MARK: Copies

    /// All photos that stand in moments, by their numbers.
    private var photos: [ModelNode] {
        moments.entries.values.flatMap { Array($0.entries.values) }.filter(\.isPhoto)
            .sorted { $0.number < $1.number }
    }

    func becomeCopy(_ node: ModelNode, _ directory: ModelNode) -> Bool {
        guard directory.day == nil else { return false }
        if let photo = node.photo {
            if photo.isPinned || node.names.count < 2 { return false }
        } else if node.moment != nil {
            return false
        }
        guard let photo = photos.first(where: { $0 !== node && $0.bytes == node.bytes }) else { return false }
        if node.isPhoto {
            if let moment = node.moment { drop(moment, of: node) }
            forgetPhoto(node)
            for copy in node.copies { join(copy, photo) }
            node.copies = []
        }
        join(node, photo)
        return true
    }

    private func join(_ copy: ModelNode, _ photo: ModelNode) {
        copy.original = photo
        photo.copies.append(copy)
        photo.copies.sort { $0.number < $1.number }
    }

    /// The bytes are about to change: the file no longer stands for the same photo.
    func separate(_ node: ModelNode) {
        if node.isPhoto || node.original != nil { keepVersion(of: node, for: node) }
        if let photo = node.original {
            photo.copies.removeAll { $0 === node }
            node.original = nil
        }
        if node.isPhoto { promoteCopy(of: node) }
    }

    /// The first copy becomes the photo, under the same day.
    func promoteCopy(of node: ModelNode) {
        if node.trashed != nil, !node.copies.isEmpty { restore(node) }
        let named = node.copies.filter { !$0.names.isEmpty }
        let outside = { (row: ModelNode.Name) in !self.isInTrash(row.directory) }
        guard let photo = node.photo, let first = named.first(where: { $0.names.contains(where: outside) }),
            let name = first.names.first(where: outside)?.name
        else {
            for copy in named { copy.original = nil }
            node.copies.removeAll { $0.original == nil }
            return
        }
        handOver(node, to: first)
        first.photo = ModelNode.Photo(day: photo.day, isPinned: photo.isPinned)
        addMoment(first, day: photo.day, name: name)
    }

    /// A copy that is moved into a day takes the photo's part, and the photo that of a copy.
    func exchangeRoles(_ copy: ModelNode, _ node: ModelNode) {
        guard let photo = node.photo else { return }
        if let moment = node.moment { drop(moment, of: node) }
        handOver(node, to: copy)
        moveVersions(node, to: copy)
        node.photo = nil
        copy.photo = ModelNode.Photo(day: photo.day, isPinned: photo.isPinned)
        if node.names.isEmpty { endIfNameless(node) } else { join(node, copy) }
    }

    func handOver(_ photo: ModelNode, to copy: ModelNode) {
        copy.original = nil
        for other in photo.copies where other !== copy { join(other, copy) }
        photo.copies = []
    }

    /// Those of both; the original is that of the old one.
    func moveVersions(_ old: ModelNode, to new: ModelNode) {
        guard old.hasVersions else { return }
        (new.hasVersions, new.originalBytes) = (true, old.originalBytes)
        (old.hasVersions, old.originalBytes) = (false, nil)
    }

    /// Further versions depend on the time of the first.
    func keepVersion(of old: ModelNode, for new: ModelNode) {
        new.hasVersions = true
        if new.originalBytes == nil { new.originalBytes = old.bytes }
    }

    // MARK: Saving

    /// Whether a file was made in this mount and has no names but this and its own moment.
    func isNew(_ node: ModelNode, _ name: ModelNode.Name) -> Bool {
        guard node.session == session, node.names.count <= 2 else { return false }
        for other in node.names where other.id != name.id {
            if name.directory.day != nil || other.directory.day == nil { return false }
        }
        if let photo = node.photo, name.directory.day == nil { return !photo.isPinned }
        return true
    }

    /// The photo that an editor renamed from `name` to a backup's.
    func backup(of name: String, in directory: ModelNode, except node: ModelNode) -> ModelNode? {
        modelBackups(of: name).compactMap { directory.entries[$0] }.first { found in
            guard found !== node, let photo = found.photo else { return false }
            return photo.former == name
        }
    }

    /// The numbers of those names that stay with a photo's old bytes when `name` is saved anew.
    func staying(of old: ModelNode, savedAs name: String, in place: ModelNode) -> Set<Int> {
        let isBackup = { (row: ModelNode.Name) in
            row.directory === place && modelBackups(of: name).contains(row.name)
        }
        let former = old.moments.filter { $0.id != old.moment?.id }
        let backups =
            old.names.filter { row in isBackup(row) && !former.contains { $0.id == row.id } } + former
        let saved = old.names.first { $0.isOf(place, name) } ?? backups.first
        if place.day != nil { return Set(backups.map(\.id)) }
        // Where the photo was put in it follows; its other hard links are left as they were.
        let plain = old.names.filter {
            !$0.isMember && $0.directory.day == nil
                && ($0.id == saved?.id || !isModelWorkingName($0.name) && !isBackup($0))
        }
        let first = plain.first { !$0.isLink }
        return Set((backups + plain.filter { $0.id != saved?.id && $0.id != first?.id }).map(\.id))
    }

    /// A photo's moment and memberships mean another file from now on.
    func replacePhoto(
        from old: ModelNode, to new: ModelNode, _ photo: ModelNode.Photo, except staying: Set<Int>,
        in place: ModelNode, named name: String, isLookedAt: Bool = false
    ) {
        guard let previous = old.photo else { return }
        if new.isPhoto, let own = new.moment, !own.isOf(place, name) { drop(own, of: new) }
        if old.hasVersions { moveVersions(old, to: new) } else { new.originalBytes = nil }
        if !isLookedAt || old.bytes != new.bytes { keepVersion(of: old, for: new) }
        var link: String?
        var mark: ModelNode.Name?
        let hasSaved = old.names.contains { $0.isOf(place, name) }
        for row in old.names {
            if staying.contains(row.id) {
                let isBackup = row.directory === place && modelBackups(of: name).contains(row.name)
                if isBackup, !hasSaved { mark = row }
                if !isBackup && row.directory.day == nil { link = link ?? row.name }
                continue
            }
            old.names.removeAll { $0.id == row.id }
            row.directory.entries[row.name] = new
            new.names.append(row)
        }
        new.names.sort { $0.id < $1.id }
        if let mark, place.day == nil, let own = new.names.first(where: { $0.isOf(place, name) }),
            own.isMember != mark.isMember || own.isLink != mark.isLink
        {
            drop(own, of: new)
            add(place, name, new, isMember: mark.isMember, isLink: mark.isLink)
        }
        if let link {
            addMoment(old, day: previous.day, name: link)
            old.photo?.isNamed = false
        } else {
            if isLookedAt && old.bytes == new.bytes {
                for copy in old.copies { join(copy, new) }
                old.copies = []
            }
            promoteCopy(of: old)
            forgetPhoto(old)
            endIfNameless(old)
        }
        var photo = photo
        if previous.isPinned { (photo.day, photo.isPinned) = (previous.day, true) }
        photo.isNamed = previous.isNamed
        new.photo = photo
        moveMoment(new, to: photo.day)
    }
}
