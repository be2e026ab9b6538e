internal import Glibc
internal import LinuxIO

/// The thumbnailers that are installed, most important first, as last looked.
///
/// Not safe for concurrent use: its owner guards it.
struct ThumbnailerCatalogue {
    /// A thumbnailer that can be run.
    struct Thumbnailer: Equatable, Sendable {
        var entry: ThumbnailerEntry
        /// The program's file.
        var program: String
    }

    /// `thumbnailers` of each data directory, most important first.
    private let directories: [String]
    /// When each was last changed; nil: it is not there.
    private var times: [Timestamp?] = []
    private var entries: [ThumbnailerEntry] = []
    /// By MIME type, in order of importance.
    private var thumbnailers: [String: [Thumbnailer]] = [:]
    /// What there are thumbnailers for, of what is not decoded here.
    private(set) var types: Set<MediaType> = []

    /// Where programs are found that an entry names without a directory: those that everybody can see, and the
    /// confined process as well.
    private static let programDirectories = [
        "/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin",
    ]
    /// A larger file is none.
    private static let fileBytesMax = 65_536

    /// - Parameter dataDirectories: those of the XDG Base Directory Specification, most important first.
    init(dataDirectories: [String]) {
        directories = dataDirectories.map { $0 + "/thumbnailers" }
    }

    /// Looks again. Files are read only where a directory has changed; whether the programs are there is always
    /// looked at.
    mutating func refresh() {
        let times = directories.map { modificationTime(of: $0) }
        if times != self.times {
            self.times = times
            entries = Self.read(directories)
        }
        var found: [String: [Thumbnailer]] = [:]
        for entry in entries {
            guard let program = Self.file(of: entry.words[0]),
                entry.requirement.map({ Self.file(of: $0) != nil }) ?? true
            else { continue }
            for type in Set(entry.mimeTypes) {
                found[type, default: []].append(Thumbnailer(entry: entry, program: program))
            }
        }
        thumbnailers = found
        types = Set(
            MediaType.allCases.filter { !ThumbnailWorkers.decodes($0) && !thumbnailers(for: $0).isEmpty })
    }

    /// Those for pictures of this type, the most important first.
    func thumbnailers(for type: MediaType) -> [Thumbnailer] {
        var found: [Thumbnailer] = []
        for name in type.thumbnailerMIMETypes {
            for thumbnailer in thumbnailers[name] ?? [] where !found.contains(thumbnailer) {
                found.append(thumbnailer)
            }
        }
        return found
    }

    /// The entries of all directories. A file hides those of the same name in less important directories, even
    /// one that says nothing.
    private static func read(_ directories: [String]) -> [ThumbnailerEntry] {
        var seen: Set<String> = []
        var entries: [ThumbnailerEntry] = []
        for directory in directories {
            for name in fileNames(in: directory).sorted() {
                guard name.hasSuffix(".thumbnailer"), seen.insert(name).inserted,
                    let text = text(ofFile: directory + "/" + name), let entry = ThumbnailerEntry(text)
                else { continue }
                entries.append(entry)
            }
        }
        return entries
    }

    private static func text(ofFile path: String) -> String? {
        var found = stat()
        // Looked at first: reading a pipe could last for ever.
        guard stat(path, &found) == 0, found.st_mode & mode_t(S_IFMT) == mode_t(S_IFREG),
            found.st_size <= fileBytesMax
        else { return nil }
        return contents(ofFile: path).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The executable file that a path or a name stands for, if there is one.
    private static func file(of program: String) -> String? {
        if program.hasPrefix("/") { return isProgram(program) ? program : nil }
        guard !program.contains("/") else { return nil }
        return programDirectories.lazy.map { $0 + "/" + program }.first(where: isProgram)
    }
}

/// The data directories of a user by the XDG Base Directory Specification, most important first: variables that are
/// not set or not absolute paths count as it says.
///
/// - Parameters:
///   - home: the user's; nil: none of the user's own.
///   - dataHome: XDG_DATA_HOME.
///   - dataDirectories: XDG_DATA_DIRS.
public func dataDirectories(home: String?, dataHome: String?, dataDirectories: String?) -> [String] {
    var own: [String] = []
    if let dataHome, dataHome.hasPrefix("/") {
        own = [dataHome]
    } else if let home, home.hasPrefix("/") {
        own = [home + "/.local/share"]
    }
    let named = (dataDirectories ?? "").split(separator: ":").filter { $0.hasPrefix("/") }.map(String.init)
    return own + (named.isEmpty ? systemDataDirectories : named)
}

/// Those of the system, for who has none of their own.
public let systemDataDirectories = ["/usr/local/share", "/usr/share"]

/// Whether it is a file that may be executed.
func isProgram(_ path: String) -> Bool {
    var found = stat()
    return stat(path, &found) == 0 && found.st_mode & mode_t(S_IFMT) == mode_t(S_IFREG)
        && access(path, X_OK) == 0
}

private func modificationTime(of directory: String) -> Timestamp? {
    var found = stat()
    return stat(directory, &found) == 0 ? Timestamp(found.st_mtim) : nil
}

/// The names in a directory; none where it cannot be read.
private func fileNames(in directory: String) -> [String] {
    let calls = LinuxCalls.shared
    do throws(Errno) {
        let descriptor = try calls.open(AT_FDCWD, directory, flags: O_RDONLY | O_DIRECTORY, mode: 0)
        defer { calls.close(descriptor) }
        return try calls.list(descriptor)
    } catch {
        return []
    }
}
