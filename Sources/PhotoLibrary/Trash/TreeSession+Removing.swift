import CatalogueRows
package import FileRequests
import PhotoRules
import VaultFormat
import VaultStore

/// Why a name is removed.
package enum RemovalKind: Sendable {
    /// By unlink(2).
    case unlinked
    /// Another file is renamed onto it.
    case replaced
    /// The file goes with a photo that was removed.
    case companion
}

/// The `.trashinfo` files of photos that are removed from moments.
extension TreeSession {
    /// Makes the trash of a user, if there is room for it.
    func makeTrash(of owner: Caller) {
        let isThere = try? locked { tree throws(FileError) in try tree.trash.hasTrash(of: owner) }
        guard !isReadOnly, isThere == false, space.ledger.hasRowRoom else { return }
        // Without a trash removed photos are kept by their rows alone; `trash list` has them.
        try? change { change throws(FileError) in try change.tree.trash.makeTrash(of: owner) }
    }

    /// A sealed `.trashinfo` file for what removing this name moves into the trash; nil if that is nothing. The caller
    /// finally calls `destroyUnused` on it. Throws `.noRoom` if one commit cannot take all names that go with this one.
    package func trashInfo(
        forRemoving name: Name, from parent: UInt64, as kind: RemovalKind = .unlinked
    ) throws(FileError) -> TrashInfo? {
        guard !isReadOnly else { return nil }
        let (place, rows) = try locked { tree throws(FileError) -> ([UInt8]?, Int) in
            // A companion's directory may be gone by now.
            if kind == .companion, try tree.existing(parent) == nil { return (nil, 0) }
            let directory = try tree.directory(parent)
            guard let inode = try tree.find(directory, name.bytes)?.inode else { return (nil, 0) }
            let rows = tree.trash.rowsChanging(with: inode, in: directory)
            let isForTrash =
                switch kind {
                case .unlinked: try tree.trash.goesIntoTrash(inode, named: name.bytes, in: directory)
                case .replaced: try tree.trash.isForTrash(inode, in: directory)
                case .companion: options.trashDays > 0
                }
            return (isForTrash ? try tree.path(of: directory) : nil, rows)
        }
        try room.requireRoom(toChangeRows: rows)
        guard let place else { return nil }
        // The trash adds rows. Those of its oldest photo make way; where nothing can, there is the reserve.
        try? room.requireRowRoom()
        return try sealedInfo(of: place, name)
    }

    /// A sealed `.trashinfo` file for a name in that directory. The caller finally calls `destroyUnused` on it.
    func sealedInfo(of directory: [UInt8], _ name: Name) throws(FileError) -> TrashInfo {
        let content = try change(for: .removal) { change throws(FileError) in change.tree.makeContent() }
        let text = trashInfoText(
            path: directory + [UInt8(ascii: "/")] + name.bytes, deleted: options.clocks.wall())
        // If there is no room for it, the photo is kept without it.
        let runs = try? unsafe text.withUnsafeBytes { bytes in
            try unsafe space.write(
                role: .content, content: content, offset: 0, bytes, near: nil, purpose: .system)
        }
        return TrashInfo(content: content, runs: runs ?? [], byteCount: text.count)
    }

    /// Frees the sectors, unless they were used.
    package func destroyUnused(_ info: TrashInfo?) {
        if let info, !info.isAdopted { space.abandon(info.runs) }
    }
}
