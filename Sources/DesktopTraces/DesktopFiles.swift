import Glibc
import LinuxIO

/// Files in which single programs record, each in its own format, the files and folders that they showed.
struct DesktopFiles {
    private let places: DesktopPlaces
    private let home: String?
    /// The mount point, as given and with symbolic links resolved.
    private let mountPoints: [[UInt8]]

    private static let textBytesMax = 1 << 20
    /// Only the end of a log is searched.
    private static let logBytesMax = 16 << 20
    private static let newline = UInt8(ascii: "\n")
    private static let folderDepthMax = 100

    /// Must be called before this process becomes the user, as with `DesktopLists`.
    init(of user: DesktopUser, mountPoint: String) {
        places = DesktopPlaces(of: user)
        home = user.homeDirectory
        mountPoints = Set([absolutePath(mountPoint), realPath(mountPoint)])
            .filter { $0 != "/" }.map { pathBytes($0) }
    }

    /// Removes their records of the mount.
    ///
    /// - Parameter isGone: whether a path leads below the mount.
    func remove(_ isGone: ([UInt8]) -> Bool) {
        if let config = places.open(.config) {
            if let sessions = try? config.directory("session") { removeSessions(in: sessions, isGone) }
            if let settings = try? config.directory("libfm") { removeFolderSettings(in: settings, isGone) }
        }
        if let views = try? places.open(.data)?.directory(below: "dolphin/view_properties/local") {
            for place in mountPoints { removeViews(of: Self.components(place)[...], in: views) }
        }
        if let home = places.openHome() {
            for name in [".xsession-errors", ".xsession-errors.old"] { maskLines(in: home, name, isGone) }
        }
    }

    private static func components(_ path: [UInt8]) -> [[UInt8]] {
        path.split(separator: UInt8(ascii: "/")).map { Array($0) }
    }

    /// Windows that KDE's programs restore: Dolphin saves the folder and the current file of each tab whenever it is
    /// closed. The file is removed as a whole: its format is private.
    private func removeSessions(in directory: OwnedDirectory, _ isGone: ([UInt8]) -> Bool) {
        for name in (try? directory.names()) ?? [] {
            guard let (text, status) = directory.contents(name, countMax: Self.textBytesMax),
                names(text[...], isGone)
            else { continue }
            directory.remove(name, ifUnchangedSince: status)
        }
    }

    /// Dolphin's view settings of folders outside the home directory: a `.directory` file each, in a tree of the
    /// folders' paths. Other files stay.
    ///
    /// - Parameter path: the rest of the mount point's path; the directories above it name it.
    private func removeViews(of path: ArraySlice<[UInt8]>, in directory: OwnedDirectory) {
        guard let name = path.first, let inner = try? directory.directory(name) else { return }
        if path.count == 1 {
            removeViews(in: inner, depth: 0)
        } else {
            removeViews(of: path.dropFirst(), in: inner)
        }
        directory.removeDirectory(name, ifSameAs: inner.status)
    }

    private func removeViews(in directory: OwnedDirectory, depth: Int) {
        for name in (try? directory.names()) ?? [] {
            if name == Array(".directory".utf8), let file = try? directory.file(name) {
                directory.remove(name, ifUnchangedSince: file.status)
            } else if depth < Self.folderDepthMax, let inner = try? directory.directory(name) {
                removeViews(in: inner, depth: depth + 1)
                directory.removeDirectory(name, ifSameAs: inner.status)
            }
        }
    }

    /// PCManFM's folder settings: `[PATH]` and lines about it.
    private func removeFolderSettings(in directory: OwnedDirectory, _ isGone: ([UInt8]) -> Bool) {
        let name = Array("dir-settings.conf".utf8)
        guard let (text, status) = directory.contents(name, countMax: Self.textBytesMax) else { return }
        var kept: [UInt8] = []
        var isKept = true
        for line in text.split(separator: Self.newline, omittingEmptySubsequences: false) {
            if line.first == UInt8(ascii: "["), line.last == UInt8(ascii: "]") {
                isKept = !isGone(Array(line.dropFirst().dropLast()))
            }
            if isKept { kept += line + [Self.newline] }
        }
        // The empty piece after the last newline is not a line.
        kept.removeLast(isKept ? 1 : 0)
        if kept.count < text.count { directory.replace(name, ifUnchangedSince: status, with: kept) }
    }

    /// Overwrites lines that name a file below the mount. Every program of an X session writes its messages there and
    /// keeps the file open, so it is neither replaced nor truncated. A file with other names is no such log.
    private func maskLines(in directory: OwnedDirectory, _ name: String, _ isGone: ([UInt8]) -> Bool) {
        guard let log = try? directory.file(Array(name.utf8), writable: true), log.status.st_nlink == 1 else {
            return
        }
        let file = log.descriptor
        var start = max(0, log.status.st_size - off_t(Self.logBytesMax))
        guard lseek(file, start, SEEK_SET) == start else { return }
        let text = readAll(file, countMax: Self.logBytesMax)
        for line in text.split(separator: Self.newline, omittingEmptySubsequences: false) {
            if names(line, isGone) {
                let mask = [UInt8](repeating: UInt8(ascii: "-"), count: line.count)
                _ = unsafe pwrite(file, mask, mask.count, start)
            }
            start += off_t(line.count + 1)
        }
    }

    // MARK: Paths in a text

    /// Whether a text contains the path, or the `file:` URI, of something below the mount.
    private func names(_ text: ArraySlice<UInt8>, _ isGone: ([UInt8]) -> Bool) -> Bool {
        mountPoints.contains { isIn(text, path: $0) }
            || fileURIs(in: text, home: home).contains(where: isGone)
    }

    private func isIn(_ text: ArraySlice<UInt8>, path: [UInt8]) -> Bool {
        var rest = text
        while let found = rest.firstRange(of: path) {
            rest = rest[found.upperBound...]
            // A longer name that begins with this path is another path.
            if rest.first.map({ $0 == UInt8(ascii: "/") || isEndOfURI($0) }) ?? true { return true }
        }
        return false
    }
}

/// The paths of the `file:` URIs in a text.
///
/// - Parameter home: replaces `$HOME`, as KDE writes it.
func fileURIs(in text: ArraySlice<UInt8>, home: String?) -> [[UInt8]] {
    let scheme = Array("file:".utf8)
    var found: [[UInt8]] = []
    var rest = text
    while let range = rest.firstRange(of: scheme) {
        rest = rest[range.upperBound...]
        let path = rest.prefix { !isEndOfURI($0) }
        if let local = localPath(ofURI: scheme + path, home: home) { found.append(local) }
    }
    return found
}

/// Whether this byte ends a URI in a text. Spaces do not: some programs leave them unescaped.
private func isEndOfURI(_ byte: UInt8) -> Bool { byte < 0x20 || "\"'\\&<>".utf8.contains(byte) }
