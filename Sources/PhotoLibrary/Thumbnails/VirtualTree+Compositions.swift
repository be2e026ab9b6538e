import CatalogueRows
import FileRequests
import LinuxIO
import PhotoImaging
import VaultCatalogue

/// `stack.jpg` and `sheet.jpg`: pictures of a directory's newest photos.
extension VirtualTree {
    /// The photos taken last are searched among this many newest names of a directory.
    private static let namesMax = 4000

    /// For a caller that may not read all photos of a directory, this many times as many are examined.
    private static let hiddenFactor = 4

    /// The tiles of a composition, and the newest change of the directory or one of the photos.
    private struct Contents {
        var tiles: [CompositionTile]
        var modified: Timestamp

        var version: PictureVersion {
            var parts: [UInt64] = []
            for tile in tiles { parts += [tile.photo, tile.revision] + tile.name.map(UInt64.init) }
            return PictureVersion(of: parts)
        }
    }

    /// Returns the composition's JPEG, made again if the directory or its photos have changed, and the time of that
    /// change. Throws `.noEntry` if none of the photos can be decoded, `.stale` if the reader may not read one of them.
    ///
    /// - Parameter hidden: files to leave out; see `hiddenFiles`.
    func picture(
        of composition: Composition, _ directory: UInt64, hidden: [UInt64], _ reader: ReadPermission,
        unless cancellation: Cancellation?
    ) throws(FileError) -> (bytes: [UInt8], modified: Timestamp) {
        let contents = try contents(of: composition, directory, hidden, reader)
        let bytes = try service.request(
            composition, of: directory, contents.tiles, { [thumbnails] in StoredPhoto(thumbnails, $0.photo) },
            title: { [self] in title(of: directory) }, for: .interactive(cancellation))
        return (bytes, contents.modified)
    }

    /// Returns the files that a composition must leave out because the reader may not read them: those among
    /// the newest of the directory, until enough readable photos are found; one entry for each name.
    func hiddenFiles(
        of composition: Composition, _ directory: UInt64, from reader: ReadPermission
    ) throws(FileError) -> [UInt64] {
        try session.locked { tree throws(FileError) in
            let newest = try tree.tables.dentries.newestPhotos(
                in: directory, among: Self.namesMax, limit: composition.photosMax * Self.hiddenFactor)
            var (hidden, shownCount) = ([UInt64](), 0)
            for placed in newest where shownCount < composition.photosMax {
                if reader.mayRead(tree.attributes(try tree.inode(placed.ino))) {
                    shownCount += 1
                } else {
                    hidden.append(placed.ino)
                }
            }
            return hidden
        }
    }

    /// The version of the composition; see `picture`.
    func version(
        of composition: Composition, _ directory: UInt64, hidden: [UInt64], _ reader: ReadPermission
    ) throws(FileError) -> PictureVersion {
        try contents(of: composition, directory, hidden, reader).version
    }

    private func contents(
        of composition: Composition, _ directory: UInt64, _ hidden: [UInt64], _ reader: ReadPermission
    ) throws(FileError) -> Contents {
        try session.locked { tree throws(FileError) in
            let row = try tree.directory(directory).row
            var contents = Contents(tiles: [], modified: row.modified)
            let newest = try tree.tables.dentries.newestPhotos(
                in: directory, among: Self.namesMax, limit: composition.photosMax + hidden.count)
            let shown = newest.lazy.filter { !hidden.contains($0.ino) }.prefix(composition.photosMax)
            for placed in shown {
                // Permissions have changed since the lookup: the name must be looked up again.
                guard reader.mayRead(tree.attributes(try tree.inode(placed.ino))) else { throw .stale }
                let photo = try tree.inode(placed.photo)
                contents.modified = max(contents.modified, photo.row.modified)
                contents.tiles.append(
                    CompositionTile(photo: photo.ino, revision: photo.row.revision, name: placed.name))
            }
            return contents
        }
    }

    /// The directory's name; empty if it cannot be read.
    private func title(of directory: UInt64) -> String {
        let name = try? session.locked { tree throws(FileError) in
            try tree.tables.dentries.names(of: directory).first?.name
        }
        return String(decoding: name ?? [], as: UTF8.self)
    }
}
