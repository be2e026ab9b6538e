import FileRequests
import Glibc
import HostFiles
import Importing
import LinuxIO

/// The files below a directory, such as those that programs wrote into a mount point while its vault was locked.
struct UnencryptedFiles {
    private let top: String
    private(set) var count = 0
    /// There are more files than the counted ones.
    private(set) var isMore = false
    /// The first of them.
    private(set) var paths: [HostPath] = []
    /// The names from `top` to the directory below which all of them lie.
    private var common: [Name]?

    private static let countMax = 100_000
    private static let pathsMax = 1000

    /// Nil if there are only directories.
    init?(in directory: String) {
        self.init(in: HostPath(realPath(directory)), shownAs: directory, except: nil)
        if count == 0 { return nil }
    }

    /// - Parameters:
    ///   - place: a resolved path.
    ///   - excluded: a directory that is left out, with all below it.
    init(in place: HostPath, shownAs text: String = "", except excluded: FileIdentity?) {
        top = text
        guard let status = try? place.status(), status.isDirectory else { return }
        add(place, [], status.st_dev, excluded)
    }

    private mutating func add(_ path: HostPath, _ names: [Name], _ device: dev_t, _ excluded: FileIdentity?) {
        guard let entries = try? path.list() else { return }
        for name in entries {
            if isMore { return }
            let entry = path.appending(name)
            guard let status = try? entry.status() else { continue }
            if status.isDirectory {
                // Not what is mounted there.
                guard status.st_dev == device, status.identity != excluded else { continue }
                add(entry, names + [name], device, excluded)
                continue
            }
            guard count < Self.countMax else {
                isMore = true
                return
            }
            count += 1
            if paths.count < Self.pathsMax { paths.append(entry) }
            let shared = common.map { zip($0, names).prefix { $0 == $1 }.map(\.0) }
            common = shared ?? names
        }
    }

    private var commonText: String? {
        let words = (common ?? []).map { String(validating: $0.bytes, as: UTF8.self) }
        return words.contains(nil) ? nil : words.compactMap { $0 }.joined(separator: "/")
    }

    private func path(_ below: String) -> String {
        below.isEmpty ? top : top.hasSuffix("/") ? top + below : top + "/" + below
    }

    /// `12 files lie unencrypted in D/albums/T`.
    var text: String {
        let number = (isMore ? "more than " : "") + counted(count, "file")
        return "\(number) \(count == 1 ? "lies" : "lie") unencrypted in \(path(commonText ?? ""))"
    }

    /// The command that imports them and removes them here: those below one album into that album.
    func importCommand(_ vault: String) -> String {
        let words = (commonText ?? "").split(separator: "/")
        let isAlbum = words.first == "albums" && words.count > 1
        let source = isAlbum ? path(words.joined(separator: "/")) : top
        let album = isAlbum ? " --album " + shellWord(words.dropFirst().joined(separator: "/")) : ""
        return "obscura import \(shellWord(vault)) \(shellWord(source))\(album) --move"
    }
}

extension UnencryptedFiles {
    /// The files below several directories.
    struct Sum: Equatable {
        var count = 0
        var isMore = false
        var paths: [HostPath] = []

        init(_ parts: [UnencryptedFiles]) {
            for part in parts {
                count += part.count
                isMore = isMore || part.isMore
                paths += part.paths
            }
        }

        /// `3 files stay where they were: a, b, c`.
        var line: String {
            let names = listed(paths, of: count, most: ImportReport.namesMax)
            let number = (isMore ? "more than " : "") + counted(count, "file")
            let place = count == 1 ? "stays where it was" : "stay where they were"
            return "\(number) \(place): \(names)"
        }
    }
}

/// The text as a word of the shell.
func shellWord(_ text: String) -> String {
    let plain = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./~@%+=:,-")
    if !text.isEmpty, text.allSatisfy({ plain.contains($0) }) { return text }
    return "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
}
