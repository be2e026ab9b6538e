import CatalogueRows
public import FileRequests
import FileTree
import LinuxIO
public import PhotoImaging
public import PhotoLibrary
import PhotoRules
import PhotoSession
import PhotoTree
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

    /// The photo in moments with a version that has exactly these bytes; nil if there is none. A photo that was taken
    /// at another time is no edit of them: somebody wrote it over them.
    ///
    /// - Parameters:
    ///   - facts: of these bytes.
    ///   - isCancelled: called repeatedly; once it returns true, versions not compared yet count as different.
    public func photo(
        withVersion source: some ByteSource, _ facts: MediaFacts, unless isCancelled: () -> Bool = { false }
    ) throws(FileError) -> UInt64? {
        for version in try read()[source.byteCount] ?? [] {
            guard try library.holds(version.ino, source, unless: isCancelled) else { continue }
            let isInMoments = try library.session.locked { tree throws(FileError) in
                guard let photo = try tree.existing(version.photo), photo.isPhoto else { return false }
                return try tree.moment(of: photo) != nil
            }
            guard isInMoments else { continue }
            let present = try library.session.withState(of: version.photo) { file throws(FileError) in
                readFacts(FileSource(file))
            }
            guard let own = Self.date(facts), let other = present.flatMap(Self.date), own != other else {
                return version.photo
            }
        }
        return nil
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
                try sql(
                    tree.tables.eachDentry(in: directory.ino, after: 0) {
                        versions.append($0.ino)
                        return true
                    })
                for ino in versions {
                    guard let version = try sql(tree.tables.inode(ino)) else { continue }
                    found[version.size, default: []].append(Version(ino: ino, photo: photo))
                }
            }
            return found
        }
        versions = found
        return found
    }
}
