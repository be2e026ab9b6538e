import CatalogueRows
package import FileRequests
import LinuxIO
package import PhotoRules
import VaultCatalogue
import VaultFormat
import VaultStore

/// Classification of files that were written.
extension Classifier {
    /// Attempts at classifying a file that changes meanwhile.
    static let classificationsMax = 16

    /// Saves a file and, if no writer is left, classifies it. The writer's lock is held, and released during a long
    /// comparison.
    package func close(
        _ file: FileState, isReleased: Bool, _ request: (any LongRequest)?
    ) throws(FileError) {
        for _ in 0..<Self.classificationsMax {
            // `cat new >photo`: the shell closes a copy of the descriptor between truncating and writing. Only the
            // close of the last copy tells whether the file stays empty.
            var isDeferred = false
            if !isReleased, file.view.withLock({ file.size == 0 }) {
                isDeferred = try session.locked { _ throws(FileError) in file.inode.isPhoto }
            }
            let isLast = !file.hasWriters
            guard isLast, file.needsClassification, !isDeferred else {
                if file.unsavedSince != nil { try session.save(file) }
                if isLast, !isDeferred { session.endEdit(of: file) }
                return
            }
            let (place, isPhoto) = try session.locked { tree throws(FileError) in
                (try tree.effects.classifiableName(of: file.inode)?.row, file.inode.isPhoto)
            }
            var classification =
                place != nil || isPhoto ? classify(file, at: place.map { ($0.parent, $0.name) }) : .unknown
            if classification.isUndecided {
                switch try compareAtLength(file, classification, for: request) {
                case .changed: continue
                case .underWay: return
                case .cancelled:
                    file.needsClassification = false
                    return deferClassification(file)
                case .decided(let decided): classification = decided
                }
            }
            try save(file, applying: classification, for: file.lastWriter)
            file.needsClassification = false
            session.endEdit(of: file)
            if case .plain = classification, let place, isSidecarName(place.name) {
                try classifyBesideSidecar(file.inode)
            }
            return
        }
        // Other threads keep changing the file: the last of them classifies it.
    }

    /// Re-dates the photos next to a sidecar that is new or has changed.
    package func classifyBesideSidecar(_ inode: Inode) throws(FileError) {
        let photos = try session.locked { tree throws(FileError) in
            try tree.sidecars.photos(besideSidecar: inode)
        }
        for photo in photos where photo != inode.ino { try classifyAndApply(photo) }
    }

    /// Dates a photo anew whose sidecars have changed, and which the catalogue lists as pending classification. The
    /// photo stays pending if it cannot be read.
    package func redate(_ ino: UInt64) throws(FileError) {
        try session.withState(of: ino) { file throws(FileError) in
            file.writer.lock()
            defer { file.writer.unlock() }
            file.isNotedPending = true
            // Its writer's close classifies it.
            if file.hasWriters, file.needsClassification { return }
            let classification = classify(file)
            guard case .media = classification else { return }
            try save(file, applying: classification, for: -1)
        }
    }

    /// Saves a file and applies its classification. `thread` is the thread that caused it, if any. Undecided photos are
    /// left to `DeferredWork`.
    package func save(_ file: FileState, applying classification: Classification, for thread: Int32)
        throws(FileError)
    {
        let wasNoted = file.isNotedPending
        try session.save(file, by: thread, isClassified: true) { change throws(FileError) in
            try change.tree.effects.apply(classification, to: file.inode, session.space, change)
            if classification.isUndecided {
                try change.tree.tables.pendingClassification.add(file.ino)
            } else if wasNoted {
                try change.tree.tables.pendingClassification.remove(file.ino)
            }
        }
        file.isNotedPending = false
        if classification.isUndecided { deferClassification(file) }
    }

    /// Leaves a file, which the catalogue lists as pending classification, to `DeferredWork`. The writer's lock is
    /// held.
    package func deferClassification(_ file: FileState) {
        file.isNotedPending = true
        deferred.note(file.ino)
    }
}
