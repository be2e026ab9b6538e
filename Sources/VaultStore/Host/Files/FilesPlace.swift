import Glibc
import LinuxIO
import VaultFormat

/// A directory, which may be a vault in files.
struct FilesPlace: HostPlace {
    let path: String
    let calls: any FileSystemCalls

    static let traits = HostTraits(
        hasObjects: false, showsTimesOfWrites: false, letsReadersFollow: false, tellsWaiting: false)

    init(_ path: String, _ calls: any FileSystemCalls) { (self.path, self.calls) = (path, calls) }

    // MARK: Opening

    func open() throws(VaultError) -> any VaultHost { try VaultFiles.open(path, calls: calls) }

    func openForRestoring() throws(VaultError) -> (vault: any VaultHost, isMade: Bool) {
        try VaultFiles.openForRestoring(path, calls: calls)
    }

    func openForCopy() throws(VaultError) -> any VaultHost { try VaultFiles.openForCopy(path, calls: calls) }

    func adopt(lock: Int32, follows: Bool) throws(VaultError) -> any VaultHost {
        try VaultFiles.adopt(path, header: lock, calls: calls)
    }

    // MARK: A place without a vault, or with one that is not opened

    func requireReachable() {}

    var lacksHeader: Bool {
        func has(_ name: String) -> Bool { access(path + "/" + name, F_OK) == 0 }
        return !has(VaultFiles.headerName)
            && (has(SegmentLayout.sharedName) || has(SegmentLayout.directoryName))
    }

    func dropTraces() { VaultFiles.dropTraces(of: path, calls) }

    // MARK: The host

    func totalBytes() -> UInt64? { host()?.totalBytes }

    func requireRoom(forNew bytes: UInt64) throws(VaultError) {
        guard let host = host() else { return }
        try VaultFiles.requireRoom(for: bytes, held: 0, on: host)
    }

    var proposedBytes: UInt64 {
        guard let host = host() else { return 0 }
        let available = host.availableBytes / 8
        return host.typeMagic == VaultFiles.fatMagic ? min(available, VaultFiles.fatFileBytesMax) : available
    }

    var storeKeepingVersions: String? {
        let types: [UInt64: String] = [
            0x9123_683E: "btrfs", 0x2FC1_2FC1: "ZFS", 0xF2F5_2010: "f2fs", 0xCA45_1A4E: "bcachefs",
            0x794C_7630: "overlay",
        ]
        if let type = host()?.typeMagic, let name = types[type] { return name }
        let synced = [
            "Dropbox", "Nextcloud", "ownCloud", "OneDrive", "Google Drive", "GoogleDrive", "Syncthing",
            "Sync",
        ]
        let absolute = path.hasPrefix("/") ? path : Self.currentDirectory() + "/" + path
        return absolute.split(separator: "/").lazy.map(String.init).first { synced.contains($0) }
            .map { "a folder synced by \($0)" }
    }

    private static func currentDirectory() -> String {
        guard let path = getcwd(nil, 0) else { return "" }
        defer { free(path) }
        return pathText(path)
    }

    /// The host filesystem of the path, or of its nearest existing ancestor.
    private func host() -> HostStatus? {
        let calls = LinuxCalls.shared
        var path = path
        while true {
            if let descriptor = try? calls.open(AT_FDCWD, path, flags: O_RDONLY, mode: 0) {
                defer { calls.close(descriptor) }
                return try? calls.hostStatus(descriptor)
            }
            while path.hasSuffix("/") && path.utf8.count > 1 { path.removeLast() }
            guard let slash = path.lastIndex(of: "/") else {
                if path == "." { return nil }
                path = "."
                continue
            }
            if path == "/" { return nil }
            path = slash == path.startIndex ? "/" : String(path[..<slash])
        }
    }
}
