package import CatalogueRows

/// Live Photos, a raw file and its JPEG, and sidecars: files of one stem in a day that were taken at the same time stay
/// together when one of them is re-dated or moved to another day.

/// Seconds by which the two parts of a Live Photo may differ.
private let pairSecondsMax: Int64 = 3

/// Whether a file next to a photo is to follow it to another day.
///
/// - Parameters:
///   - name: of the photo; `otherName` of the file.
///   - photo: as it was in that day; `other` the file's row if it is a photo.
package func isCompanion(
    _ otherName: [UInt8], _ other: PhotoRow?, of name: [UInt8], media: Int64, captured: Int64
) -> Bool {
    guard let other else { return sidecarNames(name).contains(otherName) }
    // A Live Photo's parts, and a raw file and its JPEG, differ in type; two JPEGs of one stem do not belong together.
    return stemOf(otherName) == stemOf(name) && other.media != media
        && abs(other.captured - captured) <= pairSecondsMax
}
