import Glibc
import HostFiles
import LinuxIO

/// The directories in which the desktop's programs of a user keep their files.
///
/// Must be made before this process becomes the user, and opened with the user's rights. Each must belong to the user,
/// lie outside of every mount of a vault and, in the home directory, be reached without a link or another mount.
struct DesktopPlaces: Sendable {
    private let user: uid_t
    private let home: String?
    private let bases: [Base: String]

    /// The base directories of the XDG Base Directory Specification.
    enum Base: CaseIterable { case cache, config, data }

    init(of user: DesktopUser) {
        self.user = user.id
        home = user.homeDirectory
        bases = [.cache: user.cacheDirectory, .config: user.configDirectory, .data: user.dataDirectory]
            .compactMapValues { $0 }
    }

    /// Nil if it is missing, or not the user's.
    func openHome() -> OwnedDirectory? { home.flatMap(open) }

    /// As `openHome`.
    func open(_ base: Base) -> OwnedDirectory? {
        guard let path = bases[base] else { return nil }
        guard let home, isInside(path, home) else { return open(path) }
        let names = pathBytes(path).dropFirst(pathBytes(home).count)
            .split(separator: UInt8(ascii: "/")).map { Array($0) }
        return try? open(home)?.directory(below: names)
    }

    private func open(_ path: String) -> OwnedDirectory? {
        guard let found = try? OwnedDirectory(pathBytes(path), of: user) else { return nil }
        let device = MountEntry.device(found.status.st_dev)
        return mountTable().contains { $0.isObscura && $0.device == device } ? nil : found
    }
}

extension OwnedDirectory {
    /// As `directory(_:isOwned:)` of a text.
    func directory(_ name: String) throws(Errno) -> OwnedDirectory { try directory(Array(name.utf8)) }

    /// The directory that this path leads to, from here.
    func directory(below path: String) throws(Errno) -> OwnedDirectory {
        try directory(below: path.split(separator: "/").map { Array($0.utf8) })
    }
}
