internal import Glibc
internal import LinuxIO

/// The installed thumbnailers, most important first, as of the last `refresh`.
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
    /// The modification time of each; nil: it does not exist.
    private var times: [Timestamp?] = []
    private var entries: [ThumbnailerEntry] = []
    /// By MIME type, in order of importance.
    private var thumbnailers: [String: [Thumbnailer]] = [:]
    /// The types, of those not decoded here, that have thumbnailers.
    private(set) var types: Set<MediaType> = []

    /// The directories that are searched for a program named without a directory: those that every user can see, and
    /// the confined process as well.
    private static let programDirectories = [
        "/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin",
    ]
    /// A larger file is not an entry.
    private static let fileBytesMax = 65_536

    /// - Parameter dataDirectories: those of the XDG Base Directory Specification, most important first.
    init(dataDirectories: [String]) {
        directories = dataDirectories.map { $0 + "/thumbnailers" }
    }

    /// Updates the list. Files are read only if a directory has changed; the existence of the programs is always
    /// checked.
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

    /// The thumbnailers for this type, most important first.
    func thumbnailers(for type: MediaType) -> [Thumbnailer] {
        var found: [Thumbnailer] = []
        for name in type.thumbnailerMIMETypes {
            for thumbnailer in thumbnailers[name] ?? [] where !found.contains(thumbnailer) {
                found.append(thumbnailer)
            }
        }
        return found
    }

    /// The entries of all directories. A file hides files of the same name in less important directories, even if it is
    /// empty.
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
        // Checked first: reading a pipe could last for ever.
        guard stat(path, &found) == 0, found.st_mode & mode_t(S_IFMT) == mode_t(S_IFREG),
            found.st_size <= fileBytesMax
        else { return nil }
        return contents(ofFile: path).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The executable file that a path or a name denotes, if there is one.
    private static func file(of program: String) -> String? {
        if program.hasPrefix("/") { return isProgram(program) ? program : nil }
        guard !program.contains("/") else { return nil }
        return programDirectories.lazy.map { $0 + "/" + program }.first(where: isProgram)
    }
}

/// The data directories of a user by the XDG Base Directory Specification, most important first. Variables that are not
/// set or not absolute paths are treated as it says.
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

/// The data directories of the system, for users without their own.
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

/// The names in a directory; none if it cannot be read.
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
