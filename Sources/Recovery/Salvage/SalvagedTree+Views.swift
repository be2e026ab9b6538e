import CatalogueRows
import FileRequests
import PhotoLibrary
import PhotoRules
import VaultCatalogue

extension SalvagedTree {
    /// Names each photo in views as in moments, numbered where another has that name.
    func settleViewNames() throws(FileError) {
        var photos: [UInt64] = []
        try sql(tree.tables.eachPhotoWithoutViewName { photos.append($0) })
        for ino in photos {
            guard let inode = try tree.existing(ino), !inode.row.flags.contains(.trashed),
                let moment = try tree.moments.moments(of: inode).first
            else { continue }
            let name = try firstFreeName(moment.row.name) { candidate throws(FileError) in
                try sql(tree.tables.holder(ofViewName: candidate)) == nil
            }
            try sql(tree.tables.setViewName(of: ino, name))
        }
    }
}
