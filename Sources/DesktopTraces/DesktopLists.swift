import Glibc
import LinuxIO

/// The user's lists in which programs record files by their paths: recently opened files, and how folders are
/// displayed.
struct DesktopLists {
    private let places: DesktopPlaces
    /// The user's data directory.
    private let data: String
    private let home: String?
    /// The message bus of the user's session; nil if there is none.
    private let busAddress: String?

    private static let listBytesMax = 16 << 20
    private static let documentBytesMax = 65_536

    /// Nil for a user without a home. Must be called before this process becomes the user: the environment is that of
    /// the user who started this process.
    init?(of user: DesktopUser) {
        guard let data = user.dataDirectory else { return nil }
        self.data = data
        places = DesktopPlaces(of: user)
        home = user.homeDirectory
        busAddress = user.busAddress
    }

    /// Removes the entries of files for whose path `isGone` is true.
    func removeRecent(of isGone: (_ file: [UInt8]) -> Bool) {
        if let data = places.open(.data) { removeRecent(in: data, "recently-used.xbel", isGone) }
        // The folders that gThumb has shown are in a list of the same form.
        if let history = try? places.open(.config)?.directory("gthumb") {
            removeRecent(in: history, "history.xbel", isGone)
        }
        if let documents = try? places.open(.data)?.directory("RecentDocuments") {
            removeDocuments(in: documents, isGone)
        }
    }

    private func removeRecent(in directory: OwnedDirectory, _ name: String, _ isGone: ([UInt8]) -> Bool) {
        let name = Array(name.utf8)
        guard let (list, status) = directory.contents(name, countMax: Self.listBytesMax),
            let answer = ask(["recent"], list)
        else { return }
        let gone = answer.split(separator: 0).map { Array($0) }.filter { uri in
            localPath(ofURI: uri).map(isGone) ?? false
        }
        guard !gone.isEmpty, let rest = ask(["remove", String(list.count)], list + Self.joined(gone)),
            !rest.isEmpty
        else { return }
        directory.replace(name, ifUnchangedSince: status, with: rest)
    }

    private static func joined(_ items: [[UInt8]]) -> [UInt8] { items.flatMap { $0 + [0] } }

    /// KDE's list of recent documents: a `.desktop` file each, with `URL[$e]=file:/…`.
    private func removeDocuments(in directory: OwnedDirectory, _ isGone: ([UInt8]) -> Bool) {
        for name in (try? directory.names()) ?? [] where name.suffix(8) == Array(".desktop".utf8)[...] {
            guard let (text, status) = directory.contents(name, countMax: Self.documentBytesMax),
                documentFiles(text).contains(where: isGone)
            else { continue }
            directory.remove(name, ifUnchangedSince: status)
        }
    }

    private func documentFiles(_ text: [UInt8]) -> [[UInt8]] {
        text.split(separator: UInt8(ascii: "\n")).compactMap { line in
            guard line.starts(with: "URL".utf8), let equals = line.firstIndex(of: UInt8(ascii: "=")) else {
                return nil
            }
            return path(ofResource: Array(line[(equals + 1)...]))
        }
    }

    /// The path of a file that KDE records by its path or URI; nil for other URIs.
    private func path(ofResource resource: [UInt8]) -> [UInt8]? {
        resource.first == UInt8(ascii: "/") ? resource : localPath(ofURI: resource, home: home)
    }

    // MARK: Activities

    /// Removes the records of Plasma's activity manager about files and folders: those that KDE's programs opened, and
    /// those in the list of recent files.
    func removeActivities(of isGone: (_ file: [UInt8]) -> Bool) {
        guard let resources = try? places.open(.data)?.directory(below: "kactivitymanagerd/resources") else {
            return
        }
        // The copies that it makes at its start come after their originals.
        let copies = ["working-backup", "test-backup"].compactMap { try? resources.directory($0) }
        for directory in [resources] + copies {
            guard let answer = ask(["activities"], directory: directory) else { continue }
            let gone = answer.split(separator: 0).map { Array($0) }.filter { resource in
                // URIs of searches contain other URIs.
                path(ofResource: resource).map(isGone)
                    ?? fileURIs(in: resource[...], home: home).contains(where: isGone)
            }
            if !gone.isEmpty {
                _ = ask(["forget"], Self.joined(gone), directory: directory, environment: bus)
            }
        }
    }

    /// The environment of a program that uses the message bus.
    private var bus: [String] { busAddress.map { ["DBUS_SESSION_BUS_ADDRESS=\($0)"] } ?? [] }

    // MARK: Display of folders

    /// Has gvfs forget its metadata of `directory`, the mount point, and of everything below: Nautilus, Nemo and Caja
    /// keep there how each folder is displayed. Without a message bus the metadata stays: only gvfs may write those
    /// files.
    ///
    /// The daemon opens its files by their paths, as for every program of the user.
    func removeMetadata(of directory: String) {
        guard busAddress != nil, let trees = try? places.open(.data)?.directory("gvfs-metadata") else {
            return
        }
        let place = realPath(directory)
        let home = home.map(realPath)
        var items: [[UInt8]] = []
        for name in ["home", "root"] {
            var path = place
            if name == "home" {
                guard let home, isInside(place, home), place != home else { continue }
                path = String(place.dropFirst(home == "/" ? 0 : home.count))
            }
            if knows(trees, name, path) {
                items += [pathBytes("\(data)/gvfs-metadata/\(name)"), pathBytes(path)]
            }
        }
        if !items.isEmpty { _ = ask(["metadata"], Self.joined(items), environment: bus) }
    }

    /// Whether a tree, or its journal, contains the last component of a path. If not, gvfs need not be asked.
    private func knows(_ trees: OwnedDirectory, _ tree: String, _ path: String) -> Bool {
        let wanted = pathBytes(lastComponent(path))
        return ((try? trees.names()) ?? []).contains { name in
            name.starts(with: tree.utf8)
                && trees.contents(name, countMax: Self.listBytesMax)?.bytes.firstRange(of: wanted) != nil
        }
    }

    // MARK: The program that uses GLib

    /// Runs it to its end. Returns its output, or nil if it fails.
    ///
    /// - Parameters:
    ///   - bytes: its standard input.
    ///   - directory: handed over as descriptor 3.
    private func ask(
        _ words: [String], _ bytes: [UInt8] = [], directory: OwnedDirectory? = nil, environment: [String] = []
    ) -> [UInt8]? {
        guard let input = try? makePipe() else { return nil }
        guard let output = try? makePipe() else {
            for end in [input.read, input.write] { close(end) }
            return nil
        }
        let process = startBeside(
            "obscura-desktop", words, environment: environment, input: input.read, output: output.write,
            directory: directory?.descriptor)
        close(input.read)
        close(output.write)
        defer { close(output.read) }
        guard let process else {
            close(input.write)
            return nil
        }
        signal(SIGPIPE, SIG_IGN)
        // It reads all of its input before it answers.
        writeAll(bytes, to: input.write)
        close(input.write)
        let answer = readAll(output.read, countMax: Self.answerBytesMax)
        return waitForEnd(of: process) == .exited(0) ? answer : nil
    }

    /// Far more than any list of recent files.
    private static let answerBytesMax = 64 << 20
}
