import FileRequests
import LinuxIO
import PhotoRules

/// Outcome of a long comparison.
enum LongComparison {
    case decided(Classification)
    /// The file changed meanwhile.
    case changed
    /// Cancelled by the client or by the end of the mount, or not begun because too many are running.
    case cancelled
    /// Another thread makes the same comparison, and classifies the file afterwards.
    case underWay
}

/// Long comparisons with photos that may have the same bytes. No other request waits for them.
extension Classifier {
    /// Completes a classification that left photos to compare. The writer's lock is held, and released meanwhile.
    ///
    /// The file is saved first, and the catalogue lists it as pending classification, so that the next session can take
    /// up an interrupted comparison.
    func compareAtLength(
        _ file: FileState, _ classification: Classification, for request: (any LongRequest)?
    ) throws(FileError) -> LongComparison {
        guard case .media(var probe) = classification else { return .decided(classification) }
        if file.needsClassification { try session.saveForGood(file) }
        let seen = file.view.withLock { file.changeCount }
        if file.comparedCount == seen { return .underWay }
        guard !deferred.isCancelled, request == nil || deferred.beginComparison() else {
            return .cancelled
        }
        defer { if request != nil { deferred.endComparison() } }
        file.comparedCount = seen
        file.writer.unlock()
        var found: Result<EqualPhotos, FileError> = .success(EqualPhotos(isComplete: false))
        func search(unless cancellation: Cancellation?) {
            found = findEquals(of: file, probe.fingerprint) { [deferred] in
                deferred.isCancelled || cancellation?.isCancelled == true
                    || file.view.withLock { file.changeCount } != seen
            }
        }
        if let request { request.lasting { search(unless: $0) } } else { search(unless: nil) }
        file.writer.lock()
        if file.comparedCount == seen { file.comparedCount = nil }
        if file.view.withLock({ file.changeCount }) != seen { return .changed }
        guard let equals = try? found.get() else {
            // If the search fails, the file counts as equal to no photo.
            probe.isCompared = true
            return .decided(.media(probe))
        }
        guard equals.isComplete else { return .cancelled }
        (probe.equals, probe.isCompared) = (equals.photos, true)
        return .decided(.media(probe))
    }

    /// Retries once, because a disk error may be transient.
    private func findEquals(
        of file: FileState, _ fingerprint: UInt64, unless isCancelled: () -> Bool
    ) -> Result<EqualPhotos, FileError> {
        var result: Result<EqualPhotos, FileError> = .success(EqualPhotos())
        for _ in 0..<2 {
            let source = FileSource(file)
            do throws(FileError) {
                result = .success(
                    try search.equalPhotos(to: source, fingerprint, except: file.ino) { _ in isCancelled() })
            } catch { result = .failure(error) }
            if !source.hasFailed { break }
        }
        return result
    }
}
