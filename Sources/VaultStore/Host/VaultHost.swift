import LinuxIO
import VaultFormat

/// The host of a vault: its header, lock, list of segments and traces. The segments of a space are a `SegmentHost`.
///
/// `VaultFiles` is the host for a directory, `VaultCluster` for a Ceph cluster.
protocol VaultHost: PartHost {
    // MARK: Header

    /// Locks the vault for this process. Throws `inUse` if it is locked.
    func lock() throws(VaultError)

    /// Throws `notWritable` if the host allows only reading the header.
    func requireWritableHeader() throws(VaultError)

    /// Reads bytes of the header's place. Returns how many there are.
    func readHeader(at offset: UInt64, into bytes: inout [UInt8]) throws(Errno) -> Int

    /// Writes bytes of the header and makes them durable.
    func writeHeader(_ bytes: [UInt8], at offset: UInt64) throws(Errno)

    // MARK: Segments

    /// The segments of a space.
    ///
    /// - Parameter openMax: segments that are kept open at a time, where that takes anything.
    func segments(
        of space: Int, _ layout: SegmentLayout, cover: CoverTraffic?, openMax: Int
    ) throws(VaultError) -> any SegmentHost

    /// Throws if this user may not read the segments. Every other error is damage, which is found later.
    func requirePermission(_ layout: SegmentLayout) throws(VaultError)

    /// The number of segments that every space has, from 0 on without a gap. Throws if the host does not tell: fewer
    /// would have content look lost.
    func segmentCount(_ layout: SegmentLayout) throws(VaultError) -> Int

    /// Lists the segments of a vault of one space.
    func listing(_ layout: SegmentLayout) throws(VaultError) -> SegmentListing

    /// The highest number that a segment may have; -1 if there is none.
    func highestNumber(_ layout: SegmentLayout) throws(VaultError) -> Int

    /// Bytes that the vault takes, at most.
    func storedBytes(_ layout: SegmentLayout) throws(VaultError) -> UInt64

    /// Enlarges every space of a vault of several; see `Vault.grow`.
    func grow(
        _ header: Header, bytesPerSpace: UInt64, progress: (_ done: UInt64, _ total: UInt64) -> Void
    ) throws(VaultError)

    /// Completes rows of segments of which a killed `grow` wrote a part.
    func completeSegments(_ layout: SegmentLayout) throws(VaultError)

    // MARK: Repairs

    /// Damage of the segments' numbers and sizes, which is visible without a password. Writes and locks nothing.
    func damage(_ layout: SegmentLayout) throws(VaultError) -> [FileDamage]

    /// Gives segments of one space that have exchanged names their own again, by swaps of two in this order. If it is
    /// killed, each has still some segment's name.
    func exchange(_ steps: [(Int, Int)], _ layout: SegmentLayout) throws(VaultError)

    /// Cuts segments that are too long; extends those of several spaces to whole rows, at least so many.
    func mendSegments(_ layout: SegmentLayout, least segmentCount: Int) throws(VaultError)

    // MARK: Copies

    /// A mount's side of the agreement with running backups; nil where none can run beside a mount.
    func holdForBackups() -> BackupHold?

    /// The file whose bytes backups and a mount lock to detect each other; see `CopyLocks`. Nil where there is none:
    /// then a backup locks the vault, unless a mount has it.
    var copyLocks: Int32? { get }

    // MARK: Traces that others can see; see the threat model

    /// Hides the writes of a session among those of others. Nil in a vault of one space.
    ///
    /// - Parameter isRunning: hides writes and syncs without `CoverTraffic.start`: in a command.
    func cover(_ layout: SegmentLayout, isRunning: Bool) -> CoverTraffic?

    /// Drops the spaces from this computer's page cache.
    func dropPageCache(_ layout: SegmentLayout, ofKilled: Bool)

    /// Makes all sessions leave the same traces at their end.
    func blurTraces(_ layout: SegmentLayout)

    /// Makes all sessions leave the same traces at their beginning.
    func blurBeginning(_ layout: SegmentLayout)

    /// Leaves the traces of a change of the header that formats no space; see `Vault.change`.
    func imitateFormatting(_ layout: SegmentLayout)

    /// Leaves the traces of a change of the header, before it.
    func blurChange(_ layout: SegmentLayout)

    // MARK: This computer

    /// Whether files can be changed in place. Asked before a vault of one space is written; may write a file and remove
    /// it.
    func changesInPlace(_ layout: SegmentLayout) -> Bool

    /// Returns the descriptor that has the lock, for the daemon to inherit. Without any, the lock is given up, and the
    /// daemon takes it again. This host is not used then.
    func passLockOn() -> Int32?

    /// Whether the lock keeps every other computer from writing, so that spaces need no claims.
    var excludesOthers: Bool { get }

    /// This host, if its vault goes from one computer to another; else nil.
    var shared: (any SharedHost)? { get }

    /// Identifies the memory that unsynced writes are in, 64 bytes: they are there as long as it is. Nil if unknown.
    func memoryMark() -> [UInt8]?
}

/// A host whose vault goes from one computer to another.
protocol SharedHost: VaultHost {
    /// As `lock`, without waiting for the end of a lock whose mount is gone. Returns false if there is one.
    func lockAtOnce() throws(VaultError) -> Bool

    /// As `lock`, after asking the mount that has the vault to hand it over.
    func lockAfterAsking() throws(VaultError)

    /// Calls `handOver` when another mount asks for the vault. Without it the vault is not handed over.
    func whenAsked(_ handOver: @escaping @Sendable () -> Void) throws(VaultError)

    /// Makes every write fail, and needs no lock.
    func forbidWriting()

    /// Gives the vault up at the end of a session, of which some objects may never go: nothing uses it any more.
    func giveUp()

    /// The note of the mount that has the vault, if it can be read.
    var holderNote: [UInt8]? { get }

    /// Requests to the host so far, and their bytes.
    var requestCounts: [(name: String, value: UInt64)] { get }

    /// Writes this mount's note. Valid while it has the lock.
    func setHolderNote(_ note: [UInt8]) throws(VaultError)
}

extension VaultHost {
    /// Completes a backup into this vault that was interrupted.
    func completeCopy() throws(VaultError) { try CopyLog.applyAny(to: self) }

    /// Removes the traces of such a backup. Throws `notWritable` if the host refuses.
    func removeCopyLog() throws(VaultError) { try CopyLog.remove(from: self) }

    /// Whether traces of such a backup are left: they must not be applied to a newer state.
    var hasCopyLog: Bool { CopyLog.isIn(self) }

    func segments(
        of space: Int, _ layout: SegmentLayout, cover: CoverTraffic? = nil
    ) throws(VaultError) -> any SegmentHost {
        try segments(of: space, layout, cover: cover, openMax: Limits.production.openSegments)
    }
}
