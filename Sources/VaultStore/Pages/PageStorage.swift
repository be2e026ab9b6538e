import LinuxIO
import VaultFormat

/// The page storage below a database: 4096-byte pages, of which the store uses the last 40 bytes.
public protocol PageStorage: AnyObject, Sendable {
    /// Number of pages of the database.
    var pageCount: UInt32 { get }
    /// Reads a page into `bytes` (4096); zeros if it was never written.
    func readPage(_ index: UInt32, into bytes: UnsafeMutableRawBufferPointer) throws(StoreError)
    /// Keeps a page in memory for the next commit. A page of zeros takes no room from then on.
    func stagePage(_ index: UInt32, _ bytes: UnsafeRawBufferPointer)
    func truncatePages(to count: UInt32)
    /// Whether each read waits for an answer from elsewhere, so that several should be on their way.
    var readsTakeRoundTrips: Bool { get }
    /// Begins to read the pages `soon`, which will be read in that order, and the references to the pages `later`.
    /// Only advice: either may name pages that do not exist.
    func willReadPages(_ soon: ArraySlice<UInt32>, later: ArraySlice<UInt32>)
}

extension PageStorage {
    public var readsTakeRoundTrips: Bool { false }
    public func willReadPages(_ soon: ArraySlice<UInt32>, later: ArraySlice<UInt32>) {}
}

/// A page in memory, immutable once it is shared.
final class PageBuffer: @unchecked Sendable {
    private static let pool = BufferPool(bufferBytes: Geometry.pageBytes, keptMax: 512)
    let bytes: UnsafeMutableRawBufferPointer
    /// Whether all bytes are zero, as SQLite leaves pages that it frees.
    let isZero: Bool

    init(_ source: UnsafeRawBufferPointer) {
        bytes = Self.pool.take()
        bytes.copyMemory(from: UnsafeRawBufferPointer(rebasing: source.prefix(Geometry.pageBytes)))
        isZero = bytes.allSatisfy { $0 == 0 }
    }

    deinit { Self.pool.give(bytes) }
}
