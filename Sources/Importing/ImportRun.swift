package import FileRequests
import Glibc
package import HostFiles
import LinuxIO
import PhotoImaging
import PhotoImport
package import PhotoLibrary

/// The import of files and folders, and of trees that `obscura export` wrote.
package final class ImportRun: ImportTask {
    let library: Library
    let sources: SourceList
    let settings: ImportSettings
    package internal(set) var state: TransferState { didSet { onProgress?(state) } }
    package var onProgress: ((TransferState) -> Void)?
    package internal(set) var report = ImportReport()
    let removals: Removals?
    private let versions: VersionIndex
    /// Created with the first photo.
    private var album: UInt64?
    /// In a dry run, the sources seen so far by fingerprint: their photos are not in the library.
    private var seen: [UInt64: [HostPath]] = [:]

    /// Lists the sources.
    ///
    /// - Parameters:
    ///   - paths: files, directories and exports, none below another.
    ///   - vault: a directory to skip.
    package init(
        _ library: Library, _ paths: [HostPath], vault: FileIdentity?, _ settings: ImportSettings
    ) {
        self.library = library
        sources = SourceList(paths, vault: vault, restores: settings.album.isEmpty)
        self.settings = settings
        var state = TransferState(photosMax: sources.items.count, bytesMax: sources.byteCount)
        for export in sources.exports {
            let size = exportSize(export)
            state.photosMax += size.files
            state.bytesMax = sizeSum(state.bytesMax, size.bytes)
        }
        self.state = state
        removals =
            settings.moves && !settings.isDry ? Removals(library, unless: settings.isCancelled) : nil
        versions = VersionIndex(library)
        report.isDry = settings.isDry
        report.others = sources.others
        for (path, error) in sources.unreadable { report.addUnreadable(path, "\(error)") }
        for export in sources.exports where ExportMarker.isIn(export) {
            report.addUnreadable(
                export, "this export is not complete: run obscura export again, and import what it adds")
        }
    }

    /// Whether the user has called it off.
    var isCancelled: Bool { settings.isCancelled() }

    package func run() throws(FileError) {
        if !settings.album.isEmpty {
            // Refused before anything is read, if a file has that name.
            album = try library.importer.album(settings.album, makes: false)
        }
        let reader = SourceReader(sources)
        defer { reader.close() }
        var directory: Int?
        while !isCancelled, let (item, opened) = reader.next() {
            try removals?.flushIfDue(&report, isDirectoryDone: item.directory != directory)
            directory = item.directory
            switch opened {
            case .success(let opened): try take(item, opened.source, opened.facts)
            case .failure(let error): fail(sources.path(of: item), "\(error)", item.byteCount)
            }
        }
        for export in sources.exports where !isCancelled { try Reimport(self, export).run() }
        if isCancelled { try library.makeDurable() } else { try removals?.flush(&report) }
    }

    private func fail(_ path: HostPath, _ why: String, _ byteCount: UInt64) {
        report.addUnreadable(path, why)
        pass(byteCount)
    }

    /// Removes from the totals a file that is not, or no longer, to be added.
    func pass(_ byteCount: UInt64) {
        state.photosMax -= 1
        state.bytesMax -= min(byteCount, state.bytesMax)
    }

    private func take(
        _ item: SourceItem, _ source: SourceFile, _ facts: SourceFacts?
    ) throws(FileError) {
        let sidecars = openSidecars(of: item)
        let sidecar = ImportRules.sidecar(
            of: item.name, among: sidecars.map { ($0.path.name, $0) })
        let appraisal = try library.importer.classifyImport(
            source, facts, named: item.name, modified: source.modified, sidecar: sidecar, versions: versions,
            unless: settings.isCancelled)
        if isCancelled { return }
        if let error = source.failure { return fail(source.path, "\(error)", item.byteCount) }
        switch appraisal {
        case .notPhoto:
            report.others.append(source.path)
            report.others += item.sidecars.map { sources.path(of: $0, of: item) }
            pass(item.byteCount)
        case .duplicate(let ino): try takeDuplicate(ino, item, source, sidecars)
        case .earlier(let ino): try takeDuplicate(ino, item, source, sidecars, isEarlier: true)
        case .trashed: pass(item.byteCount)
        case .photo(let candidate):
            if settings.isDry {
                preview(candidate, source, sidecars.count)
            } else {
                try add(candidate, source, sidecars)
            }
        }
    }

    /// Without those that describe another photo which lies beside them too, and gets them.
    private func openSidecars(of item: SourceItem) -> [SourceFile] {
        item.sidecars.compactMap { name in
            let path = sources.path(of: name, of: item)
            do throws(Errno) {
                let file = try SourceFile(path)
                let others = ImportRules.photosDescribed(by: file, named: name, besides: item.name)
                let isOfAnother = others.contains {
                    (try? sources.path(of: $0, of: item).status())?.isRegular == true
                }
                return isOfAnother ? nil : file
            } catch {
                report.addUnreadable(path, "\(error)")
                return nil
            }
        }
    }

    private func takeDuplicate(
        _ ino: UInt64, _ item: SourceItem, _ source: SourceFile, _ sidecars: [SourceFile],
        isEarlier: Bool = false
    ) throws(FileError) {
        report.duplicates += 1
        pass(item.byteCount)
        if !settings.album.isEmpty {
            if settings.isDry {
                var isThere = false
                if let album { isThere = try library.importer.lies(ino, in: album) }
                report.joined += isThere ? 0 : 1
            } else if try library.importer.addToAlbum(ino, try albumInode(), named: item.name) {
                report.joined += 1
            }
        }
        for sidecar in sidecars where !settings.isDry {
            let known = try library.importer.add(
                sidecar: sidecar.importFile, of: ino, named: item.name, in: album)
            // A sidecar that differs from the one that the photo has stays where it is.
            guard let known else {
                report.differingSidecars.append(sidecar.path)
                continue
            }
            if known.isNew { report.sidecars += 1 }
            removals?.add(sidecar: sidecar, known.ino)
        }
        // A version may be given up one day: the source stays.
        if !isEarlier { removals?.add(source, ino) }
    }

    private func albumInode() throws(FileError) -> UInt64 {
        if let album { return album }
        let made = try library.importer.album(settings.album, makes: true)
        guard let made else { throw .noEntry }
        album = made
        return made
    }

    private func add(
        _ candidate: Candidate, _ source: SourceFile, _ sidecars: [SourceFile]
    ) throws(FileError) {
        let place = ImportPlace(album: settings.album.isEmpty ? nil : try albumInode())
        let added = try library.importer.add(
            candidate, source.importFile, sidecars: sidecars.map(\.importFile), to: place,
            proceed: noteBytes)
        guard let added else { return failToAdd([source] + sidecars) }
        note(candidate, day: candidate.day, source)
        for (sidecar, ino) in zip(sidecars, added.sidecars) {
            guard let ino else {
                report.addUnreadable(sidecar.path, "its name would be too long after its photo was numbered")
                continue
            }
            report.sidecars += 1
            removals?.add(sidecar: sidecar, ino)
        }
        removals?.add(source, added.photo)
    }

    /// Shows progress within a file. Returns false if the user interrupted.
    func noteBytes(_ count: UInt64) -> Bool {
        state.bytes = sizeSum(state.bytes, count)
        return !isCancelled
    }

    /// Reports why nothing of these files was added, unless the user interrupted.
    func failToAdd(_ files: [SourceFile]) {
        if isCancelled { return }
        for file in files {
            if let error = file.failure {
                report.addUnreadable(file.path, "\(error)")
            } else if !file.isUnchanged {
                report.addUnreadable(file.path, "it changed while it was read: run this again")
            }
        }
        state.photosMax -= 1
    }

    /// Counts a photo that was added.
    func note(_ candidate: Candidate, day: String, _ source: SourceFile) {
        report.add(day: day, source.byteCount)
        if candidate.isDatedByMtime { report.undated.append(source.path) }
        state.photos += 1
    }

    private func preview(_ candidate: Candidate, _ source: SourceFile, _ sidecarCount: Int) {
        for other in seen[candidate.fingerprint] ?? [] {
            guard let earlier = try? SourceFile(other) else { continue }
            let comparison = compare(earlier, source) { _ in isCancelled }
            guard case .equal = comparison else { continue }
            report.duplicates += 1
            return pass(source.byteCount)
        }
        seen[candidate.fingerprint, default: []].append(source.path)
        report.sidecars += sidecarCount
        state.bytes = sizeSum(state.bytes, source.byteCount)
        note(candidate, day: candidate.day, source)
    }
}
