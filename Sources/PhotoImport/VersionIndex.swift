import CatalogueRows
import FileRequests
import LinuxIO
import PhotoImaging
public import PhotoLibrary
import PhotoRules
import VaultCatalogue

/// The versions of a space's photos, by size: a file that was imported and then edited is known by its original. Read
/// from the catalogue when first needed; versions that are added later are missing.
public final class VersionIndex {
    private struct Version {
        var ino: UInt64
        var photo: UInt64
    }

    private let library: Library
    private var versions: [UInt64: [Version]]?

    public init(_ library: Library) { self.library = library }

    /// A photo that had some bytes before it was edited.
    struct EditedPhoto {
        var ino: UInt64
        /// Whether it was removed, and lies in the trash.
        var isTrashed: Bool
    }

    /// The photo in moments or in the trash with a version that has exactly these bytes; nil if there is none. One in
    /// moments comes first. A photo that was taken at another time is no edit of them: somebody wrote it over them.
    ///
    /// - Parameters:
    ///   - facts: of these bytes.
    ///   - isCancelled: called repeatedly; once it returns true, versions not compared yet count as different.
    func photo(
        withVersion source: some ByteSource, _ facts: MediaFacts, unless isCancelled: () -> Bool = { false }
    ) throws(FileError) -> EditedPhoto? {
        var trashed: EditedPhoto?
        for version in try read()[source.byteCount] ?? [] {
            guard try library.search.holds(version.ino, source, unless: isCancelled) else { continue }
            let place = try library.session.locked {
                tree throws(FileError) -> (isTrashed: Bool, isIn: Bool) in
                guard let photo = try tree.existing(version.photo), photo.isPhoto else {
                    return (false, false)
                }
                if photo.isTrashed { return (true, true) }
                return (false, try tree.moments.moment(of: photo) != nil)
            }
            guard place.isIn, try isEdit(version.photo, of: version.ino, facts) else { continue }
            let found = EditedPhoto(ino: version.photo, isTrashed: place.isTrashed)
            if !found.isTrashed { return found }
            trashed = found
        }
        return trashed
    }

    /// Whether a photo is an edit of one of its versions: taken at the same time as far as they say, or with the same
    /// image data, because somebody corrected the date. Each version between them may be one step.
    private func isEdit(_ photo: UInt64, of version: UInt64, _ facts: MediaFacts) throws(FileError) -> Bool {
        let later = try library.session.locked { tree throws(FileError) -> [UInt64] in
            guard let directory = try tree.versions.versionsDirectory(of: photo) else { return [] }
            var versions: [(ino: UInt64, replaced: Timestamp)] = []
            for row in try tree.rows(of: directory) {
                versions.append((row.ino, try tree.inode(row.ino).row.changed))
            }
            versions.sort { $0.replaced < $1.replaced }
            let own = versions.firstIndex { $0.ino == version } ?? 0
            return versions.dropFirst(own + 1).prefix(Self.stepsMax).map(\.ino)
        }
        var (earlier, date) = (version, Self.date(facts))
        for next in later + [photo] {
            let nextDate = try present(next).flatMap(Self.date)
            if let date, let nextDate, date != nextDate, try !shareImageData(earlier, next) { return false }
            (earlier, date) = (next, nextDate ?? date)
        }
        return true
    }

    /// Versions that are compared to tell whether a photo is an edit.
    private static let stepsMax = 16

    private func present(_ ino: UInt64) throws(FileError) -> MediaFacts? {
        try library.session.withState(of: ino) { file throws(FileError) in readFacts(FileSource(file)) }
    }

    private func shareImageData(_ one: UInt64, _ other: UInt64) throws(FileError) -> Bool {
        try library.session.withState(of: one) { first throws(FileError) in
            try library.session.withState(of: other) { second throws(FileError) in
                PhotoImport.shareImageData(FileSource(first), FileSource(second))
            }
        }
    }

    /// When a photo was taken, by its bytes; nil if they say no more than when a program wrote them.
    private static func date(_ facts: MediaFacts) -> CivilTime? {
        let found = captureDate(
            facts, fileName: [], modified: 0, now: Timestamp.now().seconds, localOffset: localOffset)
        return found.source == .mtime || found.source == .dateTime ? nil : found.time
    }

    private func read() throws(FileError) -> [UInt64: [Version]] {
        if let versions { return versions }
        let found = try library.session.locked { tree throws(FileError) -> [UInt64: [Version]] in
            var found: [UInt64: [Version]] = [:]
            guard let root = try tree.existing(WellKnownInode.versions) else { return found }
            for directory in try tree.rows(of: root) {
                guard let photo = versionedFile(named: directory.name) else { continue }
                var versions: [UInt64] = []
                try tree.tables.dentries.each(in: directory.ino, after: 0) {
                    versions.append($0.ino)
                    return true
                }
                for ino in versions {
                    guard let version = try tree.tables.inodes.row(ino) else { continue }
                    found[version.size, default: []].append(Version(ino: ino, photo: photo))
                }
            }
            return found
        }
        versions = found
        return found
    }
}
