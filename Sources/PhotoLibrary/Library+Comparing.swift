import LinuxIO

/// What became of a comparison that took long.
enum LongComparison {
    case decided(Classification)
    /// The file is another than was looked at.
    case changed
    /// Whoever asked for it waits no more, or the mount is about to end.
    case calledOff
    /// Another does the same, and files the file afterwards.
    case underWay
}

/// Photos with the same bytes, where there is much to compare: nobody else waits for that.
extension Library {
    /// Ends a look at a file that left photos to be compared. The writer's lock is held, and given up meanwhile.
    ///
    /// The file is saved before, and the catalogue has it among those to be filed: whatever ends this, the next session
    /// can take it up.
    func compareAtLength(
        _ file: FileState, _ classification: Classification, for request: (any LongRequest)?
    ) throws(FileError) -> LongComparison {
        guard case .media(var probe) = classification else { return .decided(classification) }
        if file.needsFiling { try saveForGood(file) }
        let seen = file.view.withLock { file.changeCount }
        if file.comparedCount == seen { return .underWay }
        guard !deferredWork.isCalledOff, request == nil || deferredWork.beginComparison() else {
            return .calledOff
        }
        defer { if request != nil { deferredWork.endComparison() } }
        file.comparedCount = seen
        file.writer.unlock()
        var found: Result<EqualPhotos, FileError> = .success(EqualPhotos(isComplete: false))
        func search(unless cancellation: Cancellation?) {
            found = findEquals(of: file, probe.fingerprint) { [deferredWork] in
                deferredWork.isCalledOff || cancellation?.isCancelled == true
                    || file.view.withLock { file.changeCount } != seen
            }
        }
        if let request { request.lasting { search(unless: $0) } } else { search(unless: nil) }
        file.writer.lock()
        if file.comparedCount == seen { file.comparedCount = nil }
        if file.view.withLock({ file.changeCount }) != seen { return .changed }
        guard let equals = try? found.get() else {
            // What cannot be asked for now is not equal to anything.
            probe.isCompared = true
            return .decided(.media(probe))
        }
        guard equals.isComplete else { return .calledOff }
        (probe.equals, probe.isCompared) = (equals.photos, true)
        return .decided(.media(probe))
    }

    /// A disk that has failed once may not fail again.
    private func findEquals(
        of file: FileState, _ fingerprint: UInt64, unless isCalledOff: () -> Bool
    ) -> Result<EqualPhotos, FileError> {
        var result: Result<EqualPhotos, FileError> = .success(EqualPhotos())
        for _ in 0..<2 {
            let source = FileSource(file)
            do throws(FileError) {
                result = .success(
                    try equalPhotos(to: source, fingerprint, besides: file.ino) { _ in isCalledOff() })
            } catch { result = .failure(error) }
            if !source.hasFailed { break }
        }
        return result
    }
}
