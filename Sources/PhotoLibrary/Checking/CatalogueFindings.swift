package import FileRequests
package import VaultCatalogue
package import VaultStore

/// Findings in a catalogue's rows, by path: the same in the check of a mounted space and of one that is not.
package enum CatalogueFindings {
    /// Limit of the violations that are reported for one constraint.
    private static let violationsMax = 64

    /// Findings about violations of a constraint, by path.
    package static func ofViolated(
        _ constraint: IntegrityConstraint, _ tables: Tables
    ) throws(FileError) -> [Finding] {
        let numbers = try tables.checks.violations(of: constraint, limit: violationsMax)
        if numbers.isEmpty { return [] }
        let finder = PathFinder(tables: tables)
        guard constraint.subject == .content else {
            return try numbers.map { number throws(FileError) in
                finding(constraint, try finder.names(of: [number]))
            }
        }
        let owners = Dictionary(grouping: try tables.contents.owners(of: Set(numbers))) { $0.content }
        return try numbers.map { number throws(FileError) in
            let inodes = (owners[number] ?? []).map(\.ino)
            guard inodes.isEmpty else { return finding(constraint, try finder.names(of: inodes)) }
            return Finding(subject: "content \(number)", cause: constraint.violation, kind: .catalogue)
        }
    }

    private static func finding(_ constraint: IntegrityConstraint, _ files: NamedFiles) -> Finding {
        Finding(subject: files.text, cause: constraint.violation, kind: .catalogue, paths: files.paths)
    }

    /// Findings about extents that share sectors.
    package static func ofShared(
        _ pairs: [(ContentKey, ContentKey)], _ tables: Tables
    ) throws(FileError) -> [Finding] {
        let told = pairs.prefix(violationsMax)
        let contents = told.flatMap { [$0.0, $0.1] }.filter { !$0.isRecord }.map(\.content)
        let owners = Dictionary(grouping: try tables.contents.owners(of: Set(contents))) { $0.content }
        let finder = PathFinder(tables: tables)
        func names(_ key: ContentKey) throws(FileError) -> NamedFiles {
            if key.isRecord {
                var names = try finder.names(of: [key.content])
                names.text = "the identity record of \(names.text)"
                return names
            }
            guard let inodes = owners[key.content]?.map(\.ino) else {
                return NamedFiles(text: "content \(key.content)", paths: [])
            }
            return try finder.names(of: inodes)
        }
        return try told.map { one, other throws(FileError) in
            var files = try names(one)
            if one != other {
                let second = try names(other)
                files.text += " and \(second.text)"
                files.paths += second.paths
            }
            return Finding(
                subject: files.text, cause: "two extents have the same sectors", kind: .allocation,
                paths: files.paths)
        }
    }
}
