package import CatalogueRows
package import PhotoImaging

/// The halves of a Live Photo, the photos of a burst, a raw file and its JPEG, a photo and its edit
/// (`IMG_1234`, `IMG_E1234`), and sidecars stay together when one of them is re-dated or moved to another day. Files
/// with the same identifier belong together; without identifiers, raw files and their pictures, and edits, of one day
/// with the same stem and the same time of capture.
///
/// A removal takes less along: sidecars, and the video of a Live Photo with its still (`isVideo(_:_:ofStill:_:)`).

/// Seconds by which the two parts of a Live Photo may differ.
private let pairSecondsMax: Int64 = 3

/// Whether a file next to a photo is its companion.
///
/// - Parameters:
///   - name: the photo's name; `otherName`: the file's name.
///   - photo: the photo's row; `captured`: its time of capture before the move.
///   - other: the file's row; nil if it is not a photo.
package func isCompanion(
    _ otherName: [UInt8], _ other: PhotoRow?, of name: [UInt8], _ photo: PhotoRow, captured: Int64
) -> Bool {
    guard let other else { return sidecarNames(name).contains(otherName) }
    let (stem, otherStem) = (stemOf(name), stemOf(otherName))
    if let group = photo.group, let otherGroup = other.group {
        if group == otherGroup { return true }
        // An edit may have an identifier of its own.
        if stem == otherStem { return false }
    }
    guard unedited(stem) == unedited(otherStem), abs(other.captured - captured) <= pairSecondsMax
    else {
        return false
    }
    if isVideo(photo) != isVideo(other) { return isOfLivePhoto(photo) || isOfLivePhoto(other) }
    return stem != otherStem || isRaw(photo, name) != isRaw(other, otherName)
}

/// Whether a photo names itself part of a Live Photo. Some programs drop the identifier of the other part.
package func isOfLivePhoto(_ photo: PhotoRow) -> Bool {
    photo.group?.starts(with: livePrefix) ?? false
}

/// Raw formats that are not told apart have the type of the TIFF files on which they are based.
package func isRaw(_ photo: PhotoRow, _ name: [UInt8]) -> Bool {
    guard photo.mediaType == .tiff else { return photo.mediaType?.isRaw ?? false }
    let ending = String(decoding: name.suffix(5), as: UTF8.self).lowercased()
    return !ending.hasSuffix(".tif") && ending != ".tiff"
}

/// The identifier of a photo's Live Photo, else that of its burst; nil if it has none.
func groupIdentifier(_ facts: MediaFacts) -> [UInt8]? {
    guard let identifier = facts.contentIdentifier ?? facts.burstIdentifier, !identifier.isEmpty
    else {
        return nil
    }
    let text = (facts.contentIdentifier == nil ? burstPrefix : livePrefix) + identifier.utf8
    return text.count <= PhotoRow.groupBytesMax ? text : nil
}

/// The stems that the companions of a photo have.
package func companionStems(_ name: [UInt8]) -> [[UInt8]] {
    let stem = stemOf(name)
    let original = unedited(stem)
    guard original == stem else { return [stem, original] }
    guard stem.starts(with: cameraPrefix), isNumber(stem.dropFirst(cameraPrefix.count)) else { return [stem] }
    return [stem, editPrefix + stem.dropFirst(cameraPrefix.count)]
}

/// Whether a photo is the still of a video that is its companion: its picture is then the video's too.
package func isStill(_ photo: PhotoRow, of video: PhotoRow) -> Bool {
    isVideo(video) && photo.mediaType?.isVideo == false
}

/// Whether a video is that of a Live Photo whose still a picture is, so that it is no photo of its own: it goes into
/// the trash with the still, and comes back with it. Closer than `isCompanion`: an edit is the still of its own video
/// only.
package func isVideo(
    _ name: [UInt8], _ video: PhotoRow, ofStill stillName: [UInt8], _ still: PhotoRow
) -> Bool {
    guard isStill(still, of: video) else { return false }
    if let group = video.group, let other = still.group { return group == other && isOfLivePhoto(video) }
    return (isOfLivePhoto(video) || isOfLivePhoto(still)) && stemOf(name) == stemOf(stillName)
        && abs(video.captured - still.captured) <= pairSecondsMax
}

package func isVideo(_ photo: PhotoRow) -> Bool { photo.mediaType?.isVideo ?? false }

extension PhotoRow {
    /// With the day and time of another photo.
    package func dated(by other: PhotoRow) -> PhotoRow {
        var row = self
        (row.captured, row.capturedNanoseconds) = (other.captured, other.capturedNanoseconds)
        (row.source, row.isDatedByMtime) = (other.source, other.isDatedByMtime)
        if other.isPinned { row.pin(to: other.day) } else { row.day = other.day }
        return row
    }

    /// The type of the photo's bytes; nil if this program does not know it.
    package var mediaType: MediaType? { UInt8(exactly: media).flatMap { MediaType(rawValue: $0) } }
}

private let livePrefix = Array("live ".utf8)
private let burstPrefix = Array("burst ".utf8)
private let cameraPrefix = Array("IMG_".utf8)
private let editPrefix = Array("IMG_E".utf8)

/// Apple exports the edit of `IMG_1234` as `IMG_E1234`.
private func unedited(_ stem: [UInt8]) -> [UInt8] {
    guard stem.starts(with: editPrefix), isNumber(stem.dropFirst(editPrefix.count)) else { return stem }
    return cameraPrefix + stem.dropFirst(editPrefix.count)
}

private func isNumber(_ digits: ArraySlice<UInt8>) -> Bool {
    !digits.isEmpty && digits.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
}
