public import FileRequests
import FileTree
import LinuxIO
import PhotoTree
import Recovery
import VaultCatalogue
public import VaultStore

/// Accepted changes that are in no durable root.
public struct UnwrittenChanges: Sendable, Equatable {
    /// Files whose bytes, names or attributes changed.
    public var fileCount = 0
    /// Whether there are more files than were counted.
    public var isMore = false
    /// Some of their paths from the root of the mount.
    public var paths: [String] = []
    /// Whether anything changed, even if no file did.
    public var isAny = false
}

/// A space that takes no more writes: the remaining operations, and the loss of unwritten changes.
extension Library {
    /// Whether nothing may be changed: opened read-only, or writing has stopped.
    public var isReadOnly: Bool { options.readOnly || space.writeStop != nil }

    /// Why nothing may be changed, in a space that was opened for writing.
    public var writeStop: WriteStop? { space.writeStop }

    func requireWritable() throws(FileError) { if isReadOnly { throw .readOnly } }

    // MARK: Writing the rest

    /// Saves all files and makes all changes durable.
    public func settle() throws(FileError) {
        for file in context.unsavedFiles {
            file.writer.lock()
            defer { file.writer.unlock() }
            try save(file)
        }
        try applyCompanionMoves()
        try committer.makeDurable()
    }

    /// As `settle`, with retries within the limits of the options, until writing stops. After writing has stopped,
    /// tries once.
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

    /// As `settle`, but first resumes writing if it has stopped and the cause may have passed. If this fails, it stays
    /// stopped.
    private func settleAfterStop() throws(FileError) {
        guard let reason = space.writeStop else { return try settle() }
        guard hasUnwritten, space.resumeWriting() else { return try settle() }
        committer.noteResumed()
        do throws(FileError) { try settle() } catch {
            space.stopWriting(reason)
            throw error
        }
    }

    /// Gives up unwritten changes: `close` then writes nothing, and does not fail.
    public func giveUp() { space.stopWriting(.givenUp) }

    /// Ends a session that takes no more writes. Throws if changes are lost that the user did not give up.
    func closeStopped() throws(FileError) {
        let isLost = hasUnwritten && space.writeStop != .givenUp
        try? committer.stop()
        space.giveUpClaim()
        // The mount that has claimed the space is responsible for its files' times.
        if space.writeStop != .claimLost { unlocked?.blurTraces() }
        if isLost { throw .readOnly }
    }

    // MARK: Unwritten changes

    /// Whether there are accepted changes that only the user can save, or give up: such an idle mount is not ended.
    public var holdsUnwritten: Bool { space.writeStop != nil && hasUnwritten }

    /// Whether accepted changes are in no durable root.
    var hasUnwritten: Bool {
        if options.readOnly { return false }
        return !context.unsavedFiles.isEmpty || committer.hasPending || !space.isClean
    }

    /// - Parameter limit: maximum number of paths.
    func unwrittenChanges(paths limit: Int) throws(FileError) -> UnwrittenChanges {
        var changes = UnwrittenChanges()
        changes.isAny = hasUnwritten
        guard changes.isAny else { return changes }
        let unsaved = Set(context.unsavedFiles.map(\.ino))
        try locked { tree throws(FileError) in
            changes.isMore = tree.unwritten.isMore
            let finder = PathFinder(tables: tree.tables)
            for ino in unsaved.union(tree.unwrittenInodes).sorted() {
                // Nobody would miss a file without a name.
                guard let path = try sql(finder.paths(of: ino)).first else { continue }
                changes.fileCount += 1
                if changes.paths.count < limit { changes.paths.append(String(decoding: path, as: UTF8.self)) }
            }
        }
        return changes
    }

    // MARK: Answers

    /// Why a space that was opened for writing is not written, and advice to the user.
    var stopLines: [(String, String)] {
        guard let stop = space.writeStop else { return [] }
        let advice = stop.advice(vault: unlocked?.path ?? "VAULT", isMounted: true)
        return [("reason", stop.reason)] + (advice.map { [("advice", oneLine($0))] } ?? [])
    }

    /// Limits of the answer: files named, and bytes of their paths.
    private static let pathsMax = 32
    private static let pathBytesMax = 32_768

    /// Writes unwritten changes. Returns whether everything is written, else the rest and the reason.
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

/// The text with control characters, which paths may contain, replaced by `?`.
private func oneLine(_ text: String) -> String {
    String(
        String.UnicodeScalarView(
            text.unicodeScalars.map { $0.value < 0x20 || (0x7F..<0xA0).contains($0.value) ? "?" : $0 }))
}
