import Glibc
import LinuxIO
import PhotoLibrary

/// Files in which single programs record, each in its own format, the files and folders that they showed.
struct DesktopFiles {
    private let config: String?
    private let data: String?
    private let home: String?
    /// The mount point, as given and with symbolic links resolved.
    private let places: [[UInt8]]

    private static let textBytesMax = 1 << 20
    /// Only the end of a log is searched.
    private static let logBytesMax = 16 << 20
    private static let newline = UInt8(ascii: "\n")

    /// Must be called before this process becomes the user, as with `DesktopLists`.
    init(of user: DesktopUser, mountPoint: String) {
        config = user.configDirectory
        data = user.dataDirectory
        home = user.homeDirectory
        places = Set([absolutePath(mountPoint), realPath(mountPoint)])
            .filter { $0 != "/" }.map { Array($0.utf8) }
    }

    /// Removes their records of the mount.
    ///
    /// - Parameter isGone: whether a path leads below the mount.
    func remove(_ isGone: ([UInt8]) -> Bool) {
        if let config {
            removeSessions(in: HostPath(config + "/session"), isGone)
            removeFolderSettings(in: HostPath(config + "/libfm/dir-settings.conf"), isGone)
        }
        if let data { removeViews(in: HostPath(data + "/dolphin/view_properties/local")) }
        if let home {
            for name in [".xsession-errors", ".xsession-errors.old"] {
                maskLines(in: HostPath(home).appending(name), isGone)
            }
        }
    }

    /// Windows that KDE's programs restore: Dolphin saves the folder and the current file of each tab whenever it is
    /// closed. The file is removed as a whole: its format is private.
    private func removeSessions(in directory: HostPath, _ isGone: ([UInt8]) -> Bool) {
        for name in (try? directory.list()) ?? [] {
            let path = directory.appending(name)
            guard let (text, _) = read(path), names(text[...], isGone) else { continue }
            _ = path.withCString { unlink($0) }
        }
    }

    /// Dolphin's view settings of folders outside the home directory: a `.directory` file each, in a tree of the
    /// folders' paths.
    private func removeViews(in root: HostPath) {
        for place in places {
            var path = HostPath(root.bytes + place)
            guard (try? path.status())?.isDirectory == true, removeAll(path) else { continue }
            // The directories above it name the mount point.
            repeat { path = path.parent } while path != root && path.withCString({ rmdir($0) }) == 0
        }
    }

    /// PCManFM's folder settings: `[PATH]` and lines about it.
    private func removeFolderSettings(in path: HostPath, _ isGone: ([UInt8]) -> Bool) {
        guard let (text, status) = read(path) else { return }
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
        if kept.count < text.count { replace(path, with: kept, mode: status.st_mode) }
    }

    /// Overwrites lines that name a file below the mount. Every program of an X session writes its messages there and
    /// keeps the file open, so it is neither replaced nor truncated.
    private func maskLines(in path: HostPath, _ isGone: ([UInt8]) -> Bool) {
        guard let file = try? path.open(O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY) else { return }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.isRegular, status.st_uid == geteuid() else { return }
        var start = max(0, status.st_size - off_t(Self.logBytesMax))
        guard lseek(file, start, SEEK_SET) == start else { return }
        let text = readAll(file, countMax: Self.logBytesMax)
        for line in text.split(separator: Self.newline, omittingEmptySubsequences: false) {
            if names(line, isGone) {
                let mask = [UInt8](repeating: UInt8(ascii: "-"), count: line.count)
                _ = pwrite(file, mask, mask.count, start)
            }
            start += off_t(line.count + 1)
        }
    }

    // MARK: Paths in a text

    /// Whether a text contains the path, or the `file:` URI, of something below the mount.
    private func names(_ text: ArraySlice<UInt8>, _ isGone: ([UInt8]) -> Bool) -> Bool {
        places.contains { isIn(text, path: $0) } || fileURIs(in: text, home: home).contains(where: isGone)
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

    // MARK: Files

    private func read(_ path: HostPath) -> (bytes: [UInt8], status: stat)? {
        guard let file = try? path.open(O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY) else { return nil }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.isRegular, status.st_uid == geteuid(),
            status.st_size <= Self.textBytesMax
        else { return nil }
        return (readAll(file, countMax: Self.textBytesMax), status)
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

/// Removes a file, or a directory with its contents. Returns true if nothing is left at that path.
func removeAll(_ path: HostPath) -> Bool {
    let status: stat
    do throws(Errno) { status = try path.status() } catch { return error == .noEntry }
    guard status.isDirectory else { return path.withCString { unlink($0) } == 0 }
    // A copied directory may be read-only.
    if status.st_mode & 0o700 != 0o700 { _ = path.withCString { chmod($0, 0o700) } }
    for name in (try? path.list()) ?? [] where !removeAll(path.appending(name)) { return false }
    return path.withCString { rmdir($0) } == 0
}

/// Replaces a file atomically by another of the same name, or leaves it as it is.
func replace(_ path: HostPath, with text: [UInt8], mode: mode_t) {
    let draft = HostPath(path.bytes + Array(".obscura".utf8))
    guard
        let file = try? draft.open(
            O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode: UInt32(mode) & 0o777)
    else { return }
    let count = write(file, text, text.count)
    close(file)
    guard count == text.count,
        draft.withCString({ from in path.withCString { to in rename(from, to) } }) == 0
    else {
        _ = draft.withCString { unlink($0) }
        return
    }
}
