import CatalogueRows
import FileRequests
import PhotoLibrary
import VaultCatalogue
import VaultFormat
import VaultStore

/// The catalogue that a salvage replaces, as far as its pages can be read. It has the names of files and directories
/// whose identity records are damaged as well.
struct FormerCatalogue {
    private let catalogue: Catalogue
    private let generation: UInt64

    /// Nil if it cannot be opened at all.
    init?(_ unlocked: UnlockedSpace) {
        guard let space = try? unlocked.openSpace(readOnly: true), space.pageCount > 0,
            let catalogue = try? Catalogue(storage: space, readOnly: true)
        else { return nil }
        (self.catalogue, generation) = (catalogue, space.generation)
    }

    /// The inode with that number; nil if there is none with a name, or if these cannot be read.
    func inode(_ ino: UInt64) -> Salvage.RecoveredInode? {
        catalogue.locked { tables -> Salvage.RecoveredInode? in
            guard let row = try? tables.inode(ino), let names = try? tables.dentries(of: ino),
                // Copies of photos in the trash have no names.
                !names.isEmpty || row.flags.contains(.copy) || ino < WellKnownInode.firstOfUsers
            else { return nil }
            let record = (try? tables.record(row, names, .none)) ?? Self.record(row, names)
            return Salvage.RecoveredInode(record: record, found: nil, generation: generation)
        }
    }

    /// Whether every change has reached its identity record.
    var isRecorded: Bool {
        catalogue.locked { (try? $0.unrecorded(after: 0, limit: 1))?.isEmpty ?? false }
    }

    /// Whether there is an inode with that number.
    func knows(_ ino: UInt64) -> Bool { catalogue.locked { (try? $0.inode(ino)) ?? nil != nil } }

    /// Whether a directory has a name for that inode.
    func shows(_ parent: UInt64, _ name: [UInt8], _ ino: UInt64) -> Bool {
        catalogue.locked { (try? $0.dentry(parent, name))??.ino == ino }
    }

    /// Whether an inode's row can be read, and of a file the rows of its bytes.
    func reads(_ row: InodeRow) -> Bool {
        catalogue.locked { tables in
            guard let known = (try? tables.inode(row.ino)) ?? nil else { return false }
            if row.mode & fileTypeMask == linkType {
                return ((try? tables.linkTarget(row.ino)) ?? nil) != nil
            }
            guard row.mode & fileTypeMask == regularType, known.allocated > 0 else { return true }
            return (try? tables.extents(of: known.content)) != nil
        }
    }

    /// The bytes of a content that can be read, as far as its rows tell.
    func knownBytes(of content: UInt64) -> UInt64 {
        catalogue.locked { tables in
            let runs = (try? tables.extents(of: content)) ?? []
            return runs.reduce(0) { $0 + ($1.isLost ? 0 : $1.length) }
        }
    }

    /// A record without details, some of which cannot be read.
    private static func record(_ row: InodeRow, _ names: [DentryRow]) -> IdentityRecord {
        var record = IdentityRecord(row: row)
        (record.row.nlink, record.row.parent, record.runs) = (0, 0, nil)
        if row.mode & fileTypeMask == directoryType { record.row.size = 0 }
        record.names = names.map {
            RecordedName(parent: $0.parent, name: $0.name, isMember: $0.isMember, isLink: $0.isLink)
        }
        return record
    }

    /// The files with one of these contents.
    func files(of contents: Set<UInt64>) -> [UInt64] {
        catalogue.locked { $0.readableFiles(of: contents) }
    }
}
