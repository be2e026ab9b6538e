public import CatalogueRows
public import FileRequests

private struct PositionStatements {
    let find: Statement
    let list: Statement
    let store: Statement
    let delete: Statement

    init(_ connection: Connection) {
        find = connection.prepare("SELECT points FROM position WHERE block=?")
        list = connection.prepare("SELECT block, points FROM position WHERE block>=? ORDER BY block LIMIT ?")
        store = connection.prepare("REPLACE INTO position VALUES(?,?)")
        delete = connection.prepare("DELETE FROM position WHERE block=?")
    }
}

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

/// Where photos were taken. They lie in blocks: all of a library are to be read at once.
public final class PositionTable {
    private let statements: PositionStatements

    init(_ connection: Connection) { statements = PositionStatements(connection) }

    /// Inode numbers of a block.
    public static let pointsPerBlock: UInt64 = 64
    private static let blockBytes = Int(pointsPerBlock) * 8

    /// The position of a photo; nil if it is not known whether it has one.
    public func position(of ino: UInt64) throws(FileError) -> StoredPosition? {
        let (block, place) = Self.place(of: ino)
        return StoredPosition(stored: Self.number(at: place, in: try bytes(ofBlock: block)))
    }

    /// Stores the position of a photo; nil: it is not known any more. Returns whether it was another before.
    @discardableResult
    public func store(_ position: StoredPosition?, of ino: UInt64) throws(FileError) -> Bool {
        let (block, place) = Self.place(of: ino)
        var bytes = try bytes(ofBlock: block)
        let number = position?.stored ?? 0
        guard number != Self.number(at: place, in: bytes) else { return false }
        if bytes.isEmpty { bytes = [UInt8](repeating: 0, count: Self.blockBytes) }
        for byte in 0..<8 { bytes[place + byte] = UInt8(truncatingIfNeeded: number >> UInt64(8 * byte)) }
        let statement = bytes.allSatisfy { $0 == 0 } ? statements.delete : statements.store
        statement.bind(1, block)
        if statement === statements.store { statement.bind(2, bytes) }
        try statement.run()
        return true
    }

    /// Visits the points of photos in views in a number of blocks, in the order of the inodes. Returns the inode to
    /// continue from; nil after the last one.
    public func eachPoint(
        from first: UInt64, blocks: Int,
        _ visit: (_ ino: UInt64, _ latitude: Int32, _ longitude: Int32) -> Void
    ) throws(FileError) -> UInt64? {
        let firstBlock = first / Self.pointsPerBlock
        statements.list.bind(1, firstBlock)
        statements.list.bind(2, Int64(blocks))
        var (next, count) = (firstBlock, 0)
        try statements.list.each { row in
            let block = row.count(0)
            row.require(block >= next)
            (next, count) = (block + 1, count + 1)
            let bytes = row.bytes(1)
            guard bytes.count == Self.blockBytes else { return true }
            for index in 0..<Self.pointsPerBlock {
                let stored = StoredPosition(stored: Self.number(at: Int(index) * 8, in: bytes))
                guard let stored, stored.isShown, case .point(let latitude, let longitude) = stored.position
                else { continue }
                visit(block * Self.pointsPerBlock + index, latitude, longitude)
            }
            return true
        }
        return count < blocks ? nil : next * Self.pointsPerBlock
    }

    /// Of how many photos in views it is known whether they have a position. Reads the whole table.
    public func count() throws(FileError) -> Int64 {
        statements.list.bind(1, 0 as Int64)
        statements.list.bind(2, Int64.max)
        var count: Int64 = 0
        try statements.list.each { row in
            let bytes = row.bytes(1)
            for place in stride(from: 0, to: bytes.count, by: 8) {
                if StoredPosition(stored: Self.number(at: place, in: bytes))?.isShown == true { count += 1 }
            }
            return true
        }
        return count
    }

    private static func place(of ino: UInt64) -> (block: UInt64, byte: Int) {
        (ino / pointsPerBlock, Int(ino % pointsPerBlock) * 8)
    }

    /// The bytes of a block; none if there are none, or not as many as there must be.
    private func bytes(ofBlock block: UInt64) throws(FileError) -> [UInt8] {
        statements.find.bind(1, block)
        let bytes = try statements.find.one { $0.bytes(0) } ?? []
        return bytes.count == Self.blockBytes ? bytes : []
    }

    /// A little-endian number; 0 behind the end.
    private static func number(at place: Int, in bytes: [UInt8]) -> UInt64 {
        guard place + 8 <= bytes.count else { return 0 }
        return (0..<8).reduce(0) { $0 | UInt64(bytes[place + $1]) << UInt64(8 * $1) }
    }
}
