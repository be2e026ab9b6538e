import FileRequests

/// Names of photos in views: every photo of moments has one, and no two the same.
extension IntegrityConstraint {
    private static let isGone =
        "(ino IN (SELECT ino FROM orphan) OR ino IN (SELECT ino FROM trash WHERE id = 0))"

    private static let isTaken = """
        (name, ino) IN (SELECT p.name, p.ino FROM photo AS p JOIN photo AS q ON q.name = p.name
            WHERE p.name IS NOT NULL AND q.name IS NOT NULL AND q.ino < p.ino)
        """

    static let viewNames = IntegrityConstraint(
        "its name in views is missing or invalid", .inode, .mender(.viewNames),
        query: """
            SELECT ino FROM photo WHERE NOT \(ConstraintSQL.isName("name")) OR (name IS NULL) <> \(isGone) OR \(isTaken)
            """)

    fileprivate static let photosWithInvalidName = """
        UPDATE photo SET name = NULL WHERE NOT \(ConstraintSQL.isName("name")) OR \(isGone) OR \(isTaken)
        """
    /// Photos without a name in views, and their names in moments.
    fileprivate static let photosWithoutName = """
        SELECT p.ino, (SELECT dentry.name FROM dentry JOIN inode AS d ON d.ino = dentry.parent
            WHERE dentry.ino = p.ino AND d.day = p.day ORDER BY dentry.id LIMIT 1)
            FROM photo AS p WHERE p.name IS NULL AND NOT \(isGone) ORDER BY p.ino
        """
}

extension CatalogueMender {
    /// Names each photo in views as in moments, numbered where another has that name.
    func mendViewNames() throws(FileError) {
        try execute(IntegrityConstraint.photosWithInvalidName)
        let missing = try all(IntegrityConstraint.photosWithoutName) {
            ($0.integer(0), $0.isNull(1) ? nil : $0.bytes(1))
        }
        for (ino, moment) in missing {
            let name = try chooseName(moment ?? Array("\(ino)".utf8)) { name throws(FileError) in
                try numbers("SELECT 1 FROM photo WHERE name = ?1", [.bytes(name)]).isEmpty
            }
            try execute("UPDATE photo SET name = ?2 WHERE ino = ?1", [.number(ino), .bytes(name)])
        }
    }
}
