import CatalogueRows
public import FileRequests
import KernelNames
import LinuxIO
import PhotoRules
import VaultCatalogue
import VaultStore

extension Library {
    /// Attempts at a rename whose source changes while it is classified.
    private static let attemptsMax = 16

    /// renameat2(2), with the rules of photos: see `RenameRules.swift`.
    public func rename(
        _ parent: UInt64, _ name: Name, _ newParent: UInt64, _ newName: Name, _ flags: RenameFlags,
        _ caller: Caller
    ) throws(FileError) {
        try check(name)
        try checkNew(newName)
        guard flags != [.noReplace, .exchange] else { throw .invalid }
        guard Node(newParent).isReal else {
            guard !flags.contains(.exchange) else { throw .readOnly }
            return try restore(parent, name, into: newParent, newName, caller)
        }
        if !Node(parent).isReal {
            // File managers move into the trash what is deleted.
            let isIntoTrash = try session.locked { tree throws(FileError) in
                try tree.isInTrash(try tree.directory(newParent))
            }
            guard isIntoTrash, !flags.contains(.exchange) else { throw .readOnly }
        }
        try session.room.requireRowRoom(replacing: true)
        defer { session.observer?.awaitLostNames(locked: [parent, newParent]) }
        let attempt = RenameAttempt(session: session, classifier: classifier)
        for number in 0..<Self.attemptsMax {
            let info = try session.trashInfo(forRemoving: newName, from: newParent, as: .replaced)
            defer { session.destroyUnused(info) }
            let place = try StoredPlace(of: name, in: parent, self)
            if try attempt.once(place, newParent, newName, flags, caller, info, isFirst: number == 0) {
                if place.photo != nil { try tellPlace(place, ofTrashed: newName, in: newParent, caller) }
                return
            }
        }
        throw .busy
    }

    /// Restores a photo from the trash for a file manager that found it in a view, and moves it back there: to its own
    /// day and albums, as the name in the view is none of its own.
    private func restore(
        _ parent: UInt64, _ name: Name, into view: UInt64, _ newName: Name, _ caller: Caller
    ) throws(FileError) {
        guard case .view(let node) = Node(view), options.views, Node(parent).isReal,
            try session.views.mayRestore(into: node)
        else { throw .readOnly }
        try session.room.requireRowRoom()
        defer { session.observer?.awaitLostNames(locked: [parent, view]) }
        try session.change(by: caller.pid) { change throws(FileError) in
            let tree = change.tree
            let directory = try tree.directory(parent)
            guard let found = try tree.find(directory, name.bytes) else { throw .noEntry }
            guard try tree.isInTrash(directory), let photo = try tree.trash.trashedPhoto(behind: found.inode)
            else { throw .readOnly }
            try tree.companions.noteReturnBeside(photo, in: directory, change)
            try tree.trash.restore(photo, change)
            let row = DentryRow(
                parent: directory.ino, id: found.id, name: name.bytes, ino: found.inode.ino)
            try tree.trash.removeRestored(row, in: directory, change)
            // The kernel moves the name that it knows.
            tree.kernelNames.noteLoss(of: newName.bytes, in: view, isInDay: true)
        }
    }

    /// Gives the `.trashinfo` file of a photo that a file manager has moved out of a view the photo's place in moments:
    /// restored from there, it goes where it was, also when the view has changed. Without room for it, or without such
    /// a file, all stays as it is.
    private func tellPlace(
        _ place: StoredPlace, ofTrashed name: Name, in files: UInt64, _ caller: Caller
    ) throws(FileError) {
        let path = try session.locked { tree throws(FileError) -> [UInt8]? in
            guard try tree.trash.hasInfo(of: name.bytes, in: tree.directory(files)),
                let day = try tree.existing(place.directory)
            else { return nil }
            return try tree.path(of: day)
        }
        guard let path, let info = try? session.sealedInfo(of: path, place.name) else { return }
        defer { session.destroyUnused(info) }
        try session.change(for: .removal) { change throws(FileError) in
            try change.tree.trash.replaceInfo(
                of: name.bytes, in: change.tree.directory(files), by: info, caller, session.space, change)
        }
    }
}

/// One attempt at a rename: the source is classified first, with no lock held.
private struct RenameAttempt {
    let session: TreeSession
    let classifier: Classifier

    /// Throws `.stale` if the kernel is about to move a cached dentry that may be outdated: it would move the
    /// wrong inode.
    private func refuseOutdated(
        _ request: RenameRequest, _ flags: RenameFlags, _ tree: Tree
    ) throws(FileError) {
        var moved = [request.source]
        if flags.contains(.exchange), let target = request.target { moved.append(target.inode) }
        for inode in moved where inode.dentries.hasNewNames {
            let mustRetry = tree.kernelNames.mustRetryRename(
                of: &inode.dentries, by: request.caller.pid, isNotified: session.isKernelNotified)
            if mustRetry { throw .stale }
        }
    }

    /// Classification of a file at a revision: valid only while the bytes are the same.
    private struct ProbedRevision {
        var ino: UInt64
        var revision: UInt64
        var classification: Classification
    }

    /// Renames, unless the source changes meanwhile: then returns false, and another attempt follows.
    func once(
        _ place: StoredPlace, _ newParent: UInt64, _ newName: Name, _ flags: RenameFlags,
        _ caller: Caller, _ info: TrashInfo?, isFirst: Bool
    ) throws(FileError) -> Bool {
        let (wanted, unsaved, rows) = try session.locked {
            tree throws(FileError) -> (UInt64?, UInt64?, Int) in
            let found = try tree.renames.prepareRename(
                place.directory, place.name.bytes, newParent, newName.bytes, flags, caller, now: .now())
            guard let found else { return (nil, nil, 0) }
            if isFirst { try refuseOutdated(found, flags, tree) }
            let source = found.source
            let unsaved = source.state?.hasUnsaved == true ? source.ino : nil
            let rows = tree.trash.rowsChanging(with: source, in: found.from)
            guard !flags.contains(.exchange), try tree.renames.needsClassification(found) else {
                return (nil, unsaved, rows)
            }
            return (source.ino, nil, rows)
        }
        try session.room.requireRoom(toChangeRows: rows)
        // The rename survives a crash, so the bytes must be saved before the name.
        if let unsaved { try session.saveIfOpen(unsaved) }
        let probed = try wanted.map { ino throws(FileError) in try probe(ino, at: (newParent, newName.bytes))
        }
        let done = try session.change(by: caller.pid) { change throws(FileError) -> Outcome? in
            guard
                var request = try change.tree.renames.prepareRename(
                    place.directory, place.name.bytes, newParent, newName.bytes, flags, caller,
                    now: change.now)
            else { return .done }
            if let photo = place.photo {
                guard request.source.ino == photo else { return nil }
                change.tree.kernelNames.noteLoss(
                    of: place.name.bytes, in: place.directory, isInDay: true)
            }
            if flags.contains(.exchange) { return try exchange(request, change.tree) }
            if try change.tree.renames.needsClassification(request) {
                guard let probed, probed.ino == request.source.ino,
                    probed.revision == request.source.row.revision
                else { return nil }
                request.classification = probed.classification
            }
            if info == nil, let target = request.target?.inode,
                try change.tree.trash.isForTrash(target, in: request.to)
            {
                return nil
            }
            request.info = info
            // A file that is still being written must not get the content of another photo.
            let openState = request.source.state
            let isLocked = openState?.lockIfQuiescent() ?? false
            defer { if isLocked { openState?.writer.unlock() } }
            if openState != nil && !isLocked { request.classification.forgetEquals() }
            try change.tree.saves.undoRemoval(before: &request, change)
            let wasWorking =
                request.source.isDirectory ? try change.tree.isInWorkingDirectory(request.source) : false
            try change.tree.renames.rename(request, session.space, change)
            if request.classification.isUndecided {
                try change.tree.tables.pendingClassification.add(request.source.ino)
            }
            change.tree.renames.noteArrival(request)
            guard wasWorking else {
                if probed == nil, let sidecar = try change.tree.sidecars.sidecar(awaiting: request) {
                    return .classifyBesideSidecar(sidecar)
                }
                return .done
            }
            // A directory from the trash may hold photos that were taken out of moments meanwhile.
            let isRestored = request.isFromTrash && !request.isIntoTrash
            if !isRestored, try change.tree.isInWorkingDirectory(request.source) { return .done }
            try change.tree.tables.pendingClassification.add(request.source.ino)
            return .classifyBelow(request.source.ino)
        }
        switch done {
        case nil: return false
        case .done:
            if let probed, probed.classification.isUndecided { session.deferred.note(probed.ino) }
            if let probed, case .plain = probed.classification, isSidecarName(newName.bytes) {
                try classifier.classifyBesideSidecar(
                    try session.locked { tree throws(FileError) in try tree.inode(probed.ino) })
            }
        case .classifyBelow(let ino): try classifier.classifyBelow(ino)
        case .classifyBesideSidecar(let ino):
            try classifier.classifyBesideSidecar(
                try session.locked { tree throws(FileError) in try tree.inode(ino) })
        case .exchanged(let files, let directories):
            for ino in files { try classifier.classifyIfNeeded(ino) }
            for ino in directories { try classifier.classifyBelow(ino) }
        }
        return true
    }

    private func exchange(_ request: RenameRequest, _ tree: Tree) throws(FileError) -> Outcome {
        var both = [request.source]
        if let target = request.target { both.append(target.inode) }
        var working: [Inode] = []
        for inode in both where inode.isDirectory {
            if try tree.isInWorkingDirectory(inode) { working.append(inode) }
        }
        try tree.renames.exchange(request)
        var directories: [UInt64] = []
        for directory in working {
            guard try !tree.isInWorkingDirectory(directory) else { continue }
            try tree.tables.pendingClassification.add(directory.ino)
            directories.append(directory.ino)
        }
        return .exchanged(files: both.filter { !$0.isDirectory }.map(\.ino), directories: directories)
    }

    private enum Outcome {
        case done
        /// The files below this directory are no longer a program's working files.
        case classifyBelow(UInt64)
        /// A photo has come to where this sidecar was.
        case classifyBesideSidecar(UInt64)
        /// These files have other names now; the files below these directories are as for `classifyBelow`.
        case exchanged(files: [UInt64], directories: [UInt64])
    }

    /// Saves a file and classifies it.
    private func probe(_ ino: UInt64, at place: (parent: UInt64, name: [UInt8])) throws(FileError)
        -> ProbedRevision
    {
        try session.withState(of: ino) { file throws(FileError) in
            file.writer.lock()
            defer { file.writer.unlock() }
            if file.unsavedSince != nil { try session.save(file) }
            let classification = classifier.classify(file, at: place)
            let revision = try session.locked { _ throws(FileError) in file.inode.row.revision }
            return ProbedRevision(ino: ino, revision: revision, classification: classification)
        }
    }
}
