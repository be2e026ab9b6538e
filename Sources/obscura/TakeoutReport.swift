import Encodings
import HostFiles
import Importing
import LinuxIO

extension TakeoutReport {
    func lines(isDry: Bool) -> [String] {
        let would = isDry ? "would be " : ""
        var lines: [String] = []
        if memberships > 0 {
            lines.append(
                "\(counted(memberships, "name")) \(would)added to \(counted(albums.count, "album"))"
                    + (favourites > 0 ? ", \(favourites) of them to Favourites" : ""))
        }
        if written > 0 {
            lines.append(
                "\(counted(written, "sidecar")) (.xmp) \(would)written with what only the export says")
        }
        if !edited.isEmpty {
            lines.append(
                "\(counted(edited.count, "edited photo")) \(would)shown, the originals kept in .versions")
        }
        if !trashed.isEmpty {
            lines.append("\(counted(trashed.count, "file")) left out: in the export's trash")
        }
        if !inTrash.isEmpty {
            lines.append(
                "\(counted(inTrash.count, "photo")) left out: in the trash of the space (obscura trash DIR restore):"
            )
            lines += inTrash.map { "  \($0.shown)" }
        }
        if !unmatched.isEmpty {
            lines.append("\(unmatched.count) could not be matched:")
            lines += unmatched.map { "  \($0.path.shown): \($0.reason)" }
        }
        return lines
    }

    /// The members that `--takeout` adds to the output of `--json`.
    var members: [(String, JSON)] {
        [
            ("album_memberships", .count(memberships)), ("albums", .list(albums.sorted().map { .text($0) })),
            ("favourites", .count(favourites)), ("sidecars_written", .count(written)),
            ("edited", .list(edited.map { .path($0.bytes) })),
            ("trashed", .list(trashed.map { .path($0.bytes) })),
            ("in_trash", .list(inTrash.map { .path($0.bytes) })), ("unmatched", .list(unmatched.map(\.json))),
        ]
    }
}
