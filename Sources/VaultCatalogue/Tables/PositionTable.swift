public import CatalogueRows
public import FileRequests

/// The position of a photo as it is stored.
public struct StoredPosition: Sendable, Equatable {
    public var position: PhotoPosition
    /// Whether the photo is in views: else it is in the trash.
    public var isShown: Bool

    public init(_ position: PhotoPosition, isShown: Bool = true) {
        (self.position, self.isShown) = (position, isShown)
    }

    private static let hiddenBit: UInt64 = 1 << 63
    private static let absentNumber: UInt64 = 1
    /// Latitudes are stored plus this, so that no point is 0 or 1.
    private static let latitudeOffset = Int64(PhotoPosition.latitudeMax) + 1
    private static let longitudeOffset = Int64(PhotoPosition.longitudeMax)

    /// 0: not known. Impossible numbers, of a damaged row, count as not known.
    init?(stored: UInt64) {
        isShown = stored & Self.hiddenBit == 0
        let number = stored & ~Self.hiddenBit
        if number == 0 { return nil }
        if number == Self.absentNumber {
            position = .absent
            return
        }
        let latitude = Int64(number >> 32) - Self.latitudeOffset
        let longitude = Int64(number & 0xFFFF_FFFF) - Self.longitudeOffset
        guard abs(latitude) < Self.latitudeOffset, abs(longitude) <= Self.longitudeOffset else { return nil }
        position = .point(latitude: Int32(latitude), longitude: Int32(longitude))
    }

    var stored: UInt64 {
        let number =
            switch position {
            case .absent: Self.absentNumber
            case .point(let latitude, let longitude):
                UInt64(Int64(latitude) + Self.latitudeOffset) << 32
                    | UInt64(Int64(longitude) + Self.longitudeOffset)
            }
        return isShown ? number : number | Self.hiddenBit
    }
}

/// Where photos were taken.
public final class PositionTable {
    private let blocks: NumberBlocks

    init(_ connection: Connection) { blocks = NumberBlocks(connection, "position", "points") }

    /// The position of a photo; nil if it is not known whether it has one.
    public func position(of ino: UInt64) throws(FileError) -> StoredPosition? {
        StoredPosition(stored: try blocks.number(of: ino))
    }

    /// Stores the position of a photo; nil: it is not known any more. Returns whether it was another before.
    @discardableResult
    public func store(_ position: StoredPosition?, of ino: UInt64) throws(FileError) -> Bool {
        try blocks.store(position?.stored ?? 0, of: ino)
    }

    /// Visits the points of photos in views in a number of blocks, in the order of the inodes. Returns the inode to
    /// continue from; nil after the last one.
    public func eachPoint(
        from first: UInt64, blocks count: Int,
        _ visit: (_ ino: UInt64, _ latitude: Int32, _ longitude: Int32) -> Void
    ) throws(FileError) -> UInt64? {
        try blocks.each(from: first, blocks: count) { ino, number in
            guard let stored = StoredPosition(stored: number), stored.isShown,
                case .point(let latitude, let longitude) = stored.position
            else { return }
            visit(ino, latitude, longitude)
        }
    }

    /// Of how many photos in views it is known whether they have a position. Reads the whole table.
    public func count() throws(FileError) -> Int64 {
        var count: Int64 = 0
        try blocks.each(from: 0, blocks: .max) { _, number in
            if StoredPosition(stored: number)?.isShown == true { count += 1 }
        }
        return count
    }
}
