import CatalogueRows
package import FileRequests
import FileTree
import PhotoRules
package import PhotoTree
import VaultFormat
import VaultStore

/// The `.trashinfo` files of photos that are removed from moments.
extension TreeSession {
    /// A sealed `.trashinfo` file for a photo with this name in its day; nil if removing the name needs none. The
    /// caller finally calls `giveUp` on it.
    package func trashInfo(forRemoving name: Name, from parent: UInt64) throws(FileError) -> TrashInfo? {
        guard !isReadOnly else { return nil }
        let day = try locked { tree throws(FileError) -> Int64? in
            let directory = try tree.directory(parent)
            return try tree.isForTrash(directory, name.bytes) ? directory.row.day : nil
        }
        guard let day else { return nil }
        // The trash adds rows. Those of its oldest photo make way; where nothing can, there is the reserve.
        try? requireRowRoom()
        let content = try changing { tree throws(FileError) in tree.makeContent() }
        let path = Array("moments/".utf8) + dayName(day) + [UInt8(ascii: "/")] + name.bytes
        let text = trashInfoText(path: path, deleted: options.clocks.wall())
        // If there is no room for it, the photo is kept without it.
        let runs = try? text.withUnsafeBytes { bytes in
            try space.write(
                role: .content, content: content, offset: 0, bytes, near: nil, purpose: .system)
        }
        return TrashInfo(content: content, runs: runs ?? [], byteCount: text.count)
    }

    /// Frees the sectors, unless they were used.
    package func destroyUnused(_ info: TrashInfo?) {
        if let info, !info.isAdopted { space.abandon(info.runs) }
    }
}
