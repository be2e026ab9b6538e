/// A row of table `photo`; see `Schema`.
public struct PhotoRow: Sendable, Equatable {
    public var ino: UInt64
    /// The day it is shown under, YYYYMMDD.
    public var day: Int64
    /// Whether the user chose the day, so that it is not read anew.
    public var isPinned: Bool
    /// The wall clock when it was taken, as seconds since 1970 on that clock.
    public var captured: Int64
    public var capturedNanoseconds: Int64
    /// Where `captured` came from: a `DateSource`'s raw value.
    public var source: [UInt8]
    /// A `MediaType`'s raw value.
    public var media: Int64
    public var width: Int64
    public var height: Int64
    /// EXIF orientation, 1–8.
    public var orientation: Int64
    /// Whether its only date is its mtime, which it follows.
    public var isDatedByMtime: Bool
    /// The name it had in its day or album before it was renamed as an editor's backup.
    public var former: [UInt8]?
    /// Of the bytes; see `fingerprint(of:)` of the library.
    public var fingerprint: UInt64
    /// The camera's name, as a valid name of a directory; nil if it is not known.
    public var camera: [UInt8]?
    /// A `PhotoKind`'s raw value; 0 for any other.
    public var kind: Int64
    /// Stars from 1 to 5; 0 for none.
    public var rating: Int64
    /// The number that the inode of the photo had when it arrived: later photos have higher ones. 0 before the row is
    /// stored.
    public var arrived: UInt64
    /// The identifier that it shares with the other half of its Live Photo, or with the other photos of its burst; nil
    /// if it has none.
    public var group: [UInt8]?
    /// Where it was taken, from its metadata: on the way to the table `position`. Nil in a row that was read.
    public var position: PhotoPosition?

    public init(ino: UInt64, day: Int64) {
        self.ino = ino
        self.day = day
        (isPinned, isDatedByMtime, former) = (false, false, nil)
        (captured, capturedNanoseconds, source) = (0, 0, [])
        (media, width, height, orientation) = (0, 0, 0, 1)
        fingerprint = 0
        (camera, kind, rating, arrived, group) = (nil, 0, 0, 0, nil)
        position = nil
    }

    public static let times: ClosedRange<Int64> = -(1 << 61)...1 << 61
    public static let lengths: ClosedRange<Int64> = 0...1 << 32
    public static let orientations: ClosedRange<Int64> = 1...8
    public static let kinds: ClosedRange<Int64> = 0...4
    public static let ratings: ClosedRange<Int64> = 0...5
    public static let groupBytesMax = 255

    /// Whether its numbers are valid in the table.
    public var isPlausible: Bool {
        InodeRow.days.contains(day) && Self.times.contains(captured)
            && (0...999_999_999).contains(capturedNanoseconds) && Self.lengths.contains(width)
            && Self.lengths.contains(height) && Self.orientations.contains(orientation)
            && Self.kinds.contains(kind) && Self.ratings.contains(rating)
            && (group?.count ?? 0) <= Self.groupBytesMax
    }
}
