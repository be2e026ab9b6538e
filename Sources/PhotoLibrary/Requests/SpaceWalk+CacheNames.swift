import CatalogueRows
package import FileRequests
package import PhotoRules
import VaultCrypto

/// Thumbnails outside the vault, whose names are digests of their files' paths.
extension SpaceWalk {
    /// Returns the digests that belong to files of this space: by a file's path, or by the former path of one in the
    /// trash. Directories that cannot be read are left out.
    ///
    /// - Parameters:
    ///   - digests: MD5 of file URIs.
    ///   - places: every path, from the root, at which the space is mounted.
    public func thumbnailDigests(
        among digests: Set<[UInt8]>, mountedAt places: [[UInt8]], unless isStopped: () -> Bool
    ) -> Set<[UInt8]> {
        let starts = places.map { Array("file://".utf8) + escapedForURI($0) }
        var found: Set<[UInt8]> = []
        func check(_ path: [UInt8]) {
            for start in starts {
                let digest = md5(start + path)
                if digests.contains(digest) { found.insert(digest) }
            }
        }
        var waiting: [(ino: UInt64, path: [UInt8])] = [(WellKnownInode.root, [])]
        while let (ino, path) = waiting.popLast(), !isStopped() {
            for entry in names(in: ino) {
                let inner = path + [UInt8(ascii: "/")] + escapedForURI(entry.name.bytes)
                if entry.mode & fileTypeMask == directoryType {
                    waiting.append((entry.ino, inner))
                } else {
                    check(inner)
                    if let origin = deletionPath(entry) { check([UInt8(ascii: "/")] + escapedForURI(origin)) }
                }
            }
        }
        return found
    }

    private func names(in directory: UInt64) -> [DirectoryEntry] {
        guard let handle = try? library.openDirectory(directory) else { return [] }
        defer { library.releaseDirectory(handle) }
        var entries: [DirectoryEntry] = []
        // Traces of photos that cannot be listed are not found: none is removed for a guess.
        try? library.readDirectory(handle, after: 0, plus: false) { entry in
            if entry.name != "." && entry.name != ".." { entries.append(entry) }
            return true
        }
        return entries
    }

    /// The former path, from the root of the mount, of the file that a `.trashinfo` file describes.
    private func deletionPath(_ entry: DirectoryEntry) -> [UInt8]? {
        guard hasSuffix(entry.name.bytes, TrashInfoText.suffix) else { return nil }
        return (try? trashInfo(entry.ino))??.path
    }

    /// Reads a `.trashinfo` file; nil if the file has another form.
    package func trashInfo(_ ino: UInt64) throws(FileError) -> TrashInfoText? {
        let attributes = try library.attributes(ino).0
        guard attributes.isRegular, attributes.size <= TrashInfoText.bytesMax else { return nil }
        var text: [UInt8] = []
        try unsafe readStored(ino, Caller(uid: library.options.owner.uid, gid: library.options.owner.gid)) {
            _, bytes in
            unsafe text += bytes
            return true
        }
        return TrashInfoText(text)
    }
}
