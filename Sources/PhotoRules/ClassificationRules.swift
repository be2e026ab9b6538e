package import CatalogueRows

/// The consequence of a classification for a file.
package enum ClassificationEffect: Sendable {
    case nothing
    /// A picture or video becomes a photo and gets a moment.
    case promote
    /// A photo has new bytes: it is dated anew, unless the user chose its day.
    case redate
    /// A photo became something else: it leaves moments.
    case demote
}

/// A regular file that was classified.
package struct ClassificationFacts: Sendable {
    package var isPhoto: Bool
    /// Whether the file stands for another photo with the same bytes.
    package var isCopy: Bool
    /// Whether it has any name.
    package var isNamed: Bool
    /// Whether one of its names may be a photo's.
    package var hasPhotoName: Bool
    package var isEmpty: Bool

    package init(isPhoto: Bool, isCopy: Bool, isNamed: Bool, hasPhotoName: Bool, isEmpty: Bool = false) {
        (self.isPhoto, self.isCopy, self.isEmpty) = (isPhoto, isCopy, isEmpty)
        (self.isNamed, self.hasPhotoName) = (isNamed, hasPhotoName)
    }
}

/// The consequence of a classification for a file.
package func classificationEffect(of file: ClassificationFacts, as classification: Classification)
    -> ClassificationEffect
{
    guard file.isNamed, !file.isCopy else { return .nothing }
    return switch (classification, file.isPhoto) {
    case (.unknown, _): .nothing
    // Programs empty a photo before they write it anew, in the same mount or later.
    case (.plain, true): file.isEmpty ? .nothing : .demote
    case (.plain, false): .nothing
    case (.media, true): .redate
    case (.media, false): file.hasPhotoName ? .promote : .nothing
    }
}

/// Whether a file with the bytes of a photo may become its copy: nothing but its mtime would give it another day.
///
/// - Parameter own: the row that the file would have as a photo of its own.
package func mayBeCopy(_ own: PhotoRow, of photo: PhotoRow) -> Bool {
    var own = own
    own.keepZone(of: photo)
    return own.day == photo.day || own.isDatedByMtime || photo.isPinned
}
