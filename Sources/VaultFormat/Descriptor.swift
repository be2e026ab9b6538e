/// An extent's self-description: sealed in front of its payload, and part of the payload's associated data.
public struct Descriptor: Sendable, Hashable {
    public var role: ExtentRole
    /// Number of the content that the extent belongs to.
    public var content: UInt64
    /// First plaintext byte of the content in this extent.
    public var offset: UInt64
    /// Plaintext bytes.
    public var length: UInt32
    /// Generation of the commit that was to publish it.
    public var generation: UInt64
    /// Random number of the mount that wrote it.
    public var epoch: UInt64

    public init(
        role: ExtentRole, content: UInt64, offset: UInt64, length: UInt32, generation: UInt64, epoch: UInt64
    ) {
        self.role = role
        self.content = content
        self.offset = offset
        self.length = length
        self.generation = generation
        self.epoch = epoch
    }

    /// Writes the 40 bytes of the descriptor.
    public func encode(into bytes: UnsafeMutableRawBufferPointer) {
        precondition(bytes.count == Geometry.descriptorBytes)
        unsafe bytes.setNumber(UInt32(role.rawValue), 0)
        unsafe bytes.setNumber(length, 4)
        unsafe bytes.setNumber(content, 8)
        unsafe bytes.setNumber(offset, 16)
        unsafe bytes.setNumber(generation, 24)
        unsafe bytes.setNumber(epoch, 32)
    }

    /// Nil if the role is unknown, or the length or a number is out of range.
    public init?(decoding bytes: UnsafeRawBufferPointer) {
        guard bytes.count == Geometry.descriptorBytes, unsafe bytes.number(0, as: UInt32.self) <= 255,
            let role = unsafe ExtentRole(
                rawValue: UInt8(truncatingIfNeeded: bytes.number(0, as: UInt32.self))),
            unsafe (1...UInt32(Geometry.chunkBytes)).contains(bytes.number(4)),
            // Records of retired IDs are numbered from 2^62 on.
            unsafe bytes.number(8, as: UInt64.self) < 2 * Geometry.numberMax,
            unsafe bytes.number(16, as: UInt64.self) <= Geometry.numberMax,
            unsafe bytes.number(24, as: UInt64.self) <= Geometry.numberMax
        else { return nil }
        unsafe self.init(
            role: role, content: bytes.number(8), offset: bytes.number(16), length: bytes.number(4),
            generation: bytes.number(24), epoch: bytes.number(32))
    }

    /// The payload's associated data: format version, then the descriptor. 42 bytes.
    public static let associatedBytes = 2 + Geometry.descriptorBytes

    public func encodeAssociatedData(into bytes: UnsafeMutableRawBufferPointer) {
        precondition(bytes.count == Self.associatedBytes)
        unsafe bytes.setNumber(formatVersion, 0)
        unsafe encode(into: bytes.slice(2, Geometry.descriptorBytes))
    }
}

/// Consecutive extents that hold consecutive chunks of one content.
///
/// `length` exceeds a chunk only if `offset` is a multiple of a chunk: then every chunk but the last is full, and each
/// begins `Geometry.sectorsPerChunk` sectors after the one before.
public struct ExtentRun: Sendable, Hashable {
    /// First plaintext byte in the content.
    public var offset: UInt64
    /// Plaintext bytes.
    public var length: UInt64
    /// Linear number of the first sector in the space.
    public var sector: UInt64
    public var generation: UInt64
    public var epoch: UInt64

    public init(offset: UInt64, length: UInt64, sector: UInt64, generation: UInt64, epoch: UInt64) {
        self.offset = offset
        self.length = length
        self.sector = sector
        self.generation = generation
        self.epoch = epoch
    }

    /// Runs that stand for lost bytes of a content. They have no sectors: reading them is an error, and freeing them
    /// frees nothing.
    ///
    /// - Parameter range: ends at `Geometry.numberMax` at most.
    public static func lost(_ range: Range<UInt64>) -> [ExtentRun] {
        let chunk = UInt64(Geometry.chunkBytes)
        var runs: [ExtentRun] = []
        var offset = range.lowerBound
        while offset < range.upperBound {
            // First the rest of a chunk, then whole chunks.
            let most = offset % chunk == 0 ? Geometry.lostBytesMax : chunk - offset % chunk
            let length = min(range.upperBound - offset, most)
            // Sectors are numbered so that neighbouring runs can be joined.
            let sector = Geometry.lostSector + offset / chunk * UInt64(Geometry.sectorsPerChunk)
            runs.append(ExtentRun(offset: offset, length: length, sector: sector, generation: 0, epoch: 0))
            offset += length
        }
        return runs
    }

    /// Whether the run stands for lost bytes; see `lost(_:)`.
    public var isLost: Bool {
        sector >= Geometry.lostSector && sector < Geometry.numberMax && offset < Geometry.numberMax
            && length > 0 && length <= Geometry.lostBytesMax
            && (length <= UInt64(Geometry.chunkBytes) || offset % UInt64(Geometry.chunkBytes) == 0)
    }

    /// The offset after the run. Always greater than `offset`, even for an invalid row.
    public var following: UInt64 { min(offset, 1 << 62) + min(max(length, 1), 1 << 62) }

    public var chunkCount: Int {
        let (whole, rest) = length.quotientAndRemainder(dividingBy: UInt64(Geometry.chunkBytes))
        return Int(whole) + (rest > 0 ? 1 : 0)
    }

    /// Plaintext bytes of chunk `index` of the run.
    public func plainBytes(ofChunk index: Int) -> Int {
        Int(min(length - UInt64(index) * UInt64(Geometry.chunkBytes), UInt64(Geometry.chunkBytes)))
    }

    /// First sector of chunk `index` of the run.
    public func sector(ofChunk index: Int) -> UInt64 { sector + UInt64(index * Geometry.sectorsPerChunk) }

    /// The sector behind the run.
    public var endSector: UInt64 { sector + UInt64(sectorCount) }

    /// Sectors of the whole run.
    public var sectorCount: Int {
        let count = chunkCount
        return (count - 1) * Geometry.sectorsPerChunk
            + Geometry.sectors(forPlaintext: plainBytes(ofChunk: count - 1))
    }

    /// Joins neighbours that one row can hold.
    ///
    /// - Parameter runs: by offset.
    public static func joined(_ runs: [ExtentRun]) -> [ExtentRun] {
        var joined: [ExtentRun] = []
        for run in runs {
            if let last = joined.last, last.isContinued(by: run) {
                joined[joined.count - 1].length += run.length
            } else {
                joined.append(run)
            }
        }
        return joined
    }

    /// Whether `next` continues this run, so that one row can hold both.
    public func isContinued(by next: ExtentRun) -> Bool {
        next.generation == generation && next.epoch == epoch && offset + length == next.offset
            && length % UInt64(Geometry.chunkBytes) == 0 && offset % UInt64(Geometry.chunkBytes) == 0
            && next.sector == sector + UInt64(chunkCount * Geometry.sectorsPerChunk)
    }
}
