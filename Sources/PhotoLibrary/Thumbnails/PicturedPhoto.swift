package import PhotoImaging

/// A picture that the vault keeps.
package struct KeptPicture: Sendable, Equatable {
    package var size: PictureSize
    package var format: PictureFormat
    package var byteCount: Int
    /// The number under which it is kept.
    package var content: UInt64

    package init(_ size: PictureSize, _ format: PictureFormat, byteCount: Int, content: UInt64) {
        (self.size, self.format, self.byteCount, self.content) = (size, format, byteCount, content)
    }
}

/// The properties of a photo that its pictures depend on.
package struct PicturedPhoto: Sendable {
    package var ino: UInt64
    /// Grows with each change of the photo's bytes.
    package var revision: UInt64
    package var type: MediaType
    /// Size of the photo.
    package var byteCount: UInt64
    /// As EXIF numbers it, 1–8.
    package var orientation: Int64
    /// Kept pictures of this revision.
    package var kept: [KeptPicture]
    /// Whether a worker has failed to decode it.
    package var isUndecodable: Bool

    package init(
        ino: UInt64, revision: UInt64, type: MediaType, byteCount: UInt64, orientation: Int64,
        kept: [KeptPicture], isUndecodable: Bool
    ) {
        (self.ino, self.revision, self.type) = (ino, revision, type)
        (self.byteCount, self.orientation) = (byteCount, orientation)
        (self.kept, self.isUndecodable) = (kept, isUndecodable)
    }

    package func picture(_ size: PictureSize, _ format: PictureFormat) -> KeptPicture? {
        kept.first { $0.size == size && $0.format == format }
    }

    /// The smallest kept JPEG that has all the pixels of a picture of that size.
    package func picture(serving size: PictureSize) -> KeptPicture? {
        kept.filter { $0.format == .jpeg && $0.size.serves(size) }
            .min { $0.size.width * $0.size.height < $1.size.width * $1.size.height }
    }

    /// Whether its picture may be transparent, which a JPEG made of it is not.
    var mayBeTransparent: Bool { type != .jpeg && !type.isRaw && !type.isVideo }
}
