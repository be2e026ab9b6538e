import FileRequests
import Glibc
import LinuxIO
import PhotoLibrary

/// The user's lists in which programs record files by their paths: recently opened files, and how folders are
/// displayed.
struct DesktopLists {
    /// The user's data directory.
    private let data: String
    private let configuration: String?
    private let home: String?
    /// The message bus of the user's session; nil if there is none.
    private let busAddress: String?

    /// Nil for a user without a home. Must be called before this process becomes the user: the environment is that of
    /// the user who started this process.
    init?(of user: DesktopUser) {
        guard let data = user.dataDirectory else { return nil }
        self.data = data
        configuration = user.configDirectory
        home = user.homeDirectory
        busAddress = user.busAddress
    }

    /// Removes the entries of files for whose path `isGone` is true.
    func removeRecent(of isGone: (_ file: [UInt8]) -> Bool) {
        // The folders that gThumb has shown are in a list of the same form.
        let history = configuration.map { $0 + "/gthumb/history.xbel" }
        for list in [data + "/recently-used.xbel", history].compactMap({ $0 }) {
            // If it is a link, to /dev/null for example, the link stays.
            let list = realPath(list)
            guard isOwnFile(list), let answer = ask(["recent", list]) else { continue }
            let gone = answer.split(separator: 0).map { Array($0) }.filter { uri in
                localPath(ofURI: uri).map(isGone) ?? false
            }
            if !gone.isEmpty { _ = ask(["remove", list], gone) }
        }
        removeDocuments(isGone)
    }

    private func isOwnFile(_ path: String) -> Bool {
        guard let status = try? HostPath(path).status() else { return false }
        return status.isRegular && status.st_uid == geteuid()
    }

    /// KDE's list of recent documents: a `.desktop` file each, with `URL[$e]=file:/…`.
    private func removeDocuments(_ isGone: ([UInt8]) -> Bool) {
        let directory = HostPath(data + "/RecentDocuments")
        for name in (try? directory.list()) ?? [] where name.bytes.suffix(8) == Array(".desktop".utf8)[...] {
            let path = directory.appending(name)
            guard let file = try? path.open(O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY) else { continue }
            let text = readAll(file, countMax: 65_536)
            close(file)
            if documentFiles(text).contains(where: isGone) { _ = path.withCString { unlink($0) } }
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
        let directory = data + "/kactivitymanagerd/resources/"
        // The copies that it makes at its start come after their originals.
        for name in ["database", "working-backup/database", "test-backup/database"] {
            let database = realPath(directory + name)
            guard isOwnFile(database), let answer = ask(["activities", database]) else { continue }
            let gone = answer.split(separator: 0).map { Array($0) }.filter { resource in
                // URIs of searches contain other URIs.
                path(ofResource: resource).map(isGone)
                    ?? fileURIs(in: resource[...], home: home).contains(where: isGone)
            }
            if !gone.isEmpty { _ = ask(["forget", database], gone, environment: bus) }
        }
    }

    /// The environment of a program that uses the message bus.
    private var bus: [String] { busAddress.map { ["DBUS_SESSION_BUS_ADDRESS=\($0)"] } ?? [] }

    // MARK: Display of folders

    /// Has gvfs forget its metadata of `directory`, the mount point, and of everything below: Nautilus, Nemo and Caja
    /// keep there how each folder is displayed. Without a message bus the metadata stays: only gvfs may write those
    /// files.
    func removeMetadata(of directory: String) {
        guard busAddress != nil else { return }
        let place = realPath(directory)
        let home = home.map(realPath)
        var items: [[UInt8]] = []
        for name in ["home", "root"] {
            let tree = data + "/gvfs-metadata/" + name
            var path = place
            if name == "home" {
                guard let home, isInside(place, home), place != home else { continue }
                path = String(place.dropFirst(home == "/" ? 0 : home.count))
            }
            if knows(tree, path) { items += [Array(tree.utf8), Array(path.utf8)] }
        }
        if !items.isEmpty {
            _ = ask(["metadata"], items, environment: bus)
        }
    }

    /// Whether a tree, or its journal, contains the last component of a path. If not, gvfs need not be asked.
    private func knows(_ tree: String, _ path: String) -> Bool {
        let wanted = Array(lastComponent(path).utf8)
        let directory = HostPath(tree).parent
        let name = HostPath(tree).name.bytes
        let names = (try? directory.list()) ?? []
        return names.contains { file in
            guard file.bytes.starts(with: name),
                let bytes = contents(ofFile: String(decoding: directory.appending(file).bytes, as: UTF8.self))
            else { return false }
            return bytes.firstRange(of: wanted) != nil
        }
    }

    // MARK: The program that uses GLib

    /// Runs it to its end. Returns its output, or nil if it fails.
    private func ask(_ words: [String], _ items: [[UInt8]] = [], environment: [String] = []) -> [UInt8]? {
        guard let input = try? makePipe() else { return nil }
        guard let output = try? makePipe() else {
            for end in [input.read, input.write] { close(end) }
            return nil
        }
        let process = startBeside(
            "obscura-desktop", words, environment: environment, input: input.read, output: output.write)
        close(input.read)
        close(output.write)
        defer { close(output.read) }
        guard let process else {
            close(input.write)
            return nil
        }
        signal(SIGPIPE, SIG_IGN)
        writeAll(items.flatMap { $0 + [0] }, to: input.write)
        close(input.write)
        let answer = readAll(output.read, countMax: Self.answerBytesMax)
        return waitForEnd(of: process) == .exited(0) ? answer : nil
    }

    /// Far more than any list of recent files.
    private static let answerBytesMax = 64 << 20
}

/// Writes all bytes, unless the reader goes away.
func writeAll(_ bytes: [UInt8], to descriptor: Int32) {
    bytes.withUnsafeBytes { all in
        var rest = all[...]
        while !rest.isEmpty {
            let count = write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
            if count < 0 && errno == EINTR { continue }
            if count <= 0 { return }
            rest = rest.dropFirst(count)
        }
    }
}
