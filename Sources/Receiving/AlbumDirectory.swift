import CShims
package import FileRequests
import Glibc
import HostFiles
package import LinuxIO

/// The mounted space that photos are received into. It keeps nothing open, so that the space can be unmounted.
package struct ReceivingMount: Sendable {
    let directory: String
    /// The device number of the mount at the start: one below has another.
    private let device: UInt64
    /// The mark of the mount at the start: a later mount here has another, also if it is of the same space.
    private let mark: [UInt8]

    /// - Parameter directory: a resolved path.
    package init(_ directory: String) throws(ReceiveError) {
        guard let entry = mountEntry(at: directory), entry.isObscura else {
            throw .notMounted(directory)
        }
        self.directory = directory
        do throws(Errno) {
            let root = OpenDirectory(try HostPath(directory).open(Self.flags | obscura_path_only))
            device = try root.status().identity.device
            mark = try root.mountMark()
        } catch {
            throw .system(what: directory, doing: "entering it", error)
        }
    }

    /// For tests and fuzzing, which have no mount.
    init(directory: String, device: UInt64) {
        (self.directory, self.device, mark) = (directory, device, [])
    }

    /// Whether the space is still mounted here. The kernel may say so after the mount's process has died.
    var isThere: Bool { (try? HostPath(directory).status().identity.device) == device }

    /// Asks the mount's process, and so takes as long as that does: false if it has died, or is another.
    var answers: Bool {
        do throws(Errno) {
            let root = OpenDirectory(try HostPath(directory).open(Self.flags | obscura_path_only))
            return try root.mountMark() == mark
        } catch {
            return ![ENOTCONN, ECONNABORTED, ENOENT, ENODATA, EOPNOTSUPP].contains(error.rawValue)
        }
    }

    /// Whether the mount refuses writes.
    package var isReadOnly: Bool {
        var room = statvfs()
        return HostPath(directory).withCString { statvfs($0, &room) } == 0
            && room.f_flag & UInt(ST_RDONLY) != 0
    }

    /// Makes an album, and those above it, unless it is there.
    package func makeAlbum(_ album: [Name]) throws(Errno) { _ = try open(["albums"] + album, makes: true) }

    /// Opens a directory below the root.
    ///
    /// No symbolic link is followed, and nothing outside of the space is ever opened: bytes in clear would be written
    /// there. Throws ESTALE if the space is gone.
    /// - Parameter makes: whether missing directories below the first are made.
    func open(_ path: [Name], makes: Bool) throws(Errno) -> OpenDirectory {
        // Directories on the way are not opened for reading, which would be two requests to the mount each.
        func flags(_ depth: Int) -> Int32 { Self.flags | (depth < path.count ? obscura_path_only : 0) }
        var directory = OpenDirectory(try HostPath(directory).open(flags(0)))
        guard (try? directory.status().identity.device) == device else { throw .stale }
        if !mark.isEmpty, (try? directory.mountMark()) != mark { throw .stale }
        for (depth, name) in path.enumerated() {
            directory = try directory.open(name, flags(depth + 1), makes: makes && depth > 0)
        }
        return directory
    }

    fileprivate static let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW
}

/// An open directory, closed with this object.
final class OpenDirectory: Sendable {
    let descriptor: Int32

    fileprivate init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// A path of a name in it, for as long as this object lives.
    func path(_ name: Name) -> HostPath { HostPath("/proc/self/fd/\(descriptor)").appending(name) }

    fileprivate func status() throws(Errno) -> stat {
        var found = stat()
        guard fstat(descriptor, &found) == 0 else { throw .last }
        return found
    }

    /// The mark of the mount whose root this is: `user.obscura.mount`.
    fileprivate func mountMark() throws(Errno) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 64)
        // The descriptor may be one of a path only.
        let count = obscura_get_attribute_at(
            "/proc/self/fd/\(descriptor)/.", "user.obscura.mount", &bytes, UInt(bytes.count))
        guard count >= 0 else { throw .last }
        return Array(bytes.prefix(Int(count)))
    }

    func open(_ name: Name) throws(Errno) -> OpenDirectory {
        OpenDirectory(try openFile(name, ReceivingMount.flags))
    }

    /// - Parameter makes: whether the directory is made if it is missing.
    fileprivate func open(_ name: Name, _ flags: Int32, makes: Bool) throws(Errno) -> OpenDirectory {
        do throws(Errno) { return OpenDirectory(try openFile(name, flags)) } catch {
            guard makes, error == .noEntry else { throw error }
        }
        try makeDirectory(name)
        return OpenDirectory(try openFile(name, flags))
    }

    /// openat(2) with O_CLOEXEC and O_NOFOLLOW.
    func openFile(_ name: Name, _ flags: Int32) throws(Errno) -> Int32 {
        let opened = HostPath(name.bytes).withCString {
            obscura_openat(descriptor, $0, flags | O_CLOEXEC | O_NOFOLLOW, 0o666)
        }
        guard opened >= 0 else { throw .last }
        return opened
    }

    /// Succeeds if the directory is there already.
    func makeDirectory(_ name: Name) throws(Errno) {
        if HostPath(name.bytes).withCString({ mkdirat(descriptor, $0, 0o777) }) == 0 { return }
        let error = Errno.last
        guard error == .exists, try status(name).isDirectory else { throw error }
    }

    /// fstatat(2), without following links.
    func status(_ name: Name) throws(Errno) -> stat {
        var found = stat()
        let result = HostPath(name.bytes).withCString { fstatat(descriptor, $0, &found, AT_SYMLINK_NOFOLLOW) }
        guard result == 0 else { throw .last }
        return found
    }

    /// Renames a file in this directory. Throws EEXIST if the name is taken.
    func rename(_ from: Name, to name: Name) throws(Errno) {
        let result = HostPath(from.bytes).withCString { from in
            HostPath(name.bytes).withCString { obscura_rename(descriptor, from, $0, 0) }
        }
        guard result == 0 else { throw .last }
    }

    func remove(_ name: Name) { _ = HostPath(name.bytes).withCString { unlinkat(descriptor, $0, 0) } }

    func sync() throws(Errno) { if fsync(descriptor) != 0 { throw .last } }

    /// The names in it.
    func list() throws(Errno) -> [Name] { try HostPath("/proc/self/fd/\(descriptor)").list() }
}
