import CatalogueRows
package import VaultCatalogue
import VaultFormat

/// Limits the room that kept pictures take: together at most 1.5 % of the photos' bytes, and a small allowance.
///
/// Each photo's share is 1.5 % of its bytes and pays for its own pictures. The share of a small photo is too small for
/// even one: its standard picture is kept while the shares of all photos together are not spent, else made at every
/// request, which is quick for a small photo. Keeping a picture never drops another, so two pictures cannot evict each
/// other in turns. The total can still be exceeded, because photos whose shares paid for others were removed or got
/// pictures of their own later: then pictures beyond their photo's share are dropped while the mount is idle. Without
/// such pictures the total always holds.
package enum PictureBudget {
    /// Bytes that pictures may take without a photo to pay for them: a handful of pictures.
    private static let allowanceBytes: UInt64 = 64 << 10
    /// Bytes of a picture's rows, on both copies of their pages.
    package static let rowBytes: UInt64 = 256
    /// Bytes that a standard picture is expected to take before it is made.
    package static let expectedBytes: UInt64 = 12 << 10

    /// The share, in bytes, of a photo of that size, or of all photos.
    package static func share(of photoBytes: UInt64) -> UInt64 {
        photoBytes / 1000 * 15 + photoBytes % 1000 * 15 / 1000
    }

    /// Limit of the bytes of all pictures together.
    package static func total(_ counters: Counters) -> UInt64 {
        share(of: counters.photoBytes) + allowanceBytes
    }

    /// Bytes of the space that a picture of that many bytes takes.
    package static func cost(_ byteCount: Int) -> UInt64 {
        let sectors =
            byteCount / Geometry.chunkBytes * Geometry.sectorsPerChunk
            + (byteCount % Geometry.chunkBytes > 0
                ? Geometry.sectors(forPlaintext: byteCount % Geometry.chunkBytes) : 0)
        return UInt64(sectors * Geometry.sectorBytes) + rowBytes
    }
}

extension ThumbnailRow {
    /// Bytes of the space that it takes; 0 for a row that only records that there is no picture.
    package var cost: UInt64 {
        guard content != 0 || length > 0 else { return 0 }
        return PictureBudget.cost(Int(max(0, length)))
    }
}
