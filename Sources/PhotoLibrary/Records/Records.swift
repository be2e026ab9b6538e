package import CatalogueRows
package import FileRequests
import LinuxIO
import VaultCatalogue
import VaultFormat
import VaultStore

/// Collects the contents of identity records from the rows.
package struct Records {
    private unowned let tree: Tree

    init(_ tree: Tree) { self.tree = tree }

    /// Collects the record with this number; throws `.stale` if the number does not exist.
    package func record(of id: UInt64) throws(FileError) -> Recorded {
        if id >= RetiredIDs.records {
            let block = id - RetiredIDs.records
            guard let bits = try tree.tables.identities.retired(block: block) else { throw .stale }
            return .retired(block: block, bits: bits)
        }
        if let known = tree.cached(id) {
            // Not `names(of:)`, which would cache them: no one else may need them.
            if let names = known.names { return .inode(try tree.tables.record(known.row, names)) }
            return .inode(try tree.tables.record(known.row, try tree.tables.dentries.names(of: id)))
        }
        guard let row = try tree.tables.inodes.row(id) else { throw .stale }
        return .inode(try tree.tables.record(row, try tree.tables.dentries.names(of: id)))
    }
}

extension Tables {
    /// Collects an inode's record from its rows, within `limits`.
    package func record(
        _ row: InodeRow, _ names: [DentryRow], _ limits: RecordLimits = .ofRecords
    ) throws(FileError) -> IdentityRecord {
        var record = IdentityRecord(row: row)
        record.row.nlink = 0
        record.row.parent = 0
        var bytesLeft = limits.nameBytes
        for name in names {
            bytesLeft -= name.name.count + 32
            if bytesLeft < 0 { break }
            record.names.append(
                RecordedName(
                    parent: name.parent, name: name.name, isMember: name.isMember, isLink: name.isLink,
                    since: try trash.row(row.ino, name.id)?.since))
        }
        if row.flags.contains(.hasAttributes) {
            record.attributes = try attributes.all(row.ino).map {
                ExtendedAttribute(name: $0.name, value: $0.value)
            }
        }
        switch row.mode & fileTypeMask {
        case directoryType: record.row.size = 0
        case linkType: record.target = try links.target(row.ino) ?? []
        case regularType: try addFile(to: &record, limits)
        default: break
        }
        return record
    }

    /// Adds the parts that only regular files have.
    private func addFile(to record: inout IdentityRecord, _ limits: RecordLimits) throws(FileError) {
        let row = record.row
        if row.allocated > 0 {
            // Rows of a snapshot are cut when its source changes: the record lists them as they were.
            let runs =
                SnapshotID.isSnapshot(row.content)
                ? ExtentRun.joined(try extents.runs(of: row.content))
                : try extents.firstRuns(of: row.content, limit: limits.runs + 1)
            record.runs = runs.count > limits.runs ? nil : runs
        }
        guard row.flags.contains(.photo) else { return }
        record.photo = try photos.row(row.ino)
        guard row.flags.contains(.trashed), var trashed = try trash.row(row.ino, 0) else { return }
        trashed.noted = nil
        record.trashed = trashed
        var bytesLeft = limits.nameBytes
        for var name in try trash.names(of: row.ino) {
            bytesLeft -= name.name.count + 32
            if bytesLeft < 0 { break }
            name.id = 0
            record.keptNames.append(name)
        }
    }
}
