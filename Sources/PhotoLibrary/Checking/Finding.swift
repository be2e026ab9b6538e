import CatalogueRows
import Encodings
package import FileRequests
import PhotoRules
package import VaultCatalogue
import VaultFormat
package import VaultStore

/// The part of a space that a finding is about. The raw values are part of the output of `check --json`.
public enum FindingKind: String, Sendable, Hashable, CaseIterable {
    /// Bytes of a file.
    case file
    case thumbnail
    /// Metadata stored beside a file's bytes, from which a lost catalogue is rebuilt.
    case record
    /// Bytes that no file uses.
    case content
    /// The names, sizes and attributes of files.
    case catalogue
    /// Records of which sectors are in use.
    case allocation
    /// Pages and roots, of which there are two copies.
    case structure
    case segment
    /// The space as a whole.
    case space
}

/// One thing that a check found wrong.
public struct Finding: Sendable, Hashable {
    /// The paths of a file, as a user of a mount sees them, or the part of the space.
    public var subject: String
    /// Printed after the subject and a colon.
    public var cause: String
    public var kind: FindingKind
    /// The paths of the files, from the root of a mount, each as bytes of no particular encoding.
    public var paths: [[UInt8]] = []
    /// Whether no data is lost yet.
    public var isHarmless = false
    /// Whether bytes of a file are lost: only a backup can restore them.
    public var isOfFile = false
    /// Whether it is no damage yet: one of two copies does not open, as a power cut may leave it, and the next session
    /// that writes makes both anew.
    public var isNote = false
    /// The affected bytes of a content.
    package var bytes: ContentRange?

    package init(
        subject: String, cause: String, kind: FindingKind, paths: [[UInt8]] = [], isHarmless: Bool = false,
        isOfFile: Bool = false, isNote: Bool = false
    ) {
        (self.subject, self.cause, self.kind, self.paths) = (subject, cause, kind, paths)
        (self.isHarmless, self.isOfFile, self.isNote) = (isHarmless, isOfFile, isNote)
    }

    /// One line. Control characters, which names may hold, become `?`.
    public var text: String { oneLine("\(subject): \(cause)") }
}

/// A range of bytes of a content.
package struct ContentRange: Sendable, Hashable {
    package var key: ContentKey
    package var offset: UInt64
    package var length: UInt64
}

extension Finding {
    /// Whether another one is about the same bytes.
    public func isAboutBytes(of other: Finding) -> Bool { bytes != nil && bytes == other.bytes }

    package init(_ damage: StructureDamage) {
        let copy = damage.isADamaged ? "A" : "B"
        self =
            damage.isLost
            ? Finding(subject: damage.part.text, cause: "both copies are damaged", kind: .structure)
            : Finding(
                subject: damage.part.text, cause: "one copy of two is damaged (\(copy))",
                kind: .structure, isHarmless: true, isNote: true)
    }

    package init(_ fault: SegmentFault) {
        self.init(subject: fault.subject, cause: fault.cause, kind: .segment)
    }

    package init(_ damage: ExtentDamage, of owner: Owner) {
        // A damaged row may hold any numbers.
        let range = "bytes \(damage.offset) to \(damage.offset &+ damage.length &- 1)"
        let cause =
            switch damage.fault {
            case .unauthentic, .another: "\(range) cannot be authenticated"
            case .segment(let fault): "\(range) are lost: \(fault.text)"
            case .unreadable(let number): "\(range) cannot be read: \(number)"
            case .descriptor: "the descriptor of \(range) is damaged; the bytes are intact"
            case .impossible:
                "invalid extent at offset \(damage.offset): length or sectors out of range"
            case .lost: "\(range) are lost"
            }
        var isHarmless = false
        if case .descriptor = damage.fault { isHarmless = true }
        switch owner {
        case .file(let owners):
            self.init(
                subject: owners.text, cause: cause, kind: .file, paths: owners.paths, isHarmless: isHarmless,
                isOfFile: !isHarmless)
        case .thumbnail(let owners):
            self.init(
                subject: "thumbnail of \(owners.text)",
                cause: isHarmless ? cause : "\(cause); it is made again",
                kind: .thumbnail, paths: owners.paths, isHarmless: true)
        case .record(let owners):
            self.init(
                subject: "identity record of \(owners.text)", cause: cause, kind: .record,
                paths: owners.paths, isHarmless: true)
        case .nobody:
            self.init(
                subject: "content \(damage.content)", cause: "\(cause); no file uses it", kind: .content)
        }
        bytes = ContentRange(key: damage.key, offset: damage.offset, length: damage.length)
    }

    /// Findings about a newest state that was lost before the space was opened.
    package static func ofOlderState(_ space: Space) -> [Finding] {
        var causes: [String] = []
        if space.opening.hasUnreadableStates {
            let reason = space.opening.newestStateFault.map { " (\($0.text))" } ?? ""
            causes.append("it cannot be read\(reason): an older one is shown")
        }
        if space.opening.hasLostNewestRoot { causes.append("its root is lost: an older one is shown") }
        return causes.map { Finding(subject: "the newest state of the space", cause: $0, kind: .space) }
    }

    /// Findings about the allocation bitmaps.
    package static func of(_ allocation: AllocationReport) -> [Finding] {
        let counts: [(count: Int, words: String, isHarmless: Bool)] = [
            (allocation.leakedSectors, "sectors are allocated but not in use", true),
            (allocation.leakedSlots, "page slots are allocated but not in use", true),
            (allocation.unmarkedSectors, "sectors are in use but marked as free", false),
            (allocation.freedTooEarlySectors, "sectors are in use but about to be marked as free", false),
            (allocation.unmarkedSlots, "page slots are in use but marked as free", false),
            (allocation.sharedSlots, "page slots belong to two pages", false),
            (allocation.wrongCounts, "segments have a wrong count of sectors in use", true),
        ]
        return counts.filter { $0.count > 0 }.map { count, words, isHarmless in
            Finding(
                subject: "the allocation", cause: "\(count) \(words)", kind: .allocation,
                isHarmless: isHarmless)
        }
    }

    /// Summarizes more than `linesMax` findings of one kind in one line.
    ///
    /// - Parameter mayWrite: whether a mount could write the space. Otherwise, and where many copies are damaged, none
    ///   of it is only a note.
    package static func summarized(_ damage: [StructureDamage], mayWrite: Bool) -> [Finding] {
        let isDamage = !mayWrite || damage.count > linesMax || damage.contains(where: \.isLost)
        return summarized(damage).map { finding in
            var finding = finding
            if isDamage { finding.isNote = false }
            return finding
        }
    }

    private static func summarized(_ damage: [StructureDamage]) -> [Finding] {
        let groups = Dictionary(grouping: damage) { "\($0.part.kind) \($0.isADamaged) \($0.isBDamaged)" }
        return groups.sorted { $0.key < $1.key }.flatMap { _, group -> [Finding] in
            guard group.count > linesMax, let first = group.first else { return group.map { Finding($0) } }
            let one = Finding(first)
            return [
                Finding(
                    subject: "\(first.part.text) and \(group.count - 1) others like it", cause: one.cause,
                    kind: one.kind, isHarmless: one.isHarmless)
            ]
        }
    }

    private static let linesMax = 16
}

extension ExtentDamage {
    /// Whether an identity record is lost.
    fileprivate var isLostRecord: Bool {
        if case .descriptor = fault { return false }
        return isRecord
    }
}

/// The owner of an extent.
package enum Owner {
    case file(NamedFiles)
    case thumbnail(NamedFiles)
    case record(NamedFiles)
    case nobody
}

/// Files by their paths.
package struct NamedFiles: Sendable {
    /// All paths, at most `PathFinder.pathsMax`; files without a name by their inode.
    package var text: String
    /// As in `text`.
    package var paths: [[UInt8]]
}

/// Finds the paths of inodes as a user sees them, even if rows are damaged.
package struct PathFinder {
    package let tables: Tables

    package init(tables: Tables) {
        self.tables = tables
    }

    /// Deeper directories are taken for a cycle.
    private static let depthMax = 4096
    /// Limit of the paths that are reported, of one inode and of several.
    private static let pathsMax = 32

    /// Paths of an inode from the root of the mount, those in moments first.
    package func paths(of ino: UInt64) throws(FileError) -> [[UInt8]] {
        if ino == WellKnownInode.root { return [Array(".".utf8)] }
        var paths: [[UInt8]] = []
        for (parent, name) in try tables.checks.rawNames(of: ino, limit: Self.pathsMax) {
            guard let path = try path(parent, name) else { continue }
            paths.append(path)
        }
        let moments = Array("moments/".utf8)
        return paths.filter { $0.starts(with: moments) } + paths.filter { !$0.starts(with: moments) }
    }

    /// - Parameter isVersioned: whether this is the path of a file with versions, which is no version itself.
    private func path(
        _ parent: UInt64, _ name: [UInt8], isVersioned: Bool = false
    ) throws(FileError) -> [UInt8]? {
        var parts = [name]
        var directory = parent
        while directory != WellKnownInode.root {
            guard parts.count < Self.depthMax,
                let above = try tables.checks.rawNames(of: directory, limit: 1).first
            else { return nil }
            if above.parent == WellKnownInode.versions {
                return isVersioned ? nil : try version(parts, of: above.name)
            }
            parts.append(above.name)
            directory = above.parent
        }
        return Array(parts.reversed().map(Self.printable).joined(separator: [UInt8(ascii: "/")]))
    }

    /// The path of a version: beside its photo, in moments if the photo is there.
    private func version(_ parts: [[UInt8]], of directory: [UInt8]) throws(FileError) -> [UInt8]? {
        guard let ino = versionedFile(named: directory) else { return nil }
        var photos: [(path: [UInt8], name: [UInt8])] = []
        for (parent, name) in try tables.checks.rawNames(of: ino, limit: Self.pathsMax)
        where parent != WellKnownInode.versions {
            if let path = try path(parent, name, isVersioned: true) { photos.append((path, name)) }
        }
        let moments = Array("moments/".utf8)
        guard let photo = photos.first(where: { $0.path.starts(with: moments) }) ?? photos.first else {
            return nil
        }
        let above = photo.path.lastIndex(of: UInt8(ascii: "/")).map { photo.path[...$0] } ?? []
        let shown = shownVersionName(parts[0], of: photo.name)
        return Array(
            ([above + versionsName, Self.printable(photo.name)[...], Self.printable(shown)[...]])
                .joined(separator: [UInt8(ascii: "/")]))
    }

    /// A name that is invalid as an entry must not look like a path.
    private static func printable(_ name: [UInt8]) -> [UInt8] {
        name.isEmpty
            ? Array("(no name)".utf8)
            : name.map { $0 == UInt8(ascii: "/") ? UInt8(ascii: "?") : $0 }
    }

    /// The names of these inodes.
    package func names(of inodes: [UInt64]) throws(FileError) -> NamedFiles {
        var texts: [String] = []
        var found: [[UInt8]] = []
        for (place, ino) in inodes.enumerated() {
            let paths = try paths(of: ino)
            found += paths
            texts +=
                paths.isEmpty
                ? ["a file without a name (inode \(ino))"] : paths.map { String(decoding: $0, as: UTF8.self) }
            if texts.count > Self.pathsMax {
                let more = place + 1 < inodes.count ? ", and \(inodes.count - place - 1) other files" : ""
                return NamedFiles(
                    text: texts.prefix(Self.pathsMax).joined(separator: ", ") + more,
                    paths: Array(found.prefix(Self.pathsMax)))
            }
        }
        return NamedFiles(text: texts.joined(separator: ", "), paths: found)
    }

    /// Findings about damaged extents, each with the paths of the owner. Lost identity records share one finding.
    package func findings(_ damage: [ExtentDamage]) throws(FileError) -> [Finding] {
        let contents = Set(damage.filter { !$0.isRecord }.map(\.content))
        let owners = Dictionary(grouping: try tables.contents.owners(of: contents)) { $0.content }
        var found: [Finding] = []
        var records = 0
        for damage in damage {
            if damage.isLostRecord {
                records += 1
            } else {
                found.append(Finding(damage, of: try owner(damage, owners[damage.content] ?? [])))
            }
        }
        if records > 0 {
            found.append(
                Finding(
                    subject: "identity records",
                    cause: "\(records) cannot be authenticated; no file is lost", kind: .record,
                    isHarmless: true))
        }
        return found
    }

    private func owner(_ damage: ExtentDamage, _ owners: [ContentOwner]) throws(FileError) -> Owner {
        if damage.isRecord { return .record(try names(of: [damage.content])) }
        guard let first = owners.first else { return .nobody }
        let names = try names(of: owners.map(\.ino))
        return first.isThumbnail ? .thumbnail(names) : .file(names)
    }
}
