import LinuxIO
package import Testing

@testable package import FileRequests
@testable import PhotoLibrary

/// The visible state of one name.
package struct Seen: Equatable {
    package var attributes: Attributes
    package var bytes: [UInt8]
    package var target: [UInt8]
    package var captured: String
    package var extended: [[UInt8]: [UInt8]]
}

extension Fixture {
    /// The whole tree, by path.
    package func snapshot() throws -> [String: Seen] {
        var seen: [String: Seen] = [:]
        try look(below: "", &seen)
        return seen
    }

    /// Compares the tree with an earlier snapshot.
    package func expectTree(_ before: [String: Seen], _ comment: Comment = "") throws {
        let found = try snapshot()
        for path in Set(found.keys).union(before.keys).sorted() where found[path] != before[path] {
            Issue.record(
                "\(comment) \(path) was \(text(before[path])), is \(text(found[path]))")
        }
    }

    private func text(_ seen: Seen?) -> String {
        guard let seen else { return "not there" }
        return "\(seen.attributes) \(seen.bytes.hashValue) \(seen.captured) \(seen.extended)"
    }

    private func look(below path: String, _ seen: inout [String: Seen]) throws {
        var entries = try list(path)
        // Not listed, but part of the tree.
        if let versions = try? stat(path + "/.versions"), versions.ino >> 60 != 0 {
            entries.append(
                DirectoryEntry(name: Name(".versions"), cookie: 0, ino: versions.ino, mode: versions.mode))
        }
        for entry in entries {
            let below = (path.isEmpty ? "" : path + "/") + entry.name.description
            var found = Seen(attributes: try stat(below), bytes: [], target: [], captured: "", extended: [:])
            // Times of reading, and of the three directories that every space has.
            found.attributes.accessed = Timestamp(seconds: 0, nanoseconds: 0)
            if found.attributes.ino < 16 {
                found.attributes.modified = found.attributes.accessed
                found.attributes.changed = found.attributes.accessed
            }
            for name in try library.listExtendedAttributes(entry.ino) {
                found.extended[name] = try library.getExtendedAttribute(entry.ino, name: name)
            }
            if found.attributes.isRegular {
                found.bytes = try get(below)
                found.captured = (try? captured(below) + " " + source(below)) ?? ""
            } else if !found.attributes.isDirectory {
                found.target = (try? library.readLink(entry.ino)) ?? []
            }
            seen[below] = found
            if found.attributes.isDirectory { try look(below: below, &seen) }
        }
    }
}
