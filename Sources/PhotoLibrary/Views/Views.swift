import CatalogueRows
package import FileRequests
import LinuxIO
import PhotoRules
import VaultCatalogue
import VaultFormat

/// Photos in views: their names there, and their ratings.
package final class Views {
    private unowned let tree: Tree
    /// When photos last came into views or left them; the earliest time at the start of a session.
    private(set) var modified = Timestamp(seconds: 0)

    init(_ tree: Tree) { self.tree = tree }

    /// Notes that a photo has come into views, left them, or changed its place.
    func noteChange() { modified = .now() }

    // MARK: Names

    /// Names the photos among the marked inodes in views, after their names in moments, or takes them out of views.
    func settleViewNames() throws(FileError) {
        for ino in tree.marks.new.sorted() where ino <= Geometry.idMax {
            do throws(FileError) {
                try settleViewName(of: ino)
            } catch {
                // A photo whose rows cannot be read must not stop the commits of all others.
                if error == .noRoom { throw .noRoom }
            }
        }
        tree.hasLostMoment.removeAll(keepingCapacity: true)
    }

    /// Keeps the name that a photo has, unless it has got another place or name in moments since.
    private func settleViewName(of ino: UInt64) throws(FileError) {
        guard let inode = try tree.existing(ino), inode.isPhoto else { return }
        let moment =
            inode.isTrashed || tree.orphans.contains(ino) ? nil : try tree.moments.moment(of: inode)?.row.name
        let present = try tree.tables.views.name(of: ino)
        guard let moment else {
            if present != nil { try setViewName(of: ino, nil) }
            return
        }
        if let present, present == moment { return }
        if let present, !tree.hasLostMoment.contains(ino), isNumberedForm(present, of: moment) { return }
        let name = try freeViewName(moment, for: ino)
        if name != present { try setViewName(of: ino, name) }
    }

    /// The name, or a numbered form of it, that no other photo has in views.
    private func freeViewName(_ name: [UInt8], for ino: UInt64) throws(FileError) -> [UInt8] {
        func isFree(_ candidate: [UInt8]) throws(FileError) -> Bool {
            let holder = try tree.tables.views.holder(ofViewName: candidate)
            return holder == nil || holder == ino
        }
        if try isFree(name) { return name }
        // Cameras count to 9999 and begin anew, so a name may be taken often: one query instead of one for each number.
        let (prefix, limit) = (stemOf(name) + Array(" (".utf8), tree.options.limits.numberedNames)
        let taken = try tree.tables.views.names(beginning: prefix, limit: limit)
        return try firstFreeName(name) { candidate throws(FileError) in
            guard taken.count < limit, candidate.starts(with: prefix) else { return try isFree(candidate) }
            return taken[candidate] == nil || taken[candidate] == ino
        }
    }

    private func setViewName(of ino: UInt64, _ name: [UInt8]?) throws(FileError) {
        let former = try tree.tables.views.name(of: ino)
        try tree.tables.views.setName(of: ino, name)
        if name == nil { try tree.likenesses.forget(ino, named: former) }
        try tree.positions.setShown(ino, name != nil)
        modified = .now()
    }

    // MARK: Ratings

    /// Notes that a file's rating attribute was set or removed. Returns whether the rating must be read from its bytes:
    /// it is a photo without that attribute.
    package func followRatingAttribute(of inode: Inode, _ change: Change) throws(FileError) -> Bool {
        guard inode.isPhoto else { return false }
        var row = try tree.photos.photo(inode)
        row.rating = 0
        try tree.photos.storePhoto(inode, row, change)
        return try ratingByAttribute(of: inode) == nil
    }

    /// The stars of a file's rating attribute; nil if it has none.
    func ratingByAttribute(of inode: Inode) throws(FileError) -> Int64? {
        guard inode.row.flags.contains(.hasAttributes),
            let value = try tree.tables.attributes.value(inode.ino, ratingAttribute)
        else { return nil }
        return stars(ofHalves: value)
    }
}
