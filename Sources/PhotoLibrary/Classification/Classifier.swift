import CatalogueRows
import FileRequests
import LinuxIO
import PhotoImaging
package import PhotoRules
import VaultCatalogue
import VaultFormat
import VaultStore

/// How far classification searches for photos with the same bytes.
package enum EqualSearch {
    /// No search.
    case none
    /// Compares few bytes, because other requests wait for the file, or in the kernel for its directory.
    case brief
}

/// Classifies files by their bytes and applies the result to the tree: a photo, a copy of one, or neither.
package final class Classifier: Sendable {
    let session: TreeSession
    let search: PhotoSearch
    let deferred: DeferredWork

    package init(_ session: TreeSession, _ search: PhotoSearch, _ deferred: DeferredWork) {
        (self.session, self.search, self.deferred) = (session, search, deferred)
    }

    /// Classifies an open file and reads the sidecar next to it: next to `place`, the file's future name, if given,
    /// else next to its present name. Empty files are never photos.
    package func classify(
        _ file: FileState, at place: (parent: UInt64, name: [UInt8])? = nil,
        equals scope: EqualSearch = .brief
    ) -> Classification {
        var hasFailed = false
        let classification = classify(file, at: place, scope, &hasFailed)
        // A transient disk error may pass. Accepting it would lose a photo's date, or show the photo twice.
        return hasFailed ? classify(file, at: place, scope, &hasFailed) : classification
    }

    /// - Parameter hasFailed: set if a read failed.
    private func classify(
        _ file: FileState, at place: (parent: UInt64, name: [UInt8])?, _ scope: EqualSearch,
        _ hasFailed: inout Bool
    ) -> Classification {
        let source = FileSource(file)
        defer { if source.hasFailed { hasFailed = true } }
        guard source.byteCount > 0 else { return .plain }
        let facts = readFacts(source)
        if source.hasFailed { return .unknown }
        guard let facts else { return .plain }
        guard let fingerprint = fingerprint(of: source), !source.hasFailed else { return .unknown }
        var probe = MediaProbe(facts: facts, fingerprint: fingerprint)
        probe.sidecar = sidecar(of: file, at: place, &hasFailed)
        if case .none = scope { return .media(probe) }
        do throws(FileError) {
            // If the whole comparison would exceed the limit, read nothing.
            let workMax = session.space.limits.briefComparisonBytes
            let isLong = file.view.withLock { file.map.allocated } > workMax
            let found = try search.equalPhotos(to: source, fingerprint, except: file.ino) {
                isLong || $0 > workMax
            }
            (probe.equals, probe.isCompared) = (found.photos, found.isComplete)
        } catch { hasFailed = true }
        return .media(probe)
    }

    /// Where a photo was taken, by its own metadata and the sidecars beside it; nil if they cannot be read.
    func position(of ino: UInt64) throws(FileError) -> PhotoPosition? {
        try session.withState(of: ino) { file throws(FileError) in
            let source = FileSource(file)
            let facts = readFacts(source)
            var hasFailed = source.hasFailed
            let sidecar = sidecar(of: file, at: nil, &hasFailed)
            if hasFailed { return nil }
            return facts.map { photoPosition($0, sidecar) } ?? .absent
        }
    }

    /// The contents of the sidecars beside a file. An unreadable one counts as none: the photo has dates of its own.
    private func sidecar(
        of file: FileState, at place: (parent: UInt64, name: [UInt8])?, _ hasFailed: inout Bool
    ) -> Sidecar? {
        var found: [Sidecar] = []
        do throws(FileError) {
            let places = try session.locked { tree throws(FileError) in
                try tree.sidecars.candidates(of: file.inode, at: place)
            }
            for candidates in places {
                var beside: [(photo: [UInt8], name: [UInt8], contents: Sidecar)] = []
                for candidate in candidates {
                    let (sidecar, isUnread) = try session.withState(of: candidate.ino) {
                        state throws(FileError) -> (Sidecar?, Bool) in
                        let source = FileSource(state)
                        return (readSidecar(source), source.hasFailed)
                    }
                    if let sidecar { beside.append((candidate.photo, candidate.name, sidecar)) }
                    hasFailed = hasFailed || isUnread
                }
                if let sidecar = describing(beside) { found.append(sidecar) }
            }
        } catch { hasFailed = true }
        return first(of: found)
    }
}
