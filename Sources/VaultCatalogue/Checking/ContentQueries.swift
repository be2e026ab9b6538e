public import FileRequests
public import VaultFormat
public import VaultStore

/// A row that names the extents of a file or thumbnail.
public struct ContentOwner: Sendable, Hashable {
    public var content: UInt64
    /// The inode of the file, or of the thumbnail's photo.
    public var ino: UInt64
    public var isThumbnail: Bool
}

/// Queries and changes of a repair of contents. They read whole tables.
public final class ContentQueries {
    private let connection: Connection
    private let extents: ExtentTable

    init(_ connection: Connection, _ extents: ExtentTable) {
        (self.connection, self.extents) = (connection, extents)
    }

    /// The owners of these contents. Reads all rows of files and thumbnails.
    public func owners(of contents: Set<UInt64>) throws(FileError) -> [ContentOwner] {
        if contents.isEmpty { return [] }
        var found: [ContentOwner] = []
        for (table, isThumbnail) in [("inode", false), ("thumbnail", true)] {
            let rows = connection.prepare("SELECT content, ino FROM \(table) WHERE content <> 0")
            try rows.each { row in
                let content = row.unsigned(0)
                if contents.contains(content) {
                    found.append(
                        ContentOwner(content: content, ino: row.unsigned(1), isThumbnail: isThumbnail))
                }
                return true
            }
        }
        return found
    }

    /// Contents that violate a constraint with the remedy `.extents`.
    public func toMend() throws(FileError) -> [UInt64] {
        var found: [UInt64] = []
        for query in [
            IntegrityConstraint.impossibleExtents, IntegrityConstraint.overlappingExtents,
            IntegrityConstraint.unowned,
            IntegrityConstraint.sharedByThumbnails, IntegrityConstraint.missingExtents,
        ] { found += try connection.prepare(query).all { $0.unsigned(0) } }
        return found
    }

    /// The size of the largest file with a content, among possible sizes; nil if no file has it.
    public func largestSize(ofFilesWith content: UInt64) throws(FileError) -> UInt64? {
        let query = connection.prepare(
            "SELECT max(size) FROM inode WHERE content = ? AND \(ConstraintSQL.isFile) "
                + "AND size BETWEEN 0 AND \(Geometry.fileBytesMax)")
        query.bind(1, content)
        return try query.one { $0.isNull(0) ? nil : $0.unsigned(0) } ?? nil
    }

    /// The bytes that a file with a content stores by its row; its size if that count is impossible.
    public func storedBytes(ofFilesWith content: UInt64) throws(FileError) -> UInt64 {
        let query = connection.prepare(
            "SELECT coalesce(max(CASE WHEN allocated BETWEEN 0 AND size THEN allocated ELSE size END), 0) "
                + "FROM inode WHERE content = ? AND \(ConstraintSQL.isFile) "
                + "AND size BETWEEN 0 AND \(Geometry.fileBytesMax)")
        query.bind(1, content)
        return try query.one { $0.unsigned(0) } ?? 0
    }

    /// Counts the stored bytes of the files with a content again.
    public func countStoredBytes(ofFilesWith content: UInt64) throws(FileError) {
        let update = connection.prepare(
            "UPDATE inode SET allocated = \(ConstraintSQL.storedBytes) WHERE content = ? AND \(ConstraintSQL.isFile)"
        )
        update.bind(1, content)
        try update.run()
    }

    /// The size of a file with a content that has no holes by its row; nil if there is none.
    public func sizeWithoutHoles(ofFilesWith content: UInt64) throws(FileError) -> UInt64? {
        let query = connection.prepare(
            "SELECT max(size) FROM inode WHERE content = ? AND \(ConstraintSQL.isFile) AND allocated = size "
                + "AND size BETWEEN 1 AND \(Geometry.fileBytesMax)")
        query.bind(1, content)
        return try query.one { $0.isNull(0) ? nil : $0.unsigned(0) } ?? nil
    }

    /// Identity records of files with a content that are not marked as outdated, and their revision.
    public func currentRecords(
        ofFilesWith content: UInt64
    ) throws(FileError) -> [(record: CheckedRun, revision: UInt64)] {
        let query = connection.prepare(
            "SELECT id, 0, identity.length, sector, generation, epoch, 1, version FROM inode "
                + "JOIN identity ON identity.id = inode.ino WHERE content = ? AND \(ConstraintSQL.isFile) "
                + "AND ino NOT IN (SELECT id FROM unrecorded)")
        query.bind(1, content)
        return try query.all { (CheckedRun($0), $0.unsigned(7)) }
    }

    /// Replaces all runs of a content.
    public func replaceRuns(of content: UInt64, by runs: [ExtentRun]) throws(FileError) {
        let delete = connection.prepare("DELETE FROM extent WHERE content = ?")
        delete.bind(1, content)
        try delete.run()
        for run in runs { try extents.insert(run, of: content) }
    }

    /// Marks the identity records of all files with a content as outdated.
    public func markRecords(ofContent content: UInt64) throws(FileError) {
        let mark = connection.prepare(
            "INSERT OR IGNORE INTO unrecorded SELECT ino FROM inode WHERE content = ? AND ino >= 16")
        mark.bind(1, content)
        try mark.run()
    }

    /// Deletes a thumbnail and its extents.
    public func dropThumbnail(content: UInt64) throws(FileError) {
        try replaceRuns(of: content, by: [])
        try dropThumbnailRows(content: content)
    }

    /// Deletes a thumbnail whose extents belong to a file.
    public func dropThumbnailRows(content: UInt64) throws(FileError) {
        let delete = connection.prepare("DELETE FROM thumbnail WHERE content = ?")
        delete.bind(1, content)
        try delete.run()
    }
}
