import FileRequests

/// Versions of photos: files in directories of the well-known directory 4, each named after the photo's inode.
extension IntegrityConstraint {
    /// Directories of versions of an existing file.
    private static let ofFiles = """
        SELECT dentry.ino FROM dentry JOIN inode AS d ON d.ino = dentry.ino AND d.\(ConstraintSQL.isDirectory)
            WHERE dentry.parent = 4 AND name IN (SELECT CAST(printf('%016x', ino) AS BLOB) FROM inode
                WHERE \(ConstraintSQL.isFile))
        """
    private static let inVersions = """
        ino IN (SELECT ino FROM dentry WHERE parent IN (SELECT ino FROM dentry WHERE parent = 4))
        """
    /// Entries that are no directory of versions, and entries of such that are no files.
    static let strayVersions = """
        SELECT parent, id, ino FROM dentry WHERE parent = 4 AND ino NOT IN (\(ofFiles))
            UNION SELECT parent, id, ino FROM dentry WHERE parent IN (SELECT ino FROM dentry WHERE parent = 4)
                AND ino NOT IN (SELECT ino FROM inode WHERE \(ConstraintSQL.isFile))
        """
    private static let isMarkedWrongly = """
        \(ConstraintSQL.isFile) AND (flags & 256 <> 0) <> (\(inVersions))
        """

    static let versions = [
        IntegrityConstraint(
            "the directory of versions is invalid", .inode, .mender(.versions),
            query: """
                SELECT ino FROM inode WHERE ino = 4 AND (NOT \(ConstraintSQL.isDirectory) OR day <> 0 OR flags & 2 = 0)
                    UNION SELECT ino FROM dentry WHERE ino = 4
                """),
        IntegrityConstraint(
            "version of a missing photo", .inode, .mender(.versions),
            query: "SELECT ino FROM (\(strayVersions))"),
        IntegrityConstraint(
            "version flag does not match its directory",
            mending: [
                """
                INSERT OR IGNORE INTO classification_pending SELECT ino FROM inode WHERE \(ConstraintSQL.isFile)
                    AND flags & 256 <> 0 AND NOT \(inVersions)
                """,
                "UPDATE inode SET flags = flags & ~256 WHERE \(ConstraintSQL.isFile) AND NOT \(inVersions)",
                "UPDATE inode SET flags = flags | 256 WHERE \(ConstraintSQL.isFile) AND \(inVersions)",
            ],
            query: "SELECT ino FROM inode WHERE \(isMarkedWrongly)"),
    ]
}

extension CatalogueMender {
    /// Versions without a photo go to `albums/Recovered`.
    func mendVersions() throws(FileError) {
        try execute("DELETE FROM dentry WHERE ino = 4")
        try execute(
            """
            UPDATE inode SET mode = 16832, content = 0, allocated = 0, nlink = 2, day = 0, parent = 1,
                flags = flags | 2 WHERE ino = 4
            """)
        let stray = try entries(
            where: "(parent, id) IN (SELECT parent, id FROM (\(IntegrityConstraint.strayVersions)))")
        for entry in stray { try move(entry, to: try recoveredDirectory()) }
    }
}
