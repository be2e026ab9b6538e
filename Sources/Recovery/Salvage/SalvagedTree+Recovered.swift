import CatalogueRows
import FileRequests
import PhotoImaging
import PhotoLibrary
import VaultCatalogue
import VaultFormat

/// Files of `albums/Recovered`, which have bytes and no record.
extension SalvagedTree {
    /// Puts nameless files into `albums/Recovered`, to be classified when the library is opened.
    mutating func addNameless() throws(FileError) {
        for (content, type) in salvage.nameless where users[content] == nil {
            try addFound(salvage.contents.newestBytes(of: content), of: content, type)
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

    /// Adds the files that earlier repairs made by `addUnnamed`, but for those whose bytes other files have now.
    mutating func addUnnamedOfEarlierRepairs() throws(FileError) {
        for recoveredInode in unnamed {
            let found = salvage.contents.bytes(of: recoveredInode).pieces.filter { !$0.isLost }.map(\.run)
            let isNamed = try tree.tables.snapshots.unnamed(found).isEmpty
            if isNamed, !found.isEmpty {
                tree.marks.retire(inode: recoveredInode.record.row.ino)
            } else if try add(recoveredInode, isLast: true) {
                place(recoveredInode)
            }
        }
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
    default: "\(type)"
    }
}
