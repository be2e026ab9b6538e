import CatalogueRows
import FileRequests
import LinuxIO
import PhotoLibrary
import PhotoRules

/// Names that a mount of a space cannot show, or whose files it cannot read, because pages of the catalogue are lost.
public struct HiddenNames: Sendable {
    /// From the root of a mount.
    public var paths: [[UInt8]] = []
    /// Of so many names that identity records tell.
    public var total = 0

    /// "128 of 640 names", and the first ten of them, or all.
    public func text(all: Bool) -> String {
        let shown = paths.prefix(all ? .max : Self.shownMax).map { String(decoding: $0, as: UTF8.self) }
        let more = paths.count > shown.count ? ", and \(paths.count - shown.count) others" : ""
        let names = total == 1 ? "name" : "names"
        return "\(paths.count) of \(total) \(names) cannot be shown or read: "
            + shown.joined(separator: ", ") + more
    }

    private static let shownMax = 10
}

extension Salvage {
    /// Compares the names in identity records with those that the catalogue shows.
    public func hiddenNames() -> HiddenNames {
        var walk = HiddenWalk(self, FormerCatalogue(unlocked))
        // The visitor writes nothing, so it cannot fail.
        try? forEachInode { walk.visit($0) }
        walk.names.paths.sort { $0.lexicographicallyPrecedes($1) }
        return walk.names
    }
}

/// The directories on the way to names, each looked up once.
private struct HiddenWalk {
    private let salvage: Salvage
    private let former: FormerCatalogue?
    private var directories: [UInt64: (path: [UInt8], isShown: Bool)?] = [:]
    var names = HiddenNames()

    private static let depthMax = 1024

    init(_ salvage: Salvage, _ former: FormerCatalogue?) {
        (self.salvage, self.former) = (salvage, former)
        directories[WellKnownInode.root] = (path: [], isShown: former?.knows(WellKnownInode.root) ?? false)
        for (ino, name) in [(WellKnownInode.moments, "moments"), (WellKnownInode.albums, "albums")] {
            directories[ino] = (path: Array(name.utf8), isShown: former?.knows(ino) ?? false)
        }
    }

    mutating func visit(_ recoveredInode: Salvage.RecoveredInode) {
        let record = recoveredInode.record
        let isDirectory = record.row.mode & fileTypeMask == directoryType
        let isReadable = former?.reads(record.row) ?? false
        for name in record.names {
            guard let directory = directory(name.parent, 0) else { continue }
            // A day without photos may be hidden.
            if isDirectory, record.row.day > 0 { continue }
            let path = Self.path(directory.path, name.name)
            // Every space has those of the trash.
            if isDirectory, path.starts(with: Array(".Trash-".utf8)) { continue }
            names.total += 1
            let isShown =
                directory.isShown && isReadable
                && former?.shows(name.parent, name.name, record.row.ino) == true
            if !isShown { names.paths.append(path) }
        }
    }

    private static func path(_ directory: [UInt8], _ name: [UInt8]) -> [UInt8] {
        (directory.isEmpty ? [] : directory + [UInt8(ascii: "/")]) + name
    }

    /// Nil for a directory that no mount lists: of versions, or one whose own record is lost.
    private mutating func directory(_ ino: UInt64, _ depth: Int) -> (path: [UInt8], isShown: Bool)? {
        if let known = directories[ino] { return known }
        let found = find(ino, depth)
        directories[ino] = .some(found)
        return found
    }

    private mutating func find(_ ino: UInt64, _ depth: Int) -> (path: [UInt8], isShown: Bool)? {
        guard ino != WellKnownInode.versions, depth < Self.depthMax,
            let record = salvage.recoveredInode(ino)?.record, record.row.mode & fileTypeMask == directoryType,
            let name = record.names.first, let above = directory(name.parent, depth + 1)
        else { return nil }
        let isShown =
            above.isShown && former?.knows(ino) == true && former?.shows(name.parent, name.name, ino) == true
        return (path: Self.path(above.path, name.name), isShown: isShown)
    }
}
