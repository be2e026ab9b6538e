import CatalogueRows
import FileRequests
import LinuxIO
import PhotoImaging
import PhotoRules
import VaultCatalogue

/// `.sh_thumbnails`: file managers that support it show these pictures and make none of their own.
extension VirtualTree {
    /// Returns the name of the photo that a file in the directory's repository shows.
    func repositoryName(_ file: [UInt8], in directory: UInt64) throws(FileError) -> [UInt8] {
        guard let digest = repositoryDigest(named: file) else { throw .noEntry }
        let (changed, count) = try session.locked { tree throws(FileError) in
            let row = try tree.directory(directory).row
            return (row.changed, row.size)
        }
        guard count <= UInt64(RepositoryNames.namesMax) else { throw .noEntry }
        var found = service.repositoryNames.find(digest, in: directory, changed: changed)
        if !found.isKnown {
            let rows = try session.locked { tree throws(FileError) in
                var rows: [(id: UInt64, name: [UInt8])] = []
                try tree.tables.dentries.each(in: directory, after: 0) {
                    rows.append(($0.id, $0.name))
                    return true
                }
                return rows
            }
            service.repositoryNames.note(rows, in: directory, changed: changed)
            found = service.repositoryNames.find(digest, in: directory, changed: changed)
        }
        guard let id = found.id, let name = try nameOfDentry(id, in: directory),
            repositoryDigests(of: name).contains(digest)
        else { throw .noEntry }
        return name
    }

    private func nameOfDentry(_ id: UInt64, in directory: UInt64) throws(FileError) -> [UInt8]? {
        try session.locked { tree throws(FileError) in
            var name: [UInt8]?
            try tree.tables.dentries.each(in: directory, after: id - 1) {
                if $0.id == id { name = $0.name }
                return false
            }
            return name
        }
    }

    /// The version of the PNG of the photo with that name; its text changes with the photo's time.
    func sharedVersion(_ name: [UInt8], in directory: UInt64) throws(FileError) -> PictureVersion {
        try session.locked { tree throws(FileError) in
            guard let found = try tree.find(tree.directory(directory), name) else { throw .noEntry }
            let row = found.inode.row
            return PictureVersion(
                of: try tree.pictureNames.revisions(behind: found.inode) + [
                    UInt64(bitPattern: row.modified.seconds), UInt64(row.modified.nanoseconds), row.size,
                ])
        }
    }

    /// Returns the PNG of the photo with that name, with text that identifies the photo's version.
    func sharedPicture(
        _ name: [UInt8], in directory: UInt64, _ size: RepositorySize, unless cancellation: Cancellation?
    ) throws(FileError) -> [UInt8] {
        let (shown, photo, type) = try session.locked { tree throws(FileError) in
            guard let found = try tree.find(tree.directory(directory), name),
                let photo = try tree.copies.photo(representedBy: found.inode)
            else { throw .noEntry }
            let type = try tree.photos.photo(photo).mediaType
            return (tree.attributes(found.inode), photo.ino, type)
        }
        let picture = try thumbnails.thumbnailBytes(
            of: photo, .sized(size.pictureSize), .png, for: .interactive(cancellation))
        let uri = String(decoding: Array("./".utf8) + escapedForURI(name), as: UTF8.self)
        var texts = [
            (keyword: "Thumb::URI", value: uri), (keyword: "Thumb::MTime", value: timeText(shown.modified)),
            (keyword: "Thumb::Size", value: String(shown.size)),
        ]
        if let type { texts.append((keyword: "Thumb::Mimetype", value: type.mimeType)) }
        texts.append((keyword: "Software", value: "Obscura"))
        guard let labelled = png(picture, with: texts) else { throw .damaged }
        return labelled
    }
}

/// Seconds since 1970, with microseconds if there are any: tumbler compares these, other programs read up to the point.
private func timeText(_ time: Timestamp) -> String {
    let microseconds = time.nanoseconds / 1000
    guard microseconds > 0 else { return String(time.seconds) }
    let digits = String(microseconds)
    return "\(time.seconds)." + String(repeating: "0", count: 6 - digits.utf8.count) + digits
}
