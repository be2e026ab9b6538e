package import FileRequests
import LinuxIO
import VaultCatalogue
import VaultStore

/// Accepted changes that are in no durable root.
package struct UnwrittenChanges: Sendable, Equatable {
    /// Files whose bytes, names or attributes changed.
    package var fileCount = 0
    /// Whether there are more files than were counted.
    package var isMore = false
    /// Some of their paths from the root of the mount.
    package var paths: [String] = []
    /// Whether anything changed, even if no file did.
    package var isAny = false
}

/// A space that takes no more writes: the remaining operations, and the loss of unwritten changes.
extension TreeSession {
    /// Whether nothing may be changed: opened read-only, or writing has stopped.
    package var isReadOnly: Bool { options.readOnly || space.writeStop != nil }

    // MARK: Writing the rest

    /// Saves all files and makes all changes durable.
    package func flushAll() throws(FileError) {
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
    package func flushAtEnd() {
        if isReadOnly {
            // `close` reports what could not be written.
            try? flushAfterStop()
            return
        }
        let bounds = options.commitRetries
        let end = options.clocks.monotonic() + bounds.milliseconds
        while !isReadOnly {
            if (try? flushAll()) != nil { return }
            guard !isReadOnly, options.clocks.monotonic() < end else { return }
            options.clocks.sleep(bounds.pauseMilliseconds)
        }
    }

    /// As `settle`, but first resumes writing if it has stopped and the cause may have passed. If this fails, it stays
    /// stopped.
    package func flushAfterStop() throws(FileError) {
        guard let reason = space.writeStop else { return try flushAll() }
        guard hasUnwritten, space.resumeWriting() else { return try flushAll() }
        committer.noteResumed()
        do throws(FileError) { try flushAll() } catch {
            space.stopWriting(reason)
            throw error
        }
    }

    // MARK: Unwritten changes

    /// Whether accepted changes are in no durable root.
    package var hasUnwritten: Bool {
        if options.readOnly { return false }
        return !context.unsavedFiles.isEmpty || committer.hasPending || !space.isClean
    }

    /// - Parameter limit: maximum number of paths.
    package func unwrittenChanges(paths limit: Int) throws(FileError) -> UnwrittenChanges {
        var changes = UnwrittenChanges()
        changes.isAny = hasUnwritten
        guard changes.isAny else { return changes }
        let unsaved = Set(context.unsavedFiles.map(\.ino))
        try locked { tree throws(FileError) in
            changes.isMore = tree.unwritten.isMore
            let finder = PathFinder(tables: tree.tables)
            for ino in unsaved.union(tree.unwrittenInodes).sorted() {
                // Nobody would miss a file without a name.
                guard let path = try finder.paths(of: ino).first else { continue }
                changes.fileCount += 1
                if changes.paths.count < limit { changes.paths.append(String(decoding: path, as: UTF8.self)) }
            }
        }
        return changes
    }
}
