import LinuxIO
import Synchronization
import VaultFormat

/// The disk of the host, which a vault that grows takes its room from.
final class HostRoom: Sendable {
    private let disk: SpaceDisk
    /// The last reported available bytes, and the monotonic time in milliseconds until which they are used.
    private let known = Mutex<(bytes: UInt64, until: Int64)?>(nil)
    private let last = Atomic<UInt64>(.max)
    private let silent = Atomic<Bool>(false)
    private let promised = Atomic<UInt64>(0)
    /// Users' bytes in flight to places that may have no disk blocks yet.
    private let fresh = Mutex<UInt64>(0)

    /// Disk that content does not use, so that the catalogue can still be written; see `keptBytes` too.
    static let reserveBytes: UInt64 = 1 << 20
    /// Disk that is left beside the reserve, because several requests ask for it at once.
    static let marginBytes: UInt64 = 64 << 10
    /// Bytes of sectors that can be used again on a full host, and are kept from users' bytes, so that files can be
    /// cut: the host's own reserve may be the catalogue's by then. See `CuttingReserve`.
    static let usedReserveBytes: UInt64 = 192 << 10
    /// With more free disk than this, slots are backed before they are needed.
    static let plentyBytes: UInt64 = 1 << 30
    private static let ampleBytes: UInt64 = 8 << 30
    private static let knownMilliseconds: Int64 = 50

    init(_ disk: SpaceDisk) { self.disk = disk }

    /// Bytes available on the disk. If they are far more than can be written meanwhile, the result is cached briefly,
    /// because it is queried several times a file.
    func available() throws(StoreError) -> UInt64 {
        let now = MonotonicClock.milliseconds
        if let known = known.withLock({ $0 }), now < known.until { return known.bytes }
        let bytes: UInt64
        do throws(StoreError) { bytes = try disk.availableBytes() } catch {
            silent.store(true, ordering: .relaxed)
            throw error
        }
        silent.store(false, ordering: .relaxed)
        last.store(bytes, ordering: .relaxed)
        known.withLock { $0 = bytes > Self.ampleBytes ? (bytes, now + Self.knownMilliseconds) : nil }
        return bytes
    }

    /// Whether the host did not tell how much is available when it was asked last: its server or its disk is gone. Then
    /// nobody knows of a lack of room.
    var isSilent: Bool { silent.load(ordering: .relaxed) }

    /// As `available`; 0 if the host does not tell.
    var availableOrNone: UInt64 { (try? available()) ?? 0 }

    /// The bytes that were available last, however long ago; `UInt64.max` before the first time.
    var lastAvailable: UInt64 { last.load(ordering: .relaxed) }

    /// Keeps room from users' bytes for slots that count as backed, on a host that reserves nothing for them.
    ///
    /// - Parameter bytes: of all such slots; replaces the former number.
    func promise(_ bytes: UInt64) { promised.store(bytes, ordering: .relaxed) }

    /// Disk that is kept for the catalogue.
    var keptBytes: UInt64 { Self.reserveBytes + promised.load(ordering: .relaxed) }

    /// Asks the host anew next time.
    func forget() { known.withLock { $0 = nil } }

    /// Whether the host has room for `count` bytes of a user and the catalogue's reserve. If so, they count as in
    /// flight until `release`.
    func reserve(_ count: Int, _ purpose: WritePurpose) throws(StoreError) -> Bool {
        try fresh.withLock { (fresh) throws(StoreError) in
            let wanted = fresh + UInt64(count) + UInt64(count) / 64 + Self.marginBytes
            if purpose == .user, try available() < keptBytes + wanted { return false }
            fresh += UInt64(count)
            return true
        }
    }

    func release(_ count: Int) { fresh.withLock { $0 -= UInt64(count) } }
}
