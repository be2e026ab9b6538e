import LinuxIO
import VaultCatalogue
public import VaultStore

/// What was accepted and is in no durable root.
public struct UnwrittenChanges: Sendable, Equatable {
    /// Files whose bytes, names or attributes changed.
    public var fileCount = 0
    /// Whether there are more files than could be counted.
    public var isMore = false
    /// Some of their paths from the root of the mount.
    public var paths: [String] = []
    /// Whether something changed, be it no file.
    public var isAny = false
}

/// A space that takes no more writes: what it still does, and what is lost by it.
extension Library {
    /// Whether nothing may be changed: opened so, or writing has ended.
    public var isReadOnly: Bool { options.readOnly || space.writeStop != nil }

    /// Why nothing may be changed, where the space was to be written.
    public var writeStop: WriteStop? { space.writeStop }

    func requireWritable() throws(FileError) { if isReadOnly { throw .readOnly } }

    /// `freeze`, in the words of the store.
    func freezeForStore() throws(StoreError) -> FrozenCommit {
        do throws(FileError) { return try freeze() } catch {
            throw error == .noRoom ? .noRoom : .damaged
        }
    }

    /// All of the newest commit is durable.
    func noteDurable() { try? locked { tree throws(FileError) in tree.unwritten.noteDurable() } }

    // MARK: Writing what is left

    /// Saves all files, and makes all changes durable.
    public func settle() throws(FileError) {
        for file in context.unsavedFiles {
            file.writer.lock()
            defer { file.writer.unlock() }
            try save(file)
        }
        try applyCompanionMoves()
        try committer.makeDurable()
    }

    /// As `settle`; what fails is tried again within the bounds of the options, unless writing ends. Where it has, it
    /// is tried once.
    func settleForTheLastTime() {
        if isReadOnly {
            try? settleAfterStop()
            return
        }
        let bounds = options.commitRetries
        let end = options.clocks.monotonic() + bounds.milliseconds
        while !isReadOnly {
            if (try? settle()) != nil { return }
            guard !isReadOnly, options.clocks.monotonic() < end else { return }
            options.clocks.sleep(bounds.pauseMilliseconds)
        }
    }

    /// As `settle`, also where writing has ended and its cause may be gone. Where it is not, it stays ended.
    func settleAfterStop() throws(FileError) {
        guard let reason = space.writeStop else { return try settle() }
        guard hasUnwritten, space.resumeWriting() else { return try settle() }
        committer.noteResumed()
        do throws(FileError) { try settle() } catch {
            space.stopWriting(reason)
            throw error
        }
    }

    /// Gives up what is not written: `close` writes nothing, and is no failure.
    public func giveUp() { space.stopWriting(.givenUp) }

    /// The end of a session that takes no more writes. Throws where something is lost that nobody gave up.
    func closeStopped() throws(FileError) {
        let isLost = hasUnwritten && space.writeStop != .givenUp
        try? committer.stop()
        space.giveUpClaim()
        // Who has claimed the space sees to its times.
        if space.writeStop != .claimLost { unlocked?.blurTraces() }
        if isLost { throw .readOnly }
    }

    // MARK: What is not written

    /// Whether something was accepted that only the user can save, or give up: an idle mount with it is not ended.
    public var holdsUnwritten: Bool { space.writeStop != nil && hasUnwritten }

    /// Whether something that was accepted is in no durable root.
    var hasUnwritten: Bool {
        if options.readOnly { return false }
        return !context.unsavedFiles.isEmpty || committer.hasPending || !space.isClean
    }

    /// - Parameter limit: paths at most.
    func unwrittenChanges(paths limit: Int) throws(FileError) -> UnwrittenChanges {
        var changes = UnwrittenChanges()
        changes.isAny = hasUnwritten
        guard changes.isAny else { return changes }
        let unsaved = Set(context.unsavedFiles.map(\.ino))
        try locked { tree throws(FileError) in
            changes.isMore = tree.unwritten.isMore
            let finder = PathFinder(tables: tree.tables)
            for ino in unsaved.union(tree.unwrittenInodes).sorted() {
                // A file without a name has nobody who would miss it.
                guard let path = try sql(finder.paths(of: ino)).first else { continue }
                changes.fileCount += 1
                if changes.paths.count < limit { changes.paths.append(path) }
            }
        }
        return changes
    }

    // MARK: Answers

    /// Why the space, which was to be written, is not, and what the user can do about it.
    var stopLines: [(String, String)] {
        guard let stop = space.writeStop else { return [] }
        let advice = stop.advice(vault: unlocked?.path ?? "VAULT", isMounted: true)
        return [("reason", stop.reason)] + (advice.map { [("advice", oneLine($0))] } ?? [])
    }

    /// Files that are named at most, and bytes of their paths.
    private static let pathsMax = 32
    private static let pathBytesMax = 32_768

    /// Writes what is not written yet; then whether all is, else what is not, and why.
    func settledLines() throws(FileError) -> [(String, String)] {
        var failure = FileError.readOnly
        do throws(FileError) {
            try settleAfterStop()
            return [("written", "yes")]
        } catch { failure = error }
        let changes = try unwrittenChanges(paths: Self.pathsMax)
        if !changes.isAny { return [("written", "yes")] }
        let isFull = failure == .noRoom
        let reason = isFull ? "the vault's disk is full" : "the vault's disk reports an error"
        return [
            ("written", "no"), ("files", "\(changes.fileCount)"), ("more", changes.isMore ? "yes" : "no"),
            ("full", isFull ? "yes" : "no"),
            ("reason", space.writeStop?.reason ?? reason),
        ]
            + pathLines(changes.paths)
    }

    private func pathLines(_ paths: [String]) -> [(String, String)] {
        var left = Self.pathBytesMax
        return paths.map { ("path", oneLine($0)) }.prefix { line in
            left -= line.1.utf8.count
            return left >= 0
        }
    }
}

/// A text without control characters, which paths may hold.
private func oneLine(_ text: String) -> String {
    String(
        String.UnicodeScalarView(
            text.unicodeScalars.map { $0.value < 0x20 || (0x7F..<0xA0).contains($0.value) ? "?" : $0 }))
}
