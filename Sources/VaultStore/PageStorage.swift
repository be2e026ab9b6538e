import LinuxIO
import VaultFormat

/// What a paged database needs of the layer below it: 4096-byte pages, of which the last 40 are the store's.
public protocol PageStorage: AnyObject, Sendable {
    /// Pages the database has.
    var pageCount: UInt32 { get }
    /// Fills `bytes` (4096) with a page; zeros for one never written.
    func readPage(_ index: UInt32, into bytes: UnsafeMutableRawBufferPointer) throws(StoreError)
    /// Keeps a page in memory for the next commit.
    func stagePage(_ index: UInt32, _ bytes: UnsafeRawBufferPointer)
    func truncatePages(to count: UInt32)
}

/// A page in memory. It is written before it is shared and never after.
final class PageBuffer: @unchecked Sendable {
    private static let pool = BufferPool(bufferBytes: Geometry.pageBytes, keptMax: 512)
    let bytes: UnsafeMutableRawBufferPointer

    init(_ source: UnsafeRawBufferPointer) {
        bytes = Self.pool.take()
        bytes.copyMemory(from: UnsafeRawBufferPointer(rebasing: source.prefix(Geometry.pageBytes)))
    }

    deinit { Self.pool.give(bytes) }
}
