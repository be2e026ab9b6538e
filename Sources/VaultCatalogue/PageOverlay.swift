import LinuxIO
import VaultStore

/// Pages of a storage, with changes that stay in memory: a catalogue of an older version is read so, as one of the
/// newest.
///
/// Unchecked Sendable: `lock` guards the changes.
final class PageOverlay: PageStorage, @unchecked Sendable {
    private let base: any PageStorage
    private let lock = Lock()
    // All under `lock`.
    private var changed: [UInt32: [UInt8]] = [:]
    private var count: UInt32
    /// Number of pages of the storage that have not been cut off.
    private var baseCount: UInt32

    init(_ base: any PageStorage) {
        self.base = base
        count = base.pageCount
        baseCount = count
    }

    var pageCount: UInt32 { lock.withLock { count } }

    func readPage(_ index: UInt32, into bytes: UnsafeMutableRawBufferPointer) throws(StoreError) {
        let (own, isOfBase) = lock.withLock { (changed[index], index < baseCount) }
        if let own {
            bytes.copyBytes(from: own)
        } else if isOfBase {
            try base.readPage(index, into: bytes)
        } else {
            bytes.initializeMemory(as: UInt8.self, repeating: 0)
        }
    }

    var readsTakeRoundTrips: Bool { base.readsTakeRoundTrips }

    func willReadPages(_ soon: ArraySlice<UInt32>, later: ArraySlice<UInt32>) {
        base.willReadPages(soon, later: later)
    }

    func stagePage(_ index: UInt32, _ bytes: UnsafeRawBufferPointer) {
        lock.withLock {
            changed[index] = [UInt8](bytes)
            count = max(count, index + 1)
        }
    }

    func truncatePages(to count: UInt32) {
        lock.withLock {
            self.count = count
            baseCount = min(baseCount, count)
            changed = changed.filter { $0.key < count }
        }
    }
}
