import LinuxIO
import VaultCatalogue

extension Library {
    /// How often a rename looks again when its source changed while it looked.
    private static let attemptsMax = 16

    /// renameat2(2), with the rules of photos: see INTERFACE, *The tree*.
    public func rename(
        _ parent: UInt64, _ name: Name, _ newParent: UInt64, _ newName: Name, _ flags: RenameFlags,
        _ caller: Caller
    ) throws(FileError) {
        try check(name)
        try check(newName)
        guard flags != [.noReplace, .exchange] else { throw .invalid }
        if VirtualInode.isVirtual(parent) || VirtualInode.isVirtual(newParent) { throw .readOnly }
        for _ in 0..<Self.attemptsMax {
            let info = try trashInfo(forRemoving: newName, from: newParent)
            defer { giveUp(info) }
            if try renameOnce(parent, name, newParent, newName, flags, caller, info) { return }
        }
        throw .busy
    }

    /// What a look at a file was at: it counts only while the bytes are the same.
    private struct ProbedVersion {
        var ino: UInt64
        var version: UInt64
        var classification: Classification
    }

    private func renameOnce(
        _ parent: UInt64, _ name: Name, _ newParent: UInt64, _ newName: Name, _ flags: RenameFlags,
        _ caller: Caller, _ info: TrashInfo?
    ) throws(FileError) -> Bool {
        let (wanted, unsaved) = try locked { tree throws(FileError) -> (UInt64?, UInt64?) in
            let found = try tree.prepareRename(parent, name.bytes, newParent, newName.bytes, flags, caller)
            guard let found else { return (nil, nil) }
            let source = found.source
            let unsaved = source.state?.hasUnsaved == true ? source.ino : nil
            guard !flags.contains(.exchange), try tree.needsClassification(found) else {
                return (nil, unsaved)
            }
            return (source.ino, nil)
        }
        // What was renamed survives a crash, so its bytes come before its name.
        if let unsaved { try saveIfOpen(unsaved) }
        let probed = try wanted.map { ino throws(FileError) in try probe(ino, at: (newParent, newName.bytes))
        }
        let done = try changing { tree throws(FileError) -> Outcome? in
            tree.actor = caller.pid
            guard
                var request = try tree.prepareRename(
                    parent, name.bytes, newParent, newName.bytes, flags, caller)
            else { return .done }
            if flags.contains(.exchange) { return try exchange(request, tree) }
            if try tree.needsClassification(request) {
                guard let probed, probed.ino == request.source.ino,
                    probed.version == request.source.row.version
                else { return nil }
                request.classification = probed.classification
            }
            if info == nil, try tree.isForTrash(request.to, request.newName) { return nil }
            request.info = info
            // Whoever still writes must not find another's bytes under the pen.
            let still = request.source.state
            let isStill = still?.holdStill() ?? false
            defer { if isStill { still?.writer.unlock() } }
            if still != nil && !isStill { request.classification.forgetEquals() }
            let wasWorking = request.source.isDirectory ? try tree.isWorking(request.source) : false
            try tree.rename(request, space)
            if request.classification.isUndecided {
                try sql(tree.tables.addPendingClassification(request.source.ino))
            }
            tree.noteArrival(request)
            request.source.state?.setTimes(modified: nil, changed: request.now)
            guard wasWorking else { return .done }
            // What comes out of the trash may hold photos that were taken out of moments meanwhile.
            let isRestored = request.isFromTrash && !request.isIntoTrash
            if !isRestored, try tree.isWorking(request.source) { return .done }
            try sql(tree.tables.addPendingClassification(request.source.ino))
            return .sweep(request.source.ino)
        }
        switch done {
        case nil: return false
        case .done:
            if let probed, probed.classification.isUndecided { deferredWork.note(probed.ino) }
            if let probed, case .plain = probed.classification, isSidecarName(newName.bytes) {
                try fileBesideSidecar(try locked { tree throws(FileError) in try tree.inode(probed.ino) })
            }
        case .sweep(let ino): try fileBelow(ino)
        case .exchanged(let files, let directories):
            for ino in files { try fileIfNeeded(ino) }
            for ino in directories { try fileBelow(ino) }
        }
        return true
    }

    private func exchange(_ request: RenameRequest, _ tree: Tree) throws(FileError) -> Outcome {
        var both = [request.source]
        if let target = request.target { both.append(target.inode) }
        var working: [Inode] = []
        for inode in both where inode.isDirectory {
            if try tree.isWorking(inode) { working.append(inode) }
        }
        try tree.exchange(request)
        var directories: [UInt64] = []
        for directory in working {
            guard try !tree.isWorking(directory) else { continue }
            try sql(tree.tables.addPendingClassification(directory.ino))
            directories.append(directory.ino)
        }
        return .exchanged(files: both.filter { !$0.isDirectory }.map(\.ino), directories: directories)
    }

    private enum Outcome {
        case done
        /// What lies below this directory is no longer a program's working files.
        case sweep(UInt64)
        /// These files have other names now, and what lies below these directories is as for `sweep`.
        case exchanged(files: [UInt64], directories: [UInt64])
    }

    /// Saves a file and looks at it.
    private func probe(_ ino: UInt64, at place: (parent: UInt64, name: [UInt8])) throws(FileError)
        -> ProbedVersion
    {
        try withState(of: ino) { file throws(FileError) in
            file.writer.lock()
            defer { file.writer.unlock() }
            if file.unsavedSince != nil { try save(file) }
            let classification = classify(file, at: place)
            let version = try locked { _ throws(FileError) in file.inode.row.version }
            return ProbedVersion(ino: ino, version: version, classification: classification)
        }
    }

    // MARK: Filing outside of close

    /// Looks at a file and files it, for a thread where it is one's doing.
    func lookAndFile(_ ino: UInt64, by actor: Int32 = -1) throws(FileError) {
        try withState(of: ino) { file throws(FileError) in
            file.writer.lock()
            defer { file.writer.unlock() }
            try save(file, filedBy: classify(file), for: actor)
        }
    }

    /// Files a regular file that is no photo yet, if one of its names allows it; restores one that was in the
    /// trash.
    func fileIfNeeded(_ ino: UInt64) throws(FileError) {
        if try restoreIfTrashed(ino) { return }
        let isWanted = try locked { tree throws(FileError) in
            let inode = try tree.inode(ino)
            guard inode.isRegular, !inode.isPhoto, !inode.isCopy, inode.row.size > 0 else { return false }
            return try tree.classifiableName(of: inode) != nil
        }
        if isWanted { try lookAndFile(ino) }
    }

    /// Files what lies below a directory that is no longer a working one; a few files at a time, so that
    /// others get their turn. What is left after a crash is taken up by the next session.
    func fileBelow(_ top: UInt64) throws(FileError) {
        var waiting = [top]
        var seen: Set<UInt64> = []
        while let directory = waiting.popLast() {
            // In a vault that somebody forged directories may lie in each other.
            guard seen.insert(directory).inserted else { continue }
            var cookie: UInt64 = 0
            while true {
                if deferredWork.isCalledOff { return }
                let page = try locked { tree throws(FileError) in try tree.page(of: directory, after: cookie)
                }
                for row in page.rows {
                    if page.directories.contains(row.ino) {
                        waiting.append(row.ino)
                    } else {
                        try fileIfNeeded(row.ino)
                    }
                }
                guard let last = page.rows.last else { break }
                cookie = last.id
            }
        }
        try changing { tree throws(FileError) in try sql(tree.tables.removePendingClassification(top)) }
    }

    /// Goes on where an earlier session was interrupted.
    func classifyPendingFiles() throws(FileError) {
        for ino in try locked({ tree throws(FileError) in try sql(tree.tables.pendingClassification()) }) {
            if deferredWork.isCalledOff { return }
            // What fails is tried again by the next session, and keeps none of the others from its place.
            try? classifyPending(ino)
        }
    }

    /// A directory that is no longer a working one, or a file that was synced but not closed when its session ended.
    func classifyPending(_ ino: UInt64) throws(FileError) {
        let (isDirectory, isWanted) = try locked { tree throws(FileError) -> (Bool, Bool) in
            guard try sql(tree.tables.inode(ino)) != nil else { return (false, false) }
            let inode = try tree.inode(ino)
            guard inode.isRegular, inode.row.size > 0 else { return (inode.isDirectory, false) }
            return try (false, inode.isPhoto ? true : tree.classifiableName(of: inode) != nil)
        }
        if isDirectory { return try fileBelow(ino) }
        if isWanted { return try fileIfMedia(ino) }
        try changing { tree throws(FileError) in try sql(tree.tables.removePendingClassification(ino)) }
    }

    /// Files what now is a picture or a video. A photo that was just being rewritten stays one: nobody has said yet
    /// that it is to be none. The next session is to try again where it cannot be read, where that is called off, and
    /// while somebody writes it, whose close will file it.
    private func fileIfMedia(_ ino: UInt64) throws(FileError) {
        try withState(of: ino) { file throws(FileError) in
            file.writer.lock()
            defer { file.writer.unlock() }
            for _ in 0..<Self.looksMax {
                if file.view.withLock({ file.writerCount > 0 }) { return }
                var classification = classify(file)
                if classification.isUndecided {
                    switch try compareAtLength(file, classification, for: nil) {
                    case .changed: continue
                    case .calledOff, .underWay: return
                    case .decided(let decided): classification = decided
                    }
                }
                switch classification {
                case .unknown: return
                case .plain:
                    return try save(file) { tree throws(FileError) in
                        try sql(tree.tables.removePendingClassification(ino))
                    }
                case .media:
                    file.isNotedUnfiled = true
                    return try save(file, filedBy: classification, for: -1)
                }
            }
        }
    }
}

extension Tree {
    /// Whether the directory itself or one above it is a working one.
    func isWorking(_ directory: Inode) throws(FileError) -> Bool { try isInWorkingDirectory(directory) }

    /// Some entries of a directory, and which of them are directories to go into.
    func page(
        of directory: UInt64, after cookie: UInt64
    ) throws(FileError) -> (rows: [DentryRow], directories: Set<UInt64>) {
        let rowsMax = 64
        var rows: [DentryRow] = []
        try sql(
            tables.eachDentry(in: directory, after: cookie) {
                rows.append($0)
                return rows.count < rowsMax
            })
        var directories: Set<UInt64> = []
        for row in rows {
            let inode = try inode(row.ino)
            if inode.isDirectory { directories.insert(row.ino) }
        }
        return (rows, directories)
    }
}
