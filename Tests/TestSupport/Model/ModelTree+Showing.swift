/// The visible state of a tree, by path: one line for each name.
typealias ShownTree = [String: String]

extension ModelTree {
    /// - Parameter isAlone: whether no other player works in the space, so that link counts of shared files are known.
    func shown(isAlone: Bool) -> ShownTree {
        var paths: [(path: String, node: ModelNode)] = []
        each { paths.append(($0, $1)) }
        var first: [ObjectIdentifier: String] = [:]
        for (path, node) in paths.sorted(by: { $0.path < $1.path }) where first[ObjectIdentifier(node)] == nil
        {
            first[ObjectIdentifier(node)] = path
        }
        var shown: ShownTree = [:]
        for (path, node) in paths where isAlone || !isShared(node) {
            shown[path] = line(node, path, first: first[ObjectIdentifier(node)] ?? "")
        }
        return shown
    }

    /// A photo that has no name in moments, and is not in the trash: by its path. There must be none.
    var photoOutsideMoments: String? {
        var found: String?
        each { path, node in
            if node.isPhoto && node.trashed == nil && node.moment == nil { found = path }
        }
        return found
    }

    /// Whether all players of the space have the directory in common.
    func isShared(_ node: ModelNode) -> Bool {
        if node.parent === top { return true }
        return node.isDirectory && node.parent?.parent === top && node.parent.map(isInTrash) ?? false
    }

    /// Visits all that is listed, parents first.
    func each(_ visit: (String, ModelNode) -> Void) {
        func walk(_ directory: ModelNode, _ path: String) {
            for (row, node) in directory.listed where !node.isUnlistedDay {
                let below = path.isEmpty ? row.name : path + "/" + row.name
                visit(below, node)
                if node.isDirectory { walk(node, below) }
            }
        }
        walk(top, "")
    }

    private func line(_ node: ModelNode, _ path: String, first: String) -> String {
        switch node.kind {
        case .directory:
            let below = node.entries.values.count { $0.isDirectory && !$0.isUnlistedDay }
            return ShownLine.directory(links: 2 + below, mode: node.mode, attributes: node.attributes)
        case .link(let target): return "link to \(target), \(node.names.count) names"
        case .fifo: return "fifo, \(node.names.count) names"
        case .file:
            let photo = (node.original ?? node).photo
            let versioned = node.hasVersions ? node : node.original ?? node
            let captured = photo.map { "\($0.day) 12:30:00, \($0.isPinned ? "moved" : "DateTimeOriginal")" }
            return ShownLine.file(
                bytes: node.bytes, links: node.names.count, mode: node.mode, modified: node.modified,
                first: first,
                captured: captured ?? "plain",
                original: versioned.hasVersions ? versioned.originalBytes ?? [] : nil,
                attributes: node.attributes)
        }
    }
}

/// The words that a model and a mount have in common.
enum ShownLine {
    /// Times of change below this were set by utimensat(2); later ones are those of writes.
    static let settableSecondsMax: Int64 = 1_000_000_000

    static func directory(links: Int, mode: UInt32, attributes: [String: [UInt8]]) -> String {
        "directory of \(links) links, mode \(String(mode, radix: 8))\(text(attributes))"
    }

    /// - Parameter original: the bytes of its original version; none if only that is missing; nil without versions.
    static func file(
        bytes: [UInt8], links: Int, mode: UInt32, modified: Int64?, first: String, captured: String,
        original: [UInt8]?, attributes: [String: [UInt8]]
    ) -> String {
        let versions =
            switch original {
            case nil: "no versions"
            case []?: "versions without an original"
            case let bytes?: "original of \(bytes.count) bytes (\(String(modelSum(bytes), radix: 16)))"
            }
        let time = modified.map(String.init) ?? "when written"
        return
            "file of \(bytes.count) bytes (\(String(modelSum(bytes), radix: 16))), \(links) links, same as \(first), "
            + "mode \(String(mode, radix: 8)), changed \(time), taken \(captured), "
            + "\(versions)\(text(attributes))"
    }

    private static func text(_ attributes: [String: [UInt8]]) -> String {
        attributes.sorted { $0.key < $1.key }.map { ", \($0.key)=\(modelSum($0.value))" }.joined()
    }
}
