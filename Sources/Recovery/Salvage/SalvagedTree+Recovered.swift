import CatalogueRows
import FileRequests
import PhotoImaging
import PhotoLibrary
import PhotoRules
import VaultCatalogue
import VaultFormat

/// Files of `albums/Recovered`, which have bytes and no record, and versions of files without a record.
extension SalvagedTree {
    /// Puts nameless files into `albums/Recovered`, to be classified when the library is opened.
    mutating func addNameless() throws(FileError) {
        for (content, bytes, type) in salvage.nameless where users[content] == nil {
            try addFound(bytes, of: content, type)
        }
    }

    /// Puts bytes of a content, or of a snapshot, into `albums/Recovered`, under the content's number.
    mutating func addFound(_ bytes: FoundBytes, of content: UInt64, _ type: MediaType?) throws(FileError) {
        let parent = try recoveredAlbum()
        try addRows(bytes, of: content)
        let inode = tree.makeInode(
            mode: regularType | 0o644, in: parent, owner, now: now, content: content)
        (inode.row.size, inode.row.allocated, inode.row.revision) = (bytes.size, bytes.allocated, 1)
        inode.row.flags.insert(.foundWithoutRecord)
        let name = "\(SnapshotID.source(content))\(type.map { "." + fileExtension(of: $0) } ?? "")"
        try tree.addEntry(parent, try tree.freeName(parent, Array(name.utf8)), inode, now: now)
        tree.addLink(to: inode, now: now)
        users[content] = [inode.ino]
        try tree.tables.pendingClassification.add(parent.ino)
    }

    /// Puts the states that no record tells of into `albums/Recovered`, as snapshots of their contents.
    mutating func addUnnamed() throws(FileError) {
        for (state, type) in salvage.unnamed {
            guard let id = SnapshotID.make(of: state.content, number: tree.counters.content) else { continue }
            tree.counters.content += 1
            try addFound(state.bytes, of: id, type)
        }
    }

    /// Whether an earlier repair made a file by `addUnnamed`, and nobody has named or changed it since.
    func isUnnamed(_ record: IdentityRecord) -> Bool {
        record.row.flags.contains(.foundWithoutRecord) && SnapshotID.isSnapshot(record.row.content)
            && record.trashed == nil && record.names.allSatisfy { isNumber($0.name) }
    }

    /// Adds the files that earlier repairs made by `addUnnamed`, unless other files have all of their bytes now.
    mutating func addUnnamedOfEarlierRepairs() throws(FileError) {
        for recoveredInode in unnamed {
            let found = salvage.contents.bytes(of: recoveredInode).stored
            let isNamed = try tree.tables.snapshots.unnamed(found).isEmpty
            if isNamed, !found.isEmpty {
                tree.marks.retire(inode: recoveredInode.record.row.ino)
            } else if try add(recoveredInode, isLast: true) {
                place(recoveredInode)
            }
        }
    }

    /// Versions whose photo is lost become those of the file that has its content now: one without a record, or the
    /// photo, if that has come back. Without any they become files of `albums/Recovered`.
    mutating func settleVersions() throws(FileError) {
        guard let root = try tree.existing(WellKnownInode.versions) else { return }
        for row in try tree.rows(of: root) {
            if let file = versionedFile(named: row.name), try tree.existing(file)?.isRegular == true {
                continue
            }
            if let file = try substitute(forFileOfVersionsIn: row.ino),
                try tree.versions.versionsDirectory(of: file) == nil
            {
                let directory = try tree.inode(row.ino)
                try tree.removeEntry(root, row.id, directory, now: now)
                try tree.addEntry(root, versionsDirectoryName(of: file), directory, now: now)
                continue
            }
            let (directory, album) = (try tree.inode(row.ino), try recoveredAlbum())
            try tree.removeEntry(root, row.id, directory, now: now)
            try tree.addEntry(album, try tree.freeName(album, row.name), directory, now: now)
            for version in try tree.rows(of: directory) {
                let inode = try tree.inode(version.ino)
                inode.row.flags.remove(.version)
                tree.touch(inode)
            }
            try tree.tables.pendingClassification.add(directory.ino)
        }
    }

    /// The file with the content from which the versions in a directory were made; nil if there is none.
    private func substitute(forFileOfVersionsIn directory: UInt64) throws(FileError) -> UInt64? {
        for version in try tree.rows(of: tree.inode(directory)) {
            let content = try tree.inode(version.ino).row.content
            for file in users[SnapshotID.source(content)] ?? [] where SnapshotID.isSnapshot(content) {
                if let inode = try tree.existing(file), !inode.isVersion { return file }
            }
        }
        return nil
    }
}

/// The usual extension of such a file's name.
private func fileExtension(of type: MediaType) -> String {
    switch type {
    case .jpeg: "jpg"
    case .tiff: "tif"
    case .threeGP: "3gp"
    case .matroska: "mkv"
    case .mpegTS: "mts"
    case .mpegPS: "mpg"
    case .asf: "wmv"
    case .ogg: "ogv"
    default: "\(type)"
    }
}
