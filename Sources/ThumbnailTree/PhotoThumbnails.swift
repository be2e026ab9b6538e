import CatalogueRows
package import FileRequests
import FileTree
package import PhotoImaging
package import PhotoSession
import PhotoTree
import Synchronization
package import Thumbnails
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
        service.background.make = { [weak self] photo in self?.makeInBackground(photo) }
        service.background.findMore = { [weak self] last in self?.nextBackgroundBatch(last) }
        service.background.rest = { [weak service] in service?.restInBackground() }
    }

    /// The part of a space that thumbnails leave free.
    private static let spareFraction: UInt64 = 32
    private static let spareBytesMax: UInt64 = 64 << 20

    /// Returns the photo's picture of that kind. Throws `.noEntry` if it cannot be decoded, or not now.
    package func thumbnail(
        of photo: UInt64, _ kind: ThumbnailKind, _ format: PictureFormat = .jpeg,
        for priority: RequestPriority = .interactive(nil)
    ) throws(FileError) -> Thumbnail {
        return try service.request(StoredPhoto(self, photo), kind, format, for: priority)
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
        let use = session.space.capacity
        return use.available >= min(use.total / Self.spareFraction, Self.spareBytesMax)
    }
}
