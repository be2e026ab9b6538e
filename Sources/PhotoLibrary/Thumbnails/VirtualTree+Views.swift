import CatalogueRows
import FileRequests
import LinuxIO
import PhotoImaging
import VaultCatalogue

/// `.thumbs` of the directories in `views`: the photos' pictures, but no piles or contact sheets.
extension VirtualTree {
    /// The node of a name in a directory of thumbnails.
    func child(
        of folder: ThumbnailFolder, in view: ViewNode, _ name: [UInt8]
    ) throws(FileError) -> VirtualNode {
        let node = try session.views.viewing { tree throws(FileError) -> VirtualNode? in
            let file = try tree.pictureNames.file(behind: name) { name throws(FileError) in
                try session.views.photo(named: name, in: view, tree)
            }
            guard let file else { return nil }
            return .picture(
                of: file.ino, folder.kind ?? .standard, try tree.pictureNames.pictureVersion(of: file))
        }
        if let node { return node }
        guard folder.kind == nil, let kind = ThumbnailKind(named: name) else { throw .noEntry }
        return .folder(ThumbnailFolder(directory: folder.directory, kind: kind, isMirror: false))
    }

    /// Lists the pictures of a view's photos that may exist, without decoding.
    func list(
        _ folder: ThumbnailFolder, of view: ViewNode, _ ino: UInt64, after cookie: UInt64,
        _ visit: (DirectoryEntry) -> Bool
    ) throws(FileError) {
        let types = service.decodableTypes
        guard DirectoryEntry.visitDots(ino, folder.directory, after: cookie, visit) else { return }
        try session.views.viewing { tree throws(FileError) in
            var failed: FileError?
            try session.views.eachPhoto(of: view, after: cookie, tree) { photo, cookie in
                do throws(FileError) {
                    let inode = try tree.inode(photo.ino)
                    guard try tree.pictureNames.picture(of: inode, types).mayExist else { return true }
                    let name = try tree.pictureNames.pictureName(photo.name) { name throws(FileError) in
                        try session.views.photo(named: name, in: view, tree) != nil
                    }
                    guard let name else { return true }
                    return visit(
                        DirectoryEntry(
                            name: Name(name), cookie: cookie, ino: try tree.pictureNames.pictureNumber(inode),
                            mode: tree.pictureNames.pictureMode(tree.attributes(inode))))
                } catch {
                    failed = error
                    return false
                }
            }
            if let failed { throw failed }
        }
    }
}
