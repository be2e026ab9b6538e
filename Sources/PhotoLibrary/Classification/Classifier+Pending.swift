import CatalogueRows
package import FileRequests
import LinuxIO
import PhotoRules
import VaultCatalogue
import VaultFormat
import VaultStore

/// Classification of files that no writer closes: after renames, and of those that earlier sessions left pending.
extension Classifier {
    /// Classifies a file and applies the result. `thread` is the thread that caused it, if any.
    package func classifyAndApply(_ ino: UInt64, by thread: Int32 = -1) throws(FileError) {
        try session.withState(of: ino) { file throws(FileError) in
            file.writer.lock()
            defer { file.writer.unlock() }
            try save(file, applying: classify(file), for: thread)
        }
    }

    /// Classifies a regular file that is not a photo yet, if one of its names allows it. Restores a file that was in
    /// the trash.
    package func classifyIfNeeded(_ ino: UInt64) throws(FileError) {
        if try restoreIfTrashed(ino) { return }
        let isWanted = try session.locked { tree throws(FileError) in
            let inode = try tree.inode(ino)
            guard inode.isRegular, !inode.isPhoto, !inode.isCopy, inode.row.size > 0 else { return false }
            return try tree.effects.classifiableName(of: inode) != nil
        }
        if isWanted { try classifyAndApply(ino) }
    }

    /// Classifies the files below a directory that is no longer a working one, a few at a time, so that others get
    /// their turn. After a crash the next session takes up the rest.
    package func classifyBelow(_ top: UInt64) throws(FileError) {
        var waiting = [top]
        var seen: Set<UInt64> = []
        while let directory = waiting.popLast() {
            // In a forged vault, directories may contain each other.
            guard seen.insert(directory).inserted else { continue }
            var cookie: UInt64 = 0
            while true {
                if deferred.isCancelled { return }
                let page = try session.locked { tree throws(FileError) in
                    try tree.page(of: directory, after: cookie)
                }
                for row in page.rows {
                    if page.directories.contains(row.ino) {
                        waiting.append(row.ino)
                    } else {
                        try classifyIfNeeded(row.ino)
                    }
                }
                guard let last = page.rows.last else { break }
                cookie = last.id
            }
        }
        try session.change { change throws(FileError) in
            try change.tree.tables.pendingClassification.remove(top)
        }
    }

    /// Resumes the classification that an earlier session left pending.
    package func classifyPendingFiles() throws(FileError) {
        for ino in try session.locked({ tree throws(FileError) in
            try tree.tables.pendingClassification.numbers()
        }) {
            if deferred.isCancelled { return }
            // A failed file is retried by the next session and does not hold up the others.
            try? classifyPending(ino)
        }
    }

    /// Classifies a directory that is no longer a working one, or a file that was synced but not closed in its session.
    package func classifyPending(_ ino: UInt64) throws(FileError) {
        let (isDirectory, isWanted) = try session.locked { tree throws(FileError) -> (Bool, Bool) in
            guard try tree.tables.inodes.row(ino) != nil else { return (false, false) }
            let inode = try tree.inode(ino)
            guard inode.isRegular, inode.row.size > 0 else { return (inode.isDirectory, false) }
            return try (false, inode.isPhoto ? true : tree.effects.classifiableName(of: inode) != nil)
        }
        if isDirectory { return try classifyBelow(ino) }
        if isWanted { return try classifyIfMedia(ino) }
        try session.change { change throws(FileError) in
            try change.tree.tables.pendingClassification.remove(ino)
        }
    }

    /// Classifies a file that may now be a picture or a video. A photo that was being rewritten stays a photo, because
    /// its writer had not finished. The file stays pending, for the next session, if it cannot be read or the
    /// comparison is called off; and while it has a writer, whose close will classify it.
    private func classifyIfMedia(_ ino: UInt64) throws(FileError) {
        try session.withState(of: ino) { file throws(FileError) in
            file.writer.lock()
            defer { file.writer.unlock() }
            for _ in 0..<Self.classificationsMax {
                if file.hasWriters { return }
                var classification = classify(file)
                if classification.isUndecided {
                    switch try compareAtLength(file, classification, for: nil) {
                    case .changed: continue
                    case .cancelled, .underWay: return
                    case .decided(let decided): classification = decided
                    }
                }
                switch classification {
                case .unknown: return
                case .plain:
                    return try session.save(file, isClassified: true) { change throws(FileError) in
                        try change.tree.tables.pendingClassification.remove(ino)
                    }
                case .media:
                    file.isNotedPending = true
                    return try save(file, applying: classification, for: -1)
                }
            }
        }
    }

    /// Restores a file that has left the trash as a photo; false if it was not a photo.
    private func restoreIfTrashed(_ ino: UInt64) throws(FileError) -> Bool {
        guard
            try session.locked({ tree throws(FileError) in
                try tree.trash.trashedPhoto(behind: tree.inode(ino)) != nil
            })
        else { return false }
        return try session.change { change throws(FileError) in
            guard let photo = try change.tree.trash.trashedPhoto(behind: change.tree.inode(ino)) else {
                return false
            }
            try change.tree.trash.restore(photo, change)
            return true
        }
    }
}
