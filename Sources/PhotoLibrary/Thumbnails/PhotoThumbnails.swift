import CatalogueRows
package import FileRequests
package import PhotoImaging
import Synchronization
import VaultStore

/// Thumbnails of single photos: requested from the service, and kept in the space within the budget.
package final class PhotoThumbnails: Sendable {
    let session: TreeSession
    package let service: ThumbnailService
    /// The sector after the last thumbnail that was written: consecutive ones lie together.
    let place = Mutex<UInt64?>(nil)

    package init(_ session: TreeSession, _ settings: ThumbnailSettings) {
        self.session = session
        service = ThumbnailService(settings)
        service.background.thumbnails = self
    }

    /// The part of a space that thumbnails leave free.
    private static let spareFraction: UInt64 = 32
    private static let spareBytesMax: UInt64 = 64 << 20

    /// Returns the photo's picture of that kind. Throws `.noEntry` if it cannot be decoded, or not now. The picture of
    /// a Live Photo's video is that of its still, unless that one cannot be decoded.
    package func thumbnail(
        of photo: UInt64, _ kind: ThumbnailKind, _ format: PictureFormat = .jpeg,
        for priority: RequestPriority = .interactive(nil)
    ) throws(FileError) -> Thumbnail {
        if let still = try still(of: photo) {
            do throws(FileError) {
                return try service.request(StoredPhoto(self, still), kind, format, for: priority)
            } catch {
                guard error == .noEntry else { throw error }
            }
        }
        return try service.request(StoredPhoto(self, photo), kind, format, for: priority)
    }

    /// The photo whose picture is also that of a Live Photo's video; nil for all other photos.
    func still(of photo: UInt64) throws(FileError) -> UInt64? {
        try session.locked { tree throws(FileError) in
            let inode = try tree.inode(photo)
            return inode.isPhoto ? try tree.groups.still(of: inode)?.ino : nil
        }
    }

    /// Returns the bytes of the photo's picture; see `thumbnail`.
    package func thumbnailBytes(
        of photo: UInt64, _ kind: ThumbnailKind, _ format: PictureFormat = .jpeg,
        for priority: RequestPriority = .interactive(nil)
    ) throws(FileError) -> [UInt8] {
        try thumbnail(of: photo, kind, format, for: priority).bytes(StoredPhoto(self, photo))
    }

    /// Whether there is room for thumbnails: they must not take the last room from photos.
    var hasRoomToSpare: Bool {
        let use = session.space.sectors.capacity
        return use.available >= min(use.total / Self.spareFraction, Self.spareBytesMax)
            && session.space.ledger.hasRowRoom
    }
}
