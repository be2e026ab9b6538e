import LinuxIO

/// A part of a vault, for backups and the restoring of a header, to which all parts are bytes.
enum VaultPart {
    case header
    case segment(SegmentPlace, SegmentLayout)
    /// The log of a backup into this vault; see `CopyLog`.
    case copyLog
}

/// How a part of a vault is opened.
enum PartUse {
    case reading
    case writing
    /// For writing; made if it is missing.
    case making
    /// For writing; made, or emptied.
    case replacing
}

/// An open part of a vault. Used by one thread at a time.
protocol PartBytes: AnyObject {
    /// How many bytes there are.
    func size() throws(Errno) -> UInt64

    /// Reads bytes up to the part's end. Returns how many, and the ranges of them that the host cannot read: zeros, in
    /// whole pages.
    func readAround(
        _ bytes: UnsafeMutableRawBufferPointer, at offset: UInt64
    ) throws(Errno) -> (count: Int, unreadable: [Range<Int>])

    /// As `readAround`; throws `inputOutput` for what the host cannot read.
    func read(_ bytes: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(Errno) -> Int

    /// Writes all bytes. They are durable after the next `sync`.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(Errno)

    func truncate(to size: UInt64) throws(Errno)

    /// Makes everything durable that was written to the part.
    func sync() throws(Errno)

    /// Drops bytes from this computer's page cache.
    func forget(_ range: Range<UInt64>)
}

extension PartBytes {
    func forget(_ range: Range<UInt64>) {}

    /// Reads the beginning of an array. Returns how many bytes there are.
    func read(_ bytes: inout [UInt8], at offset: UInt64) throws(Errno) -> Int {
        let result = bytes.withUnsafeMutableBytes { bytes -> Result<Int, Errno> in
            do throws(Errno) { return .success(try read(bytes, at: offset)) } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    func write(_ bytes: [UInt8], at offset: UInt64) throws(Errno) {
        let result = bytes.withUnsafeBytes { bytes -> Result<Void, Errno> in
            do throws(Errno) { return .success(try write(bytes, at: offset)) } catch {
                return .failure(error)
            }
        }
        try result.get()
    }
}

/// A vault as its parts, whose names become durable on their own.
protocol PartHost: AnyObject, Sendable {
    /// Opens a part. Throws `noEntry` if it is missing. The header is always there.
    func open(_ part: VaultPart, _ use: PartUse) throws(Errno) -> any PartBytes

    /// Finds the segments of all spaces. With several spaces, only whole rows count: a row that `grow` is writing is
    /// not in use. With one, bytes beyond a segment's size do not count.
    func segments(_ layout: SegmentLayout) throws(VaultError) -> FoundSegments

    /// A segment's name, for messages.
    func name(of place: SegmentPlace, _ layout: SegmentLayout) -> String

    /// Bytes that the host has left for this user.
    func availableBytes() throws(Errno) -> UInt64

    /// Whether there is nothing of a vault except an empty header, and maybe the log of a backup.
    func isBare() throws(Errno) -> Bool

    /// Makes the place where segments will be.
    func makeSegmentsPlace(_ layout: SegmentLayout) throws(Errno)

    /// Makes the names of header, log and the segments' place durable.
    func syncNames() throws(Errno)

    /// Makes the names of segments durable.
    func syncSegmentNames(_ layout: SegmentLayout) throws(VaultError)

    /// Removes the log of a backup. Throws `noEntry` if there is none.
    func removeLog() throws(Errno)

    /// Removes the header.
    func removeHeader() throws(Errno)

    /// Throws `foreignHeader` if the vault's segments contradict a header's spaces or segment size. Segments may be
    /// missing or damaged.
    func requireFitting(_ header: Header) throws(VaultError)
}
